r"""Features made fit for distances, one block of frames at a time.

A Poisson count, the cell of a histogram and a magnitude all vary more where they are larger; sensors come in units of
their own, and now and then with a wild number. Throughout: a *transform* t acts on every number, a *scale* s (p,)
divides every feature; conditioned features are :math:`y = t(z) / s`. *Limits* (2, p) are what plain numbers beyond
them count as.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Booleans, Floats

# Counts of Poisson processes, bursts and refractory times included: variance over mean, the middle channel's.
_COUNT_DISPERSION = (0.3, 30.0)
# The farthest number over the robust width of its feature, from which outliers are looked for: normal noise reaches 5.
_OUTLYING = 20.0
# Share of the frames that outliers are fewer than on each side, and how many times as far as all others they lie.
_SHARE, _TIMES = 0.01, 2.0


class Look(NamedTuple):
    """What one block shows of the values: the smallest, and whether all are whole numbers."""

    least: float
    whole: bool


def look(frames: Floats) -> Look:
    """Look at one block of finite numbers.

    Examples
    --------
    >>> look(np.array([[3.0, 0.0]]))
    Look(least=0.0, whole=True)
    """
    return Look(float(frames.min()), bool((frames == np.round(frames)).all()))


def both_looks(a: Look, b: Look) -> Look:
    """What two blocks show together."""
    return Look(min(a.least, b.least), a.whole and b.whole)


def are_counts(seen: Look, mean: Floats, variance: Floats) -> bool:
    """Whether features look like counts of events: whole, not negative, with a variance in proportion to their mean.

    Numbers of a converter are whole too, but their variance has nothing to do with their mean.

    Examples
    --------
    Spikes a quarter of a second, and a converter of ten bits at rest in the middle of its range:

    >>> are_counts(Look(0.0, True), np.array([2.0]), np.array([2.5]))
    True
    >>> are_counts(Look(500.0, True), np.array([512.0]), np.array([4.0]))
    False
    """
    alive = mean > 0
    if not seen.whole or seen.least < 0 or not alive.any():
        return False
    dispersion = float(np.median(variance[alive] / mean[alive]))
    return _COUNT_DISPERSION[0] <= dispersion <= _COUNT_DISPERSION[1]


def may_outlie(reach: Floats, spread: Floats) -> Booleans:
    """Which features have numbers so far off that a few of them would set the variance.

    Parameters
    ----------
    reach, spread
        Distance of the farthest number from the median, and a robust width, of every feature.

    Examples
    --------
    >>> may_outlie(np.array([5.0, 90.0]), np.array([1.0, 1.0]))
    array([False,  True])
    """
    return np.asarray(reach > _OUTLYING * spread)


def limits_of(sample: Floats) -> Floats:
    """Limits (2, p) of features: twice as far from the median as all but a hundredth of the numbers on either side.

    Fewer than a hundredth of the frames set a variance only if they lie far outside of what the others span, and they
    say more of the sensor than of what it measures. A feature that hardly ever leaves its median has no limits.

    Parameters
    ----------
    sample
        Frames from all of the recording, shape (n, p).

    Examples
    --------
    >>> values = np.tile(np.linspace(-1, 1, 201)[:, None], 2)
    >>> values[7, 1] = 90.0
    >>> limits_of(values).round(2).tolist()
    [[-1.96, -1.97], [1.96, 1.99]]
    """
    low, centre, high = np.quantile(sample, [_SHARE, 0.5, 1 - _SHARE], axis=0)
    width = _TIMES * np.maximum(high - centre, centre - low)
    width = np.where(width > 0, width, np.inf)
    return np.stack([centre - width, centre + width])


class Conditioning(NamedTuple):
    """A transform of every number, the floor of its logarithm, and what each feature is divided by after it, (p,).

    ``limits`` (2, p), where there are some, are what smaller and larger plain numbers count as; infinities stay, for
    whoever meets conditioned frames refuses those.

    Examples
    --------
    >>> rooted = Conditioning("root", 0.0, np.array([1.0, 3.0]))
    >>> rooted.forward(np.array([[4.0, 9.0]])), rooted.backward(np.array([[2.0, 1.0]]))
    (array([[2., 1.]]), array([[4., 9.]]))
    """

    transform: str
    floor: float
    scale: Floats
    limits: Floats | None = None

    def forward(self, frames: Floats) -> Floats:
        """Conditioned features (n, p) of plain ones.

        Raises
        ------
        NegativeError
            A root of a negative number is wanted.
        """
        if self.limits is not None:
            frames = np.where(np.isinf(frames), frames, np.clip(frames, *self.limits))
        if self.transform == "root":
            if (frames < 0).any():
                raise NegativeError(float(frames.min()))
            return np.sqrt(frames) / self.scale
        if self.transform == "log":
            return np.log(np.maximum(frames, self.floor)) / self.scale
        return frames / self.scale

    def backward(self, conditioned: Floats) -> Floats:
        """Plain features that conditioned ones stand for; what lies below 0 has the root 0, outliers are not undone."""
        values = conditioned * self.scale
        if self.transform == "root":
            return np.square(np.maximum(values, 0.0))
        return np.exp(values) if self.transform == "log" else values


def conditioned(frames: Floats, conditioning: Conditioning | None) -> Floats:
    """Conditioned features of a block; the features themselves where there is no conditioning."""
    return frames if conditioning is None else conditioning.forward(frames)


class NegativeError(ValueError):
    """A square root of negative features was wanted; ``least`` is the smallest of them."""

    def __init__(self, least: float) -> None:
        super().__init__(f"features must not be negative for a square root; got {least:g}")
        self.least = least
