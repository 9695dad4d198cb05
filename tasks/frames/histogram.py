"""Histogram features of one block of samples.

Throughout: ``samples`` (n, channels) is the block, ``frame`` and ``hop`` count samples, ``edges``
(n_bins + 1) are the bounds of the cells, shared by all channels.
"""

from __future__ import annotations

import numpy as np

from manifold_observer.tasks.arrays import Array, Floats, Integers
from manifold_observer.tasks.frames.framing import frame_view


class OutsideEdgesError(ValueError):
    """A sample lies in no cell of the histogram."""


def histogram(samples: Array, frame: int, edges: Array, hop: int | None = None, clip: bool = False) -> Floats:
    r"""Normalised histogram of every frame, one per channel, side by side.

    .. math:: h_{ck} = \frac{1}{L} \#\{t \in \text{frame} : e_k \le x_c(t) < e_{k+1}\}

    The last cell also holds its upper edge, as in :func:`numpy.histogram`.

    Parameters
    ----------
    samples
        One block, shape (n, channels).
    frame
        Samples that one histogram is computed from, L.
    edges
        Increasing bounds of the cells, shape (n_bins + 1,), in the unit of the samples.
    hop
        Samples between the starts of two frames; ``frame`` when absent, so that frames do not overlap.
    clip
        Count a sample outside the edges in the nearest cell instead of refusing it.

    Returns
    -------
    Shape (n_frames, channels * n_bins), channel by channel; each channel's part sums to 1.

    Raises
    ------
    OutsideEdgesError
        A sample lies outside the edges and ``clip`` is false, or is not finite.

    Notes
    -----
    O(n channels log n_bins) time; one integer per sample beside the block.

    Examples
    --------
    Two frames of three counts:

    >>> histogram(np.array([[0], [0], [1], [2], [2], [2]]), 3, np.array([0, 1, 2, 3])).round(2)
    array([[0.67, 0.33, 0.  ],
           [0.  , 0.  , 1.  ]])
    """
    cells = _cells(samples, edges, clip)
    n_bins, n_channels = len(edges) - 1, samples.shape[1]
    frames = frame_view(cells + n_bins * np.arange(n_channels), frame, hop or frame)
    width = n_channels * n_bins
    offsets = width * np.arange(len(frames))[:, None, None]
    counts = np.bincount((frames + offsets).ravel(), minlength=len(frames) * width)
    return counts.reshape(len(frames), width) / frame


def _cells(samples: Array, edges: Array, clip: bool) -> Integers:
    """Cell number of every sample, checked against the edges."""
    n_bins = len(edges) - 1
    cells = np.searchsorted(edges, samples, side="right") - 1
    cells[samples == edges[-1]] = n_bins - 1
    outside = (cells < 0) | (cells >= n_bins)
    lost = samples[outside & ~np.isfinite(samples)]
    if len(lost):
        raise OutsideEdgesError(f"a sample is {lost[0]}, not a number")
    if outside.any() and not clip:
        value = samples[outside][0]
        raise OutsideEdgesError(f"a sample of {value} lies outside the edges {edges[0]} .. {edges[-1]}")
    return np.clip(cells, 0, n_bins - 1)
