"""Settings that the paper prints beside those of the other experiments, and what mends the printed ones.

The paper centres the azimuth at π/10 and maps the angle of the circle to (cos θ, sin θ), an arc of 1; the other
experiments take 0.2 and an arc of 0.5. What breaks the circle is measured one step at a time: the angle itself, the
point on the circle itself, the sensors, and then the metric. A covariance of rank 1 measures distances along the
tangent, on which the far side of a closed curve lies near; a metric that weighs isotropic by the speed of
the features does not fold it.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.datasets.simulators.circle import write_circle
from manifold_observer.datasets.simulators.simulated import open_simulation
from manifold_observer.tasks.comparison import paired, scores, verdicts
from manifold_observer.tasks.observers import observer as observer_task

from ..comparison.baselines import baselines
from ..embedding.embed import embed
from ..observers.observe import observe
from ..observers.rates import generator_rates
from .circle import TRUTH, expected_frozen
from .demo import circle_frames
from .experiment import Claim, Experiment, Work, join_realisations
from .printed_pictures import draw_circle, draw_sphere
from .sphere import ANGLES, GAMMA, N_FOLDS, N_MODES, SAMPLES, simulate
from .verdict import Statement, settle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
AVERAGES = ("moving_average_2", "moving_average_3", "moving_average_5")
_RATES = (0.008, 0.024)
_CLOSE = 0.15
_PRINTED = {"azimuth": math.pi / 10}
SPHERES: dict[str, dict[str, Any]] = {
    "0.2": {},
    "π/10": _PRINTED,
    "π/10, ε = half": _PRINTED | {"epsilon_factor": 0.5},
    "π/10, ε = twice": _PRINTED | {"epsilon_factor": 2.0},
    "π/10, α = 1": _PRINTED | {"alpha": 1.0},
    "π/10, sensors at 2": _PRINTED | {"sensor_distance": 2.0},
}
"""Mean of the azimuth in rad, and what is changed beside it."""


def printed_sphere(
    seed: int,
    drift_rate: float,
    n_samples: int = SAMPLES,
    azimuth: float | None = None,
    sensor_distance: float = 1.2,
    epsilon_factor: float = 1.0,
    alpha: float = 0.0,
) -> xr.Dataset:
    """Correlations of observer, averages and diffusion maps, read held out, and the windows of the observer's modes."""
    frames, truth = simulate(seed, drift_rate, n_samples, azimuth, sensor_distance=sensor_distance)
    embedding = embed(frames, n_modes=N_MODES, preset="paper", epsilon_factor=epsilon_factor, alpha=alpha)
    estimates = {"observer": observe(embedding, frames, GAMMA)["state"], **baselines(embedding, frames, GAMMA)}
    angles = truth.transpose("frame", "component").values
    values = [x.transpose("frame", "mode").values for x in estimates.values()]
    found = [scores.correlation(scores.linear_readout(x, angles, N_FOLDS), angles) for x in values]
    windows = paired.effective_window(observer_task.poles(embedding["rate"].values, GAMMA))
    followed = np.argmax(paired.cross_correlation(values[0], angles), axis=0)
    return xr.Dataset(
        {
            "correlation": (("estimate", "component"), np.stack(found)),
            "window": ("component", windows[followed], {"units": "frames"}),
        },
        coords={"estimate": list(estimates), "component": list(ANGLES)},
    )


def _sphere_works(quick: bool) -> list[Work]:
    """Both settings in the quick form, the mends beside them in the whole one."""
    cases = list(SPHERES)[:2] if quick else list(SPHERES)
    rates, seeds = (_RATES[1:], range(1, 5)) if quick else (_RATES, range(1, 6))
    return [
        Work(f"{number}-c{rate}-seed{seed:02d}", printed_sphere, {"seed": seed, "drift_rate": rate} | SPHERES[case])
        for number, case in enumerate(cases)
        for rate in rates
        for seed in seeds
    ]


def _join_sphere(parts: dict[str, xr.Dataset]) -> xr.Dataset:
    """Dims (case, drift_rate, realisation, ...)."""
    tree: dict[str, dict[float, list[xr.Dataset]]] = {}
    for name, part in parts.items():
        number, rate, _ = name.split("-")
        tree.setdefault(list(SPHERES)[int(number)], {}).setdefault(float(rate[1:]), []).append(part)
    cases = [
        xr.concat([xr.concat(own, "realisation") for own in rates.values()], "drift_rate") for rates in tree.values()
    ]
    joined = xr.concat(cases, "case").assign_coords(case=list(tree))
    rates = list(next(iter(tree.values())))
    return joined.assign_coords(drift_rate=("drift_rate", rates, {"units": "1/s"}))


