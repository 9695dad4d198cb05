"""The observer against moving averages while the drift rate changes (section V-A, nRMSE and correlation)."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.comparison import paired
from manifold_observer.tasks.comparison import scores as tasks
from manifold_observer.tasks.observers import observer as observer_task

from ..comparison.baselines import baselines
from ..embedding.embed import embed
from ..observers.calibrate import calibrate
from ..observers.observe import observe
from ..observers.smooth import smooth
from .experiment import Claim, Experiment, Work
from .pictures import COLOURS, MARKERS, grid, label, legend_below, new_figure
from .sphere import ANGLES, GAMMA, N_MODES, SAMPLES, simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
_RATES = tuple(round(0.008 + 0.002 * step, 3) for step in range(9))
_WIDTHS = (2, 3, 5)
_AVERAGES = tuple(f"moving_average_{width}" for width in _WIDTHS)
_LAGS = 40
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
_CLOSE = 0.01


def drift_realisation(seed: int, drift_rate: float, n_samples: int = SAMPLES) -> xr.Dataset:
    """Scores of all estimates of one recording, of TICA where deeptime is there, and of a null without time."""
    frames, truth = simulate(seed, drift_rate, n_samples)
    embedding = calibrate(embed(frames, n_modes=N_MODES, preset="paper"))
    estimates: dict[str, xr.DataArray] = {
        "observer": observe(embedding, frames, GAMMA)["state"],
        **baselines(embedding, frames, GAMMA, widths=_WIDTHS),
        "kalman": observe(embedding, frames, gain="kalman", initial="steady")["state"],
        "smoother": smooth(embedding, frames, initial="steady")["state"],
        "shuffled": _without_time(frames, seed),
    }
    if find_spec("deeptime"):
        estimates["tica"] = _tica(frames)
    angles = truth.transpose("frame", "component").values
    readings = [tasks.linear_readout(x.transpose("frame", "mode").values, angles) for x in estimates.values()]
    poles = observer_task.poles(embedding["rate"].values, GAMMA)
    return xr.Dataset(
        {
            "correlation": (("estimate", "component"), np.stack([tasks.correlation(x, angles) for x in readings])),
            "nrmse_db": (("estimate", "component"), np.stack([tasks.nrmse_db(x, angles) for x in readings])),
            "pole": ("mode", poles),
            "window": ("mode", paired.effective_window(poles)),
            "calibrated_rate": ("mode", embedding["calibrated_rate"].values),
        },
        coords={"estimate": list(estimates), "component": list(ANGLES), "mode": np.arange(1, len(poles) + 1)},
    )


def _without_time(frames: xr.DataArray, seed: int) -> xr.DataArray:
    """The observer over the same frames in random order, put back in their order: it must lose."""
    order = np.random.default_rng(seed).permutation(frames.sizes["frame"])
    mixed = xr.DataArray(frames.values[order], dims=("frame", "feature"))
    state = observe(embed(mixed, n_modes=N_MODES, preset="paper"), mixed, GAMMA)["state"]
    return state[np.argsort(order)]


def _tica(frames: xr.DataArray) -> xr.DataArray:
    """As many slowest linear coordinates of the frames (time-lagged independent components, lag 1)."""
    from deeptime.decomposition import TICA  # noqa: PLC0415

    values = frames.values - frames.values.mean(axis=0)
    model = TICA(lagtime=1, dim=N_MODES).fit_fetch(values)
    return xr.DataArray(np.asarray(model.transform(values), np.float64), dims=("frame", "mode"))


def _works(quick: bool) -> list[Work]:
    rates, seeds = (_RATES[::4], range(1, 6)) if quick else (_RATES, range(1, 51))
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


def _draw(joined: xr.Dataset) -> dict[str, Figure]:
    return {
        "correlation": _draw_score(joined, "correlation", "correlation r"),
        "nrmse": _draw_score(joined, "nrmse_db", "nRMSE / dB"),
        "impulse": _draw_impulse(joined),
    }


def _draw_score(joined: xr.Dataset, name: str, what: str) -> Figure:
    """Mean and one standard deviation over the realisations, both angles."""
    figure = new_figure(9, 4.4)
    (row,) = grid(figure, 1, 2, sharey=True)
    shown = {key: text for key, text in _NAMES.items() if key in joined["estimate"].values}
    if "tica" in joined["estimate"].values:
        shown["tica"] = "TICA"
    rates = joined["drift_rate"].values
    for column, angle in enumerate(ANGLES):
        for place, (key, text) in enumerate(shown.items()):
            values = joined[name].sel(estimate=key, component=angle)
            mean, deviation = values.mean("realisation"), values.std("realisation")
            shift = (place - len(shown) / 2) * 6e-5
            style = {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)], "ms": 4}
            dashes = "--" if key in ("smoothed_pca", "tica") else "-"
            row[column].errorbar(rates + shift, mean, deviation, label=text, lw=1.2, elinewidth=0.7, ls=dashes, **style)
        row[column].set_xticks(rates[:: max(1, len(rates) // 4)])
        label(row[column], angle, "drift rate c / (1/s)", what if column == 0 else "")
    legend_below(figure, row[0], 5)
    return figure


def _draw_impulse(joined: xr.Dataset) -> Figure:
    """Impulse response of the observer a mode, at the slowest and the fastest drift."""
    figure = new_figure(8, 3.4)
    (row,) = grid(figure, 1, 2, sharey=True)
    lags = np.arange(_LAGS)
    for axes, place in zip(row, (0, -1), strict=True):
        own = joined.isel(drift_rate=place).mean("realisation")
        for number, mode in enumerate(own["mode"].values):
            pole, window = float(own["pole"].sel(mode=mode)), float(own["window"].sel(mode=mode))
            text = f"mode {mode}, as {window:.1f} frames"
            axes.plot(lags, (1 - pole) * pole**lags, color=COLOURS[number], marker=MARKERS[number], ms=3, label=text)
        label(axes, f"c = {float(own['drift_rate'])} 1/s", "frames since the impulse", "weight")
        axes.legend(frameon=False, fontsize=8)
    row[1].set_ylabel("")
    return figure


def _judge(joined: xr.Dataset) -> list[Claim]:
    return [
        *_against_diffusion_maps(joined),
        _best_window_changes(joined),
        *(_follows(joined, angle) for angle in ANGLES),
        *_beyond_the_paper(joined),
    ]


def _scores(joined: xr.Dataset, estimate: str, angle: str) -> Floats:
    """Correlations (drift rate, realisation)."""
    return joined["correlation"].sel(estimate=estimate, component=angle).transpose("drift_rate", ...).values


def _against_diffusion_maps(joined: xr.Dataset) -> list[Claim]:
    """Observer and every average beat diffusion maps at every drift rate."""
    claims = []
    for key in ("observer", *_AVERAGES):
        pairs = [
            paired.compare(own, other)
            for angle in ANGLES
            for own, other in zip(_scores(joined, key, angle), _scores(joined, "diffusion_maps", angle), strict=True)
        ]
        least, worst = min(x.difference for x in pairs), max(x.p for x in pairs)
        claims.append(
            Claim(
                "nRMSE, correlation",
                f"{_NAMES[key]} beats diffusion maps at every c, in both angles",
                f"r higher by {least:.3f} at least, largest p {worst:.1e}",
                bool(least > 0 and worst < 0.05),
                "three frames or more: two leave too much noise where the state moves slowly",
            )
        )
    return claims


def _best_windows(joined: xr.Dataset, angle: str) -> list[int]:
    """Best average at every drift rate."""
    means = np.stack([_scores(joined, key, angle).mean(axis=1) for key in _AVERAGES])
    return [_WIDTHS[place] for place in np.argmax(means, axis=0)]


def _best_window_changes(joined: xr.Dataset) -> Claim:
    found = {angle: _best_windows(joined, angle) for angle in ANGLES}
    text = "; ".join(f"{angle} {' '.join(map(str, widths))}" for angle, widths in found.items())
    return Claim(
        "nRMSE, correlation",
        "the best window of an average changes with c",
        f"best of 2, 3, 5 from slow to fast: {text}",
        any(len(set(widths)) > 1 for widths in found.values()),
        "drift so fast, or frames so long, that a frame of 5 is longer than the state remembers",
    )


def _follows(joined: xr.Dataset, angle: str) -> Claim:
    """The observer is as good as the best average at every drift rate, with one gamma."""
    own = _scores(joined, "observer", angle)
    best = np.stack(
        [_scores(joined, f"moving_average_{w}", angle)[k] for k, w in enumerate(_best_windows(joined, angle))]
    )
    pairs = [paired.compare(a, b) for a, b in zip(own, best, strict=True)]
    worst = min(pair.difference for pair in pairs)
    width = max(pair.half_width for pair in pairs)
    return Claim(
        "nRMSE, correlation",
        f"the observer follows the best window without knowing c ({angle})",
        f"r less that of the best average: {worst:+.3f} at worst, {max(p.difference for p in pairs):+.3f} at best "
        f"(95 % intervals ±{width:.3f} at most)",
        bool(worst > -_CLOSE),
    )


def _beyond_the_paper(joined: xr.Dataset) -> list[Claim]:
    """Kalman filter, smoother and the null; equally smoothed PCA is reported whichever way it goes."""
    rows = [
        ("kalman", "observer", "a Kalman gain from the data is better than γ = 0.85"),
        ("smoother", "kalman", "the smoother is better than the filter"),
        ("observer", "smoothed_pca", "the observer is better than equally smoothed PCA"),
        ("observer", "shuffled", "frames in random order tell less"),
    ]
    if "tica" in joined["estimate"].values:
        rows.append(("observer", "tica", "the observer is better than TICA of the frames"))
    claims = []
    for one, other, text in rows:
        pairs = [
            paired.compare(a, b)
            for angle in ANGLES
            for a, b in zip(_scores(joined, one, angle), _scores(joined, other, angle), strict=True)
        ]
        least = min(pair.difference for pair in pairs)
        claims.append(
            Claim(
                "beyond the paper",
                f"{text}, at every c in both angles",
                f"r higher by {least:+.3f} to {max(pair.difference for pair in pairs):+.3f}",
                bool(least > 0 and max(pair.p for pair in pairs) < 0.05),
                "more sensor noise: at 0.5 dark counts smoothed PCA falls behind" if other == "smoothed_pca" else "",
            )
        )
    return claims


DRIFT = Experiment(_works, _join, _draw, _judge)
