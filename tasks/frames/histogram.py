"""Histogram features of one block of samples.

Throughout: ``samples`` (n, channels) is the block, ``frame`` and ``hop`` count samples, ``edges``
(n_bins + 1) are the bounds of the cells, shared by all channels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from manifold_observer.tasks.arrays import Array, Floats, Integers
from manifold_observer.tasks.frames.framing import frame_view

# Samples that are worked on at a time.
_STRIP_NUMBERS = 2**15
# Cells up to which a comparison with every edge takes less time than finding the cell by arithmetic, or by bisection.
_FEW_CELLS = 24
# Whole numbers up to this are whole in double precision, too.
_WHOLE = 2**53


class OutsideEdgesError(ValueError):
    """A sample lies in no cell of the histogram."""


def histogram(
    samples: Array, frame: int, edges: Array, hop: int | None = None, clip: bool = False, scale: float = 1.0
) -> Floats:
    r"""Normalised histogram of every frame, one per channel, side by side.

    .. math:: h_{ck} = \frac{1}{L} \#\{t \in \text{frame} : e_k \le x_c(t) < e_{k+1}\}

    The last cell also holds its upper edge, as in :func:`numpy.histogram`.

    Parameters
    ----------
    samples
        One block, shape (n, channels).
    frame
        Samples that one histogram is computed from, L.
    edges
        Increasing bounds of the cells, shape (n_bins + 1,), in the unit of the samples.
    hop
        Samples between the starts of two frames; ``frame`` when absent, so that frames do not overlap.
    clip
        Count a sample outside the edges in the nearest cell instead of refusing it.
    scale
        What the samples are multiplied by, a power of two.

    Returns
    -------
    Shape (n_frames, channels * n_bins), channel by channel; each channel's part sums to 1.

    Raises
    ------
    OutsideEdgesError
        A sample lies outside the edges and ``clip`` is false, or is not finite.

    Notes
    -----
    O(n channels) time for few cells and for equally wide ones, O(n channels log n_bins) for others; one small
    integer per sample beside the block.

    Examples
    --------
    Two frames of three counts:

    >>> histogram(np.array([[0], [0], [1], [2], [2], [2]]), 3, np.array([0, 1, 2, 3])).round(2)
    array([[0.67, 0.33, 0.  ],
           [0.  , 0.  , 1.  ]])
    """
    cells = _cells(samples, edges if scale == 1 else edges / scale, clip, scale)
    frames, width = frame_view(cells, frame, hop or frame), samples.shape[1] * (len(edges) - 1)
    counts, step = np.empty((len(frames), width)), max(1, _STRIP_NUMBERS // max(1, frame * samples.shape[1]))
    room = np.empty((min(step, len(frames)), *frames.shape[1:]), np.intp)
    for first in range(0, len(frames), step):
        part = frames[first : first + step]
        counts[first : first + step] = _counts(part, len(edges) - 1, room[: len(part)])
    counts /= frame
    return counts


def _counts(cells: Array, n_bins: int, room: Integers) -> Integers:
    """How often every cell occurs, channel by channel, in some frames (n_frames, frame, channels)."""
    n_frames, _, channels = cells.shape
    numbers = np.add(cells, n_bins * np.arange(n_frames * channels).reshape(n_frames, 1, channels), out=room)
    counted = np.bincount(numbers.ravel(), minlength=n_frames * channels * n_bins)
    return np.asarray(counted.reshape(n_frames, channels * n_bins))


def _cells(samples: Array, edges: Array, clip: bool, scale: float) -> Array:
    """Cell number of every sample, checked against the edges; some at a time, which stay in cache."""
    samples = samples.view(np.uint8) if samples.dtype == bool else samples
    cells = np.empty(samples.shape, np.min_scalar_type(len(edges) - 1))
    step = max(1, _STRIP_NUMBERS // max(1, samples.shape[1]))
    find = _finder(edges, samples.dtype)
    for first in range(0, len(samples), step):
        part = samples[first : first + step]
        _check(part, edges, clip, scale)
        cells[first : first + step] = find(part)
    return cells


def _check(samples: Array, edges: Array, clip: bool, scale: float) -> None:
    """Refuse samples that are not finite, and those outside the edges unless they are clipped."""
    if not samples.size or (samples.min() >= edges[0] and samples.max() <= edges[-1]):
        return
    lost = samples[~np.isfinite(samples)]
    if len(lost):
        raise OutsideEdgesError(f"a sample is {lost[0]}, not a number")
    outside = samples[(samples < edges[0]) | (samples > edges[-1])]
    if not clip:
        value, low, high = (number if scale == 1 else number * scale for number in (outside[0], edges[0], edges[-1]))
        raise OutsideEdgesError(f"a sample of {value} lies outside the edges {low} .. {high}")


def _finder(edges: Array, dtype: np.dtype[Any]) -> Callable[[Array], Array]:
    """The way to find cells that is fastest for some edges; it clips to the end cells."""
    if len(edges) - 1 <= _FEW_CELLS:
        return partial(_compared, bounds=_exact_bounds(edges[1:-1], dtype))
    if _even(edges):
        return partial(_computed, edges=edges.astype(np.float64))
    return partial(_searched, bounds=edges[1:-1])


def _compared(samples: Array, bounds: Array) -> Array:
    """Cells, as the number of inner edges that are not above a sample."""
    cells, above = np.zeros(samples.shape, np.uint8), np.empty(samples.shape, bool)
    for bound in bounds:
        np.greater_equal(samples, bound, out=above)
        cells += above.view(np.uint8)
    return cells


def _searched(samples: Array, bounds: Array) -> Integers:
    """Cells of any width, by bisection."""
    return np.asarray(np.searchsorted(bounds, samples, side="right"))


def _exact_bounds(edges: Array, dtype: np.dtype[Any]) -> Array:
    """Numbers of the samples' kind that the same samples reach as the edges, so that none has to be converted."""
    if dtype.kind == "f" and dtype.itemsize < 8:
        with np.errstate(over="ignore"):
            near = edges.astype(dtype)
        return np.where(near < edges, np.nextafter(near, dtype.type(np.inf)), near)
    if dtype.kind in "iu" and dtype.itemsize < 8:
        whole, limits = np.ceil(edges), np.iinfo(dtype)
        return np.clip(whole[whole <= limits.max], limits.min, None).astype(dtype)
    return edges


def _even(edges: Array) -> bool:
    """Whether all cells are about equally wide."""
    if max(abs(float(edges[0])), abs(float(edges[-1]))) >= _WHOLE:
        return False
    widths = np.diff(edges.astype(np.float64))
    regular = np.linspace(float(edges[0]), float(edges[-1]), len(edges))
    divisible = widths.min() > np.finfo(np.float64).tiny  # places are found by a division by the width
    return bool(divisible and np.abs(edges - regular).max() < widths.min() / 8)


def _computed(samples: Array, edges: Floats) -> Integers:
    """Cells of equal width by arithmetic, which may be off by one, and is then put right by the edges."""
    last = len(edges) - 2
    wide = samples.astype(np.float64)
    places = (wide - edges[0]) * ((last + 1) / (edges[-1] - edges[0]))
    cells = np.clip(places, 0, last, out=places).astype(np.int32)
    cells += wide >= edges[1:].take(cells)
    np.minimum(cells, last, out=cells)
    cells -= wide < edges.take(cells)
    return np.maximum(cells, 0, out=cells)