def _judge_sphere(joined: xr.Dataset) -> list[Claim]:
    """Each setting by the paper's two claims: above diffusion maps, and above the best of all windows."""
    return settle([claim for case in joined["case"].values for claim in _judge_case(joined.sel(case=case), str(case))])


def _judge_case(own: xr.Dataset, case: str) -> list[Statement]:
    """Two statements an angle."""
    statements = []
    for angle in ANGLES:
        found = own["correlation"].sel(component=angle).transpose("drift_rate", "realisation", "estimate")
        by_name = {str(name): found.sel(estimate=name).values for name in found["estimate"].values}
        mine = by_name["observer"]
        above = verdicts.exceeds_everywhere(zip(mine, by_name["diffusion_maps"], strict=True))
        rows = [pair for name in AVERAGES for pair in zip(mine, by_name[name], strict=True)]
        follows = verdicts.exceeds_everywhere(rows)
        what = f"r {_texts(mine)} of the observer"
        best = np.max([by_name[name].mean(axis=1) for name in AVERAGES], axis=0)
        window = _texts(own["window"].sel(component=angle).transpose("drift_rate", ...).values, 1)
        statements += [
            Statement(
                "settings",
                f"mean azimuth {case}: observer above diffusion maps in {angle} at every c",
                f"{what}, {_texts(by_name['diffusion_maps'])} of diffusion maps",
                "diffusion maps",
                above,
            ),
            Statement(
                "settings",
                f"mean azimuth {case}: observer above every window in {angle} at every c",
                f"{what}, {' '.join(f'{x:.3f}' for x in best)} of the best average; it weighs {window} frames",
                "averages of 2, 3, 5",
                follows,
            ),
        ]
    return statements


def _texts(values: Floats, digits: int = 3) -> str:
    """Means over the realisations (drift rate, realisation), from slow to fast."""
    return " ".join(f"{x:.{digits}f}" for x in values.mean(axis=1))


PRINTED_SPHERE = Experiment(
    _sphere_works, _join_sphere, lambda joined: {"settings": draw_sphere(joined)}, _judge_sphere
)


# --------------------------------------------------------------------------------------------------- circle


class _Circle(NamedTuple):
    """A way to see the angle, and the kernel's settings: scale, normalisation, and how directions are weighed."""

    seen: str
    epsilon_factor: float = 0.16
    alpha: float = 0.0
    metric: str = "tangent"


_SEEN: dict[str, dict[str, Any]] = {
    "arc 0.5": {},
    "arc 1": {"arc": 1.0},
    "arc 1, bursts of 1 ms": {"arc": 1.0, "burst_duration": 0.001},
    "arc 1, sensors at 2": {"arc": 1.0, "sensor_distance": 2.0},
}
CIRCLES = {
    "the angle itself": _Circle("arc 1", metric="angle"),
    "the point itself, arc 0.5": _Circle("arc 0.5", metric="point"),
    "the point itself, arc 1": _Circle("arc 1", metric="point"),
    "arc 0.5": _Circle("arc 0.5"),
    "arc 1": _Circle("arc 1"),
    "arc 1, ε = 0.04": _Circle("arc 1", 0.04),
    "arc 1, ε = median": _Circle("arc 1", 1.0),
    "arc 1, α = 1/2": _Circle("arc 1", 0.16, 0.5),
    "arc 1, bursts of 1 ms": _Circle("arc 1, bursts of 1 ms"),
    "arc 1, sensors at 2": _Circle("arc 1, sensors at 2"),
    "arc 0.5, isotropic": _Circle("arc 0.5", metric="isotropic"),
    "arc 1, isotropic": _Circle("arc 1", metric="isotropic"),
}
"""From what is known to what the sensors see; scales are shares of the median distance."""


class _Bursts(NamedTuple):
    """Features, covariances, seconds in which the angle spreads so, the angle (n,), and radians a unit of it."""

    frames: xr.DataArray
    covariance: xr.DataArray
    duration: float
    angle: Floats
    arc: float


def printed_circle(seed: int, n_frames: int = 1600) -> xr.Dataset:
    """Decay rates ``rate(case, mode)`` in 1/s of one path, for every way to see it."""
    seen = {name: _simulate(seed, n_frames, options) for name, options in _SEEN.items()}
    rates = np.stack([_rates(seen[case.seen], case) for case in CIRCLES.values()])
    attrs = {"units": "1/s", "long_name": "decay rate of the hidden diffusion"}
    coords = {"case": list(CIRCLES), "mode": np.arange(1, len(TRUTH) + 1)}
    return xr.Dataset({"rate": (("case", "mode"), rates, attrs)}, coords=coords)


