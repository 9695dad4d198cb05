"""Results on disk: a DataTree in Zarr that is there whole or not at all."""

from __future__ import annotations

import fcntl
import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import xarray as xr
import zarr
import zarr.errors

_MARK = "manifold_observer"
# Numbers in a chunk of a stored array, about 4 MB: workers read some chunks ahead.
_CHUNK_NUMBERS = 2**19


@contextmanager
def writing(out: Path, inputs: Sequence[Path] = (), *, overwrite: bool = False) -> Iterator[Path]:
    """Give a place to write a result to; it appears at ``out`` at the end, in one step.

    Until then everything lies in ``out`` + ``.partial`` beside it, under a lock. When the block fails
    that is removed; when the process is killed, the next run clears it.

    Parameters
    ----------
    out
        Where the result shall be.
    inputs
        Files that are read, which must not be written over.
    overwrite
        Replace an earlier result. Anything else at ``out`` is never replaced.

    Yields
    ------
    The folder to write to.

    Raises
    ------
    ValueError
        Something is at ``out`` already, the place is an input, or another run is writing there.
    """
    check_place(out, inputs, overwrite)
    partial = out.with_name(out.name + ".partial")
    with _locked(partial, out):
        try:
            check_place(out, inputs, overwrite)  # again: another run may have finished since
            yield partial
            _finish(partial)
            _appear(partial, out)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder that several results go to, made where it is missing; an empty one is removed at the end.

    Parameters
    ----------
    folder
        The folder.

    Raises
    ------
    ValueError
        Another run holds it.
    """
    folder.mkdir(exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        if not _lock(handle, folder):
            raise ValueError(f"store: another run is writing to {folder}. Wait for it, or choose another name.")
        try:
            yield
        finally:
            with suppress(OSError):
                folder.rmdir()
    finally:
        os.close(handle)


def attributes(out: Path) -> dict[str, Any]:
    """Attributes of the root of a result; none where there is no Zarr group."""
    try:
        return zarr.open_group(out, mode="r").attrs.asdict()
    except (OSError, ValueError, KeyError):
        return {}


def start(folder: Path, attrs: dict[str, Any]) -> None:
    """Write the root of a result: what it is and where it came from.

    Parameters
    ----------
    folder
        As :func:`writing` gave it.
    attrs
        Settings and sources.
    """
    root = xr.Dataset(attrs={_MARK: version("manifold-observer"), "complete": False, **attrs})
    # Not mode="w": that makes the folder anew, without the lock on it.
    root.to_zarr(folder, mode="a", zarr_format=3, consolidated=False)


def write_group(folder: Path, name: str, dataset: xr.Dataset, *, fill: bool = True) -> xr.Dataset:
    """Write one group of a result, and open it again lazily.

    Parameters
    ----------
    folder
        As :func:`writing` gave it.
    name
        Name of the group.
    dataset
        Its variables; Dask ones are computed as they are written, chunk by chunk.
    fill
        Whether to compute Dask variables; without it their place is made, for the caller to fill.

    Returns
    -------
    The group as it stands on disk.
    """
    prepared = _rechunked(dataset.drop_encoding())
    encoding = {n: {"write_empty_chunks": True} for n, v in prepared.variables.items() if v.chunks}
    write: Callable[..., Any] = prepared.to_zarr
    write(folder, group=name, mode="a", zarr_format=3, consolidated=False, encoding=encoding, compute=fill)
    return open_group(folder, name)


def open_group(folder: Path, name: str) -> xr.Dataset:
    """Open one group lazily."""
    return xr.open_zarr(folder, group=name, consolidated=False)


def _rechunked(dataset: xr.Dataset) -> xr.Dataset:
    """Uniform chunks along frames: Zarr has no other, and a chunk must be one task's alone."""
    for name, variable in dataset.variables.items():
        if variable.chunks and "frame" in variable.dims:
            per_frame = max(1, variable.size // max(variable.sizes["frame"], 1))
            length = max(1, min(_CHUNK_NUMBERS // per_frame, variable.sizes["frame"]))
            others = {dim: -1 for dim in variable.dims if dim != "frame"}
            dataset[name] = dataset[name].chunk({"frame": length, **others})
    return dataset


def check_place(out: Path, inputs: Sequence[Path], overwrite: bool) -> None:
    """Refuse a place where something could be lost."""
    here = out.resolve()
    for source in inputs:
        there = source.resolve()
        if here == there or there in here.parents or here in there.parents:
            raise ValueError(f"store: the output must not be the recording or lie within it; got {out} and {source}.")
    check_parent("store", out)
    if not out.exists():
        return
    if not overwrite:
        raise ValueError(f"store: {out} exists already. Choose another name, or give --overwrite.")
    if not _is_result(out):
        raise ValueError(
            f"store: {out} is no result of manifold-observer and is not replaced. Choose another name, or move it away."
        )


def check_parent(who: str, out: Path) -> None:
    """Refuse a place whose folder does not exist."""
    if not out.parent.is_dir():
        raise ValueError(f"{who}: the folder of {out} must exist. Make it with: mkdir -p {out.parent}.")


def is_complete(out: Path) -> bool:
    """Whether a place holds a result that was written to its end."""
    return bool(attributes(out).get("complete", False))


def _is_result(out: Path) -> bool:
    """Whether a place holds a result of this project."""
    return _MARK in attributes(out)


@contextmanager
def _locked(partial: Path, out: Path) -> Iterator[None]:
    """Hold the partial folder alone, empty at the start; a killed run's leftovers are cleared."""
    partial.mkdir(exist_ok=True)
    handle = os.open(partial, os.O_RDONLY)
    try:
        if not _lock(handle, partial):
            raise ValueError(f"store: another run is writing {out}. Wait for it, or choose another name.")
        for leftover in partial.iterdir():
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        yield
    finally:
        os.close(handle)


def _lock(handle: int, partial: Path) -> bool:
    """Lock the folder; false when another run holds it, or had it and has just moved it away."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(handle), partial.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def _finish(partial: Path) -> None:
    """Mark a result as complete, with all metadata in one place so that it opens fast and without a warning."""
    zarr.open_group(partial, mode="r+").attrs["complete"] = True
    with warnings.catch_warnings():
        # Zarr says that other programs may not know consolidated metadata: they read the plain one beside it.
        warnings.simplefilter("ignore", zarr.errors.ZarrUserWarning)
        zarr.consolidate_metadata(partial)


def _appear(partial: Path, out: Path) -> None:
    """Put the finished folder in its place; an earlier result goes only after that."""
    old = out.with_name(out.name + ".old")
    if out.exists():
        shutil.rmtree(old, ignore_errors=True)
        out.rename(old)
    partial.rename(out)
    shutil.rmtree(old, ignore_errors=True)
