"""Logarithm of the root mean square of one block of samples, frame by frame."""

from __future__ import annotations

import numpy as np

from manifold_observer.tasks.arrays import Array, Floats
from manifold_observer.tasks.frames.framing import frame_view, strips

# Numbers of a frame that are added up in one product: a BLAS that is given more may share them among threads, and
# the last digits would tell how many it has.
_PRODUCT_NUMBERS = 2**13
# Channels from which adding rows of squares, a row after the other, is as fast as a product.
_MANY_CHANNELS = 256


class SilentFrameError(ValueError):
    """A frame is exactly zero, and zero has no logarithm."""


def log_rms(
    samples: Array, frame: int, hop: int | None = None, floor: float | None = None, scale: float = 1.0
) -> Floats:
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
    scale
        What the samples are multiplied by, a power of two.

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
    rms = np.sqrt(_squares(frame_view(samples, frame, hop or frame)) / frame) * scale
    if floor is not None:
        rms = np.maximum(rms, floor)
    if not rms.all():
        index, channel = np.argwhere(rms == 0)[0]
        raise SilentFrameError(f"channel {channel} is exactly zero in frame {index} of the block")
    return np.log(rms)


def _squares(frames: Array) -> Floats:
    """Sum of squares of every frame and channel, in double precision; digits are those of each frame alone."""
    n_frames, frame, channels = frames.shape
    rows = max(1, _PRODUCT_NUMBERS // max(1, channels))
    sums = np.zeros((n_frames, channels))
    with np.errstate(over="ignore"):
        for first in range(0, frame, rows):
            some = frames[:, first : first + rows]
            ones = np.ones(some.shape[1])
            for part, wide in strips(some):
                sums[part] += _sums_of_squares(wide, ones)
    return sums


def _sums_of_squares(wide: Floats, ones: Floats) -> Floats:
    """The same of frames in cache, which are overwritten; a product with as many ones adds them up."""
    n_frames, _, channels = wide.shape
    if channels == 1:
        return np.asarray(np.matmul(wide.transpose(0, 2, 1), wide).reshape(n_frames, 1))
    if channels >= _MANY_CHANNELS:
        return np.asarray(np.einsum("ftc,ftc->fc", wide, wide))
    return np.asarray(np.matmul(ones, np.multiply(wide, wide, out=wide)))
