"""What rivals say of a recording does not change from run to run: it may be kept in a folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def kept(folder: Path | None, what: Iterable[Any], make: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    """Arrays that were made from ``what`` before, or that are made now; text of programs is part of ``what``."""
    if folder is None:
        return make()
    digest = hashlib.sha256()
    for part in what:
        digest.update(part.tobytes() if isinstance(part, np.ndarray) else str(part).encode())
        digest.update(b"|")
    path = folder / f"{digest.hexdigest()[:32]}.npz"
    if path.is_file():
        with np.load(path) as stored:
            return {name: stored[name] for name in stored.files}
    made = make()
    folder.mkdir(parents=True, exist_ok=True)
    # Renamed when it is whole: several runs may share the folder.
    partial = path.with_suffix(f".{os.getpid()}.npz")
    np.savez(partial, **made)
    partial.replace(path)
    return made
