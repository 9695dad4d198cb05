"""How one block of samples is cut into frames."""

from __future__ import annotations

import numpy as np

from manifold_observer.tasks.arrays import Array


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
