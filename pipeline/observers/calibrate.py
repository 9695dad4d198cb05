"""Dynamics that are not taken on faith: the time unit of the spectrum, and noise, from the embedded frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.observers import dynamics, kalman

from ..frames.conditioning import conditioning_of
from ..frames.given import takes_frames
from ..frames.labels import require, segment_of
from ..frames.variables import annotate
from ..graph.compute import Progress, silent
from ..graph.warn import warn
from .projections import projections

Floats = NDArray[np.float64]


@takes_frames
def calibrate(
    embedding: xr.Dataset, rates: NDArray[np.float64] | None = None, *, progress: Progress = silent
) -> xr.Dataset:
    r"""Learn the time unit and the noise of an embedding from its own frames; this computes.

    The spectrum says how fast the modes move relative to each other; how fast they move per frame shows
    in the autocovariance of :math:`\alpha^{\dagger} (z - \bar z)` at lags of one frame and more (lag 0 holds the
    measurement noise). One time unit is fitted for the whole spectrum, modes weighted by their signal.

    Parameters
    ----------
    embedding
        As :func:`embed` made it, with its ``reference`` frames.
    rates
        Decay of each mode over one frame, where it is known: only the noise is learnt then.
    progress
        Called with (stage, parts done, parts in all).

    Returns
    -------
    The embedding with ``calibrated_rate(mode)`` per frame and its standard error
    ``calibrated_rate_error(mode)``, ``signal_variance(mode)``, ``feature_noise(feature)`` in squared feature units
    and ``measurement_noise(mode, mode_1)``. Attributes: ``time_unit`` (times the step rates gives the calibrated
    ones), ``time_unit_error``, and ``calibration_lag``, the longest lag looked at, in frames.

    Raises
    ------
    ValueError
        The embedding has no reference frames, or the rates are no numbers of at least 0.

    Warns
    -----
    UserWarning
        The frames are too far apart for the state to be seen moving, or the recording is too short.

    Notes
    -----
    Two passes over the frames; memory O(N modes) here.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> state = np.zeros(3000)
    >>> for i in range(2999):
    ...     state[i + 1] = 0.8 * state[i] + 0.6 * rng.normal()
    >>> toy = xr.Dataset({
    ...     "lift": (("feature", "mode"), [[1.0]]), "feature_mean": ("feature", [0.0]), "rate": ("mode", [1.0]),
    ...     "feature_variance": ("feature", [1.25]),
    ...     "reference": (("frame", "feature"), state[:, None] + 0.5 * rng.normal(size=(3000, 1))),
    ... })
    >>> calibrate(toy).calibrated_rate.values.round(1)  # exp(-0.2) is about 0.8
    array([0.2])
    """
    require("calibrate", embedding, "reference", "feature_variance")
    if rates is None and not (embedding["rate"].values > 0).any():
        raise ValueError("calibrate: some step rate must be above 0; all are 0. Take a smaller epsilon_factor.")
    known = None if rates is None else given_rates("calibrate", embedding, rates)
    segment = segment_of(embedding)
    step_rates, lift, mean = (embedding[name].values for name in ("rate", "lift", "feature_mean"))
    how = conditioning_of(embedding)
    (inputs,) = projections(embedding["reference"], mean, np.linalg.pinv(lift), conditioning=how, progress=progress)
    found = None
    if known is None:
        found = dynamics.calibrate(inputs, segment, step_rates)
        decay, signal = found.unit * step_rates, found.signal
    else:
        decay, signal = known, dynamics.near_signal(inputs, segment, known)
    noise = dynamics.noise_variances(embedding["feature_variance"].values, lift, signal)
    reading, _ = kalman.weighted_reading(lift, noise)
    (readings,) = projections(embedding["reference"], mean, reading, conditioning=how, progress=progress)
    signal = dynamics.near_signal(readings, segment, decay)
    learnt: dict[str, Any] = {
        "calibrated_rate": ("mode", decay),
        "signal_variance": ("mode", signal),
        "feature_noise": ("feature", noise),
        "measurement_noise": (("mode", "mode_1"), dynamics.measurement_noise(readings, signal)),
    }
    attrs: dict[str, float | int | str] = {"calibration": "given"}
    if found is not None:
        _warn(found, decay)
        learnt["calibrated_rate_error"] = ("mode", found.unit_error * step_rates)
        attrs |= {"calibration": "frames", "time_unit": found.unit, "time_unit_error": found.unit_error}
        attrs["calibration_lag"] = found.longest_lag
    return annotate(embedding.assign(learnt).assign_attrs(attrs))


def given_rates(who: str, embedding: xr.Dataset, rates: NDArray[np.float64]) -> Floats:
    """Decay of every mode over one frame, as the user knows it."""
    given = np.asarray(rates, np.float64)
    if given.shape != (embedding.sizes["mode"],) or not (given >= 0).all():
        raise ValueError(
            f"{who}: rates must be {embedding.sizes['mode']} numbers of at least 0, one a mode; got {rates!r}."
        )
    return given


def _warn(found: dynamics.Dynamics, decay: Floats) -> None:
    """Say where the sampling cannot show the dynamics."""
    sentence = ""
    if found.sampling == "sparse":
        sentence = (
            "calibrate: no mode remembers the frame before it, beyond chance: the frames are too far apart for these "
            "dynamics, and the calibrated rates are a bound at best. Take shorter frames, or a smaller hop."
        )
    elif found.sampling == "short":
        sentence = (
            f"calibrate: the slowest mode takes {1 / decay.min():.0f} frames to decay, and the recording spans too few "
            "such times to tell: the calibrated rates are a guess. Take a longer recording."
        )
    elif found.unit_error > 0.5 * found.unit:
        sentence = (
            f"calibrate: the time unit is known to {100 * found.unit_error / found.unit:.0f} % only: the state moved "
            "differently in different stretches, or little of it was seen. Take a longer recording."
        )
    if sentence:
        warn(sentence)
