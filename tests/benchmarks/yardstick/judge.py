"""How well an estimate tells a truth, on blocks that nothing was fitted on.

Read-outs never see the block that they are judged on, nor the frames beside it; estimates are unsupervised and have
seen all frames, unless they are streamed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from .case import Truth

Array = NDArray[Any]

N_FOLDS = 5
NEIGHBOURS = (5, 20)
"""Votes of the nearest frames; the mean of both accuracies counts."""
# Half a window: a local covariance of frames in between has seen both sides.
_APART = 10
_SHUFFLES, _PIECES = 10, 12


Folds = list[tuple[Array, Array]]
"""(learn, judged) masks over all frames."""


class Reading(NamedTuple):
    """What was read of the judged frames (n, k), one column a way of reading, and what is true there (n,)."""

    read: Array
    actual: Array


def score(estimate: Array, truth: Truth) -> float:
    """Correlation, or balanced accuracy, over all blocks that were held out in turn."""
    return scored(reading(estimate, truth, held_out(truth)), truth)


def streamed_score(estimate: Array, truth: Truth, n_first: int) -> float:
    """The same of the frames after the first ones, on which the read-out is fitted; NaN where they have no truth."""
    folds = halves(truth, n_first)
    return scored(reading(estimate, truth, folds), truth) if folds else np.nan


def held_out(truth: Truth) -> Folds:
    """Every fifth of the known frames in turn."""
    return list(_folds(_known(truth)))


def halves(truth: Truth, n_first: int) -> Folds:
    """The first frames to learn from, the others to judge; nothing where they have no truth in common."""
    known = _known(truth)
    early = np.arange(len(known)) < n_first
    if truth.is_class:
        both = np.intersect1d(truth.values[known & early], truth.values[known & ~early])
        known = known & np.isin(truth.values, both)
        if len(both) < 2:
            return []
    enough = min((known & early).sum(), (known & ~early).sum()) >= 2 * _APART
    return [(known & early, known & ~early)] if enough else []


def chance(estimate: Array, truth: Truth, seed: int = 0) -> tuple[float, float]:
    """Mean and largest score of the same estimate when pieces of the truth are put in another order."""
    rng = np.random.default_rng(seed)
    pieces = np.array_split(truth.values, _PIECES)
    found = []
    for _ in range(_SHUFFLES):
        order = rng.permutation(_PIECES)
        values = np.concatenate([pieces[k] for k in order])
        # Rolled by half a piece, so that none comes back to its own place, where it would tell the truth.
        found.append(score(estimate, Truth(np.roll(values, len(values) // (2 * _PIECES)))))
    return float(np.mean(found)), float(np.max(found))


def _known(truth: Truth) -> Array:
    """Frames whose truth is known."""
    return truth.values >= 0 if truth.is_class else np.isfinite(truth.values)


def _folds(known: Array) -> Iterator[tuple[Array, Array]]:
    """(learn, held out) masks: contiguous blocks of equally many known frames, and a margin that belongs to neither."""
    number = np.full(len(known), -1)
    number[known] = np.arange(known.sum()) * N_FOLDS // known.sum()
    for fold in range(N_FOLDS):
        held_out = number == fold
        first, last = np.flatnonzero(held_out)[[0, -1]]
        beside = np.zeros(len(known), bool)
        beside[max(0, first - _APART) : last + 1 + _APART] = True
        yield known & ~beside, held_out


def reading(estimate: Array, truth: Truth, folds: Folds) -> Reading:
    """What an estimate says of every judged frame; numbers as departures from the mean of what was learnt."""
    if truth.is_class:
        read = [_read_classes(estimate[learn], truth.values[learn], estimate[held]) for learn, held in folds]
        return Reading(np.concatenate(read), np.concatenate([truth.values[held] for _, held in folds]))
    # From the mean of what was learnt: the means of the other blocks fall where the mean of a block rises, and an
    # estimate that says nothing would be far below 0 wherever the truth is slow.
    parts = [(learn, held, truth.values - truth.values[learn].mean()) for learn, held in folds]
    read = [_read_numbers(estimate[learn], apart[learn], estimate[held])[:, None] for learn, held, apart in parts]
    return Reading(np.concatenate(read), np.concatenate([apart[held] for _, held, apart in parts]))


def scored(found: Reading, truth: Truth) -> float:
    """Mean score of all ways of reading."""
    how = _balanced if truth.is_class else _correlation
    return float(np.mean([how(column, found.actual) for column in found.read.T]))


def _read_numbers(estimate: Array, truth: Array, held_out: Array) -> Array:
    """Linear regression."""
    weights, *_ = np.linalg.lstsq(_with_ones(estimate, estimate), truth, rcond=None)
    return _with_ones(held_out, estimate) @ weights


def _with_ones(estimate: Array, learnt: Array) -> Array:
    """An intercept, and columns of unit variance where it was learnt."""
    return np.column_stack([np.ones(len(estimate)), _scaled(estimate, learnt)])


def _read_classes(estimate: Array, truth: Array, held_out: Array) -> Array:
    """Vote of the nearest frames, one column a number of neighbours; the smaller class wins a tie.

    A vote counts by the rarity of its class: where a block takes most of a class away, the others would win everywhere,
    and an estimate that says nothing would be read below chance.
    """
    classes, number, counts = np.unique(truth, return_inverse=True, return_counts=True)
    most = min(max(NEIGHBOURS), len(truth))
    _, nearest = KDTree(_scaled(estimate, estimate)).query(_scaled(held_out, estimate), k=np.arange(1, most + 1))
    votes = (np.eye(len(classes)) / counts)[number[nearest]]
    return np.stack([classes[votes[:, :k].sum(axis=1).argmax(axis=1)] for k in NEIGHBOURS], axis=1)


def _scaled(estimate: Array, learnt: Array) -> Array:
    """Columns with zero mean and unit variance where the read-out was fitted."""
    deviation = learnt.std(axis=0)
    return (estimate - learnt.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def _correlation(reading: Array, truth: Array) -> float:
    """Pearson's, 0 where the reading is constant."""
    a, b = reading - reading.mean(), truth - truth.mean()
    power = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / power) if power > 0 else 0.0


def _balanced(reading: Array, truth: Array) -> float:
    """Mean over the classes of the share that was read right."""
    return float(np.mean([np.mean(reading[truth == label] == label) for label in np.unique(truth)]))
