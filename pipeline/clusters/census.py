"""What a Python process says of itself, and how it is kept fit for a run on a cluster.

Workers are sent this file as text and run it there. A worker that has no manifold-observer, or another one, cannot
import what it is sent by name, and code that was compiled by another Python may crash it. Hence the standard
library only, no relative imports, and nothing that Python 3.8 could not read.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import sys
from typing import Any

PACKAGE = "manifold-observer"
FOLDERS = ("tasks", "pipeline", "datasets")
# Numbers are computed by the first group, and tasks travel through the second: they must be the same everywhere.
COMPUTING = ("numpy", "scipy")
CARRYING = ("dask", "distributed", "cloudpickle")
# These read what is stored. Other versions read the same numbers or fail aloud, so they are a warning.
READING = ("xarray", "zarr", "numcodecs", "soundfile", "h5netcdf", "h5py")


def describe() -> dict[str, Any]:
    """Versions, a digest of this package's code, and what decides about the last digits, in this process.

    Examples
    --------
    >>> describe()["byte order"] in ("little", "big")
    True
    """
    found: dict[str, Any] = {name: _version(name) for name in (PACKAGE, *COMPUTING, *CARRYING, *READING)}
    found["Python"] = ".".join(platform.python_version_tuple()[:2])
    found["byte order"] = sys.byteorder
    found["code"] = digest()
    found["stale"] = stale()
    found["arithmetic"] = _arithmetic()
    return found


def digest() -> str | None:
    """Digest of the package's source files as installed here; None where it is not."""
    files = _sources()
    if not files:
        return None
    made = hashlib.sha256()
    for name, path in files:
        with open(path, "rb") as file:
            content = file.read().replace(b"\r\n", b"\n")
        made.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return made.hexdigest()[:12]


def stale() -> bool:
    """Whether some file of the package has changed since this process began and may have loaded it."""
    loaded = {getattr(module, "__file__", None) for name, module in list(sys.modules.items()) if _is_ours(name)}
    try:
        import psutil  # noqa: PLC0415 - Dask brings it

        begun = psutil.Process().create_time()
    except Exception:  # no such package, or no such thing on this system
        return False
    # Two seconds, because the clock that processes are started by counts in whole ones.
    return any(os.stat(path).st_ctime > begun + 2 for _, path in _sources() if path in loaded)


def differences(here: dict[str, Any], there: dict[str, Any]) -> tuple[str | None, str | None]:
    """Why a worker must not compute with this process, and what is worth a warning; None for nothing.

    Examples
    --------
    >>> here = describe()
    >>> differences(here, here)
    (None, None)
    >>> differences(here, {**here, "numpy": "1.0"})[0].startswith("numpy 1.0 (here: ")
    True
    """
    if there["code"] is None:
        return f"no {PACKAGE} (here: {here[PACKAGE] or 'without a version'})", None
    for name in (PACKAGE, "Python", "byte order", *COMPUTING, *CARRYING):
        if here[name] != there[name]:
            return _difference(name, here, there), None
    if there["stale"]:
        return f"{PACKAGE} as it was before its files changed on disk", None
    if here["code"] != there["code"]:
        return f"other code under the same version, digest {there['code']} (here: {here['code']})", None
    other = [name for name in (*READING, "arithmetic") if here[name] != there[name]]
    return None, "; ".join(_difference(name, here, there) for name in other) or None


def limit_blas(worker: Any, who: str) -> None:
    """One BLAS thread for each of the worker's threads, until the last run that asked has gone."""
    try:
        import numpy  # noqa: F401, PLC0415 - the limit reaches the libraries that are loaded
        import scipy.linalg  # noqa: F401, PLC0415
        from threadpoolctl import threadpool_limits  # noqa: PLC0415
    except ImportError:
        return
    held = worker.__dict__.setdefault("manifold_observer_blas", {"runs": set(), "before": None})
    if not held["runs"]:
        held["before"] = threadpool_limits(limits=1)
    held["runs"].add(who)


def free_blas(worker: Any, who: str) -> None:
    """Give BLAS back the threads that it had."""
    held = worker.__dict__.get("manifold_observer_blas")
    if held is None or who not in held["runs"]:
        return
    held["runs"].discard(who)
    if not held["runs"]:
        held.pop("before").restore_original_limits()
        del worker.__dict__["manifold_observer_blas"]


