"""One recording of a corpus: what a worker, or this process, does with it, and what comes of that."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr

from ..engine.memory import LOCAL_BYTES, tile_bytes
from ..graph.errors import FORESEEN
from ..graph.shared import in_this_thread, warnings_heard
from ..jobs.config import RunConfig
from ..jobs.events import about
from ..jobs.existing import made_already
from ..jobs.fingerprint import digest, files_of, stamp
from ..jobs.load import load
from ..jobs.progress import Stages
from ..jobs.run import frames_in, open_all, run
from ..stores.address import Place, place
from ..stores.objects import bytes_of, exists
from .departing import moments_of
from .drift import FEATURE, told_by
from .ledger import root_digest
from .placing import apply_map
from .shared_map import SharedMap, read_map
from .telling import telling
from .transient import is_full, is_passing

# Samples of more bytes are better read by all workers.
_LARGE_BYTES = 2**31
# The ledger holds the mean of every feature of a recording where they are no more.
_MOST_QUANTITIES = 100


class Job(NamedTuple):
    """A recording, where its result goes, and how it is made."""

    name: str
    path: str
    out: str
    run: RunConfig
    owned: bool
    """Whether a result that is at ``out`` is the corpus's own, and may be replaced."""
    memory: int | None = None
    """Bytes that it may take, where a single worker computes it."""
    topic: str = ""
    """Where a worker tells how far it is; nowhere by default."""
    shared: str = ""
    """Place of the map that it is read by; it has an embedding of its own by default."""


class Outcome(NamedTuple):
    """What came of one attempt: "done", "failed", or "large" where all workers should compute it."""

    kind: str
    sentence: str = ""
    passing: bool = False
    full: bool = False
    """Whether the disk takes no more, so that no other recording will do better."""
    seconds: float = 0.0
    stamp: Sequence[Sequence[Any]] = ()
    content: str = ""
    result: str = ""
    adopted: bool = False
    """Whether the result was there before, of the same recording and settings."""
    n_bytes: int = 0
    facts: dict[str, Any] = {}  # noqa: RUF012 - never changed
    warnings: Sequence[str] = ()


def process_alone(job: Job) -> Outcome:
    """Compute one recording in this thread, as one task among those of others; one that is too large comes back.

    The numbers are those that :func:`run` gives on a cluster or without one.
    """
    with in_this_thread(job.memory), telling(job.topic):
        return _attempt(job, alone=True)


def process(job: Job) -> Outcome:
    """Compute one recording on the session's cluster, or with the threads of this process."""
    return _attempt(job, alone=False)


def failure(error: BaseException) -> Outcome:
    """The outcome of an attempt that an error ended."""
    text = " ".join(str(error).split()) or type(error).__name__
    said = text if isinstance(error, FORESEEN) else f"{type(error).__name__}: {text}"
    sentence = " ".join([said, *getattr(error, "__notes__", [])])
    return Outcome("failed", sentence, is_passing(error), is_full(error))


def _attempt(job: Job, *, alone: bool) -> Outcome:
    """Try once; an error becomes an outcome."""
    before = time.perf_counter()
    files = files_of(job.path, job.run)
    there, content = stamp(files), ""
    with about(job.name), warnings_heard() as heard:
        try:
            content = digest(files)
            if alone and _is_large(job):
                return Outcome("large")
            outcome = _computed(job)
        except Exception as error:
            outcome = failure(error)
    seconds = round(time.perf_counter() - before, 3)
    return outcome._replace(seconds=seconds, stamp=there, content=content, warnings=tuple(heard))


def _computed(job: Job) -> Outcome:
    """Run, or read it by the map, and say what the result is like; one of the same that is there already counts."""
    out = place(job.out)
    adopted = exists(out) and not job.owned
    if adopted:
        _check_same(job)
        facts = facts_of(load(out))
    elif job.shared:
        shared = _read_map(job.shared)
        facts = map_facts(apply_map(shared, place(job.path), out, overwrite=job.owned, stages=Stages()), out)
    else:
        facts = facts_of(run([place(job.path)], out, job.run, overwrite=job.owned, stages=Stages()))
    n_bytes = sum(bytes_of(out))
    return Outcome("done", result=root_digest(out), adopted=adopted, n_bytes=n_bytes, facts=facts)


def _check_same(job: Job) -> None:
    """Refuse what is at the place of a result and is not what a run would make."""
    what = "a result that was not read by the map of this corpus"
    if not job.shared:
        try:
            made_already([place(job.path)], place(job.out), job.run)
            return
        except ValueError as error:
            what = str(error).partition("; got ")[2].partition(". ")[0] or str(error)
    raise ValueError(
        f"corpus: {job.out} must be absent or a result that this corpus has written; got something else ({what}). "
        "Move it away."
    )


@lru_cache(maxsize=1)
def _read_map(where: str) -> SharedMap:
    """The map, which all recordings of a process share; no other is ever written to its place."""
    return read_map(Path(where))


def facts_of(tree: xr.DataTree) -> dict[str, Any]:
    """What a manifest says of a result."""
    embedding = tree["embedding"].to_dataset()
    return {
        **_of_frames(tree),
        "n_modes": int(embedding.sizes["mode"]),
        "eigenvalues": [float(value) for value in embedding["eigenvalue"].values],
        "residual": float(embedding["residual"].max()),
        "foretold": embedding.attrs.get("foretold"),
        "by_chance": embedding.attrs.get("foretold_by_chance"),
    }


def map_facts(tree: xr.DataTree, out: Place) -> dict[str, Any]:
    """What a manifest says of a result that was read by a map, and what drift is told by."""
    told = told_by(out)
    few = len(told.quantities) <= _MOST_QUANTITIES
    quantities = {name: value for name, value in told.quantities.items() if few or not name.startswith(FEATURE)}
    return {
        **_of_frames(tree),
        "n_modes": int(tree["state"].sizes["mode"]),
        "foretold": float(tree.attrs["foretold"]),
        "map_version": int(tree.attrs["map_version"]),
        "map_fingerprint": str(tree.attrs["map_fingerprint"]),
        "outside_share": float(tree.attrs["outside_share"]),
        "outside_distance_ratio": float(tree.attrs["outside_distance_ratio"]),
        "outside_refit_due": bool(tree.attrs["outside_refit_due"]),
        "time": told.time,
        "quantities": quantities,
    }


def _of_frames(tree: xr.DataTree) -> dict[str, Any]:
    """How many frames and features a result has, and their moments."""
    group = tree["frames"]
    return {
        "n_frames": int(group.sizes["frame"]),
        "n_features": int(group.sizes["feature"]),
        **moments_of(group["frames"]),
    }


def _is_large(job: Job) -> bool:
    """Whether a recording is worth all workers, from its header."""
    (recording,) = open_all([job.path], job.run)
    if recording.nbytes > _LARGE_BYTES or job.shared:
        return recording.nbytes > _LARGE_BYTES
    return tile_bytes(frames_in([recording], job.run), 4) > LOCAL_BYTES
