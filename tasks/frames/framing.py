"""How one block of samples is cut into frames."""

from __future__ import annotations

import threading
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


def strips(frames: Array, most: int = STRIP_NUMBERS) -> Iterator[tuple[slice, Floats]]:
    """Frames in double precision, as many at a time as stay in cache.

    Parameters
    ----------
    frames
        Shape (n_frames, frame, channels).
    most
        Numbers at a time, but for a frame of more.

    Yields
    ------
    Which frames, and their numbers in room that the next ones take, and whoever asks next in this thread; they may be
    overwritten.

    Examples
    --------
    >>> [(part, wide.ravel()) for part, wide in strips(np.arange(2, dtype=np.int16)[:, None, None])]
    [(slice(0, 2, None), array([0., 1.]))]
    """
    n_frames, frame, channels = frames.shape
    step = min(max(1, most // max(1, frame * channels)), n_frames)
    room = _room(step * frame * channels).reshape(step, frame, channels)
    for first in range(0, n_frames, max(1, step)):
        part = frames[first : first + step]
        wide = room[: len(part)]
        wide[...] = part
        yield slice(first, first + len(part)), wide


class _Kept(threading.local):
    """Room that stays with its thread: where the system gives it anew, as on Dask's workers, that doubles the time."""

    def __init__(self) -> None:
        self.numbers = np.empty(STRIP_NUMBERS)


_KEPT = _Kept()


def _room(size: int) -> Floats:
    """Room for some numbers in double precision."""
    return _KEPT.numbers[:size] if size <= STRIP_NUMBERS else np.empty(size)
