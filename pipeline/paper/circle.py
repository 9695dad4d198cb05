"""An angle on a circle (section V-B): the eigenvalues against those of the hidden diffusion.

The angle follows θ' = -θ + √2 w', whose generator has the eigenvalues -1, -2, -3, -4, ... in 1/s. The sensors are the
simulator's own: three of them half way to the centre of the circle, bursts of 0.01 s, no counting. Around this setting
the scale of the kernel, its normalisation and the noise of the sensors are changed, one at a time.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.datasets.simulators.circle import write_circle
from manifold_observer.datasets.simulators.simulated import open_simulation
from manifold_observer.tasks.comparison import verdicts
from manifold_observer.tasks.comparison.bias import worst_error

from ..embedding.embed import embed
from ..observers.rates import generator_rates
from ..plot.style import COLOURS, MARKERS
from .demo import circle_frames
from .experiment import Claim, Experiment, Work, join_realisations
from .pictures import grid, label, legend_below, new_figure
from .verdict import Statement, settle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
FRAMES = 1600
TRUTH = np.array([1.0, 2.0, 3.0, 4.0])
"""Decay rates of the hidden diffusion, 1/s."""

_FACTOR = 0.16
_MEDIAN = 1.0
_FACTORS = (0.08, _FACTOR, 0.32, _MEDIAN)
_ALPHAS = (0.0, 0.5)
_CLOSE = 0.15
_OFF = f"an error of {_CLOSE:.0%}"
_DARK = "counts, 0.3 s, dark"
# Few bursts a frame are enough where counting drowns them, and they take most of the time.
_LONG: dict[str, Any] = {"burst_duration": 0.3, "burst_size": 20}
_COUNTS: dict[str, Any] = {"features": "histogram", "burst_size": 20}
_SENSINGS: dict[str, dict[str, Any]] = {
    "exact, 0.01 s": {},
    "exact, 0.3 s": _LONG,
    "counts, 0.01 s": _COUNTS,
    "counts, 0.3 s": _COUNTS | _LONG,
    _DARK: _COUNTS | _LONG | {"noise": 0.2},
}
"""Options of the simulator: exact rates or histograms of 60 counts, by length of the bursts, without and with dark
counts."""


class _Seen(NamedTuple):
    """What the sensors gave: features, their covariances over the bursts, seconds in which the angle spreads so."""

    frames: xr.DataArray
    covariance: xr.DataArray | None
    duration: float


def circle_realisation(seed: int, n_frames: int = FRAMES) -> xr.Dataset:
    """Decay rates found in one path of the angle, for all scales, normalisations and sensors.

    Parameters
    ----------
    seed
        Of the simulator: the same path for all sensors.
    n_frames
        Frames, 1 s apart.

    Returns
    -------
    ``rate(alpha, epsilon_factor, mode)`` from exact rates of the sensors, and ``sensed_rate(sensing, mode)`` at
    alpha = 0 with the median of the distances as scale; both in 1/s, above 0.
    """
    seen = {name: _simulate(seed, n_frames, options) for name, options in _SENSINGS.items()}
    exact = seen["exact, 0.01 s"]
    rates = np.stack([[_rates(exact, factor, alpha) for factor in _FACTORS] for alpha in _ALPHAS])
    sensed = np.stack([_rates(own, _MEDIAN, 0.0) for own in seen.values()])
    attrs = {"units": "1/s", "long_name": "decay rate of the hidden diffusion"}
    return xr.Dataset(
        {
            "rate": (("alpha", "epsilon_factor", "mode"), rates, attrs),
            "sensed_rate": (("sensing", "mode"), sensed, attrs),
        },
        coords={
            "alpha": list(_ALPHAS),
            "epsilon_factor": list(_FACTORS),
            "mode": np.arange(1, len(TRUTH) + 1),
            "sensing": list(seen),
        },
    )


def _simulate(seed: int, n_frames: int, options: dict[str, Any]) -> _Seen:
    """One path seen by one kind of sensors, in memory."""
    with tempfile.TemporaryDirectory(prefix="manifold-observer-") as folder:
        path = Path(folder) / "circle.zarr"
        write_circle(path, n_frames=n_frames, seed=seed, **options)
        frames, covariance = circle_frames(path)
        duration = float(open_simulation(path).attrs["covariance_duration"])
        return _Seen(frames.compute(), None if covariance is None else covariance.compute(), duration)


def _rates(seen: _Seen, epsilon_factor: float, alpha: float) -> Floats:
    """Decay rates in 1/s, slowest first."""
    with expected_frozen():
        embedding = embed(
            seen.frames,
            n_modes=len(TRUTH),
            rank=1,
            covariance=seen.covariance,
            epsilon_factor=epsilon_factor,
            alpha=alpha,
        )
    return generator_rates(embedding, seen.duration).values


@contextmanager
def expected_frozen() -> Iterator[None]:
    """Small scales are asked for here, to see what they do, and need no warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="embed: the first eigenvalue is .* look frozen")
        yield


