"""What the command ``doctor`` looks at."""

from __future__ import annotations

import locale
import os
import platform
import shlex
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

_NAME = "manifold-observer"
# Extras of those who work on the package itself, and the one of all others.
_NOT_FOR_USERS = frozenset(("all", "docs", "lint", "test"))
_LITTLE_MEMORY, _LITTLE_DISK = 2**30, 2**31
# Commands by which jobs and pods are submitted.
_SUBMIT = {"slurm": "sbatch", "pbs": "qsub", "kubernetes": "kubectl"}


class Finding(NamedTuple):
    """One line of the examination."""

    name: str
    state: str
    """ok, warning or problem."""
    text: str
    remedy: str = ""


def examined() -> list[Finding]:
    """Look at everything.

    Examples
    --------
    >>> {one.state for one in examined()} <= {"ok", "warning", "problem"}
    True
    """
    here = [processor(), threads(), memory(), temporary(), locking(Path.cwd()), loopback()]
    return [*versions(), *here, settings_of_dask(), queues(), *extras(), encoding(), language(), completion()]


def versions() -> list[Finding]:
    """The package, Python and what it needs."""
    own = Finding(_NAME, "ok", f"{version(_NAME)}, Python {platform.python_version()} ({sys.executable})")
    needed = requirements().get("", [])
    return [own, _installed("packages", needed, "problem")]


def processor() -> Finding:
    """Cores that this process may use."""
    from dask.system import cpu_count  # noqa: PLC0415 - slow

    return Finding("cores", "ok", f"{cpu_count()} of {os.cpu_count()} may be used, {platform.machine()}")


def threads() -> Finding:
    """The BLAS and its threads."""
    import numpy  # noqa: F401, PLC0415 - loads the library that is looked for
    from threadpoolctl import threadpool_info  # noqa: PLC0415

    found = [one for one in threadpool_info() if one.get("user_api") == "blas"]
    if not found:
        return Finding("BLAS", "warning", "none was found.", "Install NumPy from PyPI or conda-forge.")
    told = ", ".join(f"{one['internal_api']} {one['version']}, {_threads(one['num_threads'])}" for one in found)
    return Finding("BLAS", "ok", told)


def _threads(number: int) -> str:
    """A number of threads."""
    return "1 thread" if number == 1 else f"{number} threads"


def memory() -> Finding:
    """Memory that is free within all limits."""
    from ..graph.machine import free_memory  # noqa: PLC0415

    free = free_memory()
    state = "ok" if free >= _LITTLE_MEMORY else "warning"
    remedy = "" if state == "ok" else "Long recordings may be refused; close other programs, or raise the limit."
    return Finding("memory", state, f"{free / 2**30:.1f} GiB free within all limits", remedy)


def temporary() -> Finding:
    """The folder for temporary files."""
    try:
        folder = tempfile.gettempdir()
        with tempfile.NamedTemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding("temporary", "problem", f"{error.strerror or error}.", "Set TMPDIR to a folder with room.")
    state = "ok" if free >= _LITTLE_DISK else "warning"
    remedy = "" if state == "ok" else "Set TMPDIR to a folder with more room."
    return Finding("temporary", state, f"{folder}, {free / 2**30:.1f} GiB free", remedy)


def locking(folder: Path) -> Finding:
    """Whether files can be locked in a folder, by which two runs keep apart."""
    from ..jobs.lock import try_lock  # noqa: PLC0415

    elsewhere = "Results have to be written to a folder that has both."
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as file, open(file.name, "rb") as other:
            works = try_lock(file.fileno()) and not try_lock(other.fileno())
    except OSError as error:
        return Finding("this folder", "warning", f"{folder}: {error.strerror or error}.", elsewhere)
    if not works:
        return Finding("this folder", "warning", f"{folder}: locks of files exclude nobody.", elsewhere)
    return Finding("this folder", "ok", f"{folder} can be written to, and its file system has locks")


def loopback() -> Finding:
    """Whether the processes of this machine can talk to each other, as those of --cluster local do."""
    try:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
    except OSError as error:
        return Finding("loopback", "warning", f"127.0.0.1: {error.strerror or error}.", "Take --cluster none.")
    return Finding("loopback", "ok", "127.0.0.1 can be listened on")


