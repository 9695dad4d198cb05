"""A prototype of defaults that need no label: what won when every ingredient was measured on its own.

1. Features are conditioned by their kind (square root, logarithm, units of their deviation) and turned to their first
   principal axes, 20 at most.
2. Local covariances of 21 frames are shrunk towards a target by the intensity of Ledoit and Wolf, one for the recording
   (the median over its windows), with a ridge of 1 % of the mean variance. Two targets are tried: a multiple of the
   identity, and the pooled local covariance with a tenth of the identity.
3. The coordinates are the first two principal components of the features and the first six diffusion coordinates, all
   of the frame itself: what is linear in the features, and what is not.
4. Of both targets the one is kept whose coordinates say most of the features three and five frames later, by a linear
   reading on blocks that are left out. (What they say of themselves misleads.)
5. Every coordinate is smoothed by a bank of contracting observers with fixed poles, over short gaps too; the state is
   the mixture of all of them, of as many columns as coordinates, that holds most of what they predict of the
   coordinates 1, 2, 4 and 8 frames later, by ridge regression. It contracts whatever the weights are, and what is
   carried over is the last state of every observer.
6. The smoother adds the same estimate of the frames in reverse order.

New frames are read by Nystrom's extension, scaled so that embedded frames read without their own share come back to
their coordinates. The state sees no later frame but through the centred window of its frame's
covariance (``causal=True`` takes the window before the frame). NumPy only, dense: N squared numbers are held.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from .case import Case, segments
from .rivals import smoothed

Array = NDArray[Any]
Spans = Sequence[slice]


class Settings(NamedTuple):
    """What may be touched; the defaults are what won."""

    n_modes: int = 8
    n_linear: int = 2
    targets: tuple[str, ...] = ("identity", "pooled")
    causal: bool = False
    smoother: bool = False
    window: int = 21
    ridge: float = 0.01
    most_axes: int = 20
    short_gap: float = 5.0
    poles: tuple[float, ...] = (0.0, 0.3, 0.5, 0.7, 0.9, 0.95, 0.98)
    penalty: float = 0.1
    ahead: tuple[int, ...] = (1, 2, 4, 8)
    later: float = 0.5
    least_pairs: int = 100
    plain: float = 0.7
    towards: float = 0.2
    look_ahead: tuple[int, ...] = (3, 5)


class Conditioned(NamedTuple):
    """Conditioned features of all frames.

    ``runs`` are the spans that filters go through, short gaps included; ``cut`` the segments, cut where the embedded
    frames end. ``embedded`` are those that everything is learnt on.
    """

    values: Array
    runs: list[slice]
    cut: list[slice]
    embedded: slice


class Map(NamedTuple):
    """Diffusion coordinates of embedded frames and of the others, and what made them."""

    coordinates: Array
    eigenvalues: Array
    intensity: float


class Estimate(NamedTuple):
    """State and what it was smoothed from, of all frames."""

    state: Array
    coordinates: Array
    target: str
    intensity: float
    said: dict[str, float]


def estimate(case: Case, n_embedded: int, settings: Settings) -> Estimate:
    """Embed the first frames, learn everything on them, and read all frames."""
    frames = conditioned(case, n_embedded, settings)
    maps = {name: diffusion(frames, name, settings) for name in settings.targets}
    readings = {name: both(found.coordinates, frames, settings) for name, found in maps.items()}
    said = {name: foretold(reading, frames, settings) for name, reading in readings.items()}
    name = max(said, key=lambda key: said[key])
    state = observed(readings[name], frames, settings)
    if settings.smoother:
        state = state + observed(readings[name][::-1], _reversed(frames), settings)[::-1]
    return Estimate(state, readings[name], name, maps[name].intensity, said)


def conditioned(case: Case, n_embedded: int, settings: Settings) -> Conditioned:
    """Transform by kind, turn to principal axes; means, deviations and axes are those of the embedded frames."""
    values = np.asarray(case.plain, dtype=np.float64)
    if case.kind in ("counts", "histogram", "magnitude"):
        values = np.sqrt(values)
    elif case.kind == "power":
        values = np.log(np.maximum(values, np.quantile(values[:n_embedded][values[:n_embedded] > 0], 0.01)))
    elif case.kind == "sensor":
        deviation = values[:n_embedded].std(axis=0)
        values = values / np.where(deviation > 0, deviation, 1.0)
    values = values - values[:n_embedded].mean(axis=0)
    axes = np.linalg.eigh(values[:n_embedded].T @ values[:n_embedded])[1][:, ::-1]
    spans = segments(case.frames)
    starts = {span.start for span in spans}
    runs = _spans(starts - _short(case, starts, settings.short_gap), len(values))
    return Conditioned(
        values @ axes[:, : settings.most_axes], runs, _spans(starts | {n_embedded}, len(values)), slice(n_embedded)
    )


def _spans(starts: set[int], n: int) -> list[slice]:
    """Spans between starts."""
    return [slice(first, stop) for first, stop in itertools.pairwise(sorted(starts | {n}))]


def _short(case: Case, starts: set[int], frames: float) -> set[int]:
    """Starts of segments that begin less than so many frames after the one before ends."""
    times = case.frames["time"].values
    step = np.median(np.diff(times))
    return {start for start in starts if start and 0 < times[start] - times[start - 1] < (frames + 1) * step}


def _reversed(frames: Conditioned) -> Conditioned:
    """The same, the last frame first."""
    n = len(frames.values)

    def turned(spans: Spans) -> list[slice]:
        return [slice(n - span.stop, n - span.start) for span in reversed(spans)]

    return Conditioned(frames.values[::-1], turned(frames.runs), turned(frames.cut), slice(n - frames.embedded.stop, n))


def shrunk(frames: Conditioned, settings: Settings, target: str) -> tuple[Array, float]:
    """Precisions (n, p, p) of all frames and the intensity, which is learnt on the embedded ones."""
    n, p = frames.values.shape
    covariance, spread = np.empty((n, p, p)), np.empty(n)
    for frame, window in enumerate(_windows(frames.cut, settings)):
        seen = frames.values[window] - frames.values[window].mean(axis=0)
        covariance[frame] = seen.T @ seen / max(len(seen) - 1, 1)
        fourth = np.square(np.square(seen).sum(axis=1)).mean()
        spread[frame] = max(fourth - np.square(covariance[frame]).sum(), 0) / len(seen)
    target_covariance = _target(covariance, frames.embedded, target)
    apart = np.square(covariance - target_covariance).sum(axis=(1, 2))
    intensity = float(np.median(np.minimum(spread / np.maximum(apart, 1e-300), 1)[frames.embedded]))
    covariance = (1 - intensity) * covariance + intensity * target_covariance
    ridge = settings.ridge * frames.values[frames.embedded].var(axis=0).mean()
    return np.linalg.inv(covariance + ridge * np.eye(p)), intensity


def _target(covariance: Array, embedded: slice, target: str) -> Array:
    """A multiple of the identity with the trace of each window, or the pooled covariance with a tenth of it."""
    mean = np.trace(covariance, axis1=1, axis2=2) / covariance.shape[1]
    identity = np.eye(covariance.shape[1])
    if target == "identity":
        return mean[:, None, None] * identity
    return 0.9 * covariance[embedded].mean(axis=0) + 0.1 * mean[embedded].mean() * identity


def _windows(spans: Spans, settings: Settings) -> list[slice]:
    """Window of every frame: centred or up to the frame, shifted inwards at the ends, shrunk to short segments."""
    windows = []
    for span in spans:
        width = min(settings.window, span.stop - span.start)
        before = width - 1 if settings.causal else width // 2
        for frame in range(span.start, span.stop):
            first = min(max(frame - before, span.start), span.stop - width)
            windows.append(slice(first, first + width))
    return windows


def diffusion(frames: Conditioned, target: str, settings: Settings) -> Map:
    """Diffusion coordinates of the embedded frames, and of the others by Nystrom's extension."""
    precision, intensity = shrunk(frames, settings, target)
    known, values = frames.embedded, frames.values
    distance = (
        _quadratic(values, precision, values[known]) + _quadratic(values[known], precision[known], values).T
    ) / 2
    epsilon = float(np.median(distance[known][np.triu_indices(known.stop, 1)]))
    eigenvalues, psi = _eigenvectors(np.exp(-distance[known] / epsilon), settings.n_modes)
    read = _read(distance, epsilon, psi, known)
    # A frame without its own share is nearer to the mean than its coordinates: one slope a mode brings it back.
    slopes = np.sum(read[known] * psi, axis=0) / np.maximum(np.sum(read[known] ** 2, axis=0), 1e-300)
    return Map(np.concatenate([psi, read[known.stop :] * slopes]), eigenvalues, intensity)


