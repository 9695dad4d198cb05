"""How one block of samples is cut into frames."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from manifold_observer.tasks.arrays import Array, Floats

STRIP_NUMBERS = 2**16
"""Numbers that are worked on at a time: in double precision they stay in cache, where whole blocks would not."""


def frame_view(samples: Array, frame: int, hop: int) -> Array:
    """All whole frames of a block as a view, nothing copied.

    Parameters
    ----------
    samples
        One block, shape (n, channels).
    frame
        Samples in a frame.
    hop
        Samples between the starts of two frames.

    Returns
    -------
    Shape (n_frames, frame, channels).

    Examples
    --------
    >>> frame_view(np.arange(5)[:, None], 3, 2)[..., 0]
    array([[0, 1, 2],
           [2, 3, 4]])
    """
    if hop == frame:
        n_frames = len(samples) // frame
        return samples[: n_frames * frame].reshape(n_frames, frame, samples.shape[1])
    if len(samples) < frame:
        return np.empty((0, frame, samples.shape[1]), samples.dtype)
    windows = np.lib.stride_tricks.sliding_window_view(samples, frame, axis=0)[::hop]
    return np.moveaxis(windows, -1, 1)


def strips(frames: Array) -> Iterator[tuple[slice, Floats]]:
    """Frames in double precision, as many at a time as stay in cache.

    Parameters
    ----------
    frames
        Shape (n_frames, frame, channels).

    Yields
    ------
    Which frames, and their numbers in room that the next ones take, too; they may be overwritten.

    Examples
    --------
    >>> [(part, wide.ravel()) for part, wide in strips(np.arange(2, dtype=np.int16)[:, None, None])]
    [(slice(0, 2, None), array([0., 1.]))]
    """
    n_frames, frame, channels = frames.shape
    step = min(max(1, STRIP_NUMBERS // max(1, frame * channels)), n_frames)
    room = np.empty((step, frame, channels))
    for first in range(0, n_frames, max(1, step)):
        part = frames[first : first + step]
        wide = room[: len(part)]
        wide[...] = part
        yield slice(first, first + len(part)), wide