def _works(quick: bool) -> list[Work]:
    return [Work(f"seed{seed:02d}", circle_realisation, {"seed": seed}) for seed in range(1, 4 if quick else 51)]


# ------------------------------------------------------------------------------------------------- pictures


def _draw(joined: xr.Dataset) -> dict[str, Figure]:
    return {"eigenvalues": _draw_eigenvalues(joined), "settings": _draw_settings(joined)}


def _draw_eigenvalues(joined: xr.Dataset) -> Figure:
    """Mean and standard deviation of every eigenvalue on the line of the true one, and every realisation beside."""
    found = -_chosen(joined, 0.0, _FACTOR)
    modes, n = found["mode"].values, found.sizes["realisation"]
    figure = new_figure(
        "Eigenvalues of an angle on the circle, against the known ones",
        f"Exact rates, ε = {_FACTOR} of the median of the distances, α = 0; n = {n} realisations, each a dot.",
    )
    axes = grid(figure, 1, 1)[0, 0]
    axes.hlines(-TRUTH, modes - 0.35, modes + 0.35, color=COLOURS[6], lw=2, label="true eigenvalue")
    beside = np.broadcast_to(modes + 0.18, found.shape)
    axes.scatter(beside, found, s=22, color=COLOURS[0], alpha=0.5, lw=0, label="one realisation")
    text = f"mean ± standard deviation of {n}"
    style = {"color": COLOURS[1], "marker": MARKERS[0], "ms": 9, "lw": 2, "ls": "none", "capsize": 5}
    axes.errorbar(modes, found.mean("realisation"), found.std("realisation"), label=text, zorder=3, **style)
    axes.set_xticks(modes)
    axes.set_yticks(range(int(np.floor(found.min())), 1))
    label(axes, "", r"number $\ell$ of the eigenvalue", r"eigenvalue $-\lambda_\ell$ / (1/s)")
    legend_below(figure, axes, 3)
    return figure


def _draw_settings(joined: xr.Dataset) -> Figure:
    """How the rates move with the scale at either normalisation, and with the sensors."""
    figure = new_figure(
        "Rates of the circle: what the scale, the normalisation and the sensors do to them",
        f"Points are means of n = {joined.sizes['realisation']} realisations, bars ± one standard deviation; the true "
        "rates 1, 2, 3, 4 are dotted. On the right, on a log scale: exact rates and counts, in bursts of two lengths.",
    )
    (row,) = grid(figure, 1, 3, width_ratios=(1, 1, 1.7))
    for axes, alpha, name in zip(row, _ALPHAS, ("0", "½"), strict=False):
        _draw_modes(axes, np.array(_FACTORS), joined["rate"].sel(alpha=alpha), 0.0)
        axes.set_xscale("log")
        axes.set_xticks(_FACTORS, [f"{factor:g}" for factor in _FACTORS])
        axes.minorticks_off()
        axes.set_ylim(0, 1.05 * _highest(joined["rate"]))
        label(axes, f"exact rates, α = {name}", "ε / median of the distances", r"decay rate $\lambda_\ell$ / (1/s)")
    row[1].set_ylabel("")
    names = list(_SENSINGS)
    _draw_modes(row[2], np.arange(len(names)), joined["sensed_rate"].sel(sensing=names), 0.13)
    row[2].set_yscale("log")
    row[2].yaxis.set_major_formatter("{x:g}")
    row[2].set_xticks(range(len(names)), [name.replace("dark", "dark counts").replace(", ", "\n") for name in names])
    label(row[2], "sensors, α = 0, ε = median", "features and length of a burst", r"decay rate $\lambda_\ell$ / (1/s)")
    legend_below(figure, row[0], 5)
    return figure


def _draw_modes(axes: Any, places: NDArray[Any], rates: xr.DataArray, step: float) -> None:
    """Mean and standard deviation over the realisations, one colour a mode, beside one another by a step."""
    mean, deviation = rates.mean("realisation"), rates.std("realisation")
    for number, (mode, true) in enumerate(zip(rates["mode"].values, TRUTH, strict=True)):
        style = {"color": COLOURS[number], "marker": MARKERS[number], "ms": 7, "capsize": 3, "elinewidth": 1.2}
        line = "none" if step else "-"
        points = places + step * (number - 1.5), mean.sel(mode=mode), deviation.sel(mode=mode)
        axes.errorbar(*points, label=rf"$\lambda_{mode}$", lw=1.8, ls=line, **style)
        axes.axhline(true, color=COLOURS[number], lw=1.4, ls=":", zorder=0)
    axes.plot([], [], color=COLOURS[6], lw=1.2, ls=":", label="true rates")


def _highest(rates: xr.DataArray) -> float:
    """Upper end of the highest error bar."""
    return float((rates.mean("realisation") + rates.std("realisation")).max())


# --------------------------------------------------------------------------------------------------- claims


def _judge(joined: xr.Dataset) -> list[Claim]:
    return settle(
        [*_each_eigenvalue(joined), *_scale(joined), *_normalisation(joined), *_noise(joined), *_larger(joined)]
    )


