"""Files opened through xarray, looked at first: no code of theirs runs, and no more memory than they hold is taken."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from ..stores.address import Address, Place
from ..stores.refusals import MissingError, StoreError
from ..stores.zarrs import zarr_target
from .hdf5_scan import is_hdf5, scan_hdf5
from .netcdf3_scan import check_netcdf3, is_netcdf3
from .ordinary import refusal
from .stored import Stored
from .zarr_listed import groups_at, scan_place

# Only these look at a file of unknown kind. Others may be installed, and some take a file for a list of addresses.
_ENGINES = ("netcdf4", "h5netcdf", "scipy", "zarr")
_OWN, _TABLES = "manifold-", "manifold-csv"
# Formats that do not tell which of their channels are signals: some rows are looked at.
_SAMPLED = ("manifold-arrow", "manifold-csv", "manifold-mat", "manifold-npy")
# Options that every recording heeds after it was opened; readers of tables heed them before.
_LATER = (
    "growing",
    "variable",
    "drop_channels",
    "labels",
    "channels",
    "time_column",
    "time_unit",
    "missing",
    "any_order",
)
_GO_WITH = {
    "channels_first": ".npy files, MATLAB files and CSV tables",
    "bin": "spike times (MATLAB cells, NWB, tables of unit and time)",
    "rates": "files whose channels differ in rate (EDF, BDF, WFDB)",
}


def open_lazily(
    path: Place, engine: str | None, options: Mapping[str, Any], group: str | None = None, time_dim: str | None = None
) -> tuple[xr.Dataset, dict[str, Stored]]:
    """Open a file or a Zarr folder without reading values.

    Parameters
    ----------
    path
        An ordinary file or folder, or the address of a Zarr store.
    engine
        Of xarray; None to find it.
    options
        Of this project's own readers.
    group
        Of a NetCDF file or a Zarr folder.
    time_dim
        What the user calls the dimension along time; None to find it, where it has no name.

    Returns
    -------
    Variables without indexes, not in chunks; and what its arrays store, where that can be told.

    Raises
    ------
    ValueError, OSError
        It is not what its name says, is damaged, or may not be opened.
    """
    stored = _looked_at(path, engine)
    engine = _engine_for(path, engine, options)
    own = _own_options(path, engine, options) | ({"consolidated": _is_web(path)} if engine == "zarr" else {})
    if group is not None:
        stored, own = _stored_in(path, engine, group), {**own, "group": group}
    try:
        dataset = _of_zarr(path, own, time_dim) if engine == "zarr" else _decoded(path, engine, own)
        sampled = engine in _SAMPLED or not engine.startswith(_OWN)
        dataset.encoding |= {"sampled": "read" if engine == _TABLES else "stored" if sampled else ""}
        dataset.encoding["chosen"] = "channels" in _known(engine)  # the reader has left out what is not wanted
        if not dataset.data_vars and group is None:
            dataset.encoding["groups"] = _groups(path)
        # A table has been read whole: what becomes of its file no longer matters.
        return (dataset.load() if engine == _TABLES else dataset), stored
    except (Warning, StoreError, MissingError):
        raise
    except Exception as error:
        own_words = (isinstance(path, Path) and os.path.abspath(path) in str(error)) or str(error).startswith(
            f"{engine.removeprefix(_OWN)}: "
        )
        if engine != "zarr" and own_words and isinstance(error, OSError | ValueError | ImportError):
            raise  # a reader of this project has said it already
        raise ValueError(_why_not(path, engine, error)) from None


def _engine_for(path: Place, engine: str | None, options: Mapping[str, Any]) -> str:
    """The engine for a place; the address of anything else than Zarr does not come here."""
    if isinstance(path, Address):
        return "zarr"
    found = engine or ("zarr" if path.is_dir() else _engine_of(path, options))
    if found is None:
        raise ValueError(_unknown_format(path))
    return found


def _is_web(path: Place) -> bool:
    """Whether a place cannot list what it has."""
    return isinstance(path, Address) and path.is_web


def _inside(path: Place, group: str) -> Place:
    """A group in a store."""
    for part in filter(None, group.split("/")):
        path = path / part
    return path


def _of_zarr(path: Place, own: Mapping[str, Any], time_dim: str | None) -> xr.Dataset:
    """The dataset of a Zarr group or array, whoever wrote it."""
    from .zarr_plain import open_plain, without_zero_fill  # noqa: PLC0415 - zarr starts slowly, few files need it

    place = _inside(path, str(own.get("group") or ""))
    plain = open_plain(place, time_dim)
    return without_zero_fill(_decoded(path, "zarr", own), place) if plain is None else plain


def _decoded(path: Place, engine: str, own: Mapping[str, Any]) -> xr.Dataset:
    """The dataset, its times as date-times where NumPy has their calendar and years; else as numbers."""
    how: dict[str, Any] = {"engine": engine, "chunks": None, "cache": False, "create_default_indexes": False, **own}
    try:
        return xr.open_dataset(_opened_by_xarray(path), **how)
    except (ValueError, ImportError, OverflowError) as error:
        if "decode time" not in str(error) and "cftime" not in str(error):
            raise
        return xr.open_dataset(_opened_by_xarray(path), decode_times=False, **how)


def _opened_by_xarray(path: Place) -> Any:
    """What xarray opens."""
    return path if isinstance(path, Path) else zarr_target(path)


def _stored_in(path: Place, engine: str, group: str) -> dict[str, Stored]:
    """What the arrays of a group store, where that can be told."""
    if engine.startswith(_OWN):
        raise ValueError(f"open_recording: group is for NetCDF files and Zarr folders; got {path}. Leave it out.")
    inside = [part for part in group.split("/") if part]
    if ".." in inside or not inside:
        raise ValueError(
            f"open_recording: group must name a group in {path}; got {group!r}. Write it as in 'night/eeg'."
        )
    if engine != "zarr" and isinstance(path, Path) and is_netcdf3(path):
        raise ValueError(f"open_recording: group must be left out where there are none; got {group!r} for {path}.")
    if engine != "zarr":
        return {}
    if isinstance(path, Path) and not path.joinpath(*inside).is_dir():
        there = ", ".join(_groups(path)[:9]) or "none"
        raise ValueError(f"open_recording: group must name a group in {path}; got {group!r} where there are {there}.")
    return scan_place(_inside(path, group))


def _groups(path: Place) -> list[str]:
    """Groups of a file or a folder, by their paths."""
    if isinstance(path, Address):
        return groups_at(path)
    if path.is_dir():
        marks = sorted({mark.parent for name in ("zarr.json", ".zgroup") for mark in path.glob(f"*/**/{name}")})
        arrays = {mark.parent for mark in path.glob("**/.zarray")}
        arrays |= {place for place in marks if b'"array"' in _head_of(place)}
        found = [place for place in marks if place not in arrays and b'"group"' in _head_of(place)]
        # Those that hold arrays come first: they are what can be named.
        found.sort(key=lambda place: all(array.parent != place for array in arrays))
        return [str(place.relative_to(path)) for place in found]
    if not is_hdf5(path):
        return []
    import h5py  # noqa: PLC0415 - the extra 'formats'

    names: list[str] = []
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Group) else None)
    return names


def _head_of(place: Path) -> bytes:
    """Metadata of a Zarr group; those of version 2 say no more than that they are one."""
    mark = place / "zarr.json"
    return mark.read_bytes()[:4096] if mark.is_file() else b'"group"'


def _known(engine: str) -> tuple[str, ...]:
    """Options of a reader of this project."""
    backend = xr.backends.list_engines()[engine] if engine.startswith(_OWN) else None
    return tuple(backend.open_dataset_parameters or ()) if backend is not None else ()


def _own_options(path: Place, engine: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that are for the reader; others are refused, but for the one that only a table heeds."""
    known = _known(engine)
    unknown = [name for name in options if name not in known and name not in _LATER]
    if unknown:
        goes = _GO_WITH.get(unknown[0], "CSV tables")
        raise ValueError(f"open_recording: {unknown[0]} goes with {goes}; got {path}. Leave it out.")
    return {name: value for name, value in options.items() if name in known}