def _simulate(seed: int, n_frames: int, options: dict[str, Any]) -> _Bursts:
    with tempfile.TemporaryDirectory(prefix="manifold-observer-") as folder:
        path = Path(folder) / "circle.zarr"
        write_circle(path, n_frames=n_frames, seed=seed, burst_size=20, **options)
        frames, covariance = circle_frames(path)
        opened = open_simulation(path)
        assert covariance is not None
        return _Bursts(
            frames.compute(),
            covariance.compute(),
            float(opened.attrs["covariance_duration"]),
            opened["angle"].values,
            float(opened.attrs["arc"]),
        )


def _rates(bursts: _Bursts, case: _Circle) -> Floats:
    """Decay rates in 1/s, slowest first."""
    frames, covariance, rank = _METRICS[case.metric](bursts)
    with expected_frozen():
        embedding = embed(
            frames,
            n_modes=len(TRUTH),
            rank=rank,
            covariance=covariance,
            epsilon_factor=case.epsilon_factor,
            alpha=case.alpha,
            preset="paper",
        )
    return generator_rates(embedding, bursts.duration).values


_Seen = tuple[xr.DataArray, xr.DataArray, int]


def _tangent(bursts: _Bursts) -> _Seen:
    """As printed: the covariance of the bursts has one direction."""
    return bursts.frames, bursts.covariance, 1


def _isotropic(bursts: _Bursts) -> _Seen:
    """All directions weighed as the one in which the features move."""
    largest = np.linalg.eigvalsh(bursts.covariance.values)[:, -1]
    p = bursts.frames.sizes["feature"]
    return bursts.frames, bursts.covariance.copy(data=largest[:, None, None] * np.eye(p)), p


def _known(bursts: _Bursts, features: Floats, speed: float) -> _Seen:
    """Features that are known instead of sensed, which spread at a known speed."""
    n, p = features.shape
    covariance = np.broadcast_to(2 * bursts.duration * speed**2 * np.eye(p), (n, p, p))
    frames = xr.DataArray(features, dims=("frame", "feature"), coords={"time": bursts.frames["time"]})
    return frames, xr.DataArray(covariance, dims=("frame", "feature", "feature_1")), p


def _angle(bursts: _Bursts) -> _Seen:
    """The angle itself: what remains is the kernel and how many frames there are."""
    return _known(bursts, bursts.angle[:, None], 1.0)


def _point(bursts: _Bursts) -> _Seen:
    """The point on the circle itself: what is added is the circle, whose ends may meet."""
    place = bursts.arc * bursts.angle
    return _known(bursts, np.stack([np.cos(place), np.sin(place)], axis=1), bursts.arc)


_METRICS = {"tangent": _tangent, "isotropic": _isotropic, "angle": _angle, "point": _point}


def _circle_works(quick: bool) -> list[Work]:
    return [Work(f"seed{seed:02d}", printed_circle, {"seed": seed}) for seed in range(1, 4 if quick else 21)]


def _judge_circle(joined: xr.Dataset) -> list[Claim]:
    """Every way by one measure, and whether the mend is nearer to the truth than what is printed."""
    statements = []
    for case in joined["case"].values:
        rates = joined["rate"].sel(case=case).transpose("realisation", "mode").values
        means = " ".join(f"-{mean:.3g}" for mean in rates.mean(axis=0))
        finding = verdicts.within(rates, TRUTH, _CLOSE)
        what = f"means {means} 1/s over {len(rates)}"
        claim = f"{case}: all four within {_CLOSE:.0%}"
        statements.append(Statement("settings", claim, what, f"an error of {_CLOSE:.0%}", finding))
    printed, mended = (
        np.abs(joined["rate"].sel(case=case).transpose("realisation", "mode").values / TRUTH - 1).max(axis=1)
        for case in ("arc 1", "arc 1, isotropic")
    )
    text = f"largest error of a realisation {mended.mean():.3g} against {printed.mean():.3g} times the truth"
    finding = verdicts.exceeds(printed, mended)
    claim = "arc 1: the isotropic metric is nearer to the truth than the tangent"
    return settle([*statements, Statement("settings", claim, text, "the tangent, as printed", finding)])


def _draw_circle(joined: xr.Dataset) -> dict[str, Figure]:
    return {"settings": draw_circle(joined, TRUTH)}


PRINTED_CIRCLE = Experiment(_circle_works, join_realisations, _draw_circle, _judge_circle)
