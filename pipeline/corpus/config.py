"""Settings of a corpus: which recordings, where their results go, how many at once, how often to try again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..frames.label_place import names_file, only
from ..frames.settings import check_settings, setting
from ..jobs.config import RunConfig
from ..stores.address import Place, place
from .map_config import MapConfig

__all__ = ["CorpusConfig"]


@dataclass(frozen=True)
class CorpusConfig:
    """A corpus: its recordings, the place of their results, and how they are computed.

    Examples
    --------
    >>> config = CorpusConfig(["in/*.npy"], "out", RunConfig())
    >>> config.names, config.retries
    ('stem', 2)
    """

    inputs: Sequence[str] = ()
    """Patterns of recordings, such as ``in/*.npy`` or ``in/**/*.edf``; relative ones start at the TOML file."""
    output: str = "out"
    """Folder of the results; it is made where it does not exist."""
    run: RunConfig = field(default_factory=RunConfig)
    """What is done to each recording."""
    shared: MapConfig | None = None
    """How one map for all recordings is made, if there shall be one; else each has an embedding of its own."""
    names: str = setting("stem", choices=("stem", "name", "folder"))
    """What a result is called: night1.zarr (stem), night1.npy.zarr (name) or day2-night1.zarr (folder)."""
    at_once: int | None = setting(None, least=1)
    """Recordings that are computed at the same time; one per worker by default."""
    retries: int = setting(2, least=0)
    """How often to try again what may pass: I/O errors, lost workers."""
    backoff: float = 10.0
    """Seconds before the first of these attempts; each next wait is twice as long."""
    new_version: str = setting("recompute", choices=("recompute", "keep"))
    """Whether results of another version of manifold-observer are computed again, or kept."""
    takeover: float = 120.0
    """Seconds without a sign of life after which the lock of a run on another machine is taken over."""
    keep: int | None = setting(None, least=1)
    """How many results 'corpus clean' leaves, the newest; all by default."""
    keep_days: float | None = None
    """Days after which 'corpus clean' removes a result; never by default."""
    folder: str = "."
    """Where relative patterns, output and label files start."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, and name all places absolutely: workers and cron have other working folders."""
        check_settings("corpus", self)
        for name, least in (("backoff", 0.0), ("takeover", 1.0), ("keep_days", 0.0)):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and least <= value < float("inf")):
                raise ValueError(f"corpus: {name} must be a number of at least {least:g}; got {value!r}.")
        if isinstance(self.inputs, str) or not self.inputs:
            raise ValueError(f"corpus: inputs must be a list of patterns; got {self.inputs!r}. Give ['in/*.npy'].")
        object.__setattr__(self, "folder", str(Path(self.folder).absolute()))
        object.__setattr__(self, "inputs", tuple(_from_folder(self.folder, pattern) for pattern in self.inputs))
        object.__setattr__(self, "output", _from_folder(self.folder, self.output))
        object.__setattr__(self, "run", _with_labels_at(self.run, self.folder))

    @property
    def root(self) -> Place:
        """Folder of the results, or their address."""
        return place(self.output)

    @property
    def state(self) -> Path:
        """Folder of the ledger and the lock; of results in a bucket it lies where relative paths start."""
        root = self.root
        if isinstance(root, Path):
            return root / ".corpus"
        return Path(self.folder, f".corpus-{root.name}-{hashlib.sha256(str(root).encode()).hexdigest()[:8]}")

    @property
    def manifest(self) -> Place:
        """The table of all recordings, for xarray and pandas."""
        return self.root / "corpus.zarr"


def _from_folder(folder: str, given: str) -> str:
    """A place as its text: a path from a folder on, or an address, which must not hold what only few may know."""
    found = place(given)
    if isinstance(found, Path):
        return str(Path(folder, found))
    if found.userinfo or found.query:
        raise ValueError(
            f"corpus: addresses must have no password and no signature, since they are written down; got them for "
            f"{found}. Copy the recording into a bucket, or to a disk."
        )
    return str(found)


def _with_labels_at(run: RunConfig, folder: str) -> RunConfig:
    """A relative file of labels starts where everything else of a corpus does."""
    labels = only(run.opening.labels)
    there = None if labels is None else _from_folder(folder, labels)
    if labels is None or there is None or not (names_file(labels) or names_file(str(there))):
        return run
    return replace(run, opening=replace(run.opening, labels=str(there)))
