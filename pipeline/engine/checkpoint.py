"""Passes of an eigensolve on disk, so that a run that was stopped resumes after the last of them."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from manifold_observer.tasks import atomic
from manifold_observer.tasks.arrays import Floats, digest
from manifold_observer.tasks.engine import lanczos

from ..graph.warn import warn
from . import passfile
from .ownership import check_folder, claim, is_marked, is_partial, remove_files
from .passfile import DamagedError, Pass
from .tiledisk import clear_tiles, tile_folder

_MARK = "manifold-observer-passes"
_WHAT = "embed: checkpoint"
_ROUNDS = "rounds.json"
_PASS = re.compile(r"pass-(\d{3,})\.npz")


class Begun(NamedTuple):
    """What the passes so far gave: Krylov state, row sums of the kernel, and those of alpha other than 0."""

    krylov: lanczos.Krylov
    degrees: Floats
    density_degrees: Floats | None


class Checkpoint:
    """A folder with one file a pass; without a folder, nothing is kept.

    Every file names its problem, by a fingerprint, and the pass that it follows, by a digest: a file that is
    damaged, missing, or of another problem ends what can be resumed, and is replaced when its pass is made again.
    Keeping a pass is optional work: where it fails the solve continues.
    """

    def __init__(self, folder: Path | None, problem: dict[str, Any]) -> None:
        self.folder = folder
        self._fingerprint = fingerprint(problem)
        self._choice: dict[str, Any] = {}
        self._widths: list[int] = []  # vectors of each pass
        self._kept: list[str] = []  # digests of the passes that are on disk
        self._warned = False
        if folder is not None:
            _tidy(folder)
        self._first = self._read(1)

    @property
    def choice(self) -> dict[str, Any]:
        """What an earlier run chose (form and precision), to be chosen again; empty at first."""
        return {} if self._first is None else dict(self._first.about["choice"])

    @property
    def begun(self) -> bool:
        """Whether a pass is kept after which the solve can resume."""
        return self._first is not None or bool(self._kept)

    def choose(self, choice: dict[str, Any]) -> None:
        """Keep what this run chose, with its passes."""
        self._choice = choice

    def save(self, krylov: lanczos.Krylov, degrees: Floats, density_degrees: Floats | None) -> None:
        """Keep the newest pass, and those before it that could not be kept; one warning says where that fails."""
        if self.folder is None:
            return
        self._widths += [krylov.newest] if krylov.passes > len(self._widths) else []
        try:
            for number in range(len(self._kept) + 1, krylov.passes + 1):
                self._keep(number, krylov, degrees, density_degrees)
        except (OSError, ValueError) as error:
            self._warn_once(krylov.passes, error)

    def load(self) -> Begun | None:
        """What is kept, or None at the start."""
        first, self._first = self._first, None
        if first is None:
            return None
        degrees = first.arrays["degrees"]
        # Not begun anew, which would turn the block: the passes to come must be the same to the bit.
        krylov = lanczos.empty(len(degrees))
        newest: Pass | None = first
        while newest is not None:
            krylov = lanczos.extend(krylov, newest.arrays["block"], newest.arrays["images"])
            self._kept.append(newest.digest)
            self._widths.append(krylov.newest)
            newest = self._read(krylov.passes + 1)
        return Begun(krylov, degrees, first.arrays.get("density_degrees"))

    def rounds(self) -> list[list[float]]:
        """Rounds of landmarks that an earlier run made, as :meth:`keep_rounds` was given them; empty at first."""
        if self.folder is None:
            return []
        try:
            found = json.loads((self.folder / _ROUNDS).read_text())
            made = found["rounds"] if found["fingerprint"] == self._fingerprint else []
            return [[float(number) for number in one] for one in made]
        except (OSError, ValueError, TypeError, KeyError):  # missing, cut, or of something else: they are made again
            return []

    def keep_rounds(self, rounds: Sequence[Sequence[float]]) -> None:
        """Keep what the rounds of landmarks gave, so that a run that is stopped begins with the next one."""
        if self.folder is None:
            return
        with suppress(OSError, ValueError):  # a run that is not stopped needs them for nothing
            claim(_WHAT, self.folder, _MARK)
            with atomic.replacing(self.folder / _ROUNDS) as file:
                file.write(json.dumps({"fingerprint": self._fingerprint, "rounds": rounds}).encode())

    @contextmanager
    def tiles(self) -> Iterator[Path]:
        """A folder for the tiles of this solve, beside the passes where there are some; gone at the end."""
        if self.folder is not None:
            with suppress(OSError):  # then no tile can be kept, which costs time and is reported
                claim(_WHAT, self.folder, _MARK)
        with tile_folder(self.folder) as folder:
            yield folder

    def _keep(self, number: int, krylov: lanczos.Krylov, degrees: Floats, density_degrees: Floats | None) -> None:
        """Write one pass; the first takes possession of the folder."""
        stop = sum(self._widths[:number])
        columns = stop - self._widths[number - 1], stop
        arrays = {"block": krylov.basis.taken(*columns), "images": krylov.images.taken(*columns)}
        if number == 1:
            self._begin()
            arrays |= {"degrees": degrees}
            arrays |= {} if density_degrees is None else {"density_degrees": density_degrees}
        about = {**self._place_of(number), "choice": self._choice}
        with atomic.replacing(self._path(number)) as file:
            written = passfile.write(file, Pass({n: np.ascontiguousarray(v) for n, v in arrays.items()}, about))
        self._kept.append(written)

    def _begin(self) -> None:
        """Make the folder ours; passes of another problem would only fill the disk."""
        if self.folder is not None:
            claim(_WHAT, self.folder, _MARK)
            remove_files(self.folder, _is_pass)

    def _place_of(self, number: int) -> dict[str, Any]:
        """What a pass belongs to: passes that do not follow each other are never put together."""
        follows = self._kept[-1] if self._kept else ""
        return {"fingerprint": self._fingerprint, "number": number, "follows": follows}

    def _read(self, number: int) -> Pass | None:
        """The pass of that number; None where it is missing, damaged, or of another solve."""
        if self.folder is None:
            return None
        path = self._path(number)
        where = f"after pass {number - 1}" if number > 1 else "at the beginning"
        if not os.path.lexists(path):
            if _last_pass(self.folder) > number:
                warn(f"embed: {path} is missing, so that later passes cannot be used; the solve resumes {where}.")
            return None
        try:
            found = passfile.read(path)
        except DamagedError as error:
            warn(f"embed: {path} cannot be used: {error}; the solve resumes {where}.")
            return None
        return found if found.about.items() >= self._place_of(number).items() else None

    def _path(self, number: int) -> Path:
        """File of one pass."""
        if self.folder is None:
            raise ValueError("Checkpoint: there is no folder.")
        return self.folder / f"pass-{number:03d}.npz"

    def _warn_once(self, number: int, error: OSError | ValueError) -> None:
        """A pass that is not kept costs nothing unless the run is stopped."""
        if self._warned:
            return
        self._warned = True
        there = itertools.takewhile(os.path.exists, (self._path(k + 1) for k in range(len(self._kept))))
        kept = len(list(there))
        would = f"resume after pass {kept}" if kept else "start at the beginning"
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        warn(
            f"embed: pass {number} could not be kept: {why}; a stopped run would {would}. Passes are kept in "
            f"{self.folder}."
        )


def check_checkpoint(folder: Path) -> None:
    """Refuse a folder for passes that holds anything else.

    Raises
    ------
    ValueError
        As :func:`.ownership.check_folder` says.
    """
    check_folder(_WHAT, folder, _MARK)


def claim_passes(folder: Path) -> None:
    """Make a folder one for passes, so that those of an earlier run can be put there.

    Raises
    ------
    ValueError, OSError
        As :func:`.ownership.claim` says.
    """
    claim(_WHAT, folder, _MARK)


def fingerprint(problem: dict[str, Any]) -> str:
    """Digest of settings and arrays that a problem is told by.

    Examples
    --------
    >>> fingerprint({"seed": 0}) == fingerprint({"seed": 0}), fingerprint({"seed": 0}) == fingerprint({"seed": 1})
    (True, False)
    """
    found = hashlib.sha256()
    for name in sorted(problem):
        value = problem[name]
        found.update(repr((name, digest(value) if isinstance(value, np.ndarray) else value)).encode())
    return found.hexdigest()


def _tidy(folder: Path) -> None:
    """Check the folder, and remove what a killed run had begun."""
    check_checkpoint(folder)
    if is_marked(folder, _MARK):
        remove_files(folder, lambda name: is_partial(name, lambda final: _is_pass(final) or final == _ROUNDS))
        clear_tiles(folder)


def _is_pass(name: str) -> bool:
    """Whether a name is that of a pass."""
    return _PASS.fullmatch(name) is not None


def _last_pass(folder: Path) -> int:
    """Largest number of a pass in a folder, 0 without any."""
    found = (_PASS.fullmatch(path.name) for path in folder.glob("pass-*.npz"))
    return max((int(match[1]) for match in found if match), default=0)
