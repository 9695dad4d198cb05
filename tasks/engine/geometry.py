"""From one block of frames and their local covariances to what a form of the distance needs.

Throughout: a *slab* (h, p) holds a block's frames with the halo their windows reach into; ``rows``
and ``starts`` say where in the slab a frame and the first frame of its window stand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from manifold_observer.tasks.arrays import Array, Floats, Integers
from manifold_observer.tasks.engine import covariance, kernel

FORMS = ("quadratic", "factor", "window")
# Bytes of the windows whose covariances are made together.
_PART_BYTES = 2**23
# Multiplications that reducing one intermediate number takes the time of.
_REDUCTION = 60


class Metric(NamedTuple):
    """The local metric: window in frames (0 where covariances are given), and how to invert."""

    window: int
    inverse: covariance.PseudoInverse


class Slab(NamedTuple):
    """Frames with halo (h, p), centred; rows (n,), starts (n,); covariances (n, p, p) where given."""

    frames: Floats
    rows: Integers
    starts: Integers
    covariances: Floats | None


def narrow(slab: Slab, first: int, stop: int, window: int) -> Slab:
    """The frames ``first`` .. ``stop`` of a slab, with no more halo than their windows need.

    Examples
    --------
    >>> whole = Slab(np.arange(5.0)[:, None], np.arange(5), np.array([0, 0, 1, 2, 2]), None)
    >>> narrow(whole, 3, 5, window=3).frames.ravel()
    array([2., 3., 4.])
    """
    rows, starts = slab.rows[first:stop], slab.starts[first:stop]
    if slab.covariances is not None:
        here = np.arange(len(rows))
        return Slab(slab.frames[rows], here, here, slab.covariances[first:stop])
    low, high = min(int(starts[0]), int(rows[0])), max(int(starts[-1]) + window, int(rows[-1]) + 1)
    return Slab(slab.frames[low:high], rows - low, starts - low, None)


def build_block(slab: Slab, metric: Metric, form: str, dtype: DTypeLike = np.float64) -> kernel.Block:
    """The block that one form of the distance needs.

    Parameters
    ----------
    slab
        Centred frames with halo.
    metric
        Window and inversion.
    form
        ``"quadratic"``, ``"factor"`` or ``"window"`` (the last needs windows).
    dtype
        Precision of the result; everything before it is float64.

    Returns
    -------
    Block of ``len(slab.rows)`` frames.

    Raises
    ------
    DegenerateCovarianceError
        Some covariances are zero or not finite and there is no ridge.
    """
    frames = slab.frames[slab.rows]
    if form == "window":
        mixing, floor = _mixing(slab, metric)
        block: kernel.Block = kernel.window_block(slab.frames, slab.rows, slab.starts, mixing, floor)
    elif form == "quadratic":
        block = kernel.quadratic_block(frames, _precisions(slab, metric))
    else:
        block = kernel.factor_block(frames, _factors(slab, metric))
    return kernel.astype(block, dtype)


class Probe(NamedTuple):
    """Per form, the seconds of a tile and its largest float32 error; and the median distance seen."""

    seconds: dict[str, float]
    float32_error: dict[str, float]
    median: float


def probe(rows: Slab, columns: Slab, metric: Metric, forms: Sequence[str]) -> Probe:
    """Time one small tile in every form, and measure what single precision costs.

    Parameters
    ----------
    rows, columns
        Two small slabs, best from different times of the recording.
    metric
        Window and inversion.
    forms
        The forms to try.

    Returns
    -------
    Timings are in float32, errors against the same form in float64.
    """
    seconds, errors, median = {}, {}, 0.0
    for form in forms:
        exact = [build_block(slab, metric, form) for slab in (rows, columns)]
        single = [kernel.astype(block, np.float32) for block in exact]
        tile = kernel.squared_distances(single[0], single[1])
        seconds[form] = min(_seconds(single[0], single[1]) for _ in range(2))
        truth = kernel.squared_distances(exact[0], exact[1])
        errors[form] = float(np.abs(tile - truth).max())
        median = float(np.median(truth))
    return Probe(seconds, errors, median)


def cost(form: str, n_features: int, rank: int, window: int) -> int:
    """Cost of a pair of frames, in multiplications of a plain product of matrices.

    The factor and window forms also subtract, square and add up each of their 2 r intermediate numbers:
    about 60 multiplications' worth, as measured for 20 <= p <= 513. What is far behind need not be timed.
    """
    reduced = 0 if form == "quadratic" else 2 * rank * _REDUCTION
    return multiplications(form, n_features, rank, window) + reduced


def sparse_cost(n_features: int, rank: int, window: int, rows: float) -> float:
    """As :func:`cost`, in the window form with one side's frames far apart: ``rows`` rows of its halo for each.

    Examples
    --------
    Landmarks whose windows share nothing, against frames that follow each other:

    >>> round(sparse_cost(513, 20, 21, 21) / cost("window", 513, 20, 21), 1)
    3.6
    """
    near = n_features + rank * window + 2 * rank * _REDUCTION
    return near + min(rank * n_features, rows * n_features + kernel.BAND_COST * rank * (window + 1))


def multiplications(form: str, n_features: int, rank: int, window: int) -> int:
    """Multiplications a pair of frames: quadratic 2 q, factor 2 p r, window p + 2 w r.

    Examples
    --------
    >>> [multiplications(form, 513, 20, 21) for form in FORMS]
    [264710, 20520, 1353]
    """
    if form == "quadratic":
        return (n_features + 1) * (n_features + 2)
    if form == "factor":
        return 2 * rank * n_features
    return n_features + 2 * rank * window


def _seconds(rows: kernel.Block, columns: kernel.Block) -> float:
    """Time of one tile."""
    before = time.perf_counter()
    kernel.squared_distances(rows, columns)
    return time.perf_counter() - before


def _precisions(slab: Slab, metric: Metric) -> Floats:
    """Pseudo-inverses (n, p, p) of the block's own frames."""
    if slab.covariances is not None:
        return covariance.precisions(slab.covariances, metric.inverse)
    return np.concatenate(_in_parts(slab, metric, covariance.window_precisions))


