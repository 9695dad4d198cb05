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
from manifold_observer.datasets.simulators.sphere import on_sphere, write_sphere
from manifold_observer.tasks.comparison import paired, scores

from ..embedding.embed import embed
from ..embedding.extend import extend
from ..observers.observe import observe
from .demo import sphere_frames, sphere_truth
from .experiment import Claim, Experiment, Work, join_realisations
from .pictures import COLOURS, grid, label, legend_below, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
GAMMA = 0.85
N_MODES = 4
NOISE = 0.1
SAMPLES = 240_000
_RATES = (0.008, 0.024)
ANGLES = ("elevation", "azimuth")
_SYMBOLS = {"elevation": r"elevation $\theta_1$ / rad", "azimuth": r"azimuth $\theta_2$ / rad"}
_NAMES = {"observer": "observer", "diffusion_maps": "diffusion maps", "nystrom": "Nyström", "one-sided": "one-sided"}
_SHORT = 250
_LEARNT = 3000


def simulate(seed: int, drift_rate: float, n_samples: int = SAMPLES) -> tuple[xr.DataArray, xr.DataArray]:
    """Frames of one simulated recording, and the mean angles over each, in memory.

    Parameters
    ----------
    seed, drift_rate, n_samples
        Of the simulator.

    Returns
    -------
    Dims ``(frame, feature)``, and ``(frame, component)`` in rad.
    """
    with tempfile.TemporaryDirectory(prefix="manifold-observer-") as folder:
        path = Path(folder) / "sphere.zarr"
        write_sphere(path, n_samples=n_samples, seed=seed, drift_rate=drift_rate, noise=NOISE)
        frames, _ = sphere_frames(path)
        return frames.compute(), sphere_truth(path, frames)["angle"].compute()


# --------------------------------------------------------------------------------------------------- set-up


def set_up_path(drift_rate: float, seed: int) -> xr.Dataset:
    """The hidden path: angles of 1,000 samples, and of all frames."""
    with tempfile.TemporaryDirectory(prefix="manifold-observer-") as folder:
        path = Path(folder) / "sphere.zarr"
        write_sphere(path, n_samples=SAMPLES, seed=seed, drift_rate=drift_rate, noise=NOISE)
        opened = open_simulation(path)
        angle = opened["angle"].load()
        attrs = {name: opened.attrs[name] for name in ("mean", "sensor_distance", "dt", "variance")}
    coarse = angle[::60].rename(time="frame").drop_vars("frame", errors="ignore")
    return xr.Dataset(
        {"sample": (("time", "component"), angle[:1000].values), "frame_angle": coarse},
        attrs={**attrs, "drift_rate": drift_rate, "deviation": angle.values.std(axis=0).tolist()},
    )


def _set_up_works(quick: bool) -> list[Work]:
    return [Work(f"c{rate}", set_up_path, {"drift_rate": rate, "seed": 1}) for rate in _RATES]


def _join_set_up(parts: dict[str, xr.Dataset]) -> xr.Dataset:
    joined = xr.concat(list(parts.values()), "path", combine_attrs="drop_conflicts")
    deviations = np.array([part.attrs["deviation"] for part in parts.values()])
    return joined.assign(deviation=(("path", "component"), deviations)).assign_coords(drift_rate=("path", list(_RATES)))


def _draw_set_up(joined: xr.Dataset) -> dict[str, Figure]:
    """Paths on the sphere with sensors and the potential's minimum, above the elevation over 1,000 samples."""
    figure = new_figure(8, 6.5)
    rows = figure.add_gridspec(2, 2, height_ratios=(1.7, 1))
    minutes = np.arange(joined.sizes["time"]) * float(joined.attrs["dt"])
    for column, rate in enumerate(joined["drift_rate"].values):
        path = joined.isel(path=column)
        axes: Any = figure.add_subplot(rows[0, column], projection="3d")
        _draw_sphere(axes, path, joined.attrs)
        axes.set_title(f"c = {rate} 1/s", loc="left", fontsize=10)
        below = figure.add_subplot(rows[1, column])
        below.plot(minutes, path["sample"][:, 0], color=COLOURS[0], lw=1)
        below.axhline(float(np.ravel(joined.attrs["mean"])[0]), color="0.5", lw=1, ls="--")
        below.set_ylim(float(joined["sample"][..., 0].min()) - 0.05, float(joined["sample"][..., 0].max()) + 0.05)
        label(below, x="time / s", y=_SYMBOLS["elevation"])
        below.spines[["top", "right"]].set_visible(False)
        if column == 0:
            legend_below(figure, axes, 3)
    return {"paths": figure}