def _looked_at(path: Place, engine: str | None) -> dict[str, Stored]:
    """What the arrays of a file store; a file that may not be opened is refused."""
    if isinstance(path, Address) or path.is_dir():
        return scan_place(path)
    if engine == "zarr":
        raise refusal(path, "be a folder to be read as Zarr", "a file", "Unpack it, and name the folder")
    if engine is not None and engine.startswith(_OWN) and not is_hdf5(path):
        return {}
    if is_netcdf3(path):
        check_netcdf3(path)
        return {}
    return scan_hdf5(path) if is_hdf5(path) else {}


def _engine_of(path: Path, options: Mapping[str, Any]) -> str | None:
    """The engine that claims a file, by what it holds if it can tell, of those that are known to look at it alone."""
    own = {name: backend for name, backend in xr.backends.list_engines().items() if name.startswith(_OWN)}
    if "bin" in options:
        own = {name: backend for name, backend in own.items() if "bin" in (backend.open_dataset_parameters or ())}
    for name, backend in own.items():
        recognises = getattr(backend, "recognises", None)
        if recognises is not None and recognises(path):
            return str(name)
    compressed = path.suffix.lower() in (".gz", ".bz2", ".xz", ".zst")
    for name, backend in (own if "bin" in options else xr.backends.list_engines()).items():
        known = name.startswith(_OWN) or (name in _ENGINES and name != "zarr" and not compressed)
        if known and backend.guess_can_open(path):
            return str(name)
    return None


