"""How a corpus stands, for whoever asks: from its ledger alone, without a lock, from any process or machine."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from .config import CorpusConfig
from .departures import read_departures
from .due import DUE, standing
from .lease import lives, read_holder
from .ledger import read_ledger
from .listing import gone, items_of, place_of, unmatched
from .maps import map_status
from .progress import read_progress


@dataclass(frozen=True)
class CorpusStatus:
    """How a corpus stands.

    Examples
    --------
    >>> CorpusStatus((), {}, (), (), None).exit_code
    0
    """

    recordings: tuple[dict[str, Any], ...]
    """One for each: its name, how it stands ("done", "failed", "expired", or why it is due), and its record."""
    counts: dict[str, int]
    """How many stand so."""
    gone: tuple[str, ...]
    """Results whose recording is not there any more; they are kept."""
    unmatched: tuple[str, ...]
    """Patterns that match nothing."""
    running: dict[str, Any] | None
    """The run that works on it: process, machine, whether it lives, and what it computes."""
    shared: dict[str, Any] | None = None
    """The map of all recordings: its place, version, recordings outside of it, and a line about drift."""

    @property
    def due(self) -> int:
        """Recordings that the next run computes."""
        return sum(self.counts.get(why, 0) for why in DUE)

    @property
    def exit_code(self) -> int:
        """3 where recordings have failed, else 0."""
        failed = any(one["outcome"] == "failed" for one in self.recordings if one["name"] not in self.gone)
        return 3 if failed else 0

    def as_dict(self) -> dict[str, Any]:
        """The status for machines."""
        return {**asdict(self), "due": self.due}


def corpus_status(config: CorpusConfig) -> CorpusStatus:
    """Say how a corpus stands, while a run works on it or not; nothing is written and nothing waited for.

    Parameters
    ----------
    config
        The corpus.

    Returns
    -------
    The status.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "walk.npy", np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=0))
    >>> corpus_status(CorpusConfig(["*.npy"], folder=str(folder))).counts
    {'new': 1}
    """
    ledger = read_ledger(config)
    stands = standing(config, items_of(config), ledger)
    lost = gone([due.item for due in stands], ledger)
    rows = [{"stands": due.why, "result": str(place_of(config, due.item.name)), **asdict(due.record)} for due in stands]
    rows += [{"stands": "gone", "result": str(place_of(config, name)), **asdict(ledger[name])} for name in lost]
    departures = read_departures(config)
    rows = [{**row, "departs": departures.get(row["name"], {})} for row in rows]
    counts = dict(Counter(row["stands"] for row in rows))
    return CorpusStatus(
        tuple(rows), counts, tuple(lost), tuple(unmatched(config)), _running(config), map_status(config, ledger)
    )


def _running(config: CorpusConfig) -> dict[str, Any] | None:
    """The run that holds the corpus."""
    holder = read_holder(config.state)
    if holder is None:
        return None
    known = {"host": holder.host, "pid": holder.pid, "since": holder.since, "lives": lives(config.state, holder)}
    return {**known, **read_progress(config.state, holder.token)}
