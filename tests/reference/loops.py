"""Features in NumPy, frame by frame: slow, plain, and written from their definitions."""

import numpy as np


def histogram(samples, frame, edges):
    """Counts of each channel in cells [edges_b, edges_b+1), the last one closed, divided by ``frame``.

    Frames follow each other without overlap, an incomplete last one is dropped;
    (n, channels) → (N, channels * (len(edges) - 1)), channel by channel.
    """
    samples = np.asarray(samples, dtype=np.float64)
    n_samples, n_channels = samples.shape
    n_bins = len(edges) - 1
    n_frames = n_samples // frame
    features = np.zeros((n_frames, n_channels * n_bins))
    for i in range(n_frames):
        piece = samples[i * frame : (i + 1) * frame]
        for c in range(n_channels):
            counts, _ = np.histogram(piece[:, c], bins=edges)
            features[i, c * n_bins : (c + 1) * n_bins] = counts / frame
    return features


def stft(samples, frame, hop=None):
    """Unscaled magnitude |Σ_n h(n) x(n) exp(−2πi kn/frame)| with h(n) = ½ − ½ cos(2πn/frame), k ≤ frame/2.

    Frame i begins at sample i * ``hop`` (default ``frame``), nothing is padded;
    (n, channels) → (N, channels * (frame // 2 + 1)), channel by channel.
    """
    samples = np.asarray(samples, dtype=np.float64)
    if hop is None:
        hop = frame
    n_samples, n_channels = samples.shape
    n_bins = frame // 2 + 1
    starts = range(0, n_samples - frame + 1, hop)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(frame) / frame)
    features = np.zeros((len(starts), n_channels * n_bins))
    for i, start in enumerate(starts):
        for c in range(n_channels):
            spectrum = np.fft.rfft(hann * samples[start : start + frame, c])
            features[i, c * n_bins : (c + 1) * n_bins] = np.abs(spectrum)
    return features


def log_rms(samples, frame):
    """log sqrt(mean_n x(n)²) of each channel over frames without overlap; −inf for an all-zero frame."""
    samples = np.asarray(samples, dtype=np.float64)
    n_samples, n_channels = samples.shape
    n_frames = n_samples // frame
    features = np.zeros((n_frames, n_channels))
    for i in range(n_frames):
        for c in range(n_channels):
            piece = samples[i * frame : (i + 1) * frame, c]
            features[i, c] = np.log(np.sqrt(np.mean(piece**2)))
    return features