def _why_not(path: Place, engine: str | None, error: Exception) -> str:
    """Why a file could not be opened."""
    said = " ".join(str(error).split()) or type(error).__name__
    if engine == "zarr" and _is_other(error):
        return f"open_recording: {path} is not a Zarr group. Name the folder that holds zarr.json or .zgroup."
    nothing_fits = "found the following matches" in said or "did not find a match" in said
    if isinstance(path, Path) and (nothing_fits or (isinstance(error, ImportError) and path.is_file())):
        return _unknown_format(path)
    return f"open_recording: {path} could not be read: {said}. Is it damaged?"


def _is_other(error: Exception) -> bool:
    """Whether Zarr found no group."""
    from zarr.errors import ContainsArrayError, NodeTypeValidationError  # noqa: PLC0415 - slow, and few files are Zarr

    return isinstance(error, FileNotFoundError | ContainsArrayError | NodeTypeValidationError)


def _unknown_format(path: Path) -> str:
    """Why nothing could open the file."""
    with path.open("rb") as file:
        head = file.read(8)
    if head.startswith(b"\x89HDF"):
        return (
            f"open_recording: {path} is HDF5 (NetCDF 4), for which the packages h5netcdf and h5py are missing. "
            "Install them with: pip install h5netcdf h5py."
        )
    if head.startswith(b"MThd"):
        return f"open_recording: {path} is MIDI: notes, no samples. Open it as labels, with mo.open_labels or --labels."
    if head.startswith((b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")):
        return f"open_recording: {path} is an archive. Unpack it, and name what is in it."
    # Text that begins without control characters may be a table.
    table = f"; engine={_TABLES!r} reads tables of text" if min(head, default=0) > 8 else ""
    return (
        f"open_recording: {path} is not in a supported format (WAV, FLAC, OGG, MP3, CSV, Parquet, .npy, MATLAB, "
        "NetCDF, Zarr, EDF, BDF, WFDB, NWB, BrainVision, EEGLAB, FIF, XDF). "
        f"Convert it, or name an xarray engine with engine={table}."
    )
