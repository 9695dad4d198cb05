"""What a run of a corpus would do, from headers and what earlier recordings took."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dask.system import cpu_count

from ..engine.memory import EXACT_FRAMES
from ..graph.durations import duration, size
from ..jobs.run import check_inputs, frames_in, plan_run
from ..stores.address import Place
from .config import CorpusConfig
from .due import DUE, Due, standing
from .ledger import read_ledger
from .listing import gone, items_of, unmatched
from .process import failure

# Beside the embedding a short recording takes this long, most of it for writing.
_LEAST_SECONDS = 1.0
# Numbers of 8 bytes a frame beside its features: coordinates, states and their bands, labels; and those of any result.
_NO_END = 2**63 - 1
_PER_FRAME, _PER_RESULT = 120, 2**18


class _Known(NamedTuple):
    """A recording whose cost is known: frames, seconds, bytes, and how it is known."""

    n_frames: int
    seconds: float
    n_bytes: float
    why: str


@dataclass(frozen=True)
class CorpusCheck:
    """What a run of a corpus would do.

    Examples
    --------
    >>> print(CorpusCheck({"new": 2}, {}, 600, 3.0, 2**21, 2**33, "a plan of night1", (), ()))
    2 new
    600 frames to compute: about 3.0 s (by a plan of night1)
    results need about 2.0 MiB; 8.0 GiB are free
    """

    counts: dict[str, int]
    """How many recordings stand how: "done", "failed", or why they are due."""
    unreadable: dict[str, str]
    """Sentences of those due that cannot be opened, or placed."""
    n_frames: int
    """Frames of those due."""
    seconds: float
    """Predicted time of the run."""
    n_bytes: float
    """Predicted size of the results."""
    free_bytes: int
    """Free where they go."""
    by: str
    """What the prediction is taken from."""
    gone: tuple[str, ...]
    """Results whose recording is not there any more."""
    unmatched: tuple[str, ...]
    """Patterns that match nothing."""

    @property
    def exit_code(self) -> int:
        """3 where recordings will fail or have failed, else 0."""
        return 3 if self.unreadable or self.counts.get("failed") else 0

    def as_dict(self) -> dict[str, Any]:
        """The same for machines."""
        return asdict(self)

    def __str__(self) -> str:
        """The same for people."""
        lines = [", ".join(f"{number} {why}" for why, number in sorted(self.counts.items())) or "no recording"]
        lines += [f"{name} cannot be read: {sentence}" for name, sentence in self.unreadable.items()]
        lines += [f"no recording matches {pattern}" for pattern in self.unmatched]
        if self.gone:
            lines.append(f"{len(self.gone)} results whose recordings are gone are kept: {', '.join(self.gone[:5])}")
        if self.n_frames:
            lines.append(f"{self.n_frames} frames to compute: about {duration(self.seconds)} (by {self.by})")
            short = ". Free some space first" if self.n_bytes > self.free_bytes else ""
            room = f"; {size(self.free_bytes)} are free" if self.free_bytes < _NO_END else ""
            lines.append(f"results need about {size(self.n_bytes)}{room}{short}")
        return "\n".join(lines)


def check_corpus(config: CorpusConfig, *, n_workers: int | None = None) -> CorpusCheck:
    """Open the headers of all recordings that are due, and predict what a run would take.

    Time and size are taken from finished recordings; before there are any, a few frames of one are timed.

    Parameters
    ----------
    config
        The corpus.
    n_workers
        Recordings that are computed at once, where the corpus does not say it; one a core by default.

    Returns
    -------
    What was found.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "bad.npy").write_bytes(b"no array")
    >>> check_corpus(CorpusConfig(["*.npy"], folder=str(folder))).exit_code
    3
    """
    ledger = read_ledger(config)
    stands = standing(config, items_of(config), ledger)
    due = [one for one in stands if one.why in DUE]
    lengths, unreadable = _lengths(config, due)
    known = _known(ledger.values()) or _timed(config, due, lengths)
    at_once = config.at_once or n_workers or cpu_count()
    costs = [_cost(n_frames, known) for n_frames in lengths.values()] if known else []
    return CorpusCheck(
        counts=dict(Counter(one.why for one in stands)),
        unreadable=unreadable,
        n_frames=sum(lengths.values()),
        seconds=sum(seconds for seconds, _ in costs) / max(1, min(at_once, len(costs))),
        n_bytes=sum(n_bytes for _, n_bytes in costs),
        free_bytes=_free(config.root),
        by=known[0].why if known else "nothing",
        gone=tuple(gone([one.item for one in stands], ledger)),
        unmatched=tuple(unmatched(config)),
    )


def _lengths(config: CorpusConfig, due: Sequence[Due]) -> tuple[dict[str, int], dict[str, str]]:
    """Frames of every recording that can be opened, and the sentences of the others."""
    lengths, unreadable = {}, {}
    for one in due:
        try:
            lengths[one.item.name] = frames_in(check_inputs([one.item.path], config.run), config.run)
        except Exception as error:
            unreadable[one.item.name] = failure(error).sentence
    return lengths, unreadable


def _known(records: Any) -> list[_Known]:
    """Costs of finished recordings."""
    done = [record for record in records if record.outcome == "done" and record.facts.get("n_frames")]
    why = f"{len(done)} finished recordings"
    return [_Known(record.facts["n_frames"], record.seconds, record.n_bytes, why) for record in done]


def _timed(config: CorpusConfig, due: Sequence[Due], lengths: Mapping[str, int]) -> list[_Known]:
    """Cost of the recording of middle length, from a few frames of it."""
    paths = {one.item.name: one.item.path for one in due}
    for name in sorted(lengths, key=lambda name: abs(lengths[name] - sorted(lengths.values())[len(lengths) // 2])):
        try:
            plan = plan_run([paths[name]], config.run)
        except Exception:  # what is wrong with its samples is found when it is computed
            continue
        n_bytes = 8.0 * plan.n_frames * (plan.n_features + _PER_FRAME) / 2 + _PER_RESULT
        return [_Known(plan.n_frames, plan.seconds + _LEAST_SECONDS, n_bytes, f"a plan of {name}")]
    return []


def _cost(n_frames: int, known: Sequence[_Known]) -> tuple[float, float]:
    """Seconds and bytes of a recording: those of the known one that is nearest in length, scaled."""
    near = min(known, key=lambda one: abs(one.n_frames - n_frames))
    ratio = n_frames / max(near.n_frames, 1)
    # Pairs of frames count where all of them are compared; below, much is the same for any length.
    grown = ratio**2 if ratio > 1 and n_frames <= EXACT_FRAMES else ratio
    return max(near.seconds * grown, min(near.seconds, _LEAST_SECONDS)), near.n_bytes * ratio


def _free(root: Place) -> int:
    """Bytes that are free for results; a bucket takes what it is given."""
    return shutil.disk_usage(_existing(root)).free if isinstance(root, Path) else _NO_END


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.is_dir())
