"""Dynamics that are not taken on faith: the time unit of the spectrum, and noise, from the embedded frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.observers import dynamics, kalman

from ..frames.conditioning import conditioning_of
from ..frames.given import takes_frames
from ..frames.labels import require, segments_of
from ..frames.variables import annotate
from ..graph.progress import Progress, silent
from ..graph.spans import Span, spread
from .fits import warn_bent, warn_fit, warn_given
from .projections import projections
from .starts import LEARNT_FROM, LEARNT_RUN, apart

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
    The embedding with ``calibrated_rate(mode)`` per frame and its standard error ``calibrated_rate_error(mode)``,
    infinite where the frames do not tell the rate; ``own_rate(mode)`` and ``own_rate_error(mode)``, fitted to every
    mode alone; ``signal_variance(mode)`` and ``signal_variance_error(mode)``, infinite where the mode does not decay at
    its rate; ``feature_noise(feature)`` in squared feature units, ``measurement_noise(mode, mode_1)`` and the
    standard error of its diagonal ``measurement_noise_error(mode)``. Attributes:
    ``time_unit`` (times the step rates gives the calibrated ones), ``time_unit_error``, ``calibration_lag``, the
    longest lag looked at, in frames, ``calibration_sampling``, ``"good"`` or what is wrong in a word, and
    ``goodness_of_fit``, the share of its autocovariance that one time unit explains, sampling errors aside (1: all), of
    the mode where it explains least.

    Raises
    ------
    ValueError
        The embedding has no reference frames, more modes than its lift has independent columns, or the rates are not
        finite numbers of at least 0.

    Warns
    -----
    UserWarning
        The frames are too far apart for the state to be seen moving; the recording or its segments are too short;
        modes do not decay as the spectrum says, or as rates that were given; or the rate is a bound of the search.

    Notes
    -----
    Two passes over the frames, of which more than a million are looked at in 16 runs of 65,536, evenly spread; memory
    O(N modes) here, for these. Errors are those of a jackknife over ten stretches of the
    recording: twice the error covers the true rate in 19 of 20 recordings. Where the decays that modes show by
    themselves lie apart by more than their errors, the error is at least as large as that.

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
    check_rank("calibrate", embedding)
    known = None if rates is None else given_rates("calibrate", embedding, rates)
    inputs = _inputs(embedding, np.linalg.pinv(embedding["lift"].values), progress)
    shape, segment = embedding["rate"].values if known is None else known, _segment(embedding)
    seen = dynamics.calibrate(inputs, segment, shape) if (shape > 0).any() else None
    found = seen if known is None else None
    decay = shape if found is None else found.unit * shape
    signal, learnt = _noise(embedding, inputs, decay, None if found is None else found.error, progress)
    if found is not None and found.sampling in ("sparse", "segments"):
        signal = signal._replace(error=np.full(len(signal.error), np.inf))
    rates_learnt, attrs = _rates(found)
    learnt |= {**rates_learnt, "signal_variance_error": ("mode", signal.error)}
    if found is not None:
        warn_fit(found, decay, segment)
    elif seen is not None:
        warn_given(seen, shape)
    if found is None or found.sampling not in ("sparse", "segments"):
        warn_bent(signal)
    return annotate(embedding.assign(learnt).assign_attrs(attrs))


def _rates(found: dynamics.Dynamics | None) -> tuple[dict[str, Any], dict[str, float | int | str]]:
    """Variables and attributes of rates that were fitted, or given."""
    if found is None:
        return {}, {"calibration": "given"}
    variables: dict[str, Any] = {
        "calibrated_rate_error": ("mode", found.error),
        "own_rate": ("mode", found.own),
        "own_rate_error": ("mode", found.own_error),
    }
    return variables, {
        "calibration": "frames",
        "time_unit": found.unit,
        "time_unit_error": found.unit_error,
        "calibration_lag": found.longest_lag,
        "calibration_sampling": found.sampling,
        "goodness_of_fit": found.goodness,
    }


def _inputs(embedding: xr.Dataset, reading: Floats, progress: Progress) -> Floats:
    """One number a mode of every embedded frame."""
    how = conditioning_of(embedding)
    mean, reference = embedding["feature_mean"].values, embedding["reference"]
    return projections(reference, mean, reading, conditioning=how, progress=progress, spans=_spans(embedding))[0]


def _spans(embedding: xr.Dataset) -> list[Span]:
    """Frames that are looked at."""
    return spread(embedding.sizes["frame"], LEARNT_RUN, LEARNT_FROM)


def _segment(embedding: xr.Dataset) -> NDArray[np.int64]:
    """Segments of the frames that are looked at."""
    return apart(segments_of(embedding), _spans(embedding))


def _noise(
    embedding: xr.Dataset, inputs: Floats, decay: Floats, error: Floats | None, progress: Progress
) -> tuple[dynamics.Signal, dict[str, Any]]:
    """Signal and noise as the best reading of the features shows them, which noise decides itself."""
    lift, segment = embedding["lift"].values, _segment(embedding)
    signal = dynamics.near_signal(inputs, segment, decay)
    noise = dynamics.noise_variances(embedding["feature_variance"].values, lift, signal.variance)
    reading, _ = kalman.weighted_reading(lift, noise)
    readings = _inputs(embedding, reading, progress)
    signal = dynamics.near_signal(readings, segment, decay, error)
    learnt: dict[str, Any] = {
        "calibrated_rate": ("mode", decay),
        "signal_variance": ("mode", signal.variance),
        "feature_noise": ("feature", noise),
        "measurement_noise_error": ("mode", signal.noise_error),
        "measurement_noise": (("mode", "mode_1"), dynamics.measurement_noise(readings, signal.variance)),
    }
    return signal, learnt


def given_rates(who: str, embedding: xr.Dataset, rates: NDArray[np.float64]) -> Floats:
    """Decay of every mode over one frame, as the user knows it."""
    given = np.asarray(rates, np.float64)
    if given.shape != (embedding.sizes["mode"],) or not ((given >= 0) & np.isfinite(given)).all():
        raise ValueError(
            f"{who}: rates must be {embedding.sizes['mode']} numbers of at least 0, finite, one a mode; got {rates!r}."
        )
    return given


def check_rank(who: str, embedding: xr.Dataset) -> None:
    """Refuse modes that the features cannot tell apart.

    Examples
    --------
    >>> toy = xr.Dataset({"lift": (("feature", "mode"), [[1.0, 2.0]])})
    >>> check_rank("calibrate", toy)
    Traceback (most recent call last):
    ValueError: calibrate: the lift must have as many independent columns as modes; got rank 1 ...
    """
    lift = embedding["lift"].values
    rank, n_modes = int(np.linalg.matrix_rank(lift)), lift.shape[1]
    if rank < n_modes:
        raise ValueError(
            f"{who}: the lift must have as many independent columns as modes; got rank {rank} for {n_modes} modes of "
            f"{lift.shape[0]} features, which cannot tell them apart. Embed with n_modes={max(rank, 1)}, or with more "
            "features."
        )
