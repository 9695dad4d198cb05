"""What anybody would try first: diffusion maps, principal components, TICA; of raw features and of conditioned ones.

Throughout: ``features`` (n, p), ``estimate`` (n, m), ``spans`` are the segments. NumPy only and on its own, so that a
new default of the project cannot change what it is measured against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.sparse.linalg import eigsh

from .case import Case, segments

Array = NDArray[Any]
Spans = Sequence[slice]

GRID = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
"""Poles of the rival that sees the truth; 0 does not smooth."""
WIDTHS = (2, 3, 5)
"""Frames of causal moving averages."""
_WINDOW, _TOLERANCE = 21, 1e-3
_RIDGE = 0.01
# Conditioned features keep as many principal axes at most: a lagged covariance of 500 bins is noise.
_MOST_AXES = 40
# Up to here the products of all pairs of features are fewer numbers than the axes of a window.
_NARROW = 80
_LAG = 1


def condition(features: Array, kind: str) -> Array:
    """Features by one fixed rule for every kind, and their first principal axes.

    The square root makes the noise of counts, histograms and magnitudes the same everywhere; sensors have units, which
    standardising removes; levels on a log scale are comparable as they are.
    """
    if kind in ("counts", "histogram", "magnitude"):
        features = np.sqrt(features)
    elif kind == "power":
        features = np.log(np.maximum(features, np.quantile(features[features > 0], 0.01)))
    elif kind == "sensor":
        deviation = features.std(axis=0)
        features = features / np.where(deviation > 0, deviation, 1.0)
    return principal(features, _MOST_AXES) if features.shape[1] > _MOST_AXES else features


def principal(features: Array, m: int) -> Array:
    """Principal components, the largest first."""
    centred = features - features.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :m]
    return centred @ axes


def tica(features: Array, spans: Spans, m: int) -> Array:
    """Linear functions that are most alike from a frame to the next."""
    white = principal(features, _MOST_AXES)
    deviation = white.std(axis=0)
    white = white[:, deviation > 1e-6 * deviation.max()]
    white = white / white.std(axis=0)
    pairs = [(white[span][:-_LAG], white[span][_LAG:]) for span in spans]
    lagged = sum(now.T @ later for now, later in pairs) / sum(len(now) for now, _ in pairs)
    return white @ np.linalg.eigh((lagged + lagged.T) / 2)[1][:, ::-1][:, :m]


def diffusion_maps(features: Array, spans: Spans, m: int, ridge: float = 0.0) -> Array:
    """Diffusion coordinates under the modified Mahalanobis distance of centred windows, scale the median.

    Without a ridge the paper's pseudo-inverse; with one, a ridge of that share of the mean variance of the features.
    Windows shrink to segments that are shorter; a frame sees up to ten frames ahead.
    """
    kernel = _distances(features, spans, ridge)
    kernel += kernel.T.copy()
    np.exp(kernel / -np.median(kernel[np.triu_indices(len(kernel), 1)]), out=kernel)
    root = np.sqrt(kernel.sum(axis=1))
    kernel /= root[:, None] * root
    start = np.random.default_rng(0).normal(size=len(kernel))
    values, vectors = eigsh(kernel, m + 1, which="LA", v0=start, tol=1e-8)
    psi = vectors[:, np.argsort(-values)[1:]] / root[:, None]
    return psi / np.sqrt(np.mean(psi**2, axis=0))


def _distances(features: Array, spans: Spans, ridge: float) -> Array:
    """Squared distance of every frame from every other under the precision of its own window, (n, n)."""
    centred = features - features.mean(axis=0)
    least = ridge * centred.var(axis=0).mean()
    axes, weights = _precisions(centred, spans, least)
    floor = 1 / least if least else 0.0
    if features.shape[1] <= _NARROW:
        return _quadratic(centred, axes, weights, floor)
    distances = np.empty((len(features), len(features)))
    for frame in range(len(features)):
        seen = centred @ axes[frame].T
        distances[frame] = np.square(seen - seen[frame]) @ weights[frame]
    if floor:
        squares = np.square(centred).sum(axis=1)
        distances += floor * (squares[:, None] + squares - 2 * centred @ centred.T)
    return distances


def _precisions(centred: Array, spans: Spans, least: float) -> tuple[Array, Array]:
    """Axes (n, k, p) and weights (n, k) of every precision: its own part, beside 1 / least in all directions."""
    axes = np.zeros((len(centred), _WINDOW, centred.shape[1]))
    weights = np.zeros((len(centred), _WINDOW))
    for frame, window in enumerate(_windows(spans)):
        seen = centred[window] - centred[window].mean(axis=0)
        # The small side of the window: its products have the same eigenvalues as the covariance.
        variance, vectors = np.linalg.eigh(seen @ seen.T / max(len(seen) - 1, 1))
        kept = variance > max(variance[-1], 0) * (1e-12 if least else _TOLERANCE)
        variance, vectors = variance[kept], vectors[:, kept]
        axes[frame, : len(variance)] = (vectors.T @ seen) / np.sqrt(max(len(seen) - 1, 1) * variance)[:, None]
        weights[frame, : len(variance)] = 1 / (variance + least) - (1 / least if least else 0)
    return axes, weights


def _quadratic(centred: Array, axes: Array, weights: Array, floor: float) -> Array:
    """All distances by one product of precisions and of squares, p (p + 1) / 2 numbers a frame each."""
    p = centred.shape[1]
    precision = np.einsum("nkp,nk,nkq->npq", axes, weights, axes, optimize=True) + floor * np.eye(p)
    row, column = np.triu_indices(p)
    packed = precision[:, row, column] * np.where(row == column, 1, 2)
    own = np.einsum("npq,nq->np", precision, centred)
    distances = packed @ (centred[:, row] * centred[:, column]).T
    distances -= 2 * own @ centred.T
    distances += np.einsum("np,np->n", own, centred)[:, None]
    return np.maximum(distances, 0)


def _windows(spans: Spans) -> Iterator[slice]:
    """Window of every frame: centred, shifted inwards at the ends of a segment."""
    for span in spans:
        width = min(_WINDOW, span.stop - span.start)
        for frame in range(span.start, span.stop):
            first = min(max(frame - _WINDOW // 2, span.start), span.stop - width)
            yield slice(first, first + width)


def smoothed(estimate: Array, spans: Spans, poles: float | Array) -> Array:
    """Causal first-order smoothing, one pole a column or one for all, started from the first frame of a segment."""
    result = np.empty_like(estimate)
    for span in spans:
        for column, pole in enumerate(np.broadcast_to(poles, estimate.shape[1])):
            own = estimate[span, column]
            result[span, column], _ = lfilter([1 - pole], [1, -pole], own, zi=[pole * own[0]])
    return result


def averaged(estimate: Array, spans: Spans, width: int) -> Array:
    """Causal mean of the last frames of the segment."""
    result = np.empty_like(estimate)
    for span in spans:
        counts = np.minimum(np.arange(1, span.stop - span.start + 1), width)
        result[span] = lfilter(np.ones(width), [1.0], estimate[span], axis=0) / counts[:, None]
    return result


BASES: dict[str, Callable[[Array, Spans, int, float], Array]] = {
    "dm": diffusion_maps,
    "pca": lambda features, spans, m, ridge: principal(features, m),
    "tica": lambda features, spans, m, ridge: tica(features, spans, m),
}


def bases(known: Case, m: int, wanted: Sequence[str] = tuple(BASES)) -> dict[str, Array]:
    """Every estimate before any smoothing, by name: "dm raw", "pca conditioned", ..."""
    spans = segments(known.frames)
    sets = {"raw": (known.plain, 0.0), "conditioned": (condition(known.plain, known.kind), _RIDGE)}
    return {
        f"{base} {label}": BASES[base](features, spans, m, ridge)
        for base in wanted
        for label, (features, ridge) in sets.items()
    }


def smoothings(name: str, estimate: Array, spans: Spans) -> Iterator[tuple[str, Array]]:
    """One estimate with every pole of the grid; averages too of diffusion maps."""
    for pole in GRID:
        yield f"{name} pole {pole}", smoothed(estimate, spans, pole)
    for width in WIDTHS if name.startswith("dm") else ():
        yield f"{name} mean {width}", averaged(estimate, spans, width)


def alike(estimate: Array, spans: Spans, poles: Array) -> Array:
    """Smoothed column by column like the modes of an observer; further columns like its last one."""
    m = estimate.shape[1]
    return smoothed(estimate, spans, np.append(poles, np.full(m, poles[-1]))[:m])
