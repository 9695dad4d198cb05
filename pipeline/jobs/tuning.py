"""Settings that suit recordings, found on a sample of their frames and written down."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import dask

from ..clusters.sight import check_files
from ..embedding.tune import Tuned, tune
from .config import RunConfig
from .run import features_of, notes_of, open_all


def tune_run(recordings: Sequence[Path], config: RunConfig, out: Path) -> tuple[Tuned, str]:
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
    check_files(recordings)
    if os.path.lexists(out):
        raise FileExistsError(f"tune: {out} already exists. Choose another name.")
    opened = open_all(recordings, config)
    with dask.config.set(scheduler="threads"):
        found = tune(features_of(opened, config), config.embedding)
    notes = "".join(f"# {note}\n" for note in notes_of(opened))
    text = notes + replace(config, embedding=found.config).to_toml()
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except BaseException as error:
        if not isinstance(error, FileExistsError):
            out.unlink(missing_ok=True)
        raise
    return found, text
