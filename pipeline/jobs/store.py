"""Results on disk: DataTrees in Zarr, written atomically."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint, ZarrBackendEntrypoint
from xarray.core import indexing
from zarr.codecs import Crc32cCodec, ZstdCodec

from manifold_observer.tasks.atomic import sync

from ..frames.dates import as_calendar, from_calendar
from ..graph.compute import large_graphs
from ..stores.address import Address, Place
from ..stores.zarrs import zarr_target
from .held import labels_at_hand, lazy_labels
from .manifest import MARK, attributes, first_foreign, seal
from .placement import check_links, check_place, check_removable, check_replaceable, placed, rename_new, sync_tree
from .staging import Staging, alone_there, passes_of, remove_there, writing_there
from .workfolder import WorkFolder, holding, is_folder, left_behind, remove, sweep

# Numbers in a chunk of a stored array, about 4 MB: workers read some chunks ahead.
_CHUNK_NUMBERS = 2**19
# Level of Zstandard at which digits are not encoded: spectra are read ten times as fast, and take a twentieth more.
_QUICK = -1
# Room is refused only where even data that compress well would not fit.
_COMPRESSION = 4


class NoSpaceError(ValueError):
    """A result that clearly would not fit on the disk."""


@contextmanager
def writing(out: Place, inputs: Sequence[Place] = (), *, overwrite: bool = False) -> Iterator[Place]:
    """Give a place to write a result to; it appears at ``out`` at the end, in one step.

    Until then everything lies in a hidden work folder beside it, which this process holds alone. When the
    block fails, that is removed but for the passes of a solve; what a killed run left, the next one takes up.

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
    if isinstance(out, Address):
        with writing_there(out, inputs, overwrite=overwrite) as staging:
            yield staging
        return
    with _writing_here(out, [source for source in inputs if isinstance(source, Path)], overwrite) as folder:
        yield folder


@contextmanager
def _writing_here(out: Path, inputs: Sequence[Path], overwrite: bool) -> Iterator[Path]:
    """Give a folder of this machine, or of its network, to write a result to."""
    place = placed(out)
    sweep(place.parent, inputs)
    check_place(out, inputs, overwrite)
    busy = f"store: another run is writing {out}. Wait for it, or choose another name."
    with holding(place.parent, place.name, busy) as work:
        _take_up(work, place)
        check_place(out, inputs, overwrite)  # again: another run may have finished since
        work.result.mkdir()
        try:
            yield work.result
            seal(work.result)
            sync_tree(work.result)
        except BaseException:
            shutil.rmtree(work.result, ignore_errors=True)
            raise
        _appear(work, place, out, overwrite)


def passes_beside(folder: Place) -> Path:
    """Where the passes of a long solve go, for the folder that :func:`writing` gave: they outlive a failure."""
    if isinstance(folder, Path):
        return folder.with_name("passes")
    return folder.passes if isinstance(folder, Staging) else Path()


def kept_passes(folder: Place) -> Place:
    """Where the next run finds those passes."""
    return passes_of(folder) if isinstance(folder, Staging) else passes_beside(folder)


@contextmanager
def alone(folder: Place) -> Iterator[None]:
    """Hold a folder that several results go to; one that is made here and stays empty is removed at the end.

    Parameters
    ----------
    folder
        The folder.

    Raises
    ------
    ValueError
        Another run holds it.
    """
    if isinstance(folder, Address):
        with alone_there(folder):
            yield
        return
    with _alone_here(folder):
        yield


@contextmanager
def _alone_here(folder: Path) -> Iterator[None]:
    """Hold a folder of this machine, or of its network."""
    made = not folder.exists()
    folder.mkdir(exist_ok=True)
    busy = f"store: another run is writing to {folder}. Wait for it, or choose another name."
    try:
        # Whatever the folder is called: it may be renamed after a kill.
        with holding(folder.resolve(), "folder", busy) as work:
            with left_behind(folder.resolve(), "folder", work) as dead:
                for one in dead:
                    remove(one)
            yield
    finally:
        if made:
            with suppress(OSError):
                folder.rmdir()


