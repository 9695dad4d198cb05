"""Logarithm of the root mean square of one block of samples, frame by frame."""

from __future__ import annotations

import numpy as np

from manifold_observer.tasks.arrays import Array, Floats
from manifold_observer.tasks.frames.framing import frame_view

# Numbers that are squared at a time: they stay in cache, where whole blocks in double precision would not.
_STRIP_NUMBERS = 2**15


class SilentFrameError(ValueError):
    """A frame is exactly zero, and zero has no logarithm."""


def log_rms(samples: Array, frame: int, hop: int | None = None, floor: float | None = None) -> Floats:
    r"""Natural logarithm of the root mean square of every frame and channel.

    .. math:: f_c(i) = \log \sqrt{\tfrac1L \textstyle\sum_t x_c(iH + t)^2}

    Parameters
    ----------
    samples
        One block, shape (n, channels).
    frame
        Samples in a frame, L.
    hop
        Samples between the starts of two frames, H; ``frame`` when absent.
    floor
        Smallest root mean square, in the unit of the samples; quieter frames are raised to it.

    Returns
    -------
    Shape (n_frames, channels), natural logarithm of the samples' unit.

    Raises
    ------
    SilentFrameError
        A frame is exactly zero and no ``floor`` is given.

    Examples
    --------
    >>> log_rms(np.array([[1.0], [-1.0], [np.e], [np.e]]), 2)
    array([[0.],
           [1.]])
    """
    rms = np.sqrt(_squares(frame_view(samples, frame, hop or frame)) / frame)
    if floor is not None:
        rms = np.maximum(rms, floor)
    silent = np.argwhere(rms == 0)
    if len(silent):
        index, channel = silent[0]
        raise SilentFrameError(f"channel {channel} is exactly zero in frame {index} of the block")
    return np.log(rms)


def _squares(frames: Array) -> Floats:
    """Sum of squares of every frame and channel, in double precision."""
    n_frames, frame, channels = frames.shape
    step = max(1, _STRIP_NUMBERS // (frame * channels))
    sums, strip = np.empty((n_frames, channels)), np.empty((min(step, n_frames), frame, channels))
    for first in range(0, n_frames, step):
        part = frames[first : first + step]
        own = strip[: len(part)]
        own[...] = part
        np.einsum("ftc,ftc->fc", own, own, out=sums[first : first + step])
    return sums
