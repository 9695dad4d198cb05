"""Stored results continued over new data, part after part: bit-identical to one long run.

Throughout: a *stream* is what follows a result; a *part* is what one call adds to it, an ordinary
complete result with the groups ``/frames`` and ``/state``, whose attributes say where the next begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr

from ..frames.dates import in_dates
from ..frames.features import Frame, samples_in
from ..frames.labels import segment_of
from ..frames.segments import restarts
from ..graph.deprecated import renamed
from ..graph.warn import warn
from ..observers.carries import Seam
from ..observers.coordinates import observe_coordinates, reads_coordinates
from ..observers.observe import checked, scan
from ..observers.starts import BRIDGED
from ..stores.address import Given, Place, full_name, place, places
from ..stores.listing import list_places
from .continuation import Learnt, Notice, Position, beginning, laid, learnt_from, moved, new_frames, next_frames
from .load import stream_groups
from .parts import check_out, check_parts, checked_part, parts_of
from .progress import Stages
from .reach import reaching
from .run import store_frames
from .store import alone, open_group, start, write_group, writing
from .timeline import Stretch


class Step(NamedTuple):
    """What one call added: the part (None where there was no whole frame), its frames, those of all parts."""

    part: Place | None
    added: int
    total: int


def continue_run(
    result: Given,
    recordings: Given | Sequence[Given],
    out: Given,
    *,
    hold_back: Frame = 0,
    clip: bool = False,
    stages: Stages | None = None,
) -> Step:
    """Continue a stored result with new recordings, from where the last call stopped; this computes.

    The output of all calls together is bit-identical to one long run of features and observer (Algorithm 3),
    however the data are split. Each call adds at most one part to ``out``, written atomically.

    Parameters
    ----------
    result
        As :func:`run` stored it. It is not changed.
    recordings
        Consecutive recordings of the same sensors, oldest first; every call names all of them. A recording
        without a clock, or whose clock restarts, follows the one before without a gap; one whose clock shows
        a gap begins a new segment. The last one may have grown since the last call. If the first is the
        recording that the result ends with, only its new samples are used. A pattern such as ``new/*.wav``
        stands for the files that match it, sorted by name.
    out
        Folder of the parts: ``000000.zarr``, ``000001.zarr``, ...
    hold_back
        Newest samples (or duration) to leave for a later call: as many as a writer adds at once, where
        it makes room in a Zarr array before it fills it.
    clip
        Count samples outside the histogram's edges in the end bins instead of refusing them.
    stages
        Where to report progress and seconds.

    Returns
    -------
    The part, its number of frames and that of all parts. Without a new whole frame nothing is written.

    Raises
    ------
    ValueError, OSError
        A recording does not continue where the last call stopped, or has other channels or another rate; the
        parts in ``out`` belong to another result; another run is writing there.

    Examples
    --------
    >>> import tempfile
    >>> import manifold_observer.pipeline as mo
    >>> folder = Path(tempfile.mkdtemp())
    >>> walk = np.sin(np.arange(400)[:, None] / [5, 7, 9]) + 0.1 * np.random.default_rng(0).normal(size=(400, 3))
    >>> for name, rows in {"a": walk[:300], "b": walk[300:330], "c": walk[330:]}.items():
    ...     np.save(folder / f"{name}.npy", rows)
    >>> config = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
    >>> _ = mo.run([folder / "a.npy"], folder / "a.zarr", config)
    >>> new = [folder / "b.npy", folder / "c.npy"]
    >>> continue_run(folder / "a.zarr", new[:1], folder / "more").added
    30
    >>> continue_run(folder / "a.zarr", new, folder / "more")[1:]
    (70, 100)
    >>> mo.load(folder / "more")["state"].state.sizes
    Frozen({'frame': 100, 'mode': 4})
    """
    target, recordings = place(out), places(recordings)
    check_out(target, [place(result), *recordings])
    learnt = learnt_from(place(result), clip=clip)
    with alone(target):
        return _step(learnt, recordings, target, hold_back, stages or Stages(), None, check_parts(target))


extend_result = renamed(continue_run, "extend_result")


def follow(
    result: Given,
    recordings: Given | Sequence[Given],
    out: Given,
    *,
    interval: float = 1.0,
    idle: float | None = None,
    hold_back: Frame = 0,
    clip: bool = False,
    wait: Callable[[float], object] = time.sleep,
    notice: Callable[[str], object] = lambda sentence: None,
) -> Iterator[Step]:
    """Continue a stored result as new data arrive, one part after the other; this computes.

    A recording that does not exist or cannot be opened yet is waited for, and so are those named after it.

    Parameters
    ----------
    result, recordings, out, hold_back, clip
        As for :func:`continue_run`. A pattern is looked up again every time.
    interval
        Seconds from one look to the next.
    idle
        Seconds without a new whole frame after which to stop; None never stops.
    wait
        Called with ``interval`` between looks; following ends when it gives something true, as
        :meth:`threading.Event.wait` does.
    notice
        Called with one sentence when a recording has to be waited for.

    Yields
    ------
    Every part, once it is written.

    Raises
    ------
    ValueError, OSError
        As for :func:`continue_run`.

    Examples
    --------
    >>> import tempfile
    >>> import manifold_observer.pipeline as mo
    >>> folder = Path(tempfile.mkdtemp())
    >>> walk = np.sin(np.arange(400)[:, None] / [5, 7, 9]) + 0.1 * np.random.default_rng(0).normal(size=(400, 3))
    >>> np.save(folder / "a.npy", walk[:300])
    >>> config = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
    >>> _ = mo.run([folder / "a.npy"], folder / "a.zarr", config)
    >>> def arrive(seconds):
    ...     np.save(folder / "b.npy", walk[300:])
    >>> steps = follow(folder / "a.zarr", [folder / "b.npy"], folder / "more", wait=arrive)
    >>> next(steps).added
    100
    """
    target, recordings = place(out), places(recordings)
    check_out(target, [place(result), *recordings])
    learnt = learnt_from(place(result), clip=clip)
    told = _Once(notice)
    with alone(target):
        last: dict[str, Any] | None = check_parts(target)
        since = time.monotonic()
        while True:
            step, last = _step(learnt, recordings, target, hold_back, Stages(), told, last), None
            if step.added:
                yield step
                since = time.monotonic()
            elif idle is not None and time.monotonic() - since >= idle:
                return
            if wait(interval):
                return


def open_stream(out: Given) -> xr.Dataset:
    """Frames and states of all parts of a stream as one Dataset: deprecated, for :func:`load` opens streams, too.

    Parameters
    ----------
    out
        Folder that :func:`continue_run` or ``manifold-observer continue`` wrote to.

    Returns
    -------
    ``frames(frame, feature)`` and ``state(frame, mode)`` of all parts, one after the other, with ``time``
    and ``segment``; ``carry(mode)`` of the last; what the gain adds, such as ``state_std(frame, mode)``.

    Raises
    ------
    FileNotFoundError, ValueError
        As for :func:`load`.

    Examples
    --------
    >>> import tempfile
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     open_stream(Path(tempfile.mkdtemp()))
    Traceback (most recent call last):
    FileNotFoundError: load: /tmp/... holds no parts. ...
    """
    warn(
        "open_stream: mo.load opens streams as well, with the groups 'frames' and 'state'; the old name will be "
        "removed in the next version.",
        DeprecationWarning,
    )
    return stream_dataset(out)


def stream_dataset(out: Given) -> xr.Dataset:
    """Frames and states of all parts of a stream, in one Dataset."""
    groups = stream_groups("load", place(out))
    found = {**groups["frames"].data_vars, **groups["state"].data_vars}
    return in_dates(xr.Dataset(found, attrs={**groups["/"].attrs, **groups["state"].attrs}))


class _Once:
    """Says every sentence once."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self.say, self.said = say, ""

    def __call__(self, sentence: str) -> None:
        if sentence != self.said:
            self.say(sentence)
        self.said = sentence


def _step(
    learnt: Learnt,
    recordings: Sequence[Given],
    out: Place,
    hold_back: Frame,
    stages: Stages,
    notice: Notice | None,
    last: dict[str, Any] | None,
) -> Step:
    """Write the next part, where there is a new whole frame; attributes of the last part, where it has been checked."""
    parts = parts_of(out)
    position = _position(parts[-1], learnt, last) if parts else beginning(learnt)
    paths = _matched(recordings, patient=notice is not None)
    held = samples_in(hold_back, 1 / learnt.period, "continue: hold_back") if hold_back else 0
    stretches, position = laid(learnt, position, paths, notice)
    firsts, begin = next_frames(learnt, position, stretches, position.lay.first - held)
    if not len(firsts):
        return Step(None, 0, position.n_frames)
    part = out / f"{len(parts):06d}.zarr"
    carry = open_group(parts[-1], "state")["carry"].load() if parts else learnt.carry
    used = [learnt.path, *paths]
    with writing(part, used) as folder, _counting_from(begin, stretches), reaching(used, folder):
        frames, anew = new_frames(learnt, position, stretches, firsts, begin)
        last_time = position.last_time
        position = moved(learnt, position, stretches, firsts, int(frames["segment"][-1]))
        start(folder, _origin(learnt, position, stretches))
        _write(folder, learnt, carry, frames, _seam(frames, last_time, anew=anew), stages)
    return Step(part, len(firsts), position.n_frames)


def _write(folder: Place, learnt: Learnt, carry: xr.DataArray, frames: xr.DataArray, at: Seam, stages: Stages) -> None:
    """Store frames, observe them, and store the state."""
    stored = checked(learnt.embedding, store_frames(folder, frames, stages))
    config = learnt.config.observer
    if config.resolved(coordinates=reads_coordinates(learnt.embedding)).reading == "coordinates":
        with stages("observe"):
            write_group(folder, "state", observe_coordinates(learnt.embedding, stored, carry, at))
            stages.report("observer", 1, 1)
        return
    starts = restarts(segment_of(stored))
    starts[0] = at.windows
    # New frames have no coordinates to start from, as initial="paper" would; the carry needs none.
    config = replace(config, initial="steady" if config.initial == "paper" else config.initial).resolved(
        coordinates=False
    )
    with stages("observe"):
        write_group(folder, "state", scan(learnt.embedding, stored, config, starts, carry))
        stages.report("observer", 1, 1)


def _seam(frames: xr.DataArray, last_time: float, *, anew: bool) -> Seam:
    """How the frames follow the last one before them; both times are those of the stream."""
    wait = float(frames["time"][0]) - last_time
    period = float(frames.attrs["frame_period"])
    return Seam(anew, anew and not 0 < wait < (BRIDGED + 1) * period)


def _origin(learnt: Learnt, position: Position, stretches: Sequence[Stretch]) -> dict[str, Any]:
    """Attributes of a part: where it comes from, and where the next begins."""
    return {
        "sources": [str(stretch.recording.attrs["source"]) for stretch in stretches],
        "extends": full_name(learnt.path),
        "extends_fingerprint": learnt.fingerprint,
        "settings": learnt.config.to_json(),
        "n_frames": position.n_frames,
        "next_sample": position.next_sample,
        "position": position.to_json(),
    }


def _position(part: Place, learnt: Learnt, checked: dict[str, Any] | None) -> Position:
    """Where the last part says that the next begins."""
    attrs = checked or checked_part("continue", part)
    if attrs.get("extends_fingerprint") != learnt.fingerprint:
        raise ValueError(
            f"continue: OUT must hold parts that continue {learnt.path}; got {part}, which continues "
            f"{attrs.get('extends', 'no result')}, as it was then. Give that result, or start over in another folder."
        )
    return Position.from_json(attrs["position"])


def _matched(recordings: Sequence[Given], *, patient: bool) -> list[Place]:
    """Recordings, with patterns replaced by the files that they match, by name."""
    paths: list[Place] = []
    for path in map(place, recordings):
        there = isinstance(path, Path) and path.exists()  # whatever its name looks like
        found = [path] if there else list_places(path)
        if not found and not patient:
            raise FileNotFoundError(f"continue: {path} must match a recording; got none. Check the pattern.")
        paths += found
    return paths


@contextmanager
def _counting_from(begin: int, stretches: Sequence[Stretch]) -> Iterator[None]:
    """Errors about samples and frames say from where they count."""
    try:
        yield
    except ValueError as error:
        stretch = next(stretch for stretch in stretches if begin < stretch.stop)
        where = f"sample {begin - stretch.place.first} of {stretch.recording.attrs['source']}"
        raise ValueError(f"{error} Samples and frames count from {where}.") from None
