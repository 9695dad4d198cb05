"""Pictures of the pages: ``python docs/draw.py`` simulates, computes and draws them into docs/pictures."""

import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import manifold_observer.pipeline as mo
from manifold_observer.datasets.simulators.simulated import open_simulation
from manifold_observer.datasets.simulators.sphere import write_sphere

PICTURES = Path(__file__).parent / "pictures"
# Colours that the colour-blind tell apart (Okabe and Ito), and a map that goes round.
INK, BLUE, GREY = "#222222", "#0072b2", "#bbbbbb"


def sphere(path: Path) -> None:
    """What the demonstration gets, what it finds, and the truth beside it."""
    with tempfile.TemporaryDirectory() as folder:
        write_sphere(Path(folder, "sphere.zarr"), n_samples=240_000, drift_rate=0.008, noise=0.1, seed=1)
        simulated = open_simulation(Path(folder, "sphere.zarr")).load()
    recording, angle = simulated["recording"], simulated["angle"]
    frames = mo.histogram(recording, frame=60)
    embedding = mo.embed(frames)
    _draw_sphere(path, recording, mo.smooth(embedding, frames)["state"].values, _angles(angle, frames))


def _angles(angle: xr.DataArray, frames: xr.DataArray) -> np.ndarray:
    """The hidden angles in the middle of each frame, standardised."""
    middle = angle.values[30::60][: frames.sizes["frame"]]
    return (middle - middle.mean(axis=0)) / middle.std(axis=0)


def _draw_sphere(path: Path, recording: xr.DataArray, state: np.ndarray, angles: np.ndarray) -> None:
    """Three panels: counts, the state coloured by the hidden angle, and a reading of it over time."""
    figure = Figure(figsize=(11, 3.3), layout="constrained")
    counts, found, read = figure.subplots(1, 3, width_ratios=[1, 0.9, 1.5])
    for channel in range(3):
        counts.plot(recording.values[:1200, channel] + 9 * channel, color=INK, linewidth=0.5)
    counts.set(title="what is recorded: counts of 3 sensors", xlabel="sample", yticks=[])
    dots = found.scatter(state[:, 0], state[:, 1], c=angles[:, 0], s=3, cmap="viridis", linewidths=0, rasterized=True)
    found.set(title="what is found, without labels", xlabel="state, mode 1", ylabel="mode 2", xticks=[], yticks=[])
    figure.colorbar(dots, ax=found, label="hidden angle", ticks=[])
    inputs = np.column_stack([np.ones(len(state)), state])
    guess = inputs @ np.linalg.lstsq(inputs, angles[:, 0], rcond=None)[0]
    shown = slice(0, 800)
    read.plot(angles[shown, 0], color=GREY, linewidth=3, label="hidden angle")
    read.plot(guess[shown], color=BLUE, linewidth=1.2, label="read from the state")
    read.set(
        title=f"the angle, read linearly: r = {np.corrcoef(guess, angles[:, 0])[0, 1]:.2f}", xlabel="frame", yticks=[]
    )
    read.legend(loc="upper right", fontsize=8, frameon=False, ncols=2)
    for axes in (counts, found, read):
        axes.spines[["top", "right"]].set_visible(False)
        axes.title.set(fontsize=10, horizontalalignment="left", x=0)
    figure.savefig(path, dpi=110, facecolor="white")


if __name__ == "__main__":
    mpl.rcParams["font.size"] = 9
    PICTURES.mkdir(exist_ok=True)
    sphere(PICTURES / "sphere.png")