def _chosen(joined: xr.Dataset, alpha: float, epsilon_factor: float) -> xr.DataArray:
    """Rates (realisation, mode) of exact sensors."""
    return joined["rate"].sel(alpha=alpha, epsilon_factor=epsilon_factor).transpose("realisation", "mode")


def _sensed(joined: xr.Dataset, sensing: str) -> xr.DataArray:
    """Rates (realisation, mode) of some sensors."""
    return joined["sensed_rate"].sel(sensing=sensing).transpose("realisation", "mode")


def _each_eigenvalue(joined: xr.Dataset) -> list[Statement]:
    found = _chosen(joined, 0.0, _FACTOR)
    mean, deviation = found.mean("realisation").values, found.std("realisation").values
    return [
        Statement(
            "eigenvalues",
            f"the mean of -λ_{mode} is within {_CLOSE:.0%} of -{mode} 1/s (ε = {_FACTOR} of the median, exact rates)",
            f"-{mean[k]:.2f} ± {deviation[k]:.2f} 1/s over {len(found)} realisations",
            _OFF,
            verdicts.within(found.values[:, k : k + 1], TRUTH[k : k + 1], _CLOSE),
        )
        for k, mode in enumerate(found["mode"].values)
    ]


def _all_close(claim: str, settings: list[xr.DataArray]) -> Statement:
    """Whether the means of all four are near the truth, in each of some settings (realisation, mode)."""
    means = [" ".join(f"-{mean:.3g}" for mean in rates.mean("realisation").values) for rates in settings]
    every = np.concatenate([rates.values for rates in settings], axis=1)
    finding = verdicts.within(every, np.tile(TRUTH, len(settings)), _CLOSE)
    return Statement(
        "settings", f"{claim}: all four within {_CLOSE:.0%}", f"means {'; '.join(means)} 1/s", _OFF, finding
    )


def _nearer(claim: str, one: xr.DataArray, other: xr.DataArray, null: str) -> Statement:
    """Whether one setting (realisation, mode) is nearer to the truth than another, realisation by realisation."""
    errors = [worst_error(rates.values, TRUTH) for rates in (one, other)]
    sizes = f"{errors[0].mean():.3g} against {errors[1].mean():.3g}"
    measured = f"largest error of a realisation {sizes} times the truth"
    return Statement("settings", claim, measured, null, verdicts.exceeds(errors[1], errors[0]))


def _scale(joined: xr.Dataset) -> list[Statement]:
    smaller = [factor for factor in _FACTORS if factor < _MEDIAN]
    return [
        _all_close("epsilon of the paper, the median of the distances", [_chosen(joined, 0.0, _MEDIAN)]),
        _all_close(
            f"the smaller scale hardly matters, {' '.join(map(str, smaller))} of the median",
            [_chosen(joined, 0.0, factor) for factor in smaller],
        ),
    ]


def _normalisation(joined: xr.Dataset) -> list[Statement]:
    zero, half = (_chosen(joined, alpha, _FACTOR) for alpha in _ALPHAS)
    return [
        _all_close("alpha = 1/2, with its factor of 2", [half]),
        _nearer("alpha = 0, as in the paper, is nearer to the truth than alpha = 1/2", zero, half, "alpha = 1/2"),
    ]


def _noise(joined: xr.Dataset) -> list[Statement]:
    exact, short, long, dark = (_sensed(joined, name) for name in list(_SENSINGS)[1:])
    return [
        _all_close("bursts of 0.3 s without counting", [exact]),
        _all_close("histograms of 60 counts, the paper's kind of feature, in bursts of 0.01 s", [short]),
        _nearer("histograms of longer bursts, 0.3 s, are nearer to the truth", long, short, "bursts of 0.01 s"),
        _nearer("dark counts, 0.2 a sample, take the histograms further away", long, dark, "no dark counts"),
    ]


def _larger(joined: xr.Dataset) -> list[Statement]:
    """Noise mostly affects the larger eigenvalues: the fourth changes more than the first, in 1/s and by a factor."""
    exact, counts, dark = (_sensed(joined, name).values for name in ("exact, 0.3 s", "counts, 0.3 s", _DARK))
    statements = []
    for what, without, noisy in (("counting", exact, counts), ("dark counts", counts, dark)):
        moved, factor = np.abs(noisy - without), np.abs(np.log(noisy / without))
        claim = f"noise ({what}) mostly affects the larger eigenvalues"
        for how, change, null in (
            (f"{claim}, in 1/s", moved, "λ_4 and λ_1 moved alike"),
            (f"{claim}, by a factor", factor, "λ_4 and λ_1 multiplied alike (logarithms)"),
        ):
            sizes = " ".join(f"{size:.2f}" for size in change.mean(axis=0))
            finding = verdicts.exceeds(change[:, 3], change[:, 0])
            statements.append(Statement("settings", how, f"changes of the four {sizes}", null, finding))
    return statements


CIRCLE = Experiment(_works, join_realisations, _draw, _judge)
