"""Where there are no POSIX modules, as on Windows, everything imports and a small run works."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [path for folder in ("tasks", "pipeline", "datasets") for path in sorted((ROOT / folder).rglob("*.py"))]
MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix"}
# What Windows or macOS does not have.
NAMES = {
    "os": "sched_getaffinity getuid geteuid getgid fork forkpty killpg getpgid setsid pread pwrite mkfifo statvfs "
    "O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_NONBLOCK getloadavg nice sysconf uname fchmod fchown chown posix_fadvise",
    "signal": "SIGKILL SIGHUP SIGUSR1 SIGUSR2 SIGALRM SIGPIPE SIGCHLD pthread_sigmask alarm setitimer sigwait",
}

# The libraries are imported first: they know which system they run on.
PROGRAM = """
import importlib, os, signal, sys
import dask.array, distributed, h5py, h5netcdf, matplotlib, scipy.io, soundfile, xarray, zarr
import numpy as np
import psutil
import fcntl

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in MODULES & set(sys.modules) - {"posix"}:  # the standard library's own os looks into that
    del sys.modules[name]
sys.meta_path.insert(0, Hidden())
for module, names in NAMES.items():
    for name in names.split():
        if name not in KEPT and hasattr(sys.modules[module], name):
            delattr(sys.modules[module], name)

if hasattr(os, "process_cpu_count"):  # made from one of them
    os.process_cpu_count = os.cpu_count

for name in sys.argv[2:]:
    importlib.import_module(name)

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.graph import machine
from manifold_observer.pipeline.graph.ending import Ending, Hearing, unheard

assert machine.resource is None and machine.free_memory() > 0
folder = sys.argv[1]
np.save(folder + "/walk.npy", np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=0))
frames = mo.identity(mo.open_recording(folder + "/walk.npy"))
embedding = mo.embed(frames, n_modes=2)
state = mo.observe(embedding, frames, gamma=0.5)["state"]
assert state.shape == (300, 2) and bool(np.isfinite(state).all())
with Ending() as ending, unheard():
    assert not ending.wait(0)
    signal.raise_signal(signal.SIGTERM)
    assert ending.wait(60)
Hearing().listen()

# Without any locks a run is refused, since two might write to one place.
from pathlib import Path
config = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
arguments = [Path(folder, "walk.npy")], Path(folder, "walk.zarr"), config
try:
    mo.run(*arguments)
except OSError as error:
    assert "No locks available" in str(error), error
else:
    raise AssertionError("ran")

class Locks:  # msvcrt.locking, in terms of this system's
    LK_NBLCK = 2
    held = []
    def locking(self, handle, mode, n_bytes):
        assert os.lseek(handle, 0, os.SEEK_CUR) == 2**30 and (mode, n_bytes) == (2, 1)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None
        self.held.append(handle)

sys.modules["msvcrt"] = Locks()
result = mo.run(*arguments)
assert np.array_equal(result["state/state"], mo.observe(embedding, frames)["state"])
assert Locks.held and sorted(os.listdir(folder)) == ["walk.npy", "walk.zarr"]

from manifold_observer.pipeline.jobs.workfolder import holding
with holding(Path(folder), "out", "busy"):
    try:
        with holding(Path(folder), "out", "another run"):
            raise AssertionError("two at once")
    except ValueError as error:
        assert str(error) == "another run"
assert sorted(os.listdir(folder)) == ["walk.npy", "walk.zarr"]
print("all of it")
"""
# Python 3.11's own shutil and subprocess look for these whenever they are used.
KEPT = {"O_CLOEXEC", "O_NONBLOCK", "O_DIRECTORY", "statvfs"}


def modules():
    """The installed name of each file."""
    for path in FILES:
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(["manifold_observer", *(parts[:-1] if parts[-1] == "__init__" else parts)])


@pytest.mark.slow
def test_package__imports_and_computes_without_posix(tmp_path):
    program = f"MODULES, NAMES, KEPT = {MODULES!r}, {NAMES!r}, {KEPT!r}\n{PROGRAM}"
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", program, str(tmp_path), *modules()]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert made.stdout == "all of it\n"


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_files__ask_before_they_use_what_is_not_everywhere(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    asked = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in NAMES:
            assert node.attr in asked or node.attr not in NAMES[node.value.id].split(), node.attr
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        and any(ast.unparse(hand.type or ast.Constant("")) == "ImportError" for hand in node.handlers)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        assert id(node) in guarded or not MODULES & set(names), names
