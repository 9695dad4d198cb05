"""Frames, recordings and embeddings as users have them: put in order at the call, or refused in one sentence."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pandas as pd
import xarray as xr

from ..graph.progress import or_watched, silent
from .dates import in_dates, in_seconds, is_dated
from .segments import batches

RECORDING_START = "recording_start"
"""Attribute of frames with date-times: when their recording started."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def takes_frames(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let a public function take frames as users have them, and give date-times back to those who gave some.

    Parameters named ``frames``, ``new_frames``, ``embedding`` and ``state`` are put in order: date-times become
    seconds, segments numbers, and levels of a MultiIndex coordinates.

    Examples
    --------
    >>> @takes_frames
    ... def first(frames):
    ...     return frames[:1]
    >>> days = np.array(["2020-03-09", "2020-03-10"], "datetime64[ns]")
    >>> first(xr.DataArray(np.eye(2), dims=("frame", "feature"), coords={"time": ("frame", days)})).time.dtype.kind
    'M'
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def called(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.__name__}: {error}; its arguments are {tuple(signature.parameters)}.") from None
        if "progress" in signature.parameters:
            options: dict[str, Any] = bound.arguments
            options["progress"] = or_watched(options.get("progress", silent))
        dated = False
        for name, value in bound.arguments.items():
            if value is not None and name in _TAKEN:
                dated = dated or (
                    name != "embedding" and isinstance(value, xr.DataArray | xr.Dataset) and is_dated(value)
                )
                bound.arguments[name] = _TAKEN[name](function.__name__, name, value)
        result = function(*bound.args, **bound.kwargs)
        return _dated(result) if dated else result

    return called


def _state_in_order(who: str, name: str, state: Any) -> Any:
    """A state or its numbers."""
    return _in_order(state) if hasattr(state, "coords") else array_of(f"{who}: {name}", state, ("frame", "mode"))


_TAKEN: dict[str, Callable[[str, str, Any], Any]] = {
    "frames": lambda who, name, value: frames_in_order(f"{who}: {name}", value),
    "new_frames": lambda who, name, value: frames_in_order(f"{who}: {name}", value),
    "embedding": lambda who, _, value: embedding_in_order(who, value),
    "state": _state_in_order,
}


def keeps_dates(function: Callable[Arguments, xr.DataArray]) -> Callable[Arguments, xr.DataArray]:
    """Let features of a recording with date-times have date-times too; ``__wrapped__`` counts seconds."""

    @functools.wraps(function)
    def called(*args: Arguments.args, **kwargs: Arguments.kwargs) -> xr.DataArray:
        recording = args[0] if args else kwargs.get("recording")
        frames = function(*args, **kwargs)
        if not (isinstance(recording, xr.DataArray) and is_dated(recording)):
            return frames
        # Some of the frames must still know from when labels in seconds count.
        return in_dates(frames).assign_attrs({RECORDING_START: str(frames["time"].attrs["start_time"])})

    return called


def array_of(what: str, values: Any, dims: tuple[str, str]) -> xr.DataArray:
    """A labelled array, or a refusal that says how to make one; plain arrays of two dimensions get their dims.

    Parameters
    ----------
    what
        Begins the sentence, such as "embed: frames".
    values
        What the user gave.
    dims
        Dims that are wanted.

    Raises
    ------
    TypeError
        A Dataset, a DataFrame or anything else that is not an array.

    Examples
    --------
    >>> array_of("embed: frames", np.eye(3), ("frame", "feature")).sizes
    Frozen({'frame': 3, 'feature': 3})
    """
    if isinstance(values, xr.DataArray):
        return values
    wanted = f"{what} must be an xarray.DataArray with dims ({', '.join(dims)})"
    if isinstance(values, xr.Dataset):
        names = list(map(str, values.data_vars))
        advice = f"Choose a variable, as in dataset[{names[0]!r}]" if names else "Give one of its variables"
        raise TypeError(f"{wanted}; got a Dataset with {', '.join(names[:5]) or 'no variables'}. {advice}.")
    if isinstance(values, pd.DataFrame):
        raise TypeError(
            f"{wanted}; got a pandas.DataFrame. Choose its columns of numbers: "
            f"xr.DataArray(table[columns], dims={dims}).rename(...), with the columns as {dims[1]!r} coordinate."
        )
    if isinstance(values, str | os.PathLike):
        raise TypeError(
            f"{wanted}; got {os.fspath(values)!r}. Open recordings with mo.open_recording, results with mo.load."
        )
    if not (hasattr(values, "shape") and hasattr(values, "dtype")):
        raise TypeError(f"{wanted}; got {type(values).__name__}. Wrap it: xr.DataArray(values, dims={dims}).")
    if len(values.shape) != 2:
        raise ValueError(f"{wanted}; got an array of shape {values.shape}. Wrap it: xr.DataArray(values, dims={dims}).")
    return xr.DataArray(values, dims=dims)


