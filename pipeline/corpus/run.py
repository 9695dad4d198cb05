"""A corpus run: what is due is computed, and every recording has an outcome in the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..jobs.events import Event, emit
from .config import CorpusConfig
from .due import DUE, Due, standing
from .lease import Lease, holding_corpus
from .ledger import Record, read_ledger
from .listing import Item, items_of
from .maps import current_map, fit_for, is_stale, note_drift
from .status import CorpusStatus, corpus_status
from .table import write_table


def run_corpus(
    config: CorpusConfig,
    *,
    retry: Sequence[str] | None = None,
    refit: bool = False,
    connect: Callable[[int], AbstractContextManager[Any]] | None = None,
) -> CorpusStatus:
    """Compute the recordings of a corpus that are due, several at once; this computes.

    A recording that fails costs its own result and no other's. The same call again computes what is new or has changed.

    Parameters
    ----------
    config
        The corpus.
    retry
        Names of failed recordings to try again, and nothing else; by default, all that is due is computed.
    refit
        Fit the map of the corpus again, on the recordings that there are now; all results are then read anew.
    connect
        Gives the cluster, once it is known that so many recordings are due; by default the session's Client is used
        where there is one, else this process.

    Returns
    -------
    How the corpus stands then.

    Raises
    ------
    ValueError, OSError
        Another run works on the corpus, or its output cannot be written to, or two recordings have one name.
    ConnectionError
        The cluster is lost; what was finished is kept.

    Examples
    --------
    >>> import tempfile
    >>> import manifold_observer.pipeline as mo
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "walk.npy", np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=0))
    >>> run = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
    >>> config = CorpusConfig(["*.npy"], "out", run, folder=str(folder))
    >>> run_corpus(config).counts, run_corpus(config).counts
    ({'done': 1}, {'done': 1})
    """
    with holding_corpus(config.state, config.takeover) as lease:
        items, records = items_of(config), read_ledger(config)
        judged = records.values() if retry is None else ()  # who retries some recordings asks for no other map
        fits = is_stale(config, judged, refit=refit) and bool(items)
        due = [one for one in standing(config, items, records, retry, refit=fits) if _is_wanted(one, retry)]
        if due or fits:
            _compute(config, lease, records, due, connect or (lambda _: nullcontext()), items if fits else None)
        write_table(config, records)
        note_drift(config, records)
    return corpus_status(config)


def _is_wanted(due: Due, retry: Sequence[str] | None) -> bool:
    """Whether this call computes a recording."""
    return due.why in DUE and (retry is None or due.item.name in retry)


def _compute(
    config: CorpusConfig,
    lease: Lease,
    records: dict[str, Record],
    due: Sequence[Due],
    connect: Callable[[int], AbstractContextManager[Any]],
    fitted_on: Sequence[Item] | None,
) -> None:
    """Compute what is due, on a cluster that is started for it, after a map of some recordings where one is wanted."""
    from .under_way import UnderWay, compute_due  # noqa: PLC0415 - Dask starts slowly, and often nothing is due

    run, before = UnderWay(config, lease, records, len(due)), time.perf_counter()
    emit(Event("begun", total=len(due)))
    with connect(len(due)):
        compute_due(run, due, _map_for(config, fitted_on))
    emit(Event("ended", done=run.done, total=run.total, seconds=time.perf_counter() - before))


def _map_for(config: CorpusConfig, fitted_on: Sequence[Item] | None) -> str:
    """Place of the map that recordings are read by, fitted where that is due; empty where there is none."""
    if fitted_on is not None:
        return str(fit_for(config, fitted_on))
    current = current_map(config) if config.shared is not None else None
    return "" if current is None else str(current.path)
