"""What memory there is for the tiles, and the refusal when they do not fit."""

from __future__ import annotations

import os
import sys

from .config import EmbedConfig

# Share of the memory that tiles may fill: beyond it a cluster spills, which is slower than recomputing.
_SHARE = 0.5
EXACT_FRAMES = 50_000
"""Frames up to which all pairs are a matter of minutes on two cores."""
LOCAL_BYTES = 2**26
"""Tiles up to this size are brought to the caller: a pass over them costs less than a round trip."""


def choose_method(n_frames: int, itemsize: int, config: EmbedConfig) -> str:
    """Exact as long as it is a matter of minutes or the tiles fit; landmarks beyond.

    Parameters
    ----------
    n_frames
        Frames of the embedding.
    itemsize
        Bytes of a number of a tile.
    config
        The method that was asked for, and the scale: a local one needs all pairs.

    Returns
    -------
    ``"exact"`` or ``"landmarks"``.
    """
    if config.method != "auto":
        return config.method
    if n_frames <= EXACT_FRAMES or config.epsilon == "local":
        return "exact"
    return "exact" if tile_bytes(n_frames, itemsize) <= int(_SHARE * worker_memory()) else "landmarks"


def choose_home(n_frames: int, itemsize: int, wanted: str) -> str:
    """Where the tiles of a kernel live: local when small, resident where they fit, else recomputed in every pass.

    Parameters
    ----------
    n_frames
        Frames of the embedding.
    itemsize
        Bytes of a number.
    wanted
        ``"auto"``, or a home that is taken if it fits.

    Returns
    -------
    ``"local"``, ``"resident"``, ``"recomputed"`` or ``"disk"``.

    Raises
    ------
    ValueError
        Resident tiles were asked for and do not fit; with the bytes on both sides, and what would fit.
    """
    if wanted == "local" or (wanted == "auto" and tile_bytes(n_frames, itemsize) <= LOCAL_BYTES):
        return "local"
    needed, there = tile_bytes(n_frames, itemsize), int(_SHARE * worker_memory())
    if needed <= there:
        return "resident" if wanted == "auto" else wanted
    if wanted == "resident":
        fits = int((2 * there / itemsize) ** 0.5)
        raise ValueError(
            f"embed: resident tiles must fit into half of the workers' memory; {n_frames} frames need "
            f"{needed / 2**30:.1f} GiB of {there / 2**30:.1f} GiB. About {fits} frames would fit: give "
            "home='recomputed', or more workers."
        )
    return "recomputed" if wanted == "auto" else wanted


def tile_bytes(n_frames: int, itemsize: int) -> int:
    """Bytes of the upper triangle, tiles of the diagonal whole.

    Examples
    --------
    >>> tile_bytes(1000, 4)
    2000000
    """
    return n_frames * n_frames // 2 * itemsize


def worker_memory() -> int:
    """Bytes of memory of all workers together, or of this machine without a cluster."""
    if "distributed" in sys.modules:
        from distributed import default_client  # noqa: PLC0415

        try:
            workers = default_client().scheduler_info(n_workers=-1)["workers"].values()
        except ValueError:
            workers = ()
        limits = [worker["memory_limit"] for worker in workers if worker["memory_limit"]]
        if limits:
            return int(sum(limits))
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
