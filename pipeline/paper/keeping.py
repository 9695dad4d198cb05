"""A demonstration that is kept: its recording, result, picture and page, what each score says, and how to go on."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from dask.system import cpu_count

from manifold_observer.datasets.simulators.simulated import open_simulation

from ..jobs.again import run_again
from ..jobs.progress import Stages
from .demo import DEMOS, as_components, demonstrate
from .demo_picture import SAMPLES, Shown
from .painter import painting

_WHAT = {
    "observer": "The observer, which corrects a prediction by each frame",
    "kalman": "The Kalman filter, with dynamics and noise learnt from the frames",
    "smoother": "The smoother, which also uses the frames to come",
    "diffusion_maps": "Diffusion maps, each frame by itself",
    "moving_average_2": "Averages over 2 frames",
    "moving_average_3": "Averages over 3 frames",
    "moving_average_5": "Averages over 5 frames",
    "pca": "Principal components, which are linear",
    "smoothed_pca": "Principal components, smoothed as the observer smooths",
}
_WHY = {
    "circle": "Bursts follow each other by more time than the angle keeps its direction, so that any memory of earlier "
    "frames smears it: what reads each frame by itself is best here. This demonstration is about the rates.",
}
# Differences of correlation that a single simulation does not settle.
_ALIKE = 0.005


def demonstrate_in(name: str, folder: Path, simulation: dict[str, Any], stages: Stages) -> dict[str, Any]:
    """Run one demonstration and keep it in a folder; this computes.

    The folder appears when everything is there.

    Parameters
    ----------
    name
        ``"sphere"``, ``"circle"`` or ``"melody"``.
    folder
        A new or empty one.
    simulation
        Options of the simulator.
    stages
        Where to report.

    Returns
    -------
    What :func:`demonstrate` gave, with ``sentences`` about the scores, what is ``kept`` where, and commands that come
    ``next``.

    Raises
    ------
    ValueError, OSError
        There is something in the folder, or the simulation is too short.
    """
    _check_new(folder)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.absolute().parent) as scratch:
        made = Path(scratch, "made")
        made.mkdir()
        recording, picture = made / "recording.zarr", made / "picture.png"
        with painting(picture, cpu_count()) as painter:
            result = demonstrate(
                name,
                made / "result.zarr",
                simulation,
                stages,
                recording=recording,
                final=folder / recording.name,
                show=lambda state, truth: painter.begin(_shown(name, recording, state, truth)),
            )
            pictured = painter.end()
        made.chmod(0o777 & ~_umask())
        os.replace(made, folder)
    kept = {"recording": "recording.zarr", "result": "result.zarr", "picture": picture.name if pictured else None}
    return {
        **result,
        "sentences": [*in_sentences(result["scores"], result["components"]), *filter(None, [_WHY.get(name)])],
        "kept": {what: path and str(folder / path) for what, path in kept.items()},
        "next": _next(name, folder),
    }


def in_sentences(scores: dict[str, Any], components: list[str]) -> list[str]:
    r"""A sentence for each row of the scores: what the estimate is, how well it follows the truth, and beside which.

    Examples
    --------
    >>> rows = {"observer": {"correlation_held_out": [0.9]}, "pca": {"correlation_held_out": [0.7]}}
    >>> print(*in_sentences(rows, ["angle"]), sep="\n")
    The observer, which corrects a prediction by each frame: r = 0.90 with the angle on held-out blocks, best of all.
    Principal components, which are linear: r = 0.70, 0.20 less than the observer.
    """
    means = {name: _mean(row["correlation_held_out"]) for name, row in scores.items()}
    best = max(means.values())
    truth = " and ".join(components)
    lines: list[str] = []
    for name, mean in means.items():
        where = f" with the {truth} on held-out blocks" if not lines else ""
        lines.append(f"{_WHAT.get(name, name)}: r = {mean:.2f}{where}, {_beside(name, mean, means['observer'], best)}.")
    return lines


def _beside(name: str, mean: float, observer: float, best: float) -> str:
    """How an estimate stands beside the observer, or the observer beside the best."""
    if name == "observer":
        return "best of all" if mean >= best - _ALIKE else f"{best - mean:.2f} less than the best"
    if abs(mean - observer) < _ALIKE:
        return "as good as the observer here"
    return f"{abs(mean - observer):.2f} {'more' if mean > observer else 'less'} than the observer"


def _mean(values: list[float | None]) -> float:
    """The mean of what is known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else 0.0


def _next(name: str, folder: Path) -> list[str]:
    """Commands that repeat it on the recording that is kept, and look at it."""
    recording, again = str(folder / "recording.zarr"), str(folder / "again.zarr")
    words = run_again([recording], again, DEMOS[name].again)
    return [
        shlex.join(words),
        shlex.join(["manifold-observer", "report", str(folder / "result.zarr"), str(folder / "result.html")]),
    ]


def _shown(name: str, recording: Path, state: xr.Dataset, truth: xr.Dataset) -> Shown:
    """What the picture of a demonstration shows."""
    recorded = open_simulation(recording)["frames" if name == "circle" else "recording"]
    components = as_components(truth)
    label = str(components["component"].values[0]).replace("_", " ")
    states = np.asarray(state["state"].values, float)
    return Shown(name, recorded[:SAMPLES].values, states, components.values[:, 0], label)


def _check_new(folder: Path) -> None:
    """Refuse a place where there is something."""
    if os.path.lexists(folder) and (not folder.is_dir() or folder.is_symlink() or any(folder.iterdir())):
        raise FileExistsError(f"demo: FOLDER must be new or empty; got {folder}. Choose another name.")
    if not folder.absolute().parent.is_dir():
        raise FileNotFoundError(f"demo: {folder.parent} does not exist. Create it first: mkdir -p {folder.parent}")


def _umask() -> int:
    """The mask of new files, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
