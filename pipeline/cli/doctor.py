"""The command ``doctor``: whether this machine and installation can do what will be asked of them."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import click

_CORE = ("numpy", "scipy", "xarray", "dask", "distributed", "zarr", "pandas", "soundfile", "click")
# Modules of each extra, by which it is known to be there.
_EXTRAS = {
    "formats": ("h5netcdf", "h5py", "mido", "mne", "pyarrow", "pyxdf", "wfdb"),
    "paper": ("matplotlib",),
    "dashboard": ("bokeh",),
    "jobqueue": ("dask_jobqueue",),
    "kubernetes": ("dask_kubernetes",),
    "metrics": ("prometheus_client",),
    "stores": ("obstore",),
}
_LITTLE_MEMORY, _LITTLE_DISK = 2**30, 2**31
_MARKS = {"ok": "ok     ", "warning": "warning", "problem": "problem"}


class Finding(NamedTuple):
    """One line of the examination."""

    name: str
    state: str
    """ok, warning or problem."""
    text: str
    remedy: str = ""


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
@click.pass_context
def doctor_command(context: click.Context, as_json: bool) -> None:
    """Examine this installation and machine: versions, memory, cores, disk, extras.

    Every line is ok, a warning or a problem, with what to do about it. Exits with 1 where something is broken.
    """
    found = [*_versions(), _processor(), _threads(), _memory(), _disk(), *_extras(), _encoding()]
    if as_json:
        click.echo(json.dumps({"findings": [one._asdict() for one in found]}))
    else:
        wide = max(len(one.name) for one in found)
        for one in found:
            remedy = f" {one.remedy}" if one.remedy else ""
            click.echo(f"{_MARKS[one.state]}  {one.name:<{wide}}  {one.text}{remedy}")
    context.exit(1 if any(one.state == "problem" for one in found) else 0)


def _versions() -> list[Finding]:
    """The package, Python and what it stands on."""
    found = [Finding("manifold-observer", "ok", f"{version('manifold-observer')}, Python {platform.python_version()}")]
    known, lost = [], []
    for name in _CORE:
        try:
            known.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            lost.append(name)
    found.append(Finding("packages", "ok", ", ".join(known)))
    if lost:
        found.append(Finding("packages", "problem", f"missing: {', '.join(lost)}.", f"pip install {' '.join(lost)}"))
    return found


def _processor() -> Finding:
    """Cores that this process may use."""
    from dask.system import cpu_count  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it

    return Finding("cores", "ok", f"{cpu_count()} of {os.cpu_count()} may be used, {platform.machine()}")


def _threads() -> Finding:
    """The BLAS and its threads."""
    import numpy  # noqa: F401, PLC0415 - loads the library that is looked for
    from threadpoolctl import threadpool_info  # noqa: PLC0415

    found = [one for one in threadpool_info() if one.get("user_api") == "blas"]
    if not found:
        return Finding("BLAS", "warning", "none was found.", "Install NumPy from PyPI or conda-forge.")
    told = ", ".join(f"{one['internal_api']} {one['version']}, {one['num_threads']} threads" for one in found)
    return Finding("BLAS", "ok", told)


def _memory() -> Finding:
    """Memory that is free within all limits."""
    from ..graph.machine import free_memory  # noqa: PLC0415

    free = free_memory()
    state = "ok" if free >= _LITTLE_MEMORY else "warning"
    remedy = "" if state == "ok" else "Long recordings may be refused; close other programs, or raise the limit."
    return Finding("memory", state, f"{free / 2**30:.1f} GiB free within all limits", remedy)


def _disk() -> Finding:
    """The folder for temporary files."""
    folder = tempfile.gettempdir()
    try:
        with tempfile.NamedTemporaryFile():
            free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding("temporary", "problem", f"{folder}: {error.strerror}.", "Set TMPDIR to a folder with room.")
    state = "ok" if free >= _LITTLE_DISK else "warning"
    remedy = "" if state == "ok" else "Set TMPDIR to a folder with more room."
    return Finding("temporary", state, f"{folder}, {free / 2**30:.1f} GiB free", remedy)


def _extras() -> list[Finding]:
    """What is installed beside the core."""
    found = []
    for extra, modules in _EXTRAS.items():
        lost = [name for name in modules if find_spec(name) is None]
        if lost:
            what = f"for {extra}: {', '.join(lost)} not installed."
            found.append(Finding(f"[{extra}]", "warning", what, f"{_pip(extra)} adds what is missing."))
        else:
            found.append(Finding(f"[{extra}]", "ok", ", ".join(modules)))
    return found


def _pip(extra: str) -> str:
    """The command that installs an extra from where the user stands: this checkout, if it is one."""
    here = Path("pyproject.toml")
    checkout = here.is_file() and 'name = "manifold-observer"' in here.read_text(encoding="utf-8", errors="replace")
    return f"pip install '{'.' if checkout else 'PATH_OF_THE_CHECKOUT'}[{extra}]'"


def _encoding() -> Finding:
    """Whether names of files and recordings can be printed."""
    name = sys.stdout.encoding or "ascii"
    if name.lower().replace("-", "").startswith("utf"):
        return Finding("encoding", "ok", name)
    return Finding("encoding", "warning", f"standard output is {name}.", "Set LC_ALL=C.UTF-8 or PYTHONUTF8=1.")