def remove_result(out: Place) -> None:
    """Remove a result of this project; a place that holds anything else stays as it is.

    Parameters
    ----------
    out
        The result.

    Raises
    ------
    ValueError, OSError
        Something else is there or in it, or a run is writing there.
    """
    if isinstance(out, Address):
        remove_there(out)
        return
    place = placed(out)
    check_links(out)
    check_removable(place, out)
    busy = f"store: a run is writing {out}, which is not removed."
    with holding(place.parent, place.name, busy) as work:
        rename_new(place, work.earlier)
        if (foreign := first_foreign(work.earlier)) is not None:  # it came in the last moment
            _put_back(work, place)
            raise ValueError(f"store: {out} {foreign} and is not removed.")
        shutil.rmtree(work.earlier)


def start(folder: Place, attrs: dict[str, Any]) -> None:
    """Write the root of a result: what it is and where it came from.

    Parameters
    ----------
    folder
        As :func:`writing` gave it.
    attrs
        Settings and sources.
    """
    root = xr.Dataset(attrs={MARK: version("manifold-observer"), "complete": False, **attrs})
    root.to_zarr(zarr_target(folder), mode="a", zarr_format=3, consolidated=False)


def write_group(folder: Place, name: str, dataset: xr.Dataset, *, fill: bool = True) -> xr.Dataset:
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
    prepared = as_calendar(_rechunked(lazy_labels(dataset.drop_encoding(), _CHUNK_NUMBERS)))
    encoding = {name: _how_stored(variable) for name, variable in prepared.variables.items()}
    write: Callable[..., Any] = prepared.to_zarr
    with large_graphs():
        write(
            zarr_target(folder),
            group=name,
            mode="a",
            zarr_format=3,
            consolidated=False,
            encoding=encoding,
            chunkmanager_store_kwargs={} if fill else {"scheduler": _left_to_the_caller},
        )
    return open_group(folder, name)


def _how_stored(variable: xr.Variable) -> dict[str, Any]:
    """How chunks are stored: every one, with a checksum, for one that is missing or damaged shall not read as a number.

    Frames are read many times, and measured numbers hardly get smaller: what repeats is found, the rest is copied.
    """
    level = _QUICK if {"frame", "feature"} <= set(variable.dims) else 0
    return {"write_empty_chunks": True, "compressors": (ZstdCodec(level=level), Crc32cCodec())}


def _left_to_the_caller(_graph: Any, keys: list[Any], **_: Any) -> list[None]:
    """A scheduler that computes nothing; ``compute=False`` would import distributed, and make a graph to throw away."""
    return [None] * len(keys)


def open_group(folder: Place, name: str) -> xr.Dataset:
    """Open one group lazily, time in seconds; where its numbers turn out to be damaged, the error names the array."""
    where: Any = folder  # our engine reads addresses, too
    return labels_at_hand(xr.open_dataset(where, engine=_CheckedGroup, group=name, chunks={}))


def check_space(folder: Place, n_bytes: int) -> None:
    """Refuse to begin what clearly will not fit on the disk; object stores have room.

    Parameters
    ----------
    folder
        Where it goes.
    n_bytes
        Size of the numbers that are going to be written, before compression.
    """
    if isinstance(folder, Address):
        return
    free = shutil.disk_usage(folder).free
    if n_bytes / _COMPRESSION > free:
        raise NoSpaceError(
            f"store: the result needs {n_bytes / 2**30:.2f} GiB on disk, but only {free / 2**30:.2f} GiB are free."
            " Free some space, or write to another disk."
        )


def is_complete(out: Place) -> bool:
    """Whether a place holds a result that was written to its end."""
    return bool(attributes(out).get("complete", False))


class _CheckedGroup(BackendEntrypoint):
    """The engine ``zarr``, with errors that name the array whose checksum does not agree."""

    open_dataset_parameters = ("filename_or_obj", "drop_variables", "group")

    def open_dataset(self, filename_or_obj: Any, *, drop_variables: Any = None, group: str = "") -> xr.Dataset:
        folder = filename_or_obj if isinstance(filename_or_obj, Address) else Path(filename_or_obj)
        place = folder / group
        with _naming(place):  # coordinates of dimensions are read at once
            opened = ZarrBackendEntrypoint().open_dataset(
                zarr_target(folder),
                group=group,
                # One document instead of one for each array; while a result is written, there is none yet.
                consolidated=isinstance(folder, Address) and not isinstance(folder, Staging),
                decode_times=False,
            )
        opened = from_calendar(opened)
        return opened.assign({name: _checked(variable, place / str(name)) for name, variable in _lazy(opened)})


