"""What a calibration could not find out, in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from manifold_observer.tasks.observers.dynamics import Dynamics, Signal

from ..frames.segments import segment_spans
from ..graph.warn import warn

Floats = NDArray[np.float64]
_UNKNOWN = "Their errors are infinite."


def warn_fit(found: Dynamics | None, decay: Floats, segment: NDArray[np.int64], signal: Signal) -> None:
    """Say where the frames do not show the dynamics, and which modes are concerned.

    Parameters
    ----------
    found
        The fit; None where rates were given.
    decay
        Of every mode over one frame, shape (m,).
    segment
        Segment of every embedded frame.
    signal
        What is signal in every mode.
    """
    sentence = "" if found is None else _of_rates(found, decay, segment)
    if sentence:
        warn(f"calibrate: {sentence}")
    bent = ~np.isfinite(signal.error)
    if bent.any() and (found is None or found.sampling not in ("sparse", "segments")):
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
            f"modes do not decay exponentially, one time unit explains {max(0.0, 100 * found.goodness):.0f} % of their "
            f"autocovariances: they oscillate, or mix fast and slow motion. The errors of {rates} are infinite. "
            "Take reading='coordinates', whose state may rotate."
        )
    if found.sampling == "shape":
        return (
            f"modes do not decay in the ratios of the spectrum, by themselves at {_numbers(found.own)} a frame and not "
            f"at {_numbers(decay)}, so the errors of {rates} are large. Give rates=embedding.own_rate of the "
            "calibrated embedding."
        )
    if found.unit_error > 0.5 * found.unit:
        return (
            f"the time unit is known to {100 * found.unit_error / found.unit:.0f} % only: the state moved differently "
            "in different stretches, or little of it was seen. Take a longer recording."
        )
    return ""


def _numbers(values: Floats) -> str:
    """A few numbers."""
    return ", ".join(f"{value:.3g}" for value in values)
