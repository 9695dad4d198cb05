"""Settings that suit recordings, found on a sample of their frames and written down."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import dask
import dask.threaded

from ..embedding.tune import Tuned, tune
from ..stores.address import Address, Place, place
from ..stores.objects import look, write_new
from .config import RunConfig
from .reach import check_reach
from .run import Given, features_of, notes_of, open_all


def tune_run(recordings: Sequence[Given], config: RunConfig, out: Given) -> tuple[Tuned, str]:
    """Find settings of the embedding that suit recordings, and write them down for ``run --config``.

    Parameters
    ----------
    recordings
        Files, in the order of time.
    config
        Features and settings that all candidates share.
    out
        TOML file to write, which must not exist.

    Returns
    -------
    What the scan found, and the text that was written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import manifold_observer.pipeline as mo
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "wave.npy", np.sin(np.arange(300)[:, None] / [5, 7]))
    >>> found, text = tune_run([folder / "wave.npy"], mo.RunConfig(mo.FeatureConfig("identity")), folder / "wave.toml")
    >>> text.splitlines()[0]
    'features = "identity"'
    """
    paths, target = [place(path) for path in recordings], place(out)
    check_reach(paths)
    _check_new(target)
    opened = open_all(paths, config)
    with dask.config.set(scheduler=dask.threaded.get):
        found = tune(features_of(opened, config), config.embedding)
    notes = "".join(f"# {note}\n" for note in notes_of(opened))
    text = notes + replace(config, embedding=found.config).to_toml()
    _write_new(target, text)
    return found, text


def _check_new(out: Place) -> None:
    """Refuse a file that exists already."""
    there = os.path.lexists(out) if isinstance(out, Path) else not out.is_web and look(out) is not None
    if there:
        raise FileExistsError(f"tune: {out} already exists. Choose another name.")
    if isinstance(out, Address) and out.is_web:
        raise ValueError(f"tune: OUT must be a path, s3:// or gs://; got {out}. Web servers are only read.")


def _write_new(out: Place, text: str) -> None:
    """Write a file that does not exist yet, whole."""
    if isinstance(out, Address):
        write_new(out, text.encode())
        return
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except BaseException as error:
        if not isinstance(error, FileExistsError):
            out.unlink(missing_ok=True)
        raise
