"""The point on the sphere (section V-A): set-up, one recording looked at closely, and frames out of sample."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.datasets.simulators.simulated import open_simulation
from manifold_observer.datasets.simulators.sphere import write_sphere
from manifold_observer.tasks.comparison import paired, scores, verdicts

from ..embedding.embed import embed
from ..embedding.extend import extend
from ..observers.observe import observe
from .demo import sphere_frames, sphere_truth
from .experiment import Claim, Experiment, Work, join_realisations
from .sphere_pictures import NAMES, draw_scatter, draw_set_up, draw_time
from .verdict import Statement, settle

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
GAMMA = 0.85
N_MODES = 4
NOISE = 0.1
SAMPLES = 240_000
N_FOLDS = 5
"""Contiguous blocks of frames; each is read with a regression that was fitted on the others."""

_RATES = (0.008, 0.024)
ANGLES = ("elevation", "azimuth")
_PATHS = 10
_LEARNT = 3000


def simulate(
    seed: int, drift_rate: float, n_samples: int = SAMPLES, azimuth: float | None = None, **options: Any
) -> tuple[xr.DataArray, xr.DataArray]:
    """Frames of one simulated recording, and the mean angles over each, in memory.

    Parameters
    ----------
    seed, drift_rate, n_samples
        Of the simulator.
    azimuth
        Mean of the azimuth in rad; None leaves the simulator's.
    options
        More of the simulator.

    Returns
    -------
    Dims ``(frame, feature)``, and ``(frame, component)`` in rad.
    """
    with tempfile.TemporaryDirectory(prefix="manifold-observer-") as folder:
        path = Path(folder) / "sphere.zarr"
        mean: dict[str, Any] = {} if azimuth is None else {"mean": (np.pi / 2, azimuth)}
        write_sphere(path, n_samples=n_samples, seed=seed, drift_rate=drift_rate, noise=NOISE, **mean, **options)
        frames, _ = sphere_frames(path)
        return frames.compute(), sphere_truth(path, frames)["angle"].compute()


# --------------------------------------------------------------------------------------------------- set-up


def set_up_path(drift_rate: float, seed: int) -> xr.Dataset:
    """The hidden path: angles of 1,000 samples, and of all frames; and how far other paths deviate."""
    with tempfile.TemporaryDirectory(prefix="manifold-observer-") as folder:
        path = Path(folder) / "sphere.zarr"
        write_sphere(path, n_samples=SAMPLES, seed=seed, drift_rate=drift_rate, noise=NOISE)
        opened = open_simulation(path)
        angle = opened["angle"].load()
        attrs = {name: opened.attrs[name] for name in ("mean", "sensor_distance", "dt", "variance")}
    coarse = angle[::60].rename(time="frame").drop_vars("frame", errors="ignore")
    return xr.Dataset(
        {"sample": (("time", "component"), angle[:1000].values), "frame_angle": coarse},
        attrs={**attrs, "drift_rate": drift_rate},
    ).assign(deviation=(("seed", "component"), [_deviation(drift_rate, seed) for seed in range(1, _PATHS + 1)]))


def _deviation(drift_rate: float, seed: int) -> Floats:
    """Root mean square of the angles about their mean."""
    with tempfile.TemporaryDirectory(prefix="manifold-observer-") as folder:
        path = Path(folder) / "sphere.zarr"
        write_sphere(path, n_samples=SAMPLES, seed=seed, drift_rate=drift_rate, noise=NOISE)
        opened = open_simulation(path)
        away = opened["angle"].values - np.asarray(opened.attrs["mean"])
    return np.asarray(np.sqrt(np.mean(away**2, axis=0)), np.float64)


def _set_up_works(quick: bool) -> list[Work]:
    return [Work(f"c{rate}", set_up_path, {"drift_rate": rate, "seed": 1}) for rate in _RATES]


def _join_set_up(parts: dict[str, xr.Dataset]) -> xr.Dataset:
    joined = xr.concat(list(parts.values()), "path", combine_attrs="drop_conflicts")
    return joined.assign_coords(drift_rate=("path", list(_RATES)))


def _judge_set_up(joined: xr.Dataset) -> list[Claim]:
    """Checks of the simulator: what the paper says of the pull follows from its equation, sqrt(v / 2 c)."""
    statements = []
    for path, rate in enumerate(joined["drift_rate"].values):
        expected = float(np.sqrt(joined.attrs["variance"] / (2 * rate)))
        found = joined["deviation"].isel(path=path).transpose("seed", "component").values
        statements.append(
            Statement(
                "set-up",
                f"simulator: at c = {rate} 1/s the angles deviate as the equation says, within 15 %",
                f"{found.mean():.3f} rad over {len(found)} paths, sqrt(v / 2 c) = {expected:.3f}",
                "an error of 15 % in either angle",
                verdicts.within(found, np.full(2, expected), 0.15),
            )
        )
    return settle(statements)


SET_UP = Experiment(_set_up_works, _join_set_up, draw_set_up, _judge_set_up)


# --------------------------------------------------------------------------------------------------- sphere


def sphere_realisation(seed: int, drift_rate: float, n_samples: int = SAMPLES) -> xr.Dataset:
    """Observer and diffusion maps of one recording: coordinates, read-outs, scores."""
    frames, truth = simulate(seed, drift_rate, n_samples)
    embedding = embed(frames, n_modes=N_MODES, preset="paper")
    estimates = {
        "observer": observe(embedding, frames, GAMMA)["state"],
        "diffusion_maps": embedding["coordinate"],
        "shuffled": _without_time(frames, seed),
    }
    values, angles = _plain(estimates), truth.transpose("frame", "component").values
    return _scored(values, {name: scores.linear_readout(x, angles, N_FOLDS) for name, x in values.items()}, angles)


def _without_time(frames: xr.DataArray, seed: int) -> xr.DataArray:
    """The observer over the same frames in random order, put back in their order: it must lose."""
    order = np.random.default_rng(seed).permutation(frames.sizes["frame"])
    mixed = xr.DataArray(frames.values[order], dims=("frame", "feature"))
    state = observe(embed(mixed, n_modes=N_MODES, preset="paper"), mixed, GAMMA)["state"]
    return state[np.argsort(order)]


def _plain(estimates: dict[str, xr.DataArray]) -> dict[str, Floats]:
    """Estimates as arrays (frame, mode)."""
    return {name: estimate.transpose("frame", "mode").values for name, estimate in estimates.items()}


def _shrinkage_ratio(reading: Floats, angles: Floats) -> float:
    """The boundary ratio of truth and noise that are read as well as this: 20 draws."""
    rng = np.random.default_rng(0)
    made = (verdicts.shrunk_reading(angles, reading, rng) for _ in range(20))
    return float(np.mean([paired.boundary_ratio(x - angles, angles) for x in made]))


def _scored(values: dict[str, Floats], readings: dict[str, Floats], angles: Floats) -> xr.Dataset:
    """Coordinates, linear read-outs and their scores."""
    wide, narrow = ("estimate", "frame", "component"), ("estimate", "component")
    return xr.Dataset(
        {
            "truth": (("frame", "component"), angles),
            "coordinate": (("estimate", "frame", "mode"), np.stack(list(values.values()))),
            "reading": (wide, np.stack(list(readings.values()))),
            "correlation": (narrow, np.stack([scores.correlation(x, angles) for x in readings.values()])),
            "nrmse_db": (narrow, np.stack([scores.nrmse_db(x, angles) for x in readings.values()])),
            "single": (narrow, np.stack([paired.best_single(x, angles) for x in values.values()])),
            "boundary_ratio": (
                "estimate",
                np.array([paired.boundary_ratio(x - angles, angles) for x in readings.values()]),
            ),
            "shrinkage_ratio": ("estimate", np.array([_shrinkage_ratio(x, angles) for x in readings.values()])),
        },
        coords={"estimate": list(values), "component": list(ANGLES)},
    )


def _sphere_works(quick: bool) -> list[Work]:
    seeds = range(1, 4 if quick else 11)
    return [Work(f"seed{seed:02d}", sphere_realisation, {"seed": seed, "drift_rate": _RATES[1]}) for seed in seeds]


def _draw_sphere_figures(joined: xr.Dataset) -> dict[str, Figure]:
    first = joined.isel(realisation=0)
    headline = "Where the point is, as both see it"
    return {"time": draw_time(first), "scatter": draw_scatter(first, ["observer", "diffusion_maps"], headline)}


def _judge_sphere(joined: xr.Dataset) -> list[Claim]:
    statements = []
    for name, what in (("correlation", "after linear regression, held out"), ("single", "by the best coordinate")):
        for angle in ANGLES:
            claim = f"observer closer to the {angle} than diffusion maps {what}"
            statements.append(_closer("time series, scatter", claim, joined[name], "diffusion_maps", angle))
    for angle in ANGLES:
        claim = f"frames in random order tell less of the {angle}"
        statements.append(_closer("beyond the paper", claim, joined["correlation"], "shuffled", angle))
    return settle([*statements, *_boundary(joined)])


def _boundary(joined: xr.Dataset) -> list[Statement]:
    """Errors grow towards the boundary of the data: at all, and more than a regression's shrinkage explains."""
    own = joined[["boundary_ratio", "shrinkage_ratio"]].sel(estimate="observer")
    ratio, null = own["boundary_ratio"].values, own["shrinkage_ratio"].values
    measured = f"error of the outermost tenth {ratio.mean():.2f} times that of the rest; shrinkage {null.mean():.2f}"
    claims = (
        ("errors are larger at the boundary of the data", "errors alike everywhere", 1.0),
        ("errors grow there by more than a regression shrinks", "truth and white noise, read with the same r", null),
    )
    return [
        Statement("scatter", claim, measured, what, verdicts.exceeds(ratio, level)) for claim, what, level in claims
    ]


