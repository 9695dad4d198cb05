"""The main job: recordings in, a labelled state trajectory out, stored as a DataTree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ..embedding.embed import embed
from ..embedding.plan import Plan, plan
from ..frames.dates import in_dates
from ..frames.edges import shared_edges
from ..frames.features import FEATURES
from ..frames.features import count_frames as count_in
from ..frames.join import concat
from ..frames.label_files import label_frames, labels_of
from ..frames.label_place import names_file
from ..frames.recording import clock, open_recording
from ..frames.units import alike, units_of
from ..graph.deprecated import renamed
from ..observers.bank import learn_bank
from ..observers.calibrate import calibrate
from ..observers.certainty import learn_certainty
from ..observers.coordinates import reads_coordinates
from ..observers.observe import observe
from ..observers.smooth import smooth
from ..stores.address import Address, Given, Place, full_name, place, places
from .config import RunConfig
from .events import sayings
from .filling import write_frames
from .fingerprint import stamps_of
from .held import at_hand
from .load import load
from .manifest import check_whole
from .placement import check_place, placed
from .progress import Stages
from .reach import check_reach, reaching
from .resuming import RESUMES, counted
from .staging import check_there
from .store import check_space, kept_passes, open_group, passes_beside, start, write_group, writing
from .workfolder import sweep

open_result = renamed(load, "open_result")
__all__ = ["Given", "open_result"]


def run(
    recordings: Given | Sequence[Given],
    out: Given,
    config: RunConfig,
    *,
    overwrite: bool = False,
    stages: Stages | None = None,
) -> xr.DataTree:
    """Run features, embedding and observer over recordings, and store what they give; this computes.

    Several recordings are segments of one, with gaps between them. The result is written atomically: it
    appears at ``out`` when it is complete.

    Parameters
    ----------
    recordings
        Files, or addresses such as ``s3://bucket/night.zarr``, in the order of time; a single one needs no list.
    out
        Zarr folder to write, or an address for it: groups ``/frames``, ``/embedding``, ``/state``, and ``/smoothed`` if
        asked for.
    config
        What to do.
    overwrite
        Replace an earlier result at ``out``.
    stages
        Where to report progress and seconds.

    Returns
    -------
    The stored result, opened lazily.

    Raises
    ------
    ValueError, OSError
        As the stages say; nothing is left at ``out``.

    Examples
    --------
    >>> import tempfile
    >>> import manifold_observer.pipeline as mo
    >>> folder = Path(tempfile.mkdtemp())
    >>> rng = np.random.default_rng(0)
    >>> np.save(folder / "walk.npy", rng.normal(size=(300, 3)).cumsum(axis=0))
    >>> config = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
    >>> result = run([folder / "walk.npy"], folder / "walk.zarr", config)
    >>> result["state/state"].sizes
    Frozen({'frame': 300, 'mode': 4})
    """
    if not isinstance(config, RunConfig):
        raise TypeError(
            f"run: config must be a RunConfig; got {type(config).__name__}. Write "
            "mo.RunConfig(mo.FeatureConfig('log_rms', frame='100ms'))."
        )
    stages = stages or Stages()
    paths, target = places(recordings), place(out)
    with (
        writing(target, paths, overwrite=overwrite) as folder,
        _passes_named(folder, stages) as passes,
        reaching(paths, folder),
    ):
        with stages("features"):
            opened = open_all(paths, config)
            frames = features_of(opened, config)
            frames.attrs["sources"] = [str(path) for path in paths]
            origin = _origin(paths, opened, frames, config) | _stamped(paths, target, config)
            start(folder, {**origin, **_plain(config.flat())})
        analyse(folder, frames, config, stages, checkpoint=passes)
    return load(target)


@contextmanager
def _passes_named(folder: Place, stages: Stages) -> Iterator[Path]:
    """Have an error say from where the same command resumes, if some passes of a long solve are kept."""
    passes = passes_beside(folder)
    try:
        yield passes
    except BaseException as error:
        if number := len(list(passes.glob("pass-*.npz"))):
            done = counted(number, stages.far.get("eigensolve", (0, 0))[1])
            error.add_note(f"{RESUMES} after pass {done}, which is kept in {kept_passes(folder)}.")
        raise


def plan_run(recordings: Given | Sequence[Given], config: RunConfig) -> Plan:
    """Say what the embedding of a run will cost; a few frames are timed.

    Parameters
    ----------
    recordings
        Files, in the order of time.
    config
        What the run would do.

    Returns
    -------
    The plan.

    Examples
    --------
    >>> import tempfile
    >>> import manifold_observer.pipeline as mo
    >>> path = Path(tempfile.mkdtemp()) / "walk.npy"
    >>> np.save(path, np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=0))
    >>> plan_run([path], mo.RunConfig(mo.FeatureConfig("identity"))).n_frames
    300
    """
    paths = places(recordings)
    check_reach(paths)
    opened = open_all(paths, config)
    found = plan(features_of(opened, config), **config.embedding.options())
    return replace(found, reasons=(*notes_of(opened), *found.reasons))


def count_frames(recordings: Sequence[Given], config: RunConfig) -> int:
    """Frames that a run would make, from headers alone.

    Examples
    --------
    >>> import tempfile
    >>> import manifold_observer.pipeline as mo
    >>> path = Path(tempfile.mkdtemp()) / "walk.npy"
    >>> np.save(path, np.zeros((300, 3)))
    >>> count_frames([path], mo.RunConfig(mo.FeatureConfig("histogram", frame=60)))
    5
    """
    return frames_in([open_recording(path, **config.opening.options()) for path in recordings], config)


def frames_in(opened: Sequence[xr.DataArray], config: RunConfig) -> int:
    """Frames that a run would make of recordings that are open; nothing is read."""
    name, frame = config.features.name, _frame_length(config)
    return sum(count_in(recording, name, frame, config.features.hop) for recording in opened)


def check(recordings: Sequence[Given], out: Given, config: RunConfig, *, overwrite: bool = False) -> list[xr.DataArray]:
    """Refuse what can be refused from names and headers alone, before a cluster is started; the opened recordings.

    Raises
    ------
    ValueError, OSError
        A recording cannot be opened, or the output cannot be put where it shall be.
    """
    paths, target = [place(path) for path in recordings], place(out)
    if isinstance(target, Address):
        check_there(target, paths, overwrite)
    else:
        here = [path for path in paths if isinstance(path, Path)]
        sweep(placed(target).parent, here)
        check_place(target, here, overwrite)
    return check_inputs(paths, config)


def check_inputs(recordings: Sequence[Given], config: RunConfig) -> list[xr.DataArray]:
    """Refuse recordings that cannot be opened, and labels that cannot be read; give the recordings as they were opened.

    Raises
    ------
    ValueError, OSError
        Names the file.
    """
    paths = [place(path) for path in recordings]
    opened = open_all(paths, config)
    if names_file(config.opening.labels):
        for path in paths:
            labels_of(config.opening.labels, str(path), config.opening.label_column)
    return opened


def analyse(
    folder: Place,
    frames: xr.DataArray,
    config: RunConfig,
    stages: Stages,
    covariance: xr.DataArray | None = None,
    checkpoint: Path | None = None,
) -> tuple[xr.DataArray, xr.Dataset, xr.Dataset]:
    """Store frames, embed them, observe them, and store both.

    Parameters
    ----------
    folder
        As :func:`writing` gave it, with a root.
    frames
        Dims ``(frame, feature)``.
    config
        Options of the embedding and the observer.
    stages
        Where to report.
    covariance
        Local covariances, where they are given.
    checkpoint
        Folder for the passes of a long solve.

    Returns
    -------
    Frames, embedding (with its reference) and state as they stand on disk.
    """
    stored = store_frames(folder, frames, stages)
    with stages("embed"), sayings():
        options = config.embedding.options()
        embedding = embed(stored, covariance=covariance, progress=stages.report, checkpoint=checkpoint, **options)
        if config.calibrated:
            embedding = calibrate(embedding, progress=stages.report)
        if config.observer.resolved(coordinates=reads_coordinates(embedding)).reading == "coordinates":
            embedding = learn_certainty(learn_bank(embedding, config.observer.dynamics), new=True)
        # The frames stand beside the embedding already: it says where, and does not hold them twice.
        # By its name alone: what is stored, the workers need not keep.
        embedding = embedding.drop_vars(["reference", "reference_covariance"], errors="ignore")
        embedding = write_group(folder, "embedding", embedding.assign_attrs(reference="../frames"))
        stages.report("embedding", 1, 1)
    with stages("observe"):
        embedding = with_reference(at_hand(embedding), stored)
        state = write_group(folder, "state", observe(embedding, stored, **config.observer.options()))
        stages.report("observer", 1, 1)
    if config.smooth:
        with stages("smooth"):
            write_group(folder, "smoothed", smooth(embedding, stored, **_smoothing(config)))
            stages.report("smoother", 1, 1)
    return stored, embedding, state


def store_frames(folder: Place, frames: xr.DataArray, stages: Stages) -> xr.DataArray:
    """Compute frames into the group ``/frames`` of a result, and open them lazily as they stand there."""
    check_space(folder, frames.nbytes)
    with stages("features"):
        return write_frames(folder, frames, stages.report)


def read_embedding(out: Given) -> xr.Dataset:
    """Read the embedding of a stored result, with its frames as ``reference`` again, lazily.

    Parameters
    ----------
    out
        Folder that :func:`run` wrote.

    Returns
    -------
    What :func:`embed` gave: new frames can be observed, and the embedding extended or calibrated.

    Raises
    ------
    FileNotFoundError, ValueError
        There is no result at ``out``, or it is not complete, or damaged.

    Examples
    --------
    >>> import tempfile
    >>> import manifold_observer.pipeline as mo
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "walk.npy", np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=0))
    >>> config = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
    >>> _ = run([folder / "walk.npy"], folder / "walk.zarr", config)
    >>> read_embedding(folder / "walk.zarr").reference.sizes
    Frozen({'frame': 300, 'feature': 3})
    """
    return in_dates(embedding_in_seconds(place(out)))


def embedding_in_seconds(out: Place) -> xr.Dataset:
    """The embedding of a stored result as :func:`read_embedding` gives it, with time in seconds whatever its clock."""
    check_whole("read_embedding", out, ["embedding", "frames"])
    return with_reference(open_group(out, "embedding"), open_group(out, "frames")["frames"])


def _smoothing(config: RunConfig) -> dict[str, Any]:
    """Options of :func:`smooth`, which has no gamma."""
    return {name: value for name, value in config.observer.smoother().options().items() if name != "gamma"}


def with_reference(embedding: xr.Dataset, frames: xr.DataArray) -> xr.Dataset:
    """The embedding and the frames that it was made from, together again."""
    return embedding.assign(reference=frames.drop_vars(frames.coords))


def open_all(recordings: Sequence[Given], config: RunConfig) -> list[xr.DataArray]:
    """Open the recordings of a run; those of other units or channels are made alike, or refused."""
    return alike([open_recording(path, **config.opening.options()) for path in recordings], "run")


def features_of(recordings: Sequence[xr.DataArray], config: RunConfig) -> xr.DataArray:
    """Frames of all recordings, with the same bins where there are bins."""
    name, options = config.features.name, config.features.options()
    _frame_length(config)  # first, for bins may have to be looked for in all samples
    if name == "histogram" and "edges" not in options:
        options["edges"] = shared_edges(recordings, options.pop("bins", None))
    make = FEATURES[name]
    return concat([_labelled(make(recording, **options), recording, config) for recording in recordings])


def _frame_length(config: RunConfig) -> Any:
    """How long a frame is; every sample is one where they are features already."""
    name, frame = config.features.name, config.features.frame
    if frame is not None:
        return frame
    if name != "identity":
        raise ValueError(
            f"run: {name} features need a frame length; got none. Give frame='23ms' or another duration, or a number "
            "of samples; for sensors whose every sample counts, features='identity' needs none."
        )
    return 1


def _labelled(frames: xr.DataArray, recording: xr.DataArray, config: RunConfig) -> xr.DataArray:
    """Frames with the labels that lie in a file beside their recording, if they are asked for."""
    labels = config.opening.labels
    if not names_file(labels):
        return frames
    return label_frames(frames, labels_of(labels, recording.attrs["source"], config.opening.label_column))


def _origin(
    recordings: Sequence[Place], opened: Sequence[xr.DataArray], frames: xr.DataArray, config: RunConfig
) -> dict[str, Any]:
    """What a result is made from and how, so that it can be continued with new data."""
    last, shift = opened[-1], float(np.ravel(frames.attrs.get("time_shifts", 0.0))[-1])
    return {
        "sources": [str(path) for path in recordings],
        "source_paths": [full_name(path) for path in recordings],
        "source_samples": [recording.sizes["time"] for recording in opened],
        **({"opened": notes} if (notes := notes_of(opened)) else {}),
        "source_units": next((units for units in map(units_of, opened) if units), "unknown"),
        "end_time": shift + float(clock(last).at(np.array([last.sizes["time"] - 1]))[0]),
        "settings": config.to_json(),
    }


def _stamped(recordings: Sequence[Place], out: Place, config: RunConfig) -> dict[str, Any]:
    """Which versions of the recordings a result is made from, where times of files do not tell."""
    if isinstance(out, Path) and all(isinstance(path, Path) for path in recordings):
        return {}
    return {"source_stamps": stamps_of(recordings, config)}


def notes_of(opened: Sequence[xr.DataArray]) -> list[str]:
    """What was done to the recordings as they were opened, each by its name."""
    return [f"{each.attrs['source']}: {each.attrs['opened']}" for each in opened if each.attrs.get("opened")]


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Values as attributes can hold them."""
    return {name: v if isinstance(v, str | int | float | list) else str(v) for name, v in values.items()}
