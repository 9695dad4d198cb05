"""What points are coloured by: time, a label or any quantity; colours that the colour-blind can tell apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from .series import rows_of, times_of
from .style import COLOURS

OTHER = "#B8B8B8"
"""Colour of what has no label, and of labels that are too many."""
# Whole numbers with so few values are labels, such as 0 and 1 of an anomaly.
_FEW_VALUES = 12
_NO_LABEL = "no label"


class Colouring(NamedTuple):
    """One number or one class for each of some frames."""

    name: str
    values: NDArray[Any]
    """Numbers; for classes their place in ``classes``, -1 where a frame has none."""
    classes: tuple[str, ...] | None = None
    """Names of classes, the most frequent first; None for numbers."""
    units: str = ""


def colouring(frames: xr.DataArray | xr.Dataset, by: Any, at: NDArray[np.int64] | None = None) -> Colouring:
    """What some frames are coloured by.

    Parameters
    ----------
    frames
        Anything along ``frame``, with its coordinates.
    by
        None or "time"; the name of a coordinate along ``frame``; or an array along ``frame``.
    at
        Numbers of the frames; all by default.

    Raises
    ------
    ValueError
        There is no such coordinate, or the array has another length.

    Examples
    --------
    >>> frames = xr.DataArray([1.0, 2.0, 3.0], dims="frame", coords={"note": ("frame", ["c", "d", "c"])})
    >>> colouring(frames, "note")
    Colouring(name='note', values=array([0, 1, 0]), classes=('c', 'd'), units='')
    """
    at = np.arange(frames.sizes["frame"]) if at is None else at
    if by is None or (isinstance(by, str) and by == "time"):
        time = times_of(frames)
        return Colouring("time" if time.dtype.kind in "fM" else "frame", time[at], units=_unit_of(frames))
    values = _along(frames, by)
    name, units = str(values.name or "value"), str(values.attrs.get("units", ""))
    title = str(values.attrs.get("long_name", name)) if not isinstance(by, str) else name
    if values.dtype.kind in "biufc" and not values.chunks:
        own = np.asarray(values.values)[at]
    elif values.dtype.kind in "iuf":
        own = rows_of(values.astype(np.float64), at)[:, 0]
    else:
        own = np.asarray(values.values)[at]
    if _is_classes(own):
        return Colouring(title, *_coded(own))
    return Colouring(title, own if own.dtype.kind == "M" else own.astype(np.float64), units=_known(units))


def labels_along(frames: xr.DataArray | xr.Dataset) -> list[str]:
    """Names of the coordinates along frames that are neither clock nor segment.

    Examples
    --------
    >>> labels_along(xr.DataArray([1.0], dims="frame", coords={"time": ("frame", [0.0]), "note": ("frame", ["c"])}))
    ['note']
    """
    return [
        str(name)
        for name, values in frames.coords.items()
        if values.dims == ("frame",) and name not in ("time", "segment", "frame")
    ]


def _along(frames: xr.DataArray | xr.Dataset, by: Any) -> xr.DataArray:
    """The array that a colour was asked for by."""
    n = frames.sizes["frame"]
    if isinstance(by, str):
        if by not in frames.coords or frames.coords[by].dims != ("frame",):
            known = ", ".join(repr(name) for name in ["time", *labels_along(frames)])
            raise ValueError(f"plot: color must be a coordinate along 'frame' ({known}) or an array; got {by!r}.")
        return frames.coords[by]
    values = by if isinstance(by, xr.DataArray) else xr.DataArray(np.asarray(by), dims="frame")
    if values.ndim != 1 or values.size != n:
        raise ValueError(
            f"plot: color must have one value for each of the {n} frames; got shape {values.shape}. "
            "Choose with isel what shall be drawn."
        )
    return values.rename({values.dims[0]: "frame"}) if values.dims != ("frame",) else values


def _is_classes(values: NDArray[Any]) -> bool:
    """Whether values are names rather than quantities."""
    if values.dtype.kind not in "iuf":
        return values.dtype.kind != "M"
    known = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    return len(known) > 0 and bool((known == np.floor(known)).all()) and len(np.unique(known)) <= _FEW_VALUES


def _coded(values: NDArray[Any]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Classes by how frequent they are; empty text and NaN are no class."""
    text = np.array([_as_text(value) for value in values.ravel()], object).astype(str)
    names, codes, counts = np.unique(text, return_inverse=True, return_counts=True)
    order = np.array([k for k in np.argsort(-counts, kind="stable") if names[k]], np.int64)
    place = np.full(len(names), -1, np.int64)
    place[order] = np.arange(len(order))
    return place[codes], tuple(str(names[k]) for k in order)


def _as_text(value: Any) -> str:
    """One label: whole numbers without a point."""
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:g}"
    return str(value)


def shown_classes(found: Colouring) -> list[tuple[str, int, str]]:
    """Name, code and colour of every class that has a colour of its own; the rest is code -1, in grey.

    Examples
    --------
    >>> shown_classes(Colouring("note", np.array([0, 1, -1]), ("c", "d")))[1:]
    [('d', 1, '#D55E00'), ('no label', -1, '#B8B8B8')]
    """
    classes = found.classes or ()
    shown = [(name, code, COLOURS[code]) for code, name in enumerate(classes[: len(COLOURS)])]
    rest = len(classes) - len(shown)
    if rest or (np.asarray(found.values) < 0).any():
        shown.append((f"{rest} more" if rest else _NO_LABEL, -1, OTHER))
    return shown


def _unit_of(frames: xr.DataArray | xr.Dataset) -> str:
    """Unit of the clock."""
    return _known(str(frames["time"].attrs.get("units", "s"))) if "time" in frames.coords else ""


def _known(units: str) -> str:
    """A unit that says something."""
    return "" if units in ("1", "unknown") else units
