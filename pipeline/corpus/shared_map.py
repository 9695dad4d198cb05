"""One map for many recordings: fitted on a sample of them, stored, and read again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from manifold_observer.tasks.corpus.outside import Reach
from manifold_observer.tasks.engine.forms import cost

from ..embedding.embed import embed
from ..engine.config import USUAL_AXES, EmbedConfig
from ..engine.cuts import EXACT_MEDIAN_FRAMES
from ..engine.memory import EXACT_FRAMES
from ..jobs.config import RunConfig
from ..jobs.manifest import check_whole
from ..jobs.progress import Stages
from ..jobs.reach import reaching
from ..jobs.run import Given, embedding_in_seconds, store_frames
from ..jobs.store import open_group, passes_beside, start, write_group, writing
from ..observers.bank import learn_bank
from ..observers.certainty import learn_certainty
from ..stores.address import Place, full_name, place
from .map_config import MapConfig
from .maps import request_of
from .members import Sensors, in_order_of_name
from .outside import learn_reach
from .refit import oriented
from .sampling import Sample, draw

_KIND = "map"
# What the states of every recording depend on.
_NUMBERS = ("coordinate", "principal", "axes", "mean_covariance", "bank_weights", "transitions", "feature_mean", "lift")


@dataclass(frozen=True)
class SharedMap:
    """A map as it is stored: an embedding of a sample of many recordings, and how others are read by it."""

    path: Place
    embedding: xr.Dataset
    """With its frames, their ``recording``, and what observers learnt of them."""
    recordings: xr.Dataset
    """By ``recording``: its name, frames, frames in the sample, share outside and distance when it was held out."""
    config: RunConfig
    """How recordings are opened, framed and observed, with the bins that they share."""
    how: MapConfig
    """How the map was made."""
    sensors: Sensors
    """Channels and units of the recordings."""
    refused: dict[str, str]
    """Recordings that could not be sampled, and why."""
    reach: Reach
    """How far frames lie from it that it was fitted without."""
    sources: tuple[str, ...]
    """Places of the recordings that it was fitted on, or could have been."""
    version: int
    """1, and one more with every refit."""
    fingerprint: str
    """Of everything that the states of a recording depend on."""
    alignment: tuple[float, ...] = ()
    """Correlations of its coordinates with those of the map before, where it was fitted with ``earlier=``."""


def fit_map(
    recordings: Sequence[Given],
    out: Given,
    config: RunConfig,
    how: MapConfig | None = None,
    *,
    earlier: SharedMap | None = None,
    overwrite: bool = False,
    stages: Stages | None = None,
) -> SharedMap:
    """Fit one embedding on a sample of many recordings, so that the states of all of them share coordinates.

    This computes. The sample holds stretches of consecutive frames from every recording. The map is written atomically.

    Parameters
    ----------
    recordings
        Files or addresses, in any order.
    out
        Zarr folder (or address) of the map: groups ``/frames`` (the sample), ``/embedding`` and ``/recordings``.
    config
        How recordings are opened, what describes a frame, how frames are embedded and observed.
    how
        What the map is fitted on, and when frames count as outside of it.
    earlier
        A map that this one replaces: coordinates come in its order and with its signs as far as they can, and the
        version is one more.
    overwrite
        Replace an earlier map at ``out``.
    stages
        Where to report progress and seconds.

    Returns
    -------
    The map, for :func:`apply_map`. A recording that cannot be read, or whose sensors differ from most, is among its
    ``refused`` and costs no other.

    Raises
    ------
    ValueError, OSError
        No recording can be read; the sample cannot be embedded; something else is at ``out``.

    Examples
    --------
    >>> import tempfile
    >>> import manifold_observer.pipeline as mo
    >>> folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
    >>> for name in ("a", "b"):
    ...     np.save(folder / f"{name}.npy", rng.normal(size=(300, 3)).cumsum(axis=0))
    >>> config = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
    >>> shared = fit_map(sorted(folder.glob("*.npy")), folder / "map.zarr", config, mo.MapConfig(frames=300))
    >>> shared.recordings.n_sampled.values
    array([150, 150])
    """
    how, stages, paths = how or MapConfig(), stages or Stages(), in_order_of_name(recordings)
    _check_readable(config)
    with writing(place(out), paths, overwrite=overwrite) as folder, reaching(paths, folder):
        with stages("features"):
            sample = draw(paths, config, how, stages.report)
        attrs = _origin(sample, how, earlier) | {"map_request": request_of(config, how)}
        start(folder, attrs)
        frames = store_frames(folder, sample.frames, stages)
        with stages("embed"):
            embedding, kept = _embedded(frames, sample.config, how, earlier, stages, passes_beside(folder))
            attrs |= kept
        with stages("outside"):
            attrs |= _store(folder, embedding, sample, how)
        start(folder, attrs)
    return read_map(out)


def read_map(out: Given) -> SharedMap:
    """Read a map that :func:`fit_map` stored.

    Parameters
    ----------
    out
        Where it was written to.

    Returns
    -------
    The map.

    Raises
    ------
    FileNotFoundError, ValueError
        There is no map at ``out``, or it is damaged.

    Examples
    --------
    >>> read_map(Path("nowhere.zarr"))
    Traceback (most recent call last):
    FileNotFoundError: map: nowhere.zarr does not exist. Check the path.
    """
    target = place(out)
    attrs = check_whole("map", target)
    if attrs.get("kind") != _KIND:
        raise ValueError(f"map: {out} must be a map; got another result. Make one with mo.fit_map.")
    table = open_group(target, "recordings").load()
    return SharedMap(
        target,
        embedding_in_seconds(target).load(),
        table,
        RunConfig.from_json(attrs["settings"]),
        MapConfig.from_attrs(attrs),
        Sensors(*json.loads(attrs["sensors"])),
        json.loads(attrs["refused"]),
        Reach(
            float(attrs["outside_limit"]),
            float(attrs["outside_median"]),
            table["held_out_share"].values,
            table["held_out_ratio"].values,
        ),
        tuple(attrs["source_paths"]),
        int(attrs["map_version"]),
        str(attrs["map_fingerprint"]),
        tuple(np.atleast_1d(attrs.get("map_alignment", ()))),
    )


def _check_readable(config: RunConfig) -> None:
    """Only coordinates can be read of any frame."""
    reads = config.embedding.resolved().shrinkage != "none" and config.embedding.epsilon != "local"
    if not reads or config.observer.resolved(coordinates=reads).reading != "coordinates":
        raise ValueError(
            "map: states must be read by coordinates; got settings that read them otherwise (preset='paper', rank, "
            "regularization, epsilon='local', or an observer's gain). Leave them out, or run every recording by itself."
        )


def _origin(sample: Sample, how: MapConfig, earlier: SharedMap | None) -> dict[str, Any]:
    """Attributes of a map: what it was made from, and how."""
    return {
        "kind": _KIND,
        "settings": sample.config.to_json(),
        "sensors": json.dumps(list(sample.sensors)),
        "refused": json.dumps(sample.refused),
        "source_paths": [full_name(path) for path in sample.paths],
        "map_version": 1 if earlier is None else earlier.version + 1,
        **({} if earlier is None else {"map_earlier": earlier.fingerprint}),
        **how.attrs(),
    }


def _embedded(
    frames: xr.DataArray,
    config: RunConfig,
    how: MapConfig,
    earlier: SharedMap | None,
    stages: Stages,
    passes: Path,
) -> tuple[xr.Dataset, dict[str, Any]]:
    """The embedding of a sample, with what observers learn of it, and how it goes with an earlier one."""
    kept: dict[str, Any] = {}
    options = _everywhere(config.embedding, *frames.shape).options()
    embedding = embed(frames, progress=stages.report, checkpoint=passes, **options)
    if earlier is not None:
        embedding, kept = oriented(embedding, earlier.embedding, centred=how.centred)
    return learn_certainty(learn_bank(embedding, config.observer.dynamics), new=True, centred=how.centred), kept


def _everywhere(config: EmbedConfig, n_frames: int, n_features: int) -> EmbedConfig:
    """Settings with what timing or the memory of workers would choose: a map has the same bits anywhere."""
    # Which number auto finds is not known yet, and the form must not depend on who finds it.
    asked = USUAL_AXES if config.max_axes == "auto" else config.max_axes
    width = min(int(asked or n_features), n_features)
    form = min(("quadratic", "factor"), key=lambda form: cost(form, width, width, config.window))
    home = "local" if n_frames <= EXACT_MEDIAN_FRAMES else "recomputed"
    return replace(
        config,
        form=form if config.form == "auto" else config.form,
        home=home if config.home == "auto" else config.home,
        method=("exact" if n_frames <= EXACT_FRAMES else "landmarks") if config.method == "auto" else config.method,
    )


def _store(folder: Place, embedding: xr.Dataset, sample: Sample, how: MapConfig) -> dict[str, Any]:
    """Write the embedding and the table of recordings; what the root has to say of them."""
    reach = learn_reach(embedding, sample.frames["recording"].values, len(sample.paths), how)
    light = embedding.drop_vars(["reference", "reference_covariance"], errors="ignore")
    write_group(folder, "embedding", light.assign_attrs(reference="../frames"))
    columns = {
        "name": ("recording", np.array([path.name for path in sample.paths], object)),
        "n_frames": ("recording", sample.n_frames),
        "n_sampled": ("recording", sample.n_sampled),
        "held_out_share": ("recording", reach.shares),
        "held_out_ratio": ("recording", reach.ratios),
    }
    write_group(folder, "recordings", xr.Dataset(columns))
    numbers = [np.ascontiguousarray(embedding[name].values).tobytes() for name in _NUMBERS if name in embedding]
    text = sample.config.to_json() + json.dumps(how.attrs(), sort_keys=True)
    mark = hashlib.sha256(text.encode() + b"".join([*numbers, np.ascontiguousarray(sample.frames.values).tobytes()]))
    return {
        "outside_limit": reach.limit,
        "outside_median": reach.median,
        "map_fingerprint": mark.hexdigest(),
    }
