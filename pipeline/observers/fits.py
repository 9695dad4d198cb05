"""What a calibration could not find out, in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from manifold_observer.tasks.observers.dynamics import Dynamics, Signal

from ..graph.spans import segment_spans
from ..graph.warn import warn

Floats = NDArray[np.float64]
_UNKNOWN = "Their errors are infinite."
# Own rates this factor from given ones, and so many errors away, contradict them.
_FACTOR = 1.5
_SURE = 3


def warn_fit(found: Dynamics, decay: Floats, segment: NDArray[np.int64]) -> None:
    """Say where the frames do not show the dynamics.

    Parameters
    ----------
    found
        The fit.
    decay
        Of every mode over one frame, shape (m,).
    segment
        Segment of every embedded frame.
    """
    sentence = _of_rates(found, decay, segment)
    if sentence:
        warn(f"calibrate: {sentence}")


def warn_given(seen: Dynamics, decay: Floats) -> None:
    """Say which modes contradict the rates that were given.

    Parameters
    ----------
    seen
        The fit of the given rates to the frames.
    decay
        The given rates, shape (m,).
    """
    known = np.isfinite(seen.own_error) & (seen.own > 0) & (decay > 0)
    apart = np.zeros(len(decay))
    apart[known] = np.abs(np.log(seen.own[known] / decay[known]))
    wrong = known & (apart > np.maximum(_SURE * seen.own_error / np.maximum(seen.own, 1e-300), np.log(_FACTOR)))
    if wrong.any() and seen.sampling in ("good", "shape"):
        warn(
            f"calibrate: the given rates {_numbers(decay[wrong])} of {modes(wrong)} contradict the frames, which show "
            f"{_numbers(seen.own[wrong])}: state_std does not hold with them. Give other rates, or leave them out."
        )


def warn_bent(signal: Signal) -> None:
    """Say which modes do not decay as they should, so that their noise is not known.

    Parameters
    ----------
    signal
        What is signal in every mode.
    """
    bent = ~np.isfinite(signal.error)
    if bent.any():
        warn(
            f"calibrate: the first lags of {modes(bent)} do not decay at the rate taken: how much is noise is not "
            "known, and state_std is infinite there. Give other rates, such as own_rate of a calibrated embedding."
        )


def modes(which: NDArray[np.bool_]) -> str:
    """Modes by their numbers.

    Examples
    --------
    >>> modes(np.array([True, False, True])), modes(np.array([False, True]))
    ('modes 1 and 3', 'mode 2')
    """
    numbers = [str(number + 1) for number in np.flatnonzero(which)]
    if len(numbers) == 1:
        return f"mode {numbers[0]}"
    return f"modes {', '.join(numbers[:-1])} and {numbers[-1]}"


def _of_rates(found: Dynamics, decay: Floats, segment: NDArray[np.int64]) -> str:
    """What is wrong with the rates."""
    rates = f"the calibrated rates ({modes(np.ones(len(decay), bool))})"
    longest = max(stop - start for start, stop in segment_spans(segment))
    if found.sampling == "sparse":
        return (
            "no mode remembers the frame before it, beyond chance: the frames are too far apart for these dynamics, "
            f"and {rates} are a bound at best. {_UNKNOWN} Take shorter frames, or a smaller hop."
        )
    if found.sampling == "short":
        return (
            f"the slowest mode takes {1 / max(decay.min(), 1e-300):.0f} frames to decay, and the recording spans too "
            f"few such times to tell: {rates} are a guess. {_UNKNOWN} Take a longer recording."
        )
    if found.sampling == "segments":
        return (
            f"segments of {longest} frames at most are too short to show a decay: {rates} are a bound of the search. "
            f"{_UNKNOWN} Take longer segments, or give the rates."
        )
    if found.sampling == "slow":
        return (
            f"{rates} are the least that lags of {found.longest_lag} frames can show, and the true ones may be lower. "
            f"{_UNKNOWN} Take longer segments (the longest has {longest} frames), or give the rates."
        )
    return _of_fit(found, decay, rates)


def _of_fit(found: Dynamics, decay: Floats, rates: str) -> str:
    """What is wrong with the fit of an exponential."""
    if found.sampling == "bent":
        return (
            f"modes do not decay exponentially, one time unit explains {max(0.0, 100 * found.goodness):.0f} % of the "
            f"autocovariance of one: they oscillate, or mix fast and slow motion. The errors of {rates} are infinite. "
            "Take reading='coordinates', whose state may rotate."
        )
    if found.sampling == "shape":
        return (
            f"modes do not decay in the ratios of the spectrum, by themselves at {_numbers(found.own)} a frame and not "
            f"at {_numbers(decay)}: the errors of {rates} are large, and state_std may be too small. Give "
            "rates=embedding.own_rate of the calibrated embedding."
        )
    if found.unit_error > 0.5 * found.unit:
        return (
            f"the time unit is known to {100 * found.unit_error / found.unit:.0f} % only: the state moved differently "
            "in different stretches, or little of it was seen, and state_std may be too small. Take a longer recording."
        )
    return ""


def _numbers(values: Floats) -> str:
    """A few numbers."""
    return ", ".join(f"{value:.3g}" for value in values)
