"""Which filter an observer is: from gain, rates and what the embedding knows, to matrices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.observers import dynamics, kalman, observer
from manifold_observer.tasks.observers.kalman import Model, Schedule, Steady
from manifold_observer.tasks.observers.observer import Filter

from ..frames.labels import frame_period
from .calibrate import calibrate, check_rank, given_rates
from .config import ObserverConfig
from .rates import generator_rates

Floats = NDArray[np.float64]
# Share of its variance that a mode forgets in a frame at least, for an optimal filter: below it equations are singular.
_LEAST_FORGOTTEN = 1e-7


class Doubt(NamedTuple):
    """What deviations are multiplied by (m,), infinity where nothing is known, and what is added to variances (m,)."""

    factor: Floats
    added: Floats


class Chosen(NamedTuple):
    """A filter and the decay of its modes over a frame; for optimal gains the model and the deviations behind it.

    ``schedule`` holds the gains of one that starts from its prior; ``doubt`` is what the model does not say of itself.
    """

    filter: Filter
    decay: Floats
    model: Model | None = None
    steady: Steady | None = None
    schedule: Schedule | None = None
    doubt: Doubt | None = None

    @property
    def contraction(self) -> float:
        """Factor by which a frame brings two states together at least, in the metric of the posterior."""
        metric = None if self.steady is None else self.steady.posterior
        factor = observer.contraction_factor(self.filter.transition, metric)
        return factor if self.schedule is None else max(factor, self.schedule.contraction)

    def varying(self) -> tuple[Model, Schedule]:
        """The model and the gains of a filter that starts from its prior."""
        if self.model is None or self.schedule is None:
            raise AssertionError("a gain that varies, without a model")
        return self.model, self.schedule

    def told(self, variances: Floats) -> Floats:
        """Deviations (k, m) from error variances."""
        if self.doubt is None:
            return np.sqrt(variances)
        return np.sqrt(variances + self.doubt.added) * self.doubt.factor


def choose_filter(
    embedding: xr.Dataset,
    frames: xr.DataArray,
    config: ObserverConfig,
) -> Chosen:
    """The filter that the options describe; it computes where the embedding has yet to be calibrated.

    Parameters
    ----------
    embedding
        As :func:`embed` made it, calibrated or not.
    frames
        Dims ``(frame, feature)``, for their period.
    config
        Gain, rates and step.

    Returns
    -------
    The filter.

    Raises
    ------
    ValueError
        Bad rates, an Euler map that does not contract, or for optimal gains more modes than features can tell apart.
    """
    own = None if config.calibrated else _rates(embedding, frames, config)
    if own is None or config.gain == "kalman":
        embedding = _calibrated(embedding, own)
    decay = embedding["calibrated_rate"].values if own is None else own
    if not config.optimal:
        poles = _contracting_poles(decay, config.gamma, config)
        inverse = np.linalg.pinv(embedding["lift"].values)
        gain = observer.steady_gain(config.gamma, config.gain)
        return Chosen(observer.contracting(inverse, poles, gain), decay)
    check_rank("observe", embedding)
    poles = _forgetting_poles(decay, config)
    model = _learnt(embedding, poles) if config.gain == "kalman" else _diffusion_maps_kalman(embedding, poles, decay)
    known = kalman.steady(model)
    varying = kalman.schedule(model) if config.varies else None
    return Chosen(kalman.kalman(model, known), decay, model, known, varying, _doubt(embedding, config))


def _doubt(embedding: xr.Dataset, config: ObserverConfig) -> Doubt | None:
    r"""How far bands must reach beyond those of the model, because signal and noise are estimates.

    With a relative error ρ of a variance a deviation is wrong by ρ/2, and a band of 95 % holds less on average: to
    second order :math:`1 + \rho^2 / 2` makes up for it. Where noise is most of what is measured the signal counts, and
    the noise where signal is. A signal or noise that was found to be less than its own error may be as large as that.
    The factor is infinite for modes of which it is not known how much is noise.
    """
    if config.gain != "kalman" or "measurement_noise_error" not in embedding:
        return None
    names = ("signal_variance", "signal_variance_error", "measurement_noise_error")
    signal, error, noise_error = (embedding[name].values for name in names)
    noise = np.diag(embedding["measurement_noise"].values)
    signal, noise = np.maximum(signal, 1e-300), np.maximum(noise, 1e-300)
    known, whole = np.isfinite(error), signal + noise
    of_noise = np.minimum(noise_error / noise, 1.0) * signal / whole
    of_signal = np.minimum(error / signal, 1.0) * noise / whole
    added = np.maximum(noise_error - noise, 0.0) + np.maximum(np.where(known, error, 0.0) - signal, 0.0)
    return Doubt(np.where(known, 1 + (of_noise**2 + of_signal**2) / 2, np.inf), added)


def _forgetting_poles(decay: Floats, config: ObserverConfig) -> Floats:
    """Poles of an optimal filter, refused where a mode never forgets: it would have no variance to start from."""
    poles = _contracting_poles(decay, 0.0, config)
    kept = np.flatnonzero(1 - np.square(poles) < _LEAST_FORGOTTEN)
    if len(kept):
        raise ValueError(
            f"observe: the rates must be above 0 for gain={config.gain!r}; got {decay[kept[0]]:.3g} a frame for mode "
            f"{kept[0] + 1}, which would not forget. Give numbers of 1e-6 or more as rates=, or take gain='unit'."
        )
    return poles


def _calibrated(embedding: xr.Dataset, decay: Floats | None) -> xr.Dataset:
    """The embedding with a calibration for these rates, the one that it brings where that is it."""
    if "calibrated_rate" in embedding:
        brought = embedding["calibrated_rate"].values
        from_frames = embedding.attrs.get("calibration") == "frames"
        if from_frames if decay is None else np.array_equal(brought, decay):
            return embedding
    return calibrate(embedding, decay)


def _learnt(embedding: xr.Dataset, poles: Floats) -> Model:
    """Noise of process and measurement as the embedded frames show them."""
    reading, _ = kalman.weighted_reading(embedding["lift"].values, embedding["feature_noise"].values)
    process = dynamics.process_noise(poles, embedding["signal_variance"].values)
    return Model(poles, process, reading, embedding["measurement_noise"].values)


def _diffusion_maps_kalman(embedding: xr.Dataset, poles: Floats, decay: Floats) -> Model:
    """The settings of the authors' follow-up (DMK): Q = diag(rate^2 var psi), R = diag(var z), H the lift."""
    if "feature_variance" not in embedding:
        raise ValueError("observe: gain='dmk' needs the feature_variance of the embedding; it has none. Embed again.")
    reading, noise = kalman.weighted_reading(embedding["lift"].values, embedding["feature_variance"].values)
    return Model(poles, np.diag(decay**2), reading, noise)


def _rates(embedding: xr.Dataset, frames: xr.DataArray, config: ObserverConfig) -> Floats:
    """Decay of every mode over one frame."""
    rates = config.named_rates
    if not isinstance(rates, str):
        return given_rates("observe", embedding, np.array(rates))
    if rates == "step":
        return embedding["rate"].values
    if rates == "paper":
        return 2 / float(embedding["epsilon"]) * embedding["rate"].values
    if config.burst_duration is None:
        raise ValueError("observe: rates='generator' needs burst_duration= in seconds; got None.")
    return generator_rates(embedding, config.burst_duration).values * frame_period(frames)


def _contracting_poles(decay: Floats, gamma: float, config: ObserverConfig) -> Floats:
    """Poles of the map, refused where it does not contract."""
    poles = observer.poles(decay, gamma, config.step, config.substeps)
    if (np.abs(poles) > 1).any():
        mode = int(np.argmax(np.abs(poles)))
        enough = observer.contracting_substeps(decay, gamma)
        raise ValueError(
            f"observe: the Euler map must contract; got the factor {poles[mode]:.3g} a frame for mode {mode + 1} with "
            f"substeps={config.substeps}. Give substeps={enough}, leave it out, or take step='exact'."
        )
    return poles
