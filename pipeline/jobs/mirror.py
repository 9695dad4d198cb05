"""Passes of a long solve, kept on a store as they are made on this machine, so that any machine can resume."""

from __future__ import annotations

import shutil
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..engine.checkpoint import claim_passes
from ..graph.warn import warn
from ..stores.address import Address
from ..stores.copies import cache_folder
from ..stores.objects import copy, download, found_in, remove, upload
from ..stores.refusals import MissingError, StoreError
from .workfolder import holding, left_behind
from .workfolder import remove as remove_work

_SECONDS = 0.5
_PASSES = "pass-*.npz"


@contextmanager
def scratch(name: str, busy: str) -> Iterator[Path]:
    """A folder of this machine for the length of a run; what a killed run left of it is removed.

    Parameters
    ----------
    name
        Of the output; runs to the same one on this machine exclude each other.
    busy
        What to say then.
    """
    parent = cache_folder() / "runs"
    parent.mkdir(parents=True, exist_ok=True)
    quoted = urllib.parse.quote(name, safe="")
    with holding(parent, quoted, busy) as work:
        with left_behind(parent, quoted, work) as dead:
            for one in dead:
                remove_work(one)
        work.passes.mkdir()
        try:
            yield work.passes
        finally:
            shutil.rmtree(work.passes, ignore_errors=True)


def fetched(source: Address, target: Address, folder: Path) -> None:
    """Fetch the passes that another run has kept, and keep them as one's own.

    Parameters
    ----------
    source
        Where they are kept.
    target
        Where this run keeps its own.
    folder
        Of this machine.
    """
    kept = [one.name for one in found_in(source) if Path(one.name).match(_PASSES) and "/" not in one.name]
    if kept:
        claim_passes(folder)
    for name in kept:
        copy(source / name, target / name)
        with (folder / name).open("wb") as file:
            download(source / name, file)


@contextmanager
def mirrored(folder: Path, target: Address) -> Iterator[None]:
    """Keep the passes that appear in a folder, for the length of a block; where that fails the run continues."""
    mirror = _Mirror(folder, target)
    thread = threading.Thread(target=mirror.run, name="manifold-observer-passes", daemon=True)
    thread.start()
    try:
        yield
    finally:
        mirror.end.set()
        thread.join()
        mirror.look()


class _Mirror:
    """What of a folder is kept so far."""

    def __init__(self, folder: Path, target: Address) -> None:
        self.folder, self.target = folder, target
        self.end = threading.Event()
        self._kept = self._there()
        self._warned = False

    def run(self) -> None:
        """Look again and again until the end."""
        while not self.end.wait(_SECONDS):
            self.look()

    def look(self) -> None:
        """Keep what is new, and remove what is gone."""
        there = self._there()
        try:
            gone = self._kept.keys() - there.keys()
            remove([self.target / name for name in gone])
            self._kept = {name: mark for name, mark in self._kept.items() if name not in gone}
            for name in sorted(there):
                if self._kept.get(name) != there[name]:
                    upload(self.folder / name, self.target / name)
                    self._kept[name] = there[name]
        except (StoreError, MissingError, FileNotFoundError) as error:
            self._warn_once(error)

    def _there(self) -> dict[str, tuple[int, int]]:
        """Passes in the folder, and what changes when they do."""
        found = [(path.name, path.stat()) for path in self.folder.glob(_PASSES)]
        return {name: (seen.st_mtime_ns, seen.st_size) for name, seen in found}

    def _warn_once(self, error: Exception) -> None:
        """A pass that is not kept costs nothing unless the run is stopped."""
        if not self._warned:
            self._warned = True
            warn(f"embed: passes could not be kept on the store, so that a stopped run would begin anew: {error}")