def _mixing(slab: Slab, metric: Metric) -> tuple[Floats, Floats]:
    """Mixing matrices (n, r, w) and floors (n,) of the block's own frames."""
    if slab.covariances is not None:
        raise ValueError("the window form needs covariances of windows, not given ones")
    parts = _in_parts(slab, metric, covariance.window_mixing)
    rank = max(mixing.shape[1] for mixing, _ in parts)
    mixings = [np.pad(mixing, ((0, 0), (rank - mixing.shape[1], 0), (0, 0))) for mixing, _ in parts]
    return np.concatenate(mixings), np.concatenate([floor for _, floor in parts])


def _factors(slab: Slab, metric: Metric) -> Array:
    """Factors (n, p, r) of the block's own frames."""
    if slab.covariances is not None:
        return covariance.factors(slab.covariances, metric.inverse)
    if metric.inverse.regularization:
        values, vectors = np.linalg.eigh(_precisions(slab, metric))
        return vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    mixing, _ = _mixing(slab, metric)
    return covariance.factors_from_mixing(slab.frames, slab.starts, mixing)


def _in_parts(slab: Slab, metric: Metric, function: Callable[..., Any]) -> list[Any]:
    """Results for a few windows at a time, so that their frames fit into memory together."""
    step = max(1, _PART_BYTES // (8 * metric.window * slab.frames.shape[1]))
    parts = []
    for first in range(0, len(slab.rows), step):
        starts = slab.starts[first : first + step]
        try:
            parts.append(function(slab.frames, starts, metric.window, metric.inverse))
        except covariance.DegenerateCovarianceError as error:
            raise covariance.DegenerateCovarianceError(error.frames + first) from None
    return parts
