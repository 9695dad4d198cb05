"""Room on the disk for the results of a corpus."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from ..graph.limits import gib
from ..graph.warn import warn
from .config import CorpusConfig
from .ledger import Record

# No result takes less, with the ledger's own files.
_LEAST_BYTES = 2**20
_PROBE_BYTES = 2**16


def check_room(config: CorpusConfig, records: Iterable[Record], n_due: int) -> None:
    """Refuse to begin on a disk that is full; warn where not all results may fit, as far as earlier ones tell.

    Raises
    ------
    OSError
        There is no room for a single result.
    """
    if not isinstance(config.root, Path):
        return  # a bucket takes what it is given
    free = shutil.disk_usage(config.root).free
    sizes = [record.n_bytes for record in records if record.n_bytes]
    one = max(int(statistics.median(sizes)) if sizes else 0, _LEAST_BYTES)
    if free < one:
        raise OSError(
            f"corpus: {config.root} must have room for one result, about {one / 2**20:.1f} MiB; got "
            f"{free / 2**20:.1f} MiB free. Free some space, or run 'manifold-observer corpus clean'."
        )
    if sizes and free < n_due * one:
        warn(
            f"corpus: {n_due} results may need {gib(n_due * one)}, but only {gib(free)} are free at {config.root}. "
            "The run ends when the disk is full, and the same command goes on from there."
        )


def takes_more(folder: Path) -> bool:
    """Whether a few bytes can be written: otherwise no other recording will do better."""
    probe = folder / f"probe-{uuid4().hex}"
    try:
        probe.write_bytes(bytes(_PROBE_BYTES))
    except OSError:
        return False
    finally:
        with suppress(OSError):
            probe.unlink()
    return True