def _read(distance: Array, epsilon: float, psi: Array, known: slice) -> Array:
    """Nystrom's mean of the coordinates of the embedded frames, without the frame's own."""
    own = np.arange(known.stop)
    distance[own, own] = np.inf
    weights = np.exp(-(distance - distance.min(axis=1, keepdims=True)) / epsilon)
    return (weights / weights.sum(axis=1, keepdims=True)) @ psi


def _quadratic(centres: Array, precision: Array, values: Array) -> Array:
    """Squared distances (centre, value) under the precision of the centre, in single precision."""
    row, column = np.triu_indices(centres.shape[1])
    packed = (precision[:, row, column] * np.where(row == column, 1, 2)).astype(np.float32)
    image = np.einsum("npq,nq->np", precision, centres)
    distance = packed @ (values[:, row] * values[:, column]).T.astype(np.float32)
    distance -= (2 * image @ values.T).astype(np.float32)
    distance += np.einsum("np,np->n", image, centres)[:, None].astype(np.float32)
    return np.maximum(distance, 0)


def _eigenvectors(kernel: Array, m: int) -> tuple[Array, Array]:
    """Largest eigenvalues but the first, and coordinates of unit mean square."""
    root = np.sqrt(kernel.sum(axis=1))
    kernel /= root[:, None] * root
    start = np.random.default_rng(0).normal(size=len(kernel)).astype(kernel.dtype)
    values, vectors = eigsh(kernel, m + 1, which="LA", v0=start, tol=1e-5)
    order = np.argsort(-values)[1:]
    psi = vectors[:, order].astype(np.float64) / root[:, None]
    return values[order].astype(np.float64), psi / np.sqrt(np.mean(psi**2, axis=0))


