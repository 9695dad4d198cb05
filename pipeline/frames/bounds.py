"""Bounds on the memory of the feature tasks."""

from __future__ import annotations

from ..graph.limits import BASE_BYTES, CALLER_BYTES, Memory


def feature_memory(samples: int, framed: int, made: int, kept: int) -> Memory:
    """Bound the memory of the features, whose tasks read their own samples.

    Parameters
    ----------
    samples, framed
        Samples of one task, as they are read and as its frames hold them (frames may overlap), all channels.
    made
        Numbers of the frames that it makes.
    kept
        Bytes of a stored chunk that is decoded whole.

    Returns
    -------
    The bounds.
    """
    task = 16 * samples + 32 * framed + 8 * made + 2 * kept
    return Memory(task, BASE_BYTES + 4 * 8 * made + 2**25 + task, CALLER_BYTES)
