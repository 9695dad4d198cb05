"""Recordings read by a map: their states in its coordinates, and how far they lie outside of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from manifold_observer.tasks.corpus import outside as tasks

from ..frames.alike import frames_like
from ..frames.labels import MAKE_FRAMES
from ..frames.variables import annotate
from ..graph.warn import warn
from ..jobs.load import load
from ..jobs.progress import Stages
from ..jobs.reach import reaching
from ..jobs.run import Given, features_of, notes_of, store_frames
from ..jobs.store import start, write_group, writing
from ..observers.coordinates import place_coordinates
from ..stores.address import Place, full_name, place
from .outside import Outside, in_words, outside_of
from .sampling import prepared
from .shared_map import SharedMap
from .summary import began, summary_of


def apply_map(
    shared: SharedMap, recording: Given, out: Given, *, overwrite: bool = False, stages: Stages | None = None
) -> xr.DataTree:
    """Read a recording by a map, and store its states in the coordinates of the map; this computes.

    Recordings do not depend on one another: in any order, any number at a time, and whether or not they were in the
    sample, the same recording has the same bits.

    Parameters
    ----------
    shared
        As :func:`fit_map` or :func:`read_map` gave it.
    recording
        File or address, with the sensors of the map.
    out
        Zarr folder to write: groups ``/frames``, ``/state``, ``/summary`` (what :func:`drift` goes by), and
        ``/smoothed`` if the map's settings ask for it.
    overwrite
        Replace an earlier result at ``out``.
    stages
        Where to report progress and seconds.

    Returns
    -------
    The stored result, opened lazily; ``outside(frame)`` and ``nearest(frame)`` in ``/state`` say which frames lie
    outside the map, and attributes by which map they were read, and how much of the recording lies outside.

    Raises
    ------
    ValueError, OSError
        The recording cannot be opened, or has other sensors; nothing is left at ``out``.

    Warns
    -----
    UserWarning
        More of the recording lies outside than the map allows.

    Examples
    --------
    >>> import tempfile
    >>> import manifold_observer.pipeline as mo
    >>> folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
    >>> for name in ("a", "b"):
    ...     np.save(folder / f"{name}.npy", np.sin(np.arange(400)[:, None] / [5, 7, 9]) + rng.normal(size=(400, 3)) / 9)
    >>> config = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
    >>> shared = mo.fit_map(sorted(folder.glob("*.npy")), folder / "map.zarr", config, mo.MapConfig(frames=400))
    >>> result = apply_map(shared, folder / "b.npy", folder / "b.zarr")
    >>> result["state/state"].sizes, result.attrs["map_version"]
    (Frozen({'frame': 400, 'mode': 4}), 1)
    """
    stages, path, target = stages or Stages(), place(recording), place(out)
    with writing(target, [path, shared.path], overwrite=overwrite) as folder, reaching([path], folder):
        with stages("features"):
            opened = prepared(path, shared.config, shared.sensors, shared.how)
            frames = frames_like("map: frames", shared.embedding, features_of([opened], shared.config), MAKE_FRAMES)
            attrs = _origin(shared, path, opened)
            start(folder, attrs)
        stored = store_frames(folder, frames, stages)
        with stages("observe"):
            found, attrs = _observe(shared, folder, stored, attrs)
            stages.report("observer", 1, 1)
        start(folder, attrs)
    if (sentence := in_words(path.stem, found)) is not None:
        warn(f"map: {sentence}")
    return load(target)


def _origin(shared: SharedMap, path: Place, opened: xr.DataArray) -> dict[str, Any]:
    """What a result is made from, and by which map."""
    notes = notes_of([opened])
    return {
        "sources": [str(path)],
        "source_paths": [full_name(path)],
        "source_samples": [opened.sizes["time"]],
        **({"opened": notes} if notes else {}),
        "settings": shared.config.to_json(),
        "map": full_name(shared.path),
        "map_version": shared.version,
        "map_fingerprint": shared.fingerprint,
    }


def _observe(
    shared: SharedMap, folder: Place, frames: xr.DataArray, attrs: dict[str, Any]
) -> tuple[Outside, dict[str, Any]]:
    """Store states and a summary; how far the recording lies outside, and what the root has to say."""
    placed = place_coordinates(shared.embedding, frames, centred=shared.how.centred, smoothed=shared.config.smooth)
    nearest = placed.read.nearest
    relative = np.minimum(np.nan_to_num(nearest, nan=np.inf) / shared.reach.median, np.finfo(np.float32).max)
    lie_outside = tasks.outside(nearest, shared.reach.limit)
    state = placed.state.assign(outside=("frame", lie_outside), nearest=("frame", relative))
    stored = write_group(folder, "state", annotate(state))
    if placed.smoothed is not None:
        write_group(folder, "smoothed", placed.smoothed)
    summary = summary_of(shared.embedding, frames, placed.read.values, stored["state"])
    write_group(folder, "summary", summary)
    sampled = set(attrs["source_paths"]) <= set(shared.sources)
    found = outside_of(nearest, shared.reach, shared.how, sampled=sampled)
    return found, attrs | found.attrs() | began(frames) | {"foretold": float(summary.attrs["foretold"])}