def both(psi: Array, frames: Conditioned, settings: Settings) -> Array:
    """Principal components first, then diffusion coordinates."""
    q = min(settings.n_linear, frames.values.shape[1])
    read = np.hstack([frames.values[:, :q], psi[:, : settings.n_modes - q]])
    known = read[frames.embedded]
    deviation = known.std(axis=0)
    return (read - known.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def observed(coordinates: Array, frames: Conditioned, settings: Settings) -> Array:
    """Bank of contracting observers, mixed by what predicts the coordinates of the frames to come."""
    bank = np.hstack([smoothed(coordinates, frames.runs, pole) for pole in settings.poles])
    known = bank[frames.embedded]
    deviation = known.std(axis=0)
    bank = (bank - known.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    several = {ahead: _followed(frames, ahead) for ahead in settings.ahead}
    said = [
        (1.0 if ahead == 1 else settings.later) * _ridge(bank, coordinates, now, ahead, settings)
        for ahead, now in several.items()
        if ahead == 1 or len(now) >= settings.least_pairs
    ]
    mixed = _leading(np.hstack(said), said[0], several[1])
    plain = smoothed(coordinates, frames.runs, settings.plain)
    plain = plain - plain[frames.embedded].mean(axis=0)
    return (1 - settings.towards) * mixed + settings.towards * plain


def _ridge(bank: Array, coordinates: Array, now: Array, ahead: int, settings: Settings) -> Array:
    """What a bank says of the coordinates so many frames later, of all frames."""
    squares = bank[now].T @ bank[now] / len(now) + settings.penalty * np.eye(bank.shape[1])
    return bank @ np.linalg.solve(squares, bank[now].T @ coordinates[now + ahead] / len(now))


def _leading(said: Array, nearest: Array, some: Array) -> Array:
    """The leading directions of all that is said, as many as of the nearest, and turned and scaled to be near to it."""
    axes = np.linalg.eigh(said[some].T @ said[some])[1][:, -nearest.shape[1] :]
    left, _, right = np.linalg.svd((said[some] @ axes).T @ nearest[some])
    turned = said @ axes @ left @ right
    own, other = turned[some], nearest[some]
    return turned * ((own * other).sum(axis=0) / np.maximum(np.square(own).sum(axis=0), 1e-300))


def _followed(frames: Conditioned, ahead: int) -> Array:
    """Embedded frames whose segment goes on for so long among the embedded ones."""
    first, last = frames.embedded.start or 0, frames.embedded.stop
    spans = [span for span in frames.cut if first <= span.start and span.stop <= last]
    return np.concatenate([np.arange(span.start, max(span.stop - ahead, span.start)) for span in spans])


def foretold(reading: Array, frames: Conditioned, settings: Settings) -> float:
    """Share of the features some frames later that a linear reading of the coordinates predicts."""
    target = frames.values[:, : settings.n_modes]
    deviation = target[frames.embedded].std(axis=0)
    target = target / np.where(deviation > 0, deviation, 1.0)
    return float(np.mean([_predicted(reading, target, _followed(frames, h), h) for h in settings.look_ahead]))


def _predicted(state: Array, target: Array, now: Array, ahead: int, folds: int = 5) -> float:
    """The same so many frames ahead, on contiguous blocks that are left out; mean over the columns, none below 0."""
    if len(now) < 10 * folds:
        return 0.0
    inputs, later = np.column_stack([np.ones(len(now)), state[now]]), target[now + ahead]
    block = np.arange(len(now)) * folds // len(now)
    left, total = np.zeros(target.shape[1]), np.full(target.shape[1], 1e-300)
    for fold in range(folds):
        learn, held = block != fold, block == fold
        squares = inputs[learn].T @ inputs[learn] + 1e-3 * learn.sum() * np.eye(inputs.shape[1])
        weights = np.linalg.solve(squares, inputs[learn].T @ later[learn])
        left += np.square(later[held] - inputs[held] @ weights).sum(axis=0)
        total += np.square(later[held] - later[learn].mean(axis=0)).sum(axis=0)
    return float(np.maximum(1 - left / total, 0).mean())