def _draw_sphere(axes: Any, path: xr.Dataset, attrs: dict[str, Any]) -> None:
    """A wire sphere, the path, three sensors, the minimum."""
    u, v = np.mgrid[0 : 2 * np.pi : 25j, 0 : np.pi : 13j]
    axes.plot_wireframe(np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v), color="0.85", lw=0.5)
    axes.plot(*on_sphere(path["frame_angle"].values).T, color=COLOURS[0], lw=0.3, alpha=0.6, label="path")
    axes.scatter(*(float(attrs["sensor_distance"]) * np.eye(3)), color=COLOURS[1], marker="^", s=40, label="sensors")
    minimum = on_sphere(np.atleast_2d(attrs["mean"]))
    axes.scatter(*minimum.T, color=COLOURS[6], marker="X", s=40, label="minimum of the potential", depthshade=False)
    axes.set_box_aspect((1, 1, 1))
    axes.view_init(elev=22, azim=32)
    for axis, name in zip("xyz", ("x", "y", "z"), strict=True):
        getattr(axes, f"set_{axis}label")(name, labelpad=-8)
        getattr(axes, f"set_{axis}ticks")([-1, 0, 1])
    axes.tick_params(pad=-3, labelsize=7)


def _judge_set_up(joined: xr.Dataset) -> list[Claim]:
    slow, fast = joined["deviation"].mean("component").values
    return [
        Claim(
            "set-up",
            "a stronger pull keeps the point nearer to the minimum",
            f"deviation of the angles {slow:.2f} rad at c = {_RATES[0]}, {fast:.2f} rad at {_RATES[1]}",
            bool(fast < slow),
        )
    ]


SET_UP = Experiment(_set_up_works, _join_set_up, _draw_set_up, _judge_set_up)


# --------------------------------------------------------------------------------------------------- sphere


def sphere_realisation(seed: int, drift_rate: float, n_samples: int = SAMPLES) -> xr.Dataset:
    """Observer and diffusion maps of one recording: coordinates, read-outs, scores."""
    frames, truth = simulate(seed, drift_rate, n_samples)
    embedding = embed(frames, n_modes=N_MODES, preset="paper")
    estimates = {"observer": observe(embedding, frames, GAMMA)["state"], "diffusion_maps": embedding["coordinate"]}
    return _read(estimates, truth)


def _read(estimates: dict[str, xr.DataArray], truth: xr.DataArray) -> xr.Dataset:
    """Coordinates, linear read-outs and their scores."""
    angles = truth.transpose("frame", "component").values
    values = {name: estimate.transpose("frame", "mode").values for name, estimate in estimates.items()}
    readings = {name: scores.linear_readout(value, angles) for name, value in values.items()}
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
        },
        coords={"estimate": list(values), "component": list(ANGLES)},
    )


def _sphere_works(quick: bool) -> list[Work]:
    seeds = range(1, 4 if quick else 11)
    return [Work(f"seed{seed:02d}", sphere_realisation, {"seed": seed, "drift_rate": _RATES[1]}) for seed in seeds]


def _draw_sphere_figures(joined: xr.Dataset) -> dict[str, Figure]:
    first = joined.isel(realisation=0)
    return {"time": _draw_time(first), "scatter": _draw_scatter(first, ["observer", "diffusion_maps"])}


def _draw_time(first: xr.Dataset) -> Figure:
    """Truth and read-outs over a short interval, with absolute errors below, one column an angle."""
    figure = new_figure(9, 5)
    rows = grid(figure, 2, 2, sharex=True, height_ratios=(1.6, 1))
    minutes = np.arange(_SHORT) * 6.0 / 60
    for column, angle in enumerate(ANGLES):
        shown = first.sel(component=angle).isel(frame=slice(0, _SHORT))
        above, below = rows[:, column]
        above.plot(minutes, shown["truth"], color=COLOURS[6], lw=1.6, label="truth")
        for colour, name in zip(COLOURS, ("observer", "diffusion_maps"), strict=False):
            reading = shown["reading"].sel(estimate=name)
            width = 1.4 if name == "observer" else 0.8
            above.plot(minutes, reading, color=colour, lw=width, label=_NAMES[name])
            below.plot(minutes, np.abs(reading - shown["truth"]), color=colour, lw=width)
        label(above, y=_SYMBOLS[angle])
        label(below, x="time / min", y="absolute error / rad")
    legend_below(figure, rows[0, 0], 3)
    return figure