def _closer(figure: str, claim: str, values: xr.DataArray, than: str, angle: str) -> Statement:
    """The observer against another estimate of one angle, realisation by realisation."""
    own, other = (values.sel(estimate=name, component=angle).values for name in ("observer", than))
    measured = f"r {own.mean():.3f} against {other.mean():.3f} ({len(own)} realisations)"
    return Statement(figure, claim, measured, NAMES.get(than, than), verdicts.exceeds(own, other))


SPHERE = Experiment(_sphere_works, join_realisations, _draw_sphere_figures, _judge_sphere)


# ------------------------------------------------------------------------------------------------ extension


def extension_realisation(seed: int, drift_rate: float, n_samples: int = SAMPLES, learnt: int = _LEARNT) -> xr.Dataset:
    """Frames after the learnt ones, by the observer and by both extensions of diffusion maps."""
    frames, truth = simulate(seed, drift_rate, n_samples)
    embedding = embed(frames[:learnt], n_modes=N_MODES, preset="paper")
    new = frames[learnt:]
    before = observe(embedding, frames[:learnt], GAMMA)
    estimates = {"observer": observe(embedding, new, GAMMA, carry=before["carry"])["state"]}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="extend: .* far from all")  # a few of a thousand are
        for method in ("nystrom", "one-sided"):
            estimates[method] = extend(embedding, new, method)["coordinate"]
    angles = truth.transpose("frame", "component").values
    seen = _plain({"observer": before["state"], "coordinate": embedding["coordinate"]})
    fitted = {name: scores.fit_linear(value, angles[:learnt]) for name, value in seen.items()}
    values = _plain(estimates)
    weights = {name: fitted.get(name, fitted["coordinate"]) for name in values}
    readings = {name: scores.apply_linear(weights[name], value) for name, value in values.items()}
    return _scored(values, readings, angles[learnt:])


def _extension_works(quick: bool) -> list[Work]:
    seeds = range(1, 4 if quick else 11)
    return [Work(f"seed{seed:02d}", extension_realisation, {"seed": seed, "drift_rate": _RATES[1]}) for seed in seeds]


def _draw_extension(joined: xr.Dataset) -> dict[str, Figure]:
    headline = "New frames, placed by the observer and by two extensions of diffusion maps"
    return {"scatter": draw_scatter(joined.isel(realisation=0), ["observer", "nystrom", "one-sided"], headline)}


def _judge_extension(joined: xr.Dataset) -> list[Claim]:
    """The observer of new frames against both extensions; all are read as the embedded frames were."""
    return settle(
        [
            _closer(
                "extension",
                f"observer places new frames better than {NAMES[method]} in {angle}",
                joined["correlation"],
                method,
                angle,
            )
            for method in ("nystrom", "one-sided")
            for angle in ANGLES
        ]
    )


EXTENSION = Experiment(_extension_works, join_realisations, _draw_extension, _judge_extension)
