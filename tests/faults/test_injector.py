"""The injector counts what changes files, exactly, and lets the n-th call go wrong as asked."""

import json
import subprocess
import sys

import pytest

from faults import injector

pytestmark = pytest.mark.skipif(injector.compiler() is None, reason="needs a C compiler on Linux")

# Writes in many ways; each line is one call that counts, in the order of CALLS.
PROGRAM = """
import ctypes, mmap, os, sys
from pathlib import Path
import numpy as np

def main(folder):
    os.mkdir(folder / "a")
    file = os.open(folder / "a/x", os.O_WRONLY | os.O_CREAT)
    os.write(file, b"12345678")
    os.pwrite(file, b"ABCD", 0)
    os.writev(file, [b"", b"90"])
    os.ftruncate(file, 9)
    os.fsync(file)
    os.close(file)
    source = os.open(folder / "a/x", os.O_RDONLY)
    target = os.open(folder / "a/y", os.O_RDWR | os.O_CREAT)
    os.sendfile(target, source, 0, 4)
    os.copy_file_range(source, target, 4)
    os.close(target)
    os.close(source)
    with (folder / "a/z").open("wb") as file:
        file.write(b"through a buffer")
        file.flush()
        os.fdatasync(file.fileno())
    with (folder / "a/tile.npy").open("wb") as file:
        file.write(b"1234")
        file.flush()
        np.arange(6.0).tofile(file)
    os.rename(folder / "a/x", folder / "a/x1")
    os.replace(folder / "a/x1", folder / "a/x2")
    inside = os.open(folder / "a", os.O_RDONLY)
    os.rename("x2", "x3", src_dir_fd=inside, dst_dir_fd=inside)
    libc = ctypes.CDLL("libc.so.6", use_errno=True)
    libc.renameat2(-100, bytes(folder / "a/x3"), -100, bytes(folder / "a/x4"), 1)
    ctypes.CDLL(None).syscall(316 if os.uname().machine == "x86_64" else 276,
                              -100, bytes(folder / "a/x4"), -100, bytes(folder / "a/x5"), 1)
    os.link(folder / "a/x5", folder / "a/hard")
    os.symlink("x5", folder / "a/soft")
    os.chmod(folder / "a/x5", 0o600)
    os.fsync(inside)
    os.unlink("soft", dir_fd=inside)
    os.close(inside)
    for name in ("hard", "x5", "y", "z", "tile.npy"):
        os.unlink(folder / "a" / name)
    os.rmdir(folder / "a")
    # None of these changes anything here:
    (folder / "b").exists()
    (folder / "b").unlink(missing_ok=True)
    folder.mkdir(exist_ok=True)
    list(folder.iterdir())
    Path(folder.with_name("elsewhere")).write_text("not watched")
"""
CALLS = """mkdir a; create a/x; write a/x; write a/x; write a/x; truncate a/x; sync a/x; close a/x;
create a/y; write a/y; write a/y; close a/y; create a/z; write a/z; sync a/z; close a/z;
create a/tile.npy; write a/tile.npy; write a/tile.npy; close a/tile.npy; close a/tile.npy;
rename a/x1; rename a/x2; rename a/x3; rename a/x4; rename a/x5; link a/hard; link a/soft; attribute a/x5;
sync a; remove a/soft; remove a/hard; remove a/x5; remove a/y; remove a/z; remove a/tile.npy; remove a"""
CALLS = CALLS.replace("\n", " ").split("; ")
DRIVER = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from faults import folders, forks
from faults.injector import Fault
{program}
results = []
for number, (kind, n) in enumerate(json.loads(sys.argv[3])):
    folder = Path(sys.argv[2]) / str(number) / "watched"
    folder.mkdir(parents=True)
    ended = forks.in_child(lambda: main(folder), folder, Fault(kind, n) if n else None)
    results.append({{
        "how": ended.how, "said": ended.said, "hit": ended.hit, "calls": [str(call) for call in ended.calls],
        "faulted": [k for k, call in enumerate(ended.calls, 1) if call.faulted],
        "sizes": {{str(p.relative_to(folder)): p.stat().st_size for p in folder.rglob("*") if p.is_file()}},
    }})