def _draw_scatter(first: xr.Dataset, names: list[str]) -> Figure:
    """Azimuth over elevation, coloured by the coordinate that goes best with an angle: rows angles, columns methods."""
    figure = new_figure(3.2 * len(names) + 0.8, 6)
    rows = grid(figure, 2, len(names), sharex=True, sharey=True)
    elevation, azimuth = (first["truth"].sel(component=angle).values for angle in ANGLES)
    for column, name in enumerate(names):
        coordinates = first["coordinate"].sel(estimate=name).values
        modes = np.argmax(paired.cross_correlation(coordinates, first["truth"].values), axis=0)
        for row, (angle, mode) in enumerate(zip(ANGLES, modes, strict=True)):
            values = _oriented(coordinates[:, mode], first["truth"].sel(component=angle).values)
            dots = rows[row, column].scatter(elevation, azimuth, c=values, s=4, vmin=-2.5, vmax=2.5, rasterized=True)
            y = _SYMBOLS["azimuth"] if column == 0 else ""
            title = f"{_NAMES[name]}: coordinate {mode + 1} ({angle})"
            label(rows[row, column], title, _SYMBOLS["elevation"] if row == 1 else "", y)
    figure.colorbar(dots, ax=list(rows.ravel()), label="coordinate / its deviation", shrink=0.6)
    return figure


def _oriented(values: Floats, truth: Floats) -> Floats:
    """In deviations, rising with the truth."""
    sign = np.sign(np.corrcoef(values, truth)[0, 1])
    return sign * (values - values.mean()) / values.std()


def _judge_sphere(joined: xr.Dataset) -> list[Claim]:
    claims = []
    for name, what in (("correlation", "after linear regression"), ("single", "by the best single coordinate")):
        for angle in ANGLES:
            own, other = (joined[name].sel(estimate=e, component=angle).values for e in ("observer", "diffusion_maps"))
            found = paired.compare(own, other)
            claims.append(
                Claim(
                    "time series, scatter",
                    f"observer closer to the {angle} than diffusion maps {what}",
                    f"r {own.mean():.3f} against {other.mean():.3f} ({len(own)} realisations, p = {found.p:.1e})",
                    bool(found.difference > 0 and found.p < 0.05),
                    "the coordinates mix the angles: read them with a regression" if name == "single" else "",
                )
            )
    ratio = joined["boundary_ratio"].sel(estimate="observer")
    claims.append(
        Claim(
            "scatter",
            "errors concentrate at the boundary of the data",
            f"error of the outermost tenth {float(ratio.mean()):.2f} times that of the rest",
            bool((ratio > 1.2).all()),
        )
    )
    return claims


SPHERE = Experiment(_sphere_works, join_realisations, _draw_sphere_figures, _judge_sphere)


# ------------------------------------------------------------------------------------------------ extension


def extension_realisation(seed: int, drift_rate: float, n_samples: int = SAMPLES, learnt: int = _LEARNT) -> xr.Dataset:
    """Frames after the learnt ones, by the observer and by both extensions of diffusion maps."""
    frames, truth = simulate(seed, drift_rate, n_samples)
    embedding = embed(frames[:learnt], n_modes=N_MODES, preset="paper")
    new = frames[learnt:]
    carry = observe(embedding, frames[:learnt], GAMMA)["carry"]
    estimates = {"observer": observe(embedding, new, GAMMA, carry=carry)["state"]}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="extend: .* far from all")  # a few of a thousand are
        for method in ("nystrom", "one-sided"):
            estimates[method] = extend(embedding, new, method)["coordinate"]
    return _read(estimates, truth[learnt:])


def _extension_works(quick: bool) -> list[Work]:
    seeds = range(1, 4 if quick else 11)
    return [Work(f"seed{seed:02d}", extension_realisation, {"seed": seed, "drift_rate": _RATES[1]}) for seed in seeds]


def _draw_extension(joined: xr.Dataset) -> dict[str, Figure]:
    return {"scatter": _draw_scatter(joined.isel(realisation=0), ["observer", "nystrom", "one-sided"])}


def _judge_extension(joined: xr.Dataset) -> list[Claim]:
    claims = []
    for method in ("nystrom", "one-sided"):
        for angle in ANGLES:
            own, other = (joined["correlation"].sel(estimate=e, component=angle).values for e in ("observer", method))
            found = paired.compare(own, other)
            claims.append(
                Claim(
                    "extension",
                    f"observer places new frames better than {_NAMES[method]} in {angle}",
                    f"r {own.mean():.3f} against {other.mean():.3f} ({len(own)} realisations, p = {found.p:.1e})",
                    bool(found.difference > 0 and found.p < 0.05),
                )
            )
    return claims


EXTENSION = Experiment(_extension_works, join_realisations, _draw_extension, _judge_extension)