def _lazy(dataset: xr.Dataset) -> list[tuple[str, xr.Variable]]:
    """Variables that have not been read yet."""
    return [(str(name), v) for name, v in dataset.variables.items() if name not in dataset.indexes]


def _checked(variable: xr.Variable, place: Place) -> xr.Variable:
    """The same variable, which names its place where it cannot be read."""
    array = indexing.LazilyIndexedArray(_CheckedArray(variable, place))
    return xr.Variable(variable.dims, array, variable.attrs, variable.encoding)


class _CheckedArray(BackendArray):
    """An array whose errors name it."""

    def __init__(self, variable: xr.Variable, place: Place) -> None:
        self.variable, self.place = variable, place
        self.shape, self.dtype = variable.shape, variable.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        with _naming(self.place):
            return np.asarray(self.variable[key].data)


@contextmanager
def _naming(place: Place) -> Iterator[None]:
    """Turn what a codec says of damaged bytes into a sentence."""
    try:
        yield
    except (ValueError, RuntimeError) as error:
        raise ValueError(
            f"store: {place} must be as it was written; it is damaged ({error}). "
            "Copy the result again, or run the same command again."
        ) from None


def _rechunked(dataset: xr.Dataset) -> xr.Dataset:
    """Uniform chunks along frames: Zarr has no other, and a chunk must be one task's alone."""
    for name, variable in dataset.variables.items():
        if variable.chunks and "frame" in variable.dims:
            per_frame = max(1, variable.size // max(variable.sizes["frame"], 1))
            length = max(1, min(_CHUNK_NUMBERS // per_frame, variable.sizes["frame"]))
            others = {dim: -1 for dim in variable.dims if dim != "frame"}
            dataset[name] = dataset[name].chunk({"frame": length, **others})
    return dataset


def _take_up(work: WorkFolder, place: Path) -> None:
    """Put in order what runs to this place left behind that were killed or failed: only their passes go on."""
    with left_behind(place.parent, place.name, work) as dead:
        for one in dead:
            _put_back(one, place)
            if is_folder(one.passes) and not work.passes.exists():
                one.passes.rename(work.passes)
            if not one.kept:
                remove(one)


def _put_back(work: WorkFolder, place: Path) -> None:
    """Put an earlier result back whose replacement had not come to its place."""
    if not is_folder(work.earlier) or (os.path.lexists(place) and not is_folder(work.result)):
        return  # there is none, or its replacement is in its place
    try:
        rename_new(work.earlier, place)
    except FileExistsError:
        work.keep()


def _appear(work: WorkFolder, place: Path, out: Path, overwrite: bool) -> None:
    """Put the finished folder in its place; an earlier result goes only after that."""
    work.finish()
    try:
        if overwrite and os.path.lexists(place):
            _set_aside(work, place, out)
        rename_new(work.result, place)
    except (OSError, ValueError) as error:
        work.keep()
        _put_back(work, place)
        raise ValueError(f"{_refusal(error, out)} The finished result is kept at {work.result}.") from None
    except BaseException:
        _put_back(work, place)
        raise
    sync(place.parent)
    sync(work.folder)
    for done in (work.earlier, work.passes):
        shutil.rmtree(done, ignore_errors=True)


def _set_aside(work: WorkFolder, place: Path, out: Path) -> None:
    """Move the earlier result into the work folder, where nobody else adds to it any more."""
    check_replaceable(place, out)
    rename_new(place, work.earlier)
    foreign = first_foreign(work.earlier)
    if foreign is not None:  # it came in the last moment
        raise ValueError(f"store: {out} {foreign} and is not replaced.")


def _refusal(error: OSError | ValueError, out: Path) -> str:
    """Why the finished result could not come to its place."""
    if isinstance(error, FileExistsError):
        return f"store: something else appeared at {out} during the run, and is not replaced. Move it away."
    return str(error) if isinstance(error, ValueError) else f"store: {out} cannot be written: {error.strerror}."
