"""Short-time Fourier magnitudes of one block of samples.

Throughout: ``samples`` (n, channels) is the block, ``frame`` and ``hop`` count samples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from manifold_observer.tasks.arrays import Array, Floats
from manifold_observer.tasks.frames.framing import frame_view, strips

# Numbers that are transformed at a time: their spectra are room that the system gives anew, in little time if little.
_STRIP_NUMBERS = 2**14


def stft_magnitude(
    samples: Array, frame: int, hop: int | None = None, window: str = "hann", scale: float = 1.0
) -> Floats:
    r"""Linear magnitude of the short-time Fourier transform, channel by channel.

    .. math:: X_c(i, f) = \Bigl| \sum_{t=0}^{L-1} w(t)\, x_c(iH + t)\, e^{-2\pi \mathrm{i} f t / L} \Bigr|

    No padding: a frame holds samples of the recording only, and samples after the last whole frame
    are not used. The magnitude is not scaled by the window's sum.

    Parameters
    ----------
    samples
        One block, shape (n, channels).
    frame
        Samples in a frame, L.
    hop
        Samples between the starts of two frames, H; ``frame`` when absent.
    window
        Name of a window that :func:`scipy.signal.get_window` knows (the periodic form is used).
    scale
        What the samples are multiplied by, a power of two.

    Returns
    -------
    Shape (n_frames, channels * (L // 2 + 1)), in the unit of the samples, at least 0.

    Notes
    -----
    O(n log L) time.

    Examples
    --------
    Two cycles in eight samples stand in the third cell:

    >>> wave = np.cos(2 * np.pi * 2 * np.arange(8) / 8)[:, None]
    >>> stft_magnitude(wave, 8).round(2)
    array([[0., 1., 2., 1., 0.]])
    """
    frames = np.moveaxis(frame_view(samples, frame, hop or frame), 1, -1)
    spectra, taper = np.empty((*frames.shape[:2], frame // 2 + 1)), _taper(window, frame) * scale
    for part, wide in strips(frames, _STRIP_NUMBERS):
        np.abs(fft.rfft(np.multiply(wide, taper, out=wide), axis=-1), out=spectra[part])
    return spectra.reshape(len(frames), samples.shape[1] * (frame // 2 + 1))


def _taper(window: str, frame: int) -> NDArray[np.float64]:
    """The periodic form of a window; that of Hann, the usual one, as SciPy has it to the bit."""
    if window == "hann" and frame > 1:
        return np.asarray(0.5 + 0.5 * np.cos(np.linspace(-np.pi, np.pi, frame + 1)[:-1]))
    from scipy.signal import get_window  # noqa: PLC0415 - slow to import, for one line

    return np.asarray(get_window(window, frame))
