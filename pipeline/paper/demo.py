"""Demonstrations: simulate a recording, run the main job on it, and compare with the truth."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.datasets.simulators.circle import write_circle
from manifold_observer.datasets.simulators.melody import label_frames, write_melody
from manifold_observer.datasets.simulators.simulated import open_simulation
from manifold_observer.datasets.simulators.sphere import write_sphere

from ..comparison.baselines import baselines
from ..comparison.scores import class_scores, scores
from ..engine.config import EmbedConfig
from ..frames.features import histogram, stft
from ..jobs.config import FeatureConfig, OpenConfig, RunConfig
from ..jobs.progress import Stages
from ..jobs.reach import reaching
from ..jobs.run import analyse
from ..jobs.store import start, write_group, writing
from ..observers.calibrate import calibrate
from ..observers.config import ObserverConfig
from ..observers.observe import observe
from ..observers.rates import generator_rates
from ..observers.smooth import smooth
from ..stores.address import Place

Frames = tuple[xr.DataArray, xr.DataArray | None]


@dataclass(frozen=True)
class Demo:
    """How one demonstration simulates, makes frames and their truth, and is analysed."""

    simulate: Callable[..., Any]
    frames: Callable[[Path], Frames]
    truth: Callable[[Path, xr.DataArray], xr.Dataset]
    config: RunConfig
    optimal: bool = False
    """Whether the Kalman filter and the smoother are shown beside the observer."""
    opening: OpenConfig = field(default_factory=OpenConfig)
    """How ``run`` opens the recording."""

    @property
    def again(self) -> RunConfig:
        """Settings with which ``run`` repeats it."""
        return replace(self.config, opening=self.opening)


def demonstrate(
    name: str,
    out: Place | None,
    simulation: dict[str, Any],
    stages: Stages,
    *,
    overwrite: bool = False,
    recording: Path | None = None,
    final: Path | None = None,
    show: Callable[[xr.Dataset, xr.Dataset], None] | None = None,
) -> dict[str, Any]:
    """Run one demonstration and score it; this computes.

    Parameters
    ----------
    name
        ``"sphere"``, ``"circle"`` or ``"melody"``.
    out
        Zarr folder to write, or None to keep nothing.
    simulation
        Options of the simulator.
    stages
        Where to report.
    overwrite
        Replace an earlier result at ``out``.
    recording
        Where to simulate; by default the recording is gone at the end.
    final
        What the result calls its recording.
    show
        Is given the states and the truth before they are scored.

    Returns
    -------
    ``scores`` by estimate, ``n_frames``, ``seconds`` by stage, ``settings``.
    """
    demo = DEMOS[name]
    with _scratch() as scratch, writing(out or scratch / "result.zarr", overwrite=overwrite) as folder:
        with stages("simulate"):
            stages.report("simulate", 0, 1)
            recording = recording or scratch / "recording.zarr"
            settings = dict(demo.simulate(recording, **simulation).attrs)
            stages.report("simulate", 1, 1)
        with reaching([recording], folder):
            frames, covariance = demo.frames(recording)
            origin: dict[str, Any] = {} if final is None else {"source_paths": [str(final.absolute())]}
            if origin and covariance is None:  # which no command can be given
                origin["settings"] = demo.again.to_json()
            plain = {**demo.config.flat(), **{f"simulation_{k}": v for k, v in settings.items()}}
            start(folder, {"demo": name, **plain, **origin})
            stored, embedding, state = analyse(folder, frames, demo.config, stages, covariance)
            with stages("scores"):
                stages.report("scores", 0, 1)
                known = demo.truth(recording, stored)
                if show is not None:
                    show(state.load(), known)
                # In its own order: a folder lists its members in any.
                truth = write_group(folder, "truth", known).load()[list(known.data_vars)]
                result = _score(name, stored, embedding.load(), state.load(), truth, settings)
                stages.report("scores", 1, 1)
    return {
        "scores": result.pop("scores"),
        **result,
        "n_frames": stored.sizes["frame"],
        "seconds": stages.seconds,
        "settings": {"demo": name, **demo.config.flat(), **settings},
    }


def _score(
    name: str,
    frames: xr.DataArray,
    embedding: xr.Dataset,
    state: xr.Dataset,
    truth: xr.Dataset,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """Observer, optimal filters and baselines against the truth."""
    estimates = {"observer": state["state"], **(_optimal(embedding, frames) if DEMOS[name].optimal else {})}
    estimates |= baselines(embedding, frames, float(state.attrs["gamma"]))
    table = scores(estimates, as_components(truth))
    rows: dict[str, dict[str, Any]] = {
        estimate: {str(k): _plain(v.sel(estimate=estimate).values) for k, v in table.data_vars.items()}
        for estimate in estimates
    }
    for label in (variable for variable in truth.data_vars if truth[variable].dtype.kind == "i"):
        accuracy = class_scores(estimates, truth[label])["balanced_accuracy"]
        for estimate in estimates:
            rows[estimate][f"{label}_accuracy"] = round(float(accuracy.sel(estimate=estimate)), 4)
    result: dict[str, Any] = {"scores": rows, "components": [str(c) for c in table["component"].values]}
    if name == "circle":
        rates = generator_rates(embedding, settings["covariance_duration"])
        result["generator_rates"] = rates.values.round(4).tolist()
    return result


def _optimal(embedding: xr.Dataset, frames: xr.DataArray) -> dict[str, xr.DataArray]:
    """Kalman filter and smoother with dynamics and noise from the frames."""
    learnt = calibrate(embedding)
    return {
        "kalman": observe(learnt, frames, gain="kalman")["state"].compute(),
        "smoother": smooth(learnt, frames)["state"].compute(),
    }


def _plain(values: NDArray[np.float64]) -> list[float | None]:
    """Rounded numbers; None where there is none (JSON has no infinity), as for a truth that never changes."""
    return [float(value) if np.isfinite(value) else None for value in values.round(4)]


def as_components(truth: xr.Dataset) -> xr.DataArray:
    """All truth as numbers along one dimension; what is unknown (negative class) is NaN."""
    columns, names = [], []
    for name, values in truth.data_vars.items():
        numbers = values.astype(float) if values.dtype.kind == "f" else values.where(values >= 0)
        flat = numbers.values.reshape(len(numbers), -1)
        columns.append(flat)
        names += [str(c) for c in values["component"].values] if "component" in values.dims else [str(name)]
    return xr.DataArray(np.concatenate(columns, axis=1), dims=("frame", "component"), coords={"component": names})


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder that is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="manifold-observer-") as folder:
        yield Path(folder)


def _recording(path: Path) -> xr.DataArray:
    """A simulated recording, lazily in Dask chunks."""
    recording = open_simulation(path)["recording"]
    return recording.chunk(recording.encoding["preferred_chunks"])


_SPHERE_FRAME = 60
_MELODY_FRAME = "23ms"


def sphere_frames(path: Path) -> Frames:
    """Histogram frames of 60 samples, as in the paper; no covariances are given."""
    return histogram(_recording(path), frame=_SPHERE_FRAME), None


def sphere_truth(path: Path, frames: xr.DataArray) -> xr.Dataset:
    """Mean angles over every frame."""
    angle = open_simulation(path)["angle"][: frames.sizes["frame"] * _SPHERE_FRAME]
    mean = angle.coarsen(time=_SPHERE_FRAME).mean().rename(time="frame").drop_vars("frame", errors="ignore")
    return xr.Dataset({"angle": mean.assign_attrs(units="rad", long_name="true hidden angle, mean over the frame")})


def circle_frames(path: Path) -> Frames:
    """Features of the bursts and their covariances, lazily."""
    dataset = open_simulation(path).chunk()
    frames = dataset["frames"].assign_attrs(features="burst means")
    return frames.drop_vars("feature", errors="ignore"), dataset["covariance"].drop_vars("feature", errors="ignore")


def _circle_truth(path: Path, frames: xr.DataArray) -> xr.Dataset:
    return open_simulation(path)[["angle"]]


def _melody_frames(path: Path) -> Frames:
    return stft(_recording(path), frame=_MELODY_FRAME), None


def _melody_truth(path: Path, frames: xr.DataArray) -> xr.Dataset:
    """Note and instrument at the centre of every frame, -1 in silence."""
    pitch, instrument = label_frames(open_simulation(path), frames["time"].values)
    return xr.Dataset(
        {
            "pitch": ("frame", pitch.astype(np.int64), {"units": "1", "long_name": "MIDI pitch, -1 for silence"}),
            "instrument": ("frame", instrument.astype(np.int64), {"units": "1", "long_name": "-1 for silence"}),
        }
    )


DEMOS = {
    "sphere": Demo(
        write_sphere,
        sphere_frames,
        sphere_truth,
        RunConfig(FeatureConfig("histogram", frame=_SPHERE_FRAME), embedding=EmbedConfig(preset="paper", n_modes=4)),
        optimal=True,
    ),
    "circle": Demo(
        write_circle,
        circle_frames,
        _circle_truth,
        RunConfig(
            FeatureConfig("identity"), embedding=EmbedConfig(preset="paper", n_modes=4, rank=1, epsilon_factor=0.16)
        ),
        opening=OpenConfig(variable="frames", time_dim="frame"),
    ),
    "melody": Demo(
        write_melody,
        _melody_frames,
        _melody_truth,
        RunConfig(
            FeatureConfig("stft", frame=_MELODY_FRAME),
            embedding=EmbedConfig(preset="paper", n_modes=4),
            observer=ObserverConfig(gamma=0.1),
        ),
    ),
}
