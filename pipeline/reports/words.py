"""What a report says in words: the spectrum, how settings were chosen, warnings, versions, cost, the command."""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import xarray as xr

from ..jobs.again import differing, run_again
from ..jobs.config import RunConfig
from .panels import Page, Section
from .shown import Shown

_LIBRARIES = ("manifold-observer", "numpy", "scipy", "xarray", "dask", "zarr")
_CHOSEN = (
    ("features", "condition_why", "{}"),
    ("window of the local covariances", "window", "{} frames"),
    ("local covariances shrunk towards", "shrinkage_target", "{}"),
    ("by", "shrinkage_intensity", "{:.0%}"),
    ("scale epsilon", "epsilon", "{}"),
    ("method", "method", "{}"),
    ("features foretold a few frames later", "foretold", "{:.1%}"),
    ("in random order at most", "foretold_by_chance", "{:.1%}"),
    ("dynamics of the observer", "dynamics", "{}"),
)
# Above it, an eigenpair is no answer.
_LARGE_RESIDUAL = 1e-2
_FROZEN = 0.98


def spectrum(page: Page, shown: Shown) -> Section:
    """The section that shows eigenvalues, their gap and their residuals."""
    embedding = shown.group("embedding")
    if embedding is None or "eigenvalue" not in embedding:
        return Section("Spectrum", notes=("The result has no eigenvalues.",))
    kept = embedding["eigenvalue"].values.astype(np.float64)
    values = embedding["spectrum"].values.astype(np.float64) if "spectrum" in embedding else kept
    values = values if len(values) >= len(kept) else kept
    residual = embedding["residual"].values.astype(np.float64) if "residual" in embedding else np.zeros(0)
    numbers = {"x": "number of the eigenvalue", "kept": len(kept)}
    gap = {"gap": int(np.argmax(-np.diff(values)))} if len(values) > 1 else {}
    panels = [page.panel("stems", title="Eigenvalues", values=_plain(values), y="eigenvalue μ", **numbers, **gap)]
    notes = [
        f"{len(kept)} of {len(values)} eigenvalues that were looked at are kept; the trivial one (1) is left out. "
        + gap_in_words(values)
    ]
    if len(residual):
        of = {"values": _plain(residual), "y": "residual", "log": True}
        panels.append(page.panel("stems", title="Residuals of the eigenpairs", **of, **numbers))
        notes.append(f"Residuals |S v − μ v| certify the eigenpairs; the largest is {residual.max():.1e}.")
    return Section("Spectrum", tuple(panels), tuple(notes), side_by_side=True)


def gap_in_words(values: Any) -> str:
    """Where the largest gap between neighbouring eigenvalues is.

    Examples
    --------
    >>> gap_in_words(np.array([0.9, 0.8, 0.2, 0.1]))
    'The largest gap, 0.600, lies after eigenvalue 2.'
    """
    if len(values) < 2:
        return ""
    gaps = -np.diff(values)
    k = int(np.argmax(gaps))
    return f"The largest gap, {gaps[k]:.3f}, lies after eigenvalue {k + 1}."


def settings(shown: Shown) -> Section:
    """The section that tells how settings were chosen."""
    embedding = shown.group("embedding")
    attrs = {**(dict(embedding.attrs) if embedding is not None else {})}
    rows = [(what, how.format(_number(attrs[name]))) for what, name, how in _CHOSEN if name in attrs]
    given = _given(shown.tree.attrs)
    rows += [(f"given: {name}", text) for name, text in given]
    note = "Settings that are not given here have their defaults or were chosen from the frames."
    return Section("How settings were chosen", notes=(note,), table=(("setting", "value"), *rows))


def warnings_in_words(shown: Shown) -> tuple[str, ...]:
    """What the run warned of, and what its numbers give reason to say."""
    return (*map(str, shown.record.get("warnings", ())), *_noticed(shown))


def _noticed(shown: Shown) -> Iterator[str]:
    """What the numbers of a result give reason to say."""
    embedding, state = shown.group("embedding"), shown.state
    for note in np.atleast_1d(shown.tree.attrs.get("opened", [])):
        yield f"As it was opened: {note}"
    if (residual := _largest(embedding, "residual")) > _LARGE_RESIDUAL:
        yield f"The largest residual of an eigenpair is {residual:.1e}: coordinates of that mode are not certain."
    if (eigenvalue := _largest(embedding, "eigenvalue")) > _FROZEN:
        yield (
            f"The largest eigenvalue is {eigenvalue:.3f}: the first coordinate hardly decays from frame to frame, as "
            "where some frames are far from all others."
        )
    attrs = {} if embedding is None else embedding.attrs
    if float(attrs.get("foretold", 1.0)) <= 2 * float(attrs.get("foretold_by_chance", 0.0)):
        yield "The coordinates foretell hardly more of the features than chance: there may be no slow state to find."
    if "far" in state and (share := float(state["far"].mean())) > 0:
        yield f"{share:.1%} of the frames are far from all embedded ones."


def _largest(embedding: xr.Dataset | None, name: str) -> float:
    """The largest of some numbers of an embedding; 0 where there are none."""
    return 0.0 if embedding is None or name not in embedding else float(embedding[name].max())


def origin(shown: Shown) -> list[Section]:
    """The sections on warnings, cost, versions and the command."""
    record = shown.record
    seconds = [(str(name), f"{float(value):.1f} s") for name, value in dict(record.get("seconds", {})).items()]
    costs = Section(
        "Cost of each stage",
        notes=() if seconds else ("Not known: costs are kept on the machine that ran it, and this is another one.",),
        table=(("stage", "time"), *seconds) if seconds else (),
    )
    told = warnings_in_words(shown)
    return [
        Section("Warnings", notes=told or ("None.",)),
        costs,
        Section("Versions", table=(("program", "version"), *_versions(shown))),
        Section("The command that repeats it", code=command(shown)),
    ]


def command(shown: Shown) -> str:
    """The command that makes the result again."""
    attrs = shown.tree.attrs
    if "settings" not in attrs:
        return ""
    sources = [str(one) for one in np.atleast_1d(attrs.get("source_paths", attrs.get("sources", [])))]
    return shlex.join(run_again(sources, shown.name, RunConfig.from_json(str(attrs["settings"]))))


def _given(attrs: Any) -> list[tuple[str, str]]:
    """Settings that the user gave."""
    if "settings" not in attrs:
        return []
    return [(name, json.dumps(value)) for name, value in differing(RunConfig.from_json(str(attrs["settings"])))]


def _versions(shown: Shown) -> list[tuple[str, str]]:
    """Versions that made the result, and those that made the page."""
    rows = [("manifold-observer, of the result", str(shown.tree.attrs.get("manifold_observer", "unknown")))]
    rows += [(f"{name}, of this page", _version(name)) for name in _LIBRARIES]
    return [*rows, ("Python, of this page", platform.python_version())]


def _version(name: str) -> str:
    """The version of a library here."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def _number(value: Any) -> Any:
    """An attribute as Python has it."""
    return value.item() if hasattr(value, "item") and np.ndim(value) == 0 else value


def _plain(values: Any) -> list[float]:
    """Numbers as JSON has them."""
    return [float(value) for value in values if np.isfinite(value)]
