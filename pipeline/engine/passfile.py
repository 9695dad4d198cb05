"""One pass of an eigensolve as a file that tells whether it is whole, and to which solve it belongs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Floats, digest


class Pass(NamedTuple):
    """Arrays by name, and what they belong to: fingerprint of the problem, number, digest of the pass before."""

    arrays: dict[str, Floats]
    about: dict[str, Any]

    @property
    def digest(self) -> str:
        """Digest of all of it."""
        text = json.dumps(self.about, sort_keys=True).encode()
        names = sorted(self.arrays)
        numbers = digest(*(self.arrays[name] for name in names))
        return hashlib.sha256(b"\n".join([text, *(name.encode() for name in names), numbers])).hexdigest()


class DamagedError(ValueError):
    """The file is not what :func:`write` made of a pass; the message says why."""


def write(file: BinaryIO, values: Pass) -> str:
    """Write a pass to an open file; its digest."""
    found = values.digest
    about = np.frombuffer(json.dumps({**values.about, "digest": found}).encode(), np.uint8)
    np.savez(file, allow_pickle=False, about=about, **values.arrays)
    return found


def read(path: Path) -> Pass:
    """Read a pass.

    Raises
    ------
    DamagedError
        The file cannot be read, was cut, has other numbers than were written, or numbers that are not finite.
    """
    if not path.is_file():  # a pipe would keep the reader waiting
        raise DamagedError("it is not a file")
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        about = dict(json.loads(arrays.pop("about").tobytes()))
        found, written = Pass(arrays, about), about.pop("digest")
    except OSError as error:
        raise DamagedError(error.strerror or str(error)) from None
    except Exception:  # an archive with a flipped byte fails in as many ways as it has bytes
        raise DamagedError("it is damaged") from None
    if found.digest != written:
        raise DamagedError("it is damaged")
    _check(found)
    return found


def _check(found: Pass) -> None:
    """Arrays must be what a solve can go on from."""
    block, images = found.arrays.get("block"), found.arrays.get("images")
    if block is None or images is None or block.ndim != 2 or block.shape != images.shape or 0 in block.shape:
        raise DamagedError("its vectors and images have different shapes")
    rows = [values for name, values in found.arrays.items() if name not in ("block", "images")]
    if any(values.shape != block.shape[:1] for values in rows):
        raise DamagedError("its row sums and vectors have different lengths")
    for values in found.arrays.values():
        if values.dtype != np.float64 or not np.isfinite(values).all():
            raise DamagedError("it holds something else than finite numbers")