def settings_of_dask() -> Finding:
    """Dask's settings, which may name a scheduler and change how workers behave."""
    import dask  # noqa: PLC0415 - slow

    files = [str(path) for folder in dask.config.paths for path in sorted(Path(folder).glob("*.y*ml"))]
    changed = [name for name in os.environ if name.startswith("DASK_")]
    scheduler = dask.config.get("scheduler-address", None)
    told = ", ".join([*files, *sorted(changed)]) or "as Dask ships them"
    if scheduler:
        told += f"; a scheduler at {scheduler}, which --cluster {scheduler} uses"
    return Finding("Dask settings", "ok", told)


def queues() -> Finding:
    """Where jobs and pods can be submitted from here."""
    there = [f"{kind} ({word})" for kind, word in _SUBMIT.items() if shutil.which(word)]
    return Finding("clusters", "ok", f"local, none, addresses; from here also {', '.join(there) or 'no queue'}")


def extras() -> list[Finding]:
    """What is installed beside the core."""
    found = requirements()
    return [
        _installed(f"[{extra}]", needed, "warning")
        for extra, needed in sorted(found.items())
        if extra and extra not in _NOT_FOR_USERS
    ]


def encoding() -> Finding:
    """Whether names of files and recordings can be printed."""
    name = sys.stdout.encoding or "ascii"
    if name.lower().replace("-", "").startswith("utf"):
        return Finding("encoding", "ok", name)
    return Finding("encoding", "warning", f"standard output is {name}.", "Set LC_ALL=C.UTF-8 or PYTHONUTF8=1.")


def language() -> Finding:
    """Whether the locale that the environment names exists."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        found = locale.setlocale(locale.LC_CTYPE, "")
    except locale.Error:
        named = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG", "")
        return Finding("locale", "warning", f"{named} is not installed.", "Set LC_ALL=C.UTF-8.")
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    return Finding("locale", "ok", found)


def completion() -> Finding:
    """Whether the shell completes the command."""
    shell = Path(os.environ.get("SHELL", "")).name
    home = Path(os.environ.get("HOME", "~")).expanduser()
    places = {
        "bash": [".bashrc", ".bash_profile"],
        "zsh": [".zshrc"],
        "fish": [".config/fish/completions/manifold-observer.fish", ".config/fish/config.fish"],
    }
    if shell not in places:
        return Finding("completion", "ok", "for bash, zsh and fish: manifold-observer completion --help")
    for name in places[shell]:
        try:
            if f"{_NAME} completion" in (home / name).read_text(encoding="utf-8", errors="replace") or "fish" in name:
                return Finding("completion", "ok", f"{shell}, by ~/{name}")
        except OSError:
            continue
    return Finding("completion", "ok", f"not set up for {shell}: manifold-observer completion --help says how")


def requirements() -> dict[str, list[Requirement]]:
    """What the package needs, by extra; the core's under no name. Its own metadata says."""
    found: dict[str, list[Requirement]] = {"": []}
    for text in distribution(_NAME).requires or ():
        needed = Requirement(text)
        for extra in _extras_of(needed):
            found.setdefault(extra, []).append(needed)
    return found


def _extras_of(needed: Requirement) -> Iterator[str]:
    """Extras that a requirement belongs to; no name for the core."""
    if needed.marker is None:
        yield ""
        return
    names = distribution(_NAME).metadata.get_all("Provides-Extra") or []
    there = [extra for extra in names if needed.marker.evaluate({"extra": extra})]
    if needed.marker.evaluate({"extra": ""}):
        yield ""
    else:
        yield from there


def _installed(name: str, needed: list[Requirement], worst: str) -> Finding:
    """Whether some packages are there, in versions that are new enough."""
    known, lost = [], []
    for one in needed:
        try:
            there = version(one.name)
        except PackageNotFoundError:
            lost.append((one, "is missing"))
            continue
        if one.specifier.contains(there, prereleases=True):
            known.append(f"{one.name} {there}")
        else:
            lost.append((one, f"is {there}"))
    if not lost:
        return Finding(name, "ok", ", ".join(known))
    told = ", ".join(f"{one.name} {what}" for one, what in lost)
    return Finding(name, worst, f"{told}.", f"{_pip()} install {shlex.join(_spelt(one) for one, _ in lost)}")


def _spelt(needed: Requirement) -> str:
    """A requirement as pip takes it, which works from any folder."""
    return f"{needed.name}{needed.specifier}"


def _pip() -> str:
    """The pip of this interpreter."""
    own = Path(sys.executable).parent
    first = shutil.which("pip")
    return "pip" if first and Path(first).parent == own else f"{shlex.quote(sys.executable)} -m pip"