def guest(name: str, client: str, here: dict[str, Any]) -> Any:
    """A worker's plugin for the length of a run: BLAS threads, and a word to the client where it joins unfit.

    It leaves a worker that it finds unfit alone: that worker may serve others. The client, which hears of it
    before any number from there, gives its run up.
    """
    from distributed import WorkerPlugin  # noqa: PLC0415
    from tornado.ioloop import PeriodicCallback  # noqa: PLC0415

    class Guest(WorkerPlugin):  # type: ignore[misc]
        async def setup(self, worker: Any) -> None:
            limit_blas(worker, name)
            try:
                reason, _ = differences(here, describe())
            except Exception as error:  # whatever it is, nobody knows what this worker would compute
                reason = f"no answer to what it runs ({error!r})"
            if reason is not None:
                worker.log_event(name, {"worker": worker.address, "reason": reason})
            for files in needed(await worker.scheduler.events(topic=name + "-files")):
                unseen = seen(files, None, "")
                if unseen is not None:
                    worker.log_event(name, {"worker": worker.address, "unseen": unseen})
            self.looking = PeriodicCallback(lambda: self.look(worker), 20_000)
            self.looking.start()

        async def look(self, worker: Any) -> None:
            # A client that was killed could not take this plugin away.
            seen = await worker.scheduler.events(topic=client)
            if seen and seen[-1][1].get("action") == "remove-client":
                self.looking.stop()
                await worker.scheduler.unregister_worker_plugin(name=name)

        def teardown(self, worker: Any) -> None:
            self.looking.stop()
            free_blas(worker, name)

    return Guest()


def needed(events: Any) -> list[dict[str, Any]]:
    """Files that jobs need which run now, as the events of a client tell: each begins with a number, and ends with it.

    Examples
    --------
    >>> needed([(0.0, {"job": 1, "files": {"a": None}}), (1.0, {"job": 2, "files": {}}), (2.0, {"job": 1})])
    [{}]
    """
    jobs: dict[Any, dict[str, Any]] = {}
    for _, event in events:
        if "files" in event:
            jobs[event["job"]] = event["files"]
        else:
            jobs.pop(event["job"], None)
    return list(jobs.values())


def seen(files: dict[str, Any], token: str | None, number: str) -> str | None:
    """Which of the files this process does not see as they were described, or why it cannot write beside the token."""
    for path, known in files.items():
        mine = looks(path)
        # A recording may have grown meanwhile, with another header: then it is the same inode.
        if mine != known and not (mine and known and mine[0] == known[0] and mine[1] >= known[1]):
            return f"{path} (there is another one)" if mine else path
    if token is None:
        return None
    if not os.path.exists(os.path.join(token, "token")):
        return os.path.dirname(token)
    try:
        with open(os.path.join(token, number), "w", encoding="utf-8"):
            return None
    except OSError as error:
        return f"{os.path.dirname(token)} ({error.strerror} on writing)"


def looks(path: str) -> tuple[int, int, str] | None:
    """Inode and size of a file and a digest of how it begins; the same of a folder's metadata; None for nothing."""
    try:
        found = os.stat(path)
        if os.path.isdir(path):
            names = sorted(name for name in os.listdir(path) if name.endswith(".json") or name[:2] == ".z")
            parts = [(looks(os.path.join(path, name)) or ("",))[-1] for name in names]
            return found.st_ino, 0, hashlib.sha256(repr((names, parts)).encode()).hexdigest()
        with open(path, "rb") as file:
            return found.st_ino, found.st_size, hashlib.sha256(file.read(65536)).hexdigest()
    except OSError:
        return None


def _version(name: str) -> str | None:
    """Version of an installed package."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _is_ours(module: str) -> bool:
    """Whether a module belongs to this package."""
    return module.partition(".")[0] == "manifold_observer"


def _sources() -> list[tuple[str, str]]:
    """Names and paths of the package's source files."""
    found = []
    for folder in FOLDERS:
        try:
            spec = importlib.util.find_spec("manifold_observer." + folder)
        except ImportError:
            continue
        places = (spec and spec.submodule_search_locations) or ()
        for place in filter(os.path.isdir, places):  # a development install has some that are none
            for path in sorted(_python_files(place)):
                found.append((folder + "/" + os.path.relpath(path, place).replace(os.sep, "/"), path))
    return found


def _python_files(place: str) -> list[str]:
    """Source files in a folder and its rooms."""
    return [os.path.join(parent, name) for parent, _, names in os.walk(place) for name in names if name.endswith(".py")]


def _arithmetic() -> str:
    """Kind of machine and of the kernels that BLAS chose for it."""
    try:
        import numpy  # noqa: F401, PLC0415 - loads its library
        import scipy.linalg  # noqa: F401, PLC0415
        from threadpoolctl import threadpool_info  # noqa: PLC0415
    except ImportError:
        return platform.machine()
    kinds = {
        " ".join(str(info.get(part)) for part in ("internal_api", "version", "architecture"))
        for info in threadpool_info()
        if info.get("user_api") == "blas"
    }
    return ", ".join([platform.machine(), *sorted(kinds)])


def _difference(name: str, here: dict[str, Any], there: dict[str, Any]) -> str:
    """One thing as it is there and here."""
    return f"{name} {there[name] or 'missing'} (here: {here[name] or 'missing'})"
