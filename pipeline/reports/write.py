"""Write a report of a result: one page that opens anywhere."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from manifold_observer.tasks import atomic

from ..frames.label_files import label_frames, labels_of
from ..graph.progress import or_watched
from ..jobs.load import load
from ..jobs.records import recalled
from ..plot.series import times_of
from ..stores.address import Given, place
from . import rivals, states, words
from .data import time_axis
from .glance import glance
from .html import page_html
from .panels import Page, Section
from .places import check_report
from .shown import Shown

# Parts of a page that take long: comparison, recording, states over time, maps.
_PARTS = 4


def report(
    result: Given | xr.DataTree,
    path: str | os.PathLike[str],
    *,
    labels: str | os.PathLike[str] | xr.DataArray | None = None,
    recordings: Sequence[Given] | None = None,
    label_column: str | None = None,
    record: Mapping[str, Any] | None = None,
) -> Path:
    """Write a page that shows a result, in one file without a network; this computes.

    Parameters
    ----------
    result
        Folder that :func:`run` wrote, or the tree that it or :func:`load` gave.
    path
        HTML file to write. An earlier report is replaced, nothing else is.
    labels
        A file of labels, as for :func:`open_labels`, or an array along ``frame``. Labels that the frames carry are
        shown in any case.
    recordings
        Where the recordings are, if not where they were when the result was made.
    label_column
        Column that holds the labels, for files of labels with several.
    record
        What is known of the run besides its result: ``seconds`` of each stage, and ``warnings``; by default what this
        machine remembers of it, where ``result`` is a folder.

    Returns
    -------
    The path of the page.

    Raises
    ------
    ValueError, OSError
        There is no complete result, something else lies at ``path``, or the labels do not fit.

    Notes
    -----
    At most 1 GiB of memory, whatever the number of frames: lines show the least and largest of some frames each, maps
    10,000 frames, and diffusion maps and PCA are compared on at most 20,000.

    Examples
    --------
    >>> import tempfile
    >>> import manifold_observer.pipeline as mo
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "walk.npy", np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=0))
    >>> config = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
    >>> result = mo.run([folder / "walk.npy"], folder / "walk.zarr", config)
    >>> report(result, folder / "walk.html").name
    'walk.html'
    """
    target = Path(path)
    check_report(target)
    shown = _shown(result, recordings, record)
    page = _page(shown, _labels(shown, labels, label_column))
    atomic.write(target, page.encode())
    return target


def _shown(result: Given | xr.DataTree, recordings: Sequence[Given] | None, record: Mapping[str, Any] | None) -> Shown:
    """A result with what there is to know about it."""
    tree = result if isinstance(result, xr.DataTree) else load(result)
    name = str(tree.name or "result.zarr") if isinstance(result, xr.DataTree) else str(result)
    sources = tree.attrs.get("source_paths", tree.attrs.get("sources", []))
    where = recordings if recordings is not None else [str(one) for one in np.atleast_1d(sources)]
    first = next(group for group in ("state", "frames", "embedding") if group in tree.children)
    axis = time_axis(times_of(tree[first].to_dataset()))
    known = record if record is not None else _recalled(result)
    return Shown(tree, name, axis, tuple(str(place(one)) for one in where), dict(known))


def _recalled(result: Given | xr.DataTree) -> Mapping[str, Any]:
    """What this machine remembers of the run."""
    return {} if isinstance(result, xr.DataTree) else recalled(place(result))


def _labels(shown: Shown, labels: Any, column: str | None) -> dict[str, xr.DataArray]:
    """Labels of the frames: those that they carry, and those that are given."""
    state = shown.state
    if labels is None:
        return states.labels_of(state, {})
    if isinstance(labels, xr.DataArray):
        return states.labels_of(state, {str(labels.name or "label"): labels})
    frames = shown.tree["frames"].to_dataset()["frames"]
    found = label_frames(frames, labels_of(labels, shown.recordings[0] if shown.recordings else "", column))
    return states.labels_of(state, {"label": found["label"]})


def _page(shown: Shown, labels: dict[str, xr.DataArray]) -> str:
    """The page, as text."""
    page, progress = Page(), or_watched()
    at = states.map_rows(shown.n_frames)
    progress("report", 0, _PARTS)
    found = rivals.compared(shown)
    progress("report", 1, _PARTS)
    estimates = {"observer": states.state_at(page, shown, at)}
    page.sections.append(glance(page, shown))
    progress("report", 2, _PARTS)
    page.sections.append(states.over_time(page, shown, labels))
    progress("report", 3, _PARTS)
    if not isinstance(found, str):
        estimates |= rivals.maps(page, found, at)
    page.sections.append(_maps(page, estimates, len(at), shown.n_frames))
    if isinstance(found, str):
        page.sections.append(Section("Beside diffusion maps and smoothed PCA", notes=(found,)))
    else:
        page.sections.append(rivals.beside(page, shown, found, labels))
    page.sections += [words.spectrum(page, shown), words.settings(shown), *words.origin(shown)]
    content = {
        "time": {"start": shown.time.start, "label": shown.time.label},
        "points": states.points(page, shown, labels, at),
        "estimates": estimates,
    }
    progress("report", _PARTS, _PARTS)
    return page_html(Path(shown.name).name, _facts(shown), page, content)


def _maps(page: Page, estimates: dict[str, Any], n: int, of: int) -> Section:
    """The section with maps in three and two dimensions."""
    panels = [page.panel("map3", estimate="observer", title="Observer, three coordinates")]
    panels += [page.panel("map2", estimate=name, title=one["title"]) for name, one in estimates.items()]
    notes = [] if n == of else [f"Shown are {n:,} of {of:,} frames, spread over the recording."]
    return Section("Maps of states", tuple(panels), tuple(notes), side_by_side=True)


def _facts(shown: Shown) -> list[tuple[str, str]]:
    """What is said first."""
    attrs, frames, state = shown.tree.attrs, shown.group("frames"), shown.state
    facts = [("recording", ", ".join(Path(str(one)).name for one in np.atleast_1d(attrs.get("sources", []))))]
    facts.append(("frames", f"{shown.n_frames:,}"))
    if frames is not None:
        facts.append(("features", f"{frames['frames'].sizes['feature']:,} ({attrs.get('features', 'given')})"))
        period = frames["frames"].attrs.get("frame_period")
        facts.append(("frame period", f"{float(period):.4g} s")) if period else None
    facts.append(("states", f"{state.sizes.get('mode', 1)}"))
    return [fact for fact in facts if fact[1]]
