"""Passes of an eigensolve on disk, so that a killed run goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifold_observer.tasks import lanczos

Floats = NDArray[np.float64]


class Begun(NamedTuple):
    """What the passes so far gave: Krylov state, row sums of the kernel, and those of alpha other than 0."""

    krylov: lanczos.Krylov
    degrees: Floats
    density_degrees: Floats | None


class Checkpoint:
    """A folder with one file a pass; without a folder, nothing is kept.

    A file appears whole or not at all. The folder belongs to one problem, told by its fingerprint:
    another problem starts it anew. It is made when the first pass is kept.
    """

    def __init__(self, folder: Path | None, problem: dict[str, Any]) -> None:
        self._folder = folder
        self._fingerprint = fingerprint(problem)
        self._choice: dict[str, Any] = {}
        if folder is not None and folder.exists() and self._read().get("fingerprint") != self._fingerprint:
            shutil.rmtree(folder)

    @property
    def choice(self) -> dict[str, Any]:
        """What an earlier run chose (form and precision), to be chosen again; empty at first."""
        found = self._read().get("choice", {})
        return dict(found)

    @property
    def begun(self) -> bool:
        """Whether a pass is kept."""
        return self._folder is not None and self._path(1).exists()

    def choose(self, choice: dict[str, Any]) -> None:
        """Keep what this run chose, with its first pass."""
        self._choice = choice

    def save(self, krylov: lanczos.Krylov, degrees: Floats, density_degrees: Floats | None) -> None:
        """Keep the newest pass."""
        if self._folder is None or self._path(krylov.passes).exists():
            return
        if krylov.passes == 1:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._write({"fingerprint": self._fingerprint, "choice": self._choice})
        arrays = {"block": krylov.basis[:, -krylov.newest :], "images": krylov.images[:, -krylov.newest :]}
        if krylov.passes == 1:
            arrays["degrees"] = degrees
            if density_degrees is not None:
                arrays["density_degrees"] = density_degrees
        partial = self._path(krylov.passes).with_suffix(".partial")
        with partial.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, self._path(krylov.passes))

    def load(self) -> Begun | None:
        """What is kept, or None at the start."""
        if not self.begun:
            return None
        with np.load(self._path(1), allow_pickle=False) as first:
            degrees = first["degrees"]
            weighted = first.get("density_degrees")
            # Not begun anew, which would turn the block: the passes to come must be the same to the bit.
            krylov = lanczos.extend(lanczos.empty(len(degrees)), first["block"], first["images"])
        while self._path(krylov.passes + 1).exists():
            with np.load(self._path(krylov.passes + 1), allow_pickle=False) as more:
                krylov = lanczos.extend(krylov, more["block"], more["images"])
        return Begun(krylov, degrees, weighted)

    def _path(self, number: int) -> Path:
        """File of one pass."""
        if self._folder is None:
            raise ValueError("Checkpoint: there is no folder.")
        return self._folder / f"pass-{number:03d}.npz"

    def _read(self) -> dict[str, Any]:
        """What the folder says of itself."""
        if self._folder is None or not (self._folder / "problem.json").exists():
            return {}
        return dict(json.loads((self._folder / "problem.json").read_text(encoding="utf-8")))

    def _write(self, values: dict[str, Any]) -> None:
        """Let the folder say something else, in one step."""
        if self._folder is None:
            return
        partial = self._folder / "problem.json.partial"
        partial.write_text(json.dumps(values), encoding="utf-8")
        os.replace(partial, self._folder / "problem.json")


def fingerprint(problem: dict[str, Any]) -> str:
    """Digest of settings and arrays that a problem is told by.

    Examples
    --------
    >>> fingerprint({"seed": 0}) == fingerprint({"seed": 0}), fingerprint({"seed": 0}) == fingerprint({"seed": 1})
    (True, False)
    """
    digest = hashlib.sha256()
    for name in sorted(problem):
        value = problem[name]
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(value).tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    return digest.hexdigest()