print(json.dumps(results))
"""
# ctypes raises nothing; NumPy closes its copy of a file without a look at what that gives.
UNHEARD = [CALLS.index(call) + 1 for call in ("close a/tile.npy", "rename a/x4", "rename a/x5")]
WRITES = [n for n, call in enumerate(CALLS, 1) if call.startswith("write")]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return injector.compiled(tmp_path_factory.mktemp("injector"))


@pytest.fixture
def run(tmp_path, library):
    """Run a program of writes under faults, each (kind, number); what came of each."""

    def under(*faults, program=PROGRAM):
        command = [sys.executable, "-c", DRIVER.format(program=program), str(injector.__file__).rsplit("/", 2)[0]]
        command += [str(tmp_path), json.dumps(faults)]
        made = subprocess.run(command, env=injector.environment(library), capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        return json.loads(made.stdout)

    return under


def test_trace__holds_every_call_that_changes_a_file_and_no_other(run):
    (result,) = run(("full", 0))
    assert result["how"] == "done", result["said"]
    assert result["calls"] == CALLS


@pytest.mark.parametrize(
    ("kind", "text"), [("full-once", "Errno 28"), ("broken-once", "Errno 5"), ("read-only", "Errno 30")]
)
def test_fault__every_call_fails_as_asked(run, kind, text):
    able = injector.KINDS[kind].operations
    numbers = [n for n, call in enumerate(CALLS, 1) if call.split()[0] in able and n not in UNHEARD]
    for n, result in zip(numbers, run(*((kind, n) for n in numbers)), strict=True):
        assert (result["how"], result["hit"]) == ("failed", True), CALLS[n - 1]
        assert text in result["said"] or "requested and" in result["said"], CALLS[n - 1]
        assert result["faulted"][0] == n


def test_fault__calls_whose_error_nobody_hears_fail_too(run):
    for n, result in zip(UNHEARD, run(*(("broken-once", n) for n in UNHEARD)), strict=True):
        assert result["faulted"] == [n]
        assert (result["calls"] == CALLS) == CALLS[n - 1].startswith("close")


def test_fault__a_full_disk_cuts_the_first_write_and_refuses_the_next_but_lets_remove(run):
    program = """
import os
def main(folder):
    file = os.open(folder / "x", os.O_WRONLY | os.O_CREAT)
    assert os.write(file, b"12345678") == 4
    for call in (lambda: os.write(file, b"56"), lambda: os.mkdir(folder / "a")):
        try:
            call()
        except OSError as error:
            assert error.errno == 28
    os.close(file)
    os.rename(folder / "x", folder / "y")
    os.unlink(folder / "y")
"""
    (result,) = run(("full", 2), program=program)
    assert (result["how"], result["said"]) == ("done", "")
    assert result["faulted"] == [2, 3, 4]
    assert result["sizes"] == {}


def test_fault__kills_before_and_after_the_call(run):
    renamed = CALLS.index("rename a/x1") + 1
    before, after = run(("kill-before", renamed), ("kill-after", renamed))
    assert before["how"] == after["how"] == "killed"
    assert len(before["calls"]) == len(after["calls"]) == renamed
    assert ("a/x" in before["sizes"], "a/x1" in before["sizes"]) == (True, False)
    assert ("a/x" in after["sizes"], "a/x1" in after["sizes"]) == (False, True)


def test_fault__every_write_is_cut_in_half_and_the_process_dies(run):
    sizes = {"a/x": [4, 8, 9], "a/y": [2, 6], "a/z": [8], "a/tile.npy": [2, 28]}
    expected = [(path, size) for path in sizes for size in sizes[path]]
    for n, (path, size), result in zip(WRITES, expected, run(*(("cut", n) for n in WRITES)), strict=True):
        assert result["how"] == "killed"
        assert result["sizes"][path] == size, CALLS[n - 1]


def test_fault__a_short_write_is_written_on_by_python(run):
    (n,) = [n for n in WRITES if CALLS[n - 1] == "write a/z"]
    (result,) = run(("short", n))
    assert result["how"] == "done", result["said"]
    assert len(result["calls"]) == len(CALLS) + 1


def test_trace__holds_the_calls_of_threads(run):
    program = """
import threading
def main(folder):
    threads = [threading.Thread(target=(folder / str(n)).mkdir) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""
    (result,) = run(("full", 0), program=program)
    assert sorted(result["calls"]) == sorted(f"mkdir {n}" for n in range(20))
