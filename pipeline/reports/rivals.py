"""The observer beside diffusion maps and smoothed PCA, on as many frames as cost little."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..comparison.baselines import baselines
from ..comparison.scores import class_scores
from ..frames.dates import in_seconds, is_dated
from ..plot.colours import colouring
from ..plot.series import in_columns, series
from ..plot.style import COLOURS
from .panels import Page, Section
from .shown import Shown

Floats = NDArray[np.float64]

# What a comparison may cost: multiplications of the scatter matrix, and numbers in memory.
_MOST_WORK = 4e10
_MOST_NUMBERS = 2**24
_MOST_FRAMES = 20_000
_MOST_FEATURES = 2_048
_TITLES = {"observer": "Observer", "diffusion_maps": "Diffusion maps", "smoothed_pca": "Smoothed PCA"}


class Compared(NamedTuple):
    """Estimates of the same frames, the first of the recording."""

    estimates: dict[str, Floats]
    n_frames: int


def compared(shown: Shown) -> Compared | str:
    """Estimates of the first frames, as many as cost little, or why there are none."""
    frames, embedding = shown.group("frames"), shown.group("embedding")
    if frames is None or embedding is None or "coordinate" not in embedding:
        return "The result has no frames with an embedding, so that nothing can be compared."
    values = frames["frames"]
    n, p = _affordable(values.sizes["frame"], values.sizes["feature"])
    if n < 2 * embedding.sizes["mode"]:
        return f"The frames have {p:,} features, too many for a principal component analysis within a page's cost."
    first = values[:n].load()
    if is_dated(first):
        first = in_seconds(first)
    small = embedding.drop_vars(["time"], errors="ignore").drop_dims("frame").load()
    small["coordinate"] = ("frame", "mode"), np.zeros((0, embedding.sizes["mode"]))
    try:
        found = baselines(small, first, widths=())
    except (ValueError, KeyError) as error:
        return f"Nothing can be compared: {error}"
    estimates = {
        "observer": in_columns(shown.state["state"][:n]).values.astype(np.float64),
        "diffusion_maps": embedding["coordinate"][:n].values.astype(np.float64),
        "smoothed_pca": found["smoothed_pca"].values,
    }
    return Compared(estimates, n)


def beside(page: Page, shown: Shown, found: Compared, labels: dict[str, xr.DataArray]) -> Section:
    """The section that shows the first coordinate of each over time, and how well each tells the labels."""
    clock = {
        name: shown.state.coords[name][: found.n_frames] for name in ("time", "segment") if name in shown.state.coords
    }
    panels = []
    for (name, values), colour in zip(found.estimates.items(), (COLOURS[0], COLOURS[2], COLOURS[7]), strict=True):
        line = series(xr.DataArray(_scaled(values)[:, :1], dims=("frame", "mode"), coords=clock))
        one = {"name": _TITLES[name], "colour": colour, "t": page.array(shown.time.numbers(line.time), "f8")}
        one["y"] = page.array(line.values[:, 0], "i2")
        title = f"{_TITLES[name]}: first coordinate"
        panels.append(page.panel("lines", title=title, y="deviations", series=[one], height=80))
    notes = [
        "The observer has seen the frames up to each; diffusion maps have seen all of them; PCA is smoothed by the "
        "observer's own recursion. Each is divided by its standard deviation."
    ]
    if found.n_frames < shown.n_frames:
        notes.append(f"Compared are the first {found.n_frames:,} of {shown.n_frames:,} frames, to bound the cost.")
    return Section(
        "Beside diffusion maps and smoothed PCA", tuple(panels), tuple(notes), table=_told(shown, found, labels)
    )


def maps(page: Page, found: Compared, at: NDArray[np.int64]) -> dict[str, dict[str, Any]]:
    """The other estimates as maps have them; the frames beyond those that are compared are left out."""
    kept = at[at < found.n_frames]
    listed = {}
    for name, values in found.estimates.items():
        if name != "observer":
            columns = np.full((len(at), values.shape[1]), np.nan)
            columns[: len(kept)] = values[kept]
            listed[name] = {
                "title": _TITLES[name],
                "names": [f"coordinate {k + 1}" for k in range(values.shape[1])],
                "columns": [page.array(column) for column in columns.T],
            }
    return listed


def _affordable(n: int, p: int) -> tuple[int, int]:
    """How many frames of so many features are compared."""
    if p > _MOST_FEATURES:
        return 0, p
    return min(n, _MOST_FRAMES, _MOST_NUMBERS // p, int(_MOST_WORK / p**2)), p


def _scaled(values: Floats) -> Floats:
    """Centred, in deviations."""
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _told(shown: Shown, found: Compared, labels: dict[str, xr.DataArray]) -> tuple[tuple[str, ...], ...]:
    """How well nearest neighbours in held-out stretches read each label from each estimate."""
    rows = []
    for name, values in labels.items():
        coded = colouring(shown.state, values.rename(name))
        if coded.classes is None:
            continue
        codes = _frequent(np.asarray(coded.values)[: found.n_frames])
        n_classes = len(np.unique(codes[codes >= 0]))
        if n_classes < 2:
            continue
        arrays = {key: xr.DataArray(one, dims=("frame", "mode")) for key, one in found.estimates.items()}
        scored = class_scores(arrays, xr.DataArray(codes, dims="frame")).balanced_accuracy.values
        rows.append((name, *(f"{share:.2f}" for share in scored), f"{1 / n_classes:.2f}"))
    head = ("Label read from", *(_TITLES[key] for key in found.estimates), "chance")
    return (head, *rows) if rows else ()


def _frequent(codes: NDArray[np.int64], least: int = 10) -> NDArray[np.int64]:
    """Codes, with -1 for classes of few frames."""
    names, numbers = np.unique(codes, return_counts=True)
    return np.where(np.isin(codes, names[numbers >= least]), codes, -1)
