"""The observer against moving averages while the drift rate changes (section V-A, nRMSE and correlation)."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.comparison import paired, verdicts
from manifold_observer.tasks.comparison import scores as tasks
from manifold_observer.tasks.observers import observer as observer_task

from ..comparison.baselines import baselines
from ..embedding.embed import embed
from ..observers.calibrate import calibrate
from ..observers.observe import observe
from ..observers.smooth import smooth
from .drift_pictures import draw
from .experiment import Claim, Experiment, Work
from .sphere import ANGLES, GAMMA, N_FOLDS, N_MODES, SAMPLES, simulate
from .verdict import Statement, settle

if TYPE_CHECKING:
    pass

Floats = NDArray[np.float64]
_RATES = tuple(round(0.008 + 0.002 * step, 3) for step in range(9))
_WIDTHS = (2, 3, 5)
_AVERAGES = tuple(f"moving_average_{width}" for width in _WIDTHS)
# Estimates in the order of the legend, with what they are called there.
_NAMES = {
    "observer": "observer, γ = 0.85",
    "diffusion_maps": "diffusion maps",
    "moving_average_2": "average of 2",
    "moving_average_3": "average of 3",
    "moving_average_5": "average of 5",
    "kalman": "Kalman filter",
    "smoother": "smoother (offline)",
    "smoothed_pca": "smoothed PCA",
}
_ABOVE_MAPS = ("observer", *_AVERAGES)
_ALSO = {"gamma_1": "γ = 1", "tica": "TICA"}
_FIGURE = "nRMSE, correlation"
_CLOSE = 0.01


def drift_realisation(
    seed: int, drift_rate: float, n_samples: int = SAMPLES, azimuth: float | None = None
) -> xr.Dataset:
    """Scores of all estimates of one recording, read held out; of TICA where deeptime is there.

    ``azimuth`` is the mean of that angle in rad; None leaves the simulator's.
    """
    frames, truth = simulate(seed, drift_rate, n_samples, azimuth)
    embedding = calibrate(embed(frames, n_modes=N_MODES, preset="paper"))
    estimates: dict[str, xr.DataArray] = {
        "observer": observe(embedding, frames, GAMMA)["state"],
        **baselines(embedding, frames, GAMMA, widths=_WIDTHS),
        "kalman": observe(embedding, frames, gain="kalman", initial="steady")["state"],
        "smoother": smooth(embedding, frames, initial="steady")["state"],
        "gamma_1": _without_contraction(embedding, frames),
    }
    if find_spec("deeptime"):
        estimates["tica"] = _tica(frames)
    angles = truth.transpose("frame", "component").values
    values = [x.transpose("frame", "mode").values for x in estimates.values()]
    readings = [tasks.linear_readout(x, angles, N_FOLDS) for x in values]
    fitted = [tasks.correlation(tasks.linear_readout(x, angles), angles) for x in values]
    poles = observer_task.poles(embedding["rate"].values, GAMMA)
    return xr.Dataset(
        {
            "correlation": (("estimate", "component"), np.stack([tasks.correlation(x, angles) for x in readings])),
            "correlation_in_sample": (("estimate", "component"), np.stack(fitted)),
            "nrmse_db": (("estimate", "component"), np.stack([tasks.nrmse_db(x, angles) for x in readings])),
            "pole": ("mode", poles),
            "window": ("mode", paired.effective_window(poles)),
            "calibrated_rate": ("mode", embedding["calibrated_rate"].values),
        },
        coords={"estimate": list(estimates), "component": list(ANGLES), "mode": np.arange(1, len(poles) + 1)},
    )


def _without_contraction(embedding: xr.Dataset, frames: xr.DataArray) -> xr.DataArray:
    """The recursion at γ = 1, which `observe` refuses: its state is the sum of all that it has seen."""
    inverse = np.linalg.pinv(embedding["lift"].values)
    inputs = observer_task.project(frames.values, embedding["feature_mean"].values, inverse)
    return xr.DataArray(np.cumsum(inputs * embedding["rate"].values, axis=0), dims=("frame", "mode"))


def _tica(frames: xr.DataArray) -> xr.DataArray:
    """As many slowest linear coordinates of the frames (time-lagged independent components, lag 1)."""
    from deeptime.decomposition import TICA  # noqa: PLC0415

    values = frames.values - frames.values.mean(axis=0)
    model = TICA(lagtime=1, dim=N_MODES).fit_fetch(values)
    return xr.DataArray(np.asarray(model.transform(values), np.float64), dims=("frame", "mode"))


def _works(quick: bool) -> list[Work]:
    rates, seeds = (_RATES[::4], range(1, 5)) if quick else (_RATES, range(1, 51))
    return [
        Work(f"c{rate}-seed{seed:02d}", drift_realisation, {"seed": seed, "drift_rate": rate})
        for rate in rates
        for seed in seeds
    ]


def _join(parts: dict[str, xr.Dataset]) -> xr.Dataset:
    """Dims (drift_rate, realisation, ...)."""
    by_rate: dict[float, list[xr.Dataset]] = {}
    for name, part in parts.items():
        by_rate.setdefault(float(name[1:].split("-")[0]), []).append(part)
    rows = [xr.concat(own, "realisation") for own in by_rate.values()]
    return xr.concat(rows, "drift_rate").assign_coords(drift_rate=("drift_rate", list(by_rate), {"units": "1/s"}))


def _judge(joined: xr.Dataset) -> list[Claim]:
    return settle(
        [
            *(_everywhere(joined, key, "diffusion_maps", f"{_NAMES[key]} beats diffusion maps") for key in _ABOVE_MAPS),
            *_best_windows(joined),
            *(_follows(joined, angle) for angle in ANGLES),
            _everywhere(joined, "observer", "gamma_1", "γ = 0.85 beats γ = 1, where nothing is forgotten"),
            *_beyond_the_paper(joined),
        ]
    )


def _scores(joined: xr.Dataset, estimate: str, angle: str) -> Floats:
    """Correlations (drift rate, realisation)."""
    return joined["correlation"].sel(estimate=estimate, component=angle).transpose("drift_rate", ...).values


def _everywhere(joined: xr.Dataset, one: str, other: str, claim: str, figure: str = _FIGURE) -> Statement:
    """Whether one estimate beats another at every drift rate in both angles."""
    pairs = [
        pair
        for angle in ANGLES
        for pair in zip(_scores(joined, one, angle), _scores(joined, other, angle), strict=True)
    ]
    differences = [float(np.mean(a - b)) for a, b in pairs]
    measured = f"r higher by {min(differences):+.3f} to {max(differences):+.3f} ({len(pairs[0][0])} realisations)"
    null = _NAMES.get(other) or _ALSO[other]
    return Statement(figure, f"{claim}, at every c in both angles", measured, null, verdicts.exceeds_everywhere(pairs))


def _best_windows(joined: xr.Dataset) -> list[Statement]:
    """What the paper says of the windows: 5 is best at the slowest drift, and 2 at the fastest."""
    means = {
        angle: np.stack([_scores(joined, key, angle).mean(axis=1) for key in _AVERAGES]).argmax(axis=0)
        for angle in ANGLES
    }
    seen = "; ".join(f"{angle} {' '.join(str(_WIDTHS[k]) for k in best)}" for angle, best in means.items())
    statements = []
    for place, width, when in ((0, 5, "slowest"), (-1, 2, "fastest")):
        pairs = [
            (_scores(joined, f"moving_average_{width}", angle)[place], _scores(joined, key, angle)[place])
            for angle in ANGLES
            for key in _AVERAGES
            if key != f"moving_average_{width}"
        ]
        statements.append(
            Statement(
                _FIGURE,
                f"at the {when} drift the average of {width} is the best of 2, 3, 5 in both angles",
                f"best from slow to fast: {seen}",
                "the two other averages",
                verdicts.exceeds_everywhere(pairs),
            )
        )
    return statements


def _follows(joined: xr.Dataset, angle: str) -> Statement:
    """The observer is as good as each average at every drift rate, with one gamma; no average is picked first."""
    own = _scores(joined, "observer", angle)
    pairs = [pair for key in _AVERAGES for pair in zip(own, _scores(joined, key, angle), strict=True)]
    best = np.max([_scores(joined, key, angle).mean(axis=1) for key in _AVERAGES], axis=0)
    away = own.mean(axis=1) - best
    return Statement(
        _FIGURE,
        f"the observer is no worse than the best window, without knowing c ({angle})",
        f"r less that of the best average: {away.min():+.3f} to {away.max():+.3f}",
        f"averages of 2, 3, 5, less {_CLOSE}",
        verdicts.exceeds_everywhere(pairs, -_CLOSE),
    )


def _beyond_the_paper(joined: xr.Dataset) -> list[Statement]:
    """Kalman filter and smoother; equally smoothed PCA and TICA are reported whichever way they go."""
    rows = [
        ("kalman", "observer", "a Kalman gain from the data is better than γ = 0.85"),
        ("smoother", "kalman", "the smoother is better than the filter"),
        ("observer", "smoothed_pca", "the observer is better than equally smoothed PCA"),
    ]
    if "tica" in joined["estimate"].values:
        rows.append(("observer", "tica", "the observer is better than TICA of the frames"))
    return [_everywhere(joined, one, other, text, "beyond the paper") for one, other, text in rows]


DRIFT = Experiment(_works, _join, draw, _judge)
