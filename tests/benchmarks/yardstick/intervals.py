"""How sure a difference between two estimates is: both are read on the same frames, of which blocks are drawn anew.

Neighbouring frames say nearly the same, so what is drawn are contiguous blocks. The readings stay as they are: an
interval tells the luck of the frames that were judged, not that of those from which the readings were learnt, nor that
the best of many rivals was chosen by looking.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import judge
from .case import Truth
from .judge import Folds, Reading

Array = NDArray[Any]

# Blocks of the judged frames, draws of as many, and the share of draws within an interval.
_BLOCKS, _DRAWS, _WITHIN = 20, 1000, 0.95


class Behind(NamedTuple):
    """By how much an estimate is read worse than another one, and from where to where with 95 %."""

    by: float
    low: float
    high: float


def behind(own: Array, other: Array, truth: Truth, folds: Folds) -> Behind:
    """By how much the other estimate is read better on the same frames."""
    first, second = (judge.reading(estimate, truth, folds) for estimate in (own, other))
    return interval(first, second, truth)


def interval(first: Reading, second: Reading, truth: Truth, seed: int = 0) -> Behind:
    """By how much the second reading is better, over blocks that are drawn with replacement."""
    rng, n = np.random.default_rng(seed), len(first.actual)
    blocks = np.array_split(np.arange(n), min(_BLOCKS, n))
    sums = _class_sums if truth.is_class else _number_sums
    told = [np.array([sums(reading, block) for block in blocks]) for reading in (first, second)]
    drawn = rng.multinomial(len(blocks), np.full(len(blocks), 1 / len(blocks)), size=_DRAWS)
    weights = np.vstack([np.ones((1, len(blocks))), drawn])
    score = _accuracy if truth.is_class else _correlation
    apart = np.subtract(*(score(np.tensordot(weights, own, axes=1)) for own in told[::-1]))
    low, high = np.nanquantile(apart[1:], [(1 - _WITHIN) / 2, (1 + _WITHIN) / 2])
    return Behind(float(apart[0]), float(low), float(high))


def _class_sums(reading: Reading, block: Array) -> Array:
    """Frames of every class in a block, and of those the ones that every way of reading got right, (classes, 1 + k)."""
    actual = reading.actual[block]
    own = np.unique(reading.actual)[:, None] == actual
    right = reading.read[block] == actual[:, None]
    return np.column_stack([own.sum(axis=1), own.astype(float) @ right])


def _accuracy(sums: Array) -> Array:
    """Mean share of the classes that were drawn, over all ways of reading."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nanmean(sums[..., 1:] / sums[..., :1], axis=(-2, -1)))


def _number_sums(reading: Reading, block: Array) -> Array:
    """Sums of which a correlation is made."""
    a, b = reading.read[block, 0], reading.actual[block]
    return np.array([len(a), a.sum(), b.sum(), a @ a, b @ b, a @ b])


def _correlation(sums: Array) -> Array:
    """Pearson's, 0 where the reading is constant."""
    n, a, b, aa, bb, ab = np.moveaxis(sums, -1, 0)
    power = np.sqrt(np.maximum((n * aa - a**2) * (n * bb - b**2), 0))
    return np.where(power > 0, (n * ab - a * b) / np.where(power > 0, power, 1.0), 0.0)