def frames_in_order(what: str, frames: Any) -> xr.DataArray:
    """Frames with time in seconds, numbered segments and plain coordinates.

    Raises
    ------
    TypeError, ValueError
        Not an array; a clock that goes backwards within a segment.

    Examples
    --------
    >>> named = xr.DataArray(np.eye(2), dims=("frame", "feature"), coords={"segment": ("frame", ["b", "a"])})
    >>> frames_in_order("embed: frames", named).segment.values
    array([0, 1])
    """
    found = _in_order(array_of(what, frames, ("frame", "feature")))
    if "time" in found.coords and found["time"].dims == ("frame",):
        _check_forward(what, found)
    return found


def embedding_in_order(who: str, embedding: Any) -> xr.Dataset:
    """An embedding, or a refusal.

    Raises
    ------
    TypeError
        Something else, as when arguments are swapped.
    """
    if not isinstance(embedding, xr.Dataset) or "feature" not in embedding.sizes:
        what = f"a {type(embedding).__name__}"
        what += (
            f" with dims {tuple(map(str, embedding.sizes))}" if isinstance(embedding, xr.DataArray | xr.Dataset) else ""
        )
        if isinstance(embedding, xr.DataTree):
            what += f" with the groups {', '.join(embedding.children)}"
        raise TypeError(
            f"{who}: embedding must be the Dataset that mo.embed or mo.read_embedding gives; got {what}. "
            "Give the embedding first."
        )
    return _in_order(embedding)


Labelled = TypeVar("Labelled", xr.DataArray, xr.Dataset)


def _in_order(labelled: Labelled) -> Labelled:
    """Plain coordinates, time in seconds, numbered segments."""
    multiple = [name for name, index in labelled.indexes.items() if isinstance(index, pd.MultiIndex)]
    dims = {str(labelled[name].dims[0]) for name in multiple}
    for dim in dims:
        labelled = labelled.reset_index(dim).drop_vars(dim, errors="ignore")
    if is_dated(labelled):
        labelled = in_seconds(labelled)
    elif "time" in labelled.coords and labelled["time"].dtype.kind == "m":
        seconds = labelled["time"].values / np.timedelta64(1, "s")
        labelled = labelled.assign_coords(time=(labelled["time"].dims, seconds, {"units": "s"}))
    return _with_numbered_segments(labelled)


def _with_numbered_segments(labelled: Labelled) -> Labelled:
    """Segments that are text or other labels become numbers, by their first appearance."""
    if "segment" not in labelled.coords or labelled["segment"].dtype.kind in "iu":
        return labelled
    segment = labelled["segment"]
    numbers, names = pd.factorize(np.asarray(segment.values).ravel())
    return labelled.assign_coords(
        segment=(
            segment.dims,
            numbers.astype(np.int64).reshape(segment.shape),
            {"names": [str(name) for name in names]},
        )
    )


def _check_forward(what: str, frames: xr.DataArray) -> None:
    """Time must not go backwards, nor stand, within a segment."""
    kind = frames["time"].dtype
    if kind.kind not in "fiu":
        raise TypeError(
            f"{what}: time must be numbers of seconds or date-times; got dtype {kind}. Convert it, as with "
            "pandas.to_datetime."
        )
    first, last = 0, None
    for piece in _clock_pieces(frames):
        # The frame before each piece comes with it.
        times, segment = piece if last is None else (np.concatenate(pair) for pair in zip(last, piece, strict=True))
        bad = np.flatnonzero((np.diff(segment) == 0) & ~(np.diff(times) > 0))
        if len(bad):
            at = int(bad[0])
            raise ValueError(
                f"{what}: time must increase from frame to frame; got {times[at]:g} and {times[at + 1]:g} s at frames "
                f"{first + at} and {first + at + 1}. Join the frames of several recordings with mo.concat([...]), or "
                "give every recording a number in 'segment'."
            )
        first, last = first + len(times) - 1, (times[-1:], segment[-1:])


def _clock_pieces(frames: xr.DataArray) -> Iterator[tuple[Any, Any]]:
    """Times and segments of some frames after the other; one segment where nothing is said of it."""
    if "segment" in frames.coords:
        yield from zip(batches(frames["time"]), batches(frames["segment"]), strict=True)
    else:
        yield from ((times, np.zeros(len(times))) for times in batches(frames["time"]))


def _dated(result: Any) -> Any:
    """Date-times in what a function gives, wherever it says from when it counts."""
    if isinstance(result, dict):
        return {name: _dated(value) for name, value in result.items()}
    return in_dates(result) if hasattr(result, "coords") else result
