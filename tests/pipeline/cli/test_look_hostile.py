"""A look takes bounded time and memory however long a file is, and says what else a name may be."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import manifold_observer.pipeline as mo
from strategies import share

pytestmark = pytest.mark.usefixtures("in_this_thread", "in_this_process")
# Bytes on top of what importing the libraries takes, and seconds of CPU with it.
MOST_MEMORY, MOST_SECONDS = 400 << 20, 20
LONG = 10 << 30
_LOOKING = """
import resource, sys
import dask, numpy, xarray, pandas, zarr, manifold_observer.pipeline.look.looking
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
from manifold_observer.pipeline.cli.commands import main
try:
    main(["look", "--json", *sys.argv[1:]])
except SystemExit as done:
    code = done.code
used = resource.getrusage(resource.RUSAGE_SELF)
print(code or 0, used.ru_maxrss - before, used.ru_utime + used.ru_stime, file=sys.stderr)
"""


def measured(*words):
    """Answer, exit code, and what it took, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _LOOKING, *map(str, words)], capture_output=True, text=True, check=False, timeout=250
    )
    assert "Traceback" not in done.stderr, done.stderr
    code, kib, seconds = done.stderr.splitlines()[-1].split()
    assert int(kib) << 10 < MOST_MEMORY
    assert float(seconds) < MOST_SECONDS
    return json.loads(done.stdout)["files"], int(code)


def sparse(path, head, length=LONG):
    """A file that is as long as it says, and takes no room."""
    path.write_bytes(head)
    os.truncate(path, length)
    return path


def long_npy(path):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 8), }" % (LONG // 32)
    head = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.ljust(117) + b"\n"
    return sparse(path / "long.npy", head, LONG + len(head))


def long_wav(path):
    size = (4 << 30) - 100  # as much as a header can say
    head = b"RIFF" + (size + 36).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    head += b"\x01\x00\x02\x00" + (44100).to_bytes(4, "little") + (176400).to_bytes(4, "little") + b"\x04\x00\x10\x00"
    return sparse(path / "long.wav", head + b"data" + size.to_bytes(4, "little"), size + 44)


def long_csv(path):
    rows = "".join(f"{k / 100},{k % 17 + 0.5},{k * k % 23 + 0.25}\n" for k in range(200_000))
    return sparse(path / "long.csv", f"time,a,b\n{rows}".encode())


def one_line(path):
    return sparse(path / "line.csv", b"time,a,b\n" + b"1" * (8 << 20))


def many_columns(path):
    names = ",".join(f"c{k}" for k in range(20_000))
    rows = "".join(",".join(f"{(j + k) % 97}.5" for k in range(20_000)) + "\n" for j in range(30))
    (path / "wide.csv").write_text(f"{names}\n{rows}")
    return path / "wide.csv"


def quote_open(path):
    (path / "open.csv").write_text('time,a\n1,"2\n' + "3,4\n" * 200_000)
    return path / "open.csv"


LONG_FILES = [long_npy, long_wav, long_csv, one_line, many_columns, quote_open]


@pytest.mark.slow
@pytest.mark.parametrize("make", share(LONG_FILES, 3), ids=lambda make: make.__name__)
def test_look__is_bounded(tmp_path, make):
    path = make(tmp_path)
    found, code = measured(path)
    assert len(found) == 1
    assert code == (0 if found[0]["error"] is None else 1)
    if make in (long_npy, long_wav):
        assert found[0]["error"] is None
        assert found[0]["samples"] == (LONG // 32 if make is long_npy else ((4 << 30) - 100) // 4)
        assert found[0]["bytes"] == path.stat().st_size
    if make is long_csv:
        assert found[0]["error"] is None
        assert found[0]["channels"] == ["a", "b"]


@pytest.mark.slow
def test_look__of_what_is_no_recording_names_the_command_that_is_meant(console, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("walk.npy", np.random.default_rng(0).normal(size=(80, 3)).cumsum(axis=0))
    config = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
    mo.run(["walk.npy"], "walk.zarr", config)
    np.save("next.npy", np.load("walk.npy") + 0.1)
    mo.continue_run("walk.zarr", ["next.npy"], "more")
    Path("folder/within").mkdir(parents=True)
    Path("folder/a.wav").touch()
    Path("empty").mkdir()
    Path("mixed").mkdir()
    Path("mixed/a.html").write_text("<html><title>a report</title></html>")
    Path("mixed/b.png").write_bytes(bytes(range(256)))
    shutil.copytree("walk.zarr", "mixed/c.zarr")
    np.save("mixed/d.npy", np.zeros((80, 3)))
    cases = {
        "walk.zarr": "'manifold-observer info walk.zarr'",
        "more": "'manifold-observer info more'",
        "folder": "such as folder/a.wav",
        "mixed": "such as mixed/d.npy",
        "empty": "this one is empty",
        "none.wav": "does not exist. Check the path",
        "-": "Copy it into a file",
        "/dev/zero": "must be a file or a folder",
    }
    code, text, err = console("look", *cases)
    assert (code, text) == (1, "")
    lines = err.splitlines()
    assert len(lines) == len(cases)
    for line, said in zip(lines, cases.values(), strict=True):
        assert said in line
        assert line.startswith("Error: ")


@pytest.mark.parametrize(
    "name", ["\x1b[31mred.npy", "line\nbreak.npy", os.fsdecode(b"caf\xe9.npy"), "-dash.npy", "$(x) '\".npy"]
)
def test_look__names_are_printed_without_harm(console, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    np.save(Path(name), np.random.default_rng(0).normal(size=(80, 3)).cumsum(axis=0))
    code, text, err = console("look", "--", name)
    assert code == 0, err
    assert "\x1b" not in text
    assert text.isprintable() or all(one.isprintable() or one == "\n" for one in text)
    assert "manifold-observer run " in text
