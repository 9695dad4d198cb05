"""Rivals that are learnt from the first frames and read the others: what streaming costs whoever does it.

Conditioning, axes, maps and lags are those of the first frames. Linear rivals need nothing else; new frames enter
diffusion maps by Nystrom's extension, measured by the window around them, half of which is ahead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import rivals
from .case import Case, segments

Array = NDArray[Any]

RIVALS = ("pca conditioned pole 0.7", "tica conditioned pole 0.7", "dm raw pole 0.0", "dm conditioned pole 0.0")
"""One of each kind, the best of its kind among those that smooth all recordings alike."""


def streamed(case: Case, n_first: int, m: int) -> dict[str, Array]:
    """What each rival says of all frames (n, m), having learnt from the first ones alone."""
    apart = [slice(s.start, min(s.stop, n_first)) for s in segments(case.frames) if s.start < n_first]
    apart += [slice(max(s.start, n_first), s.stop) for s in segments(case.frames) if s.stop > n_first]
    first = [span for span in apart if span.stop <= n_first]
    spans, plain = segments(case.frames), case.plain
    known = rivals.condition(plain[:n_first], case.kind)
    made = {
        "pca conditioned": rivals.principal(known, m),
        "tica conditioned": rivals.tica(known, first, m),
    }
    scaled = _scaled(plain, n_first, case.kind)
    found = {name: rivals.smoothed(_linear(scaled, estimate), spans, 0.7) for name, estimate in made.items()}
    ridge = rivals._RIDGE
    maps = {"dm raw": (plain, 0.0), "dm conditioned": (_linear(scaled, known), ridge)}
    found |= {name: _extended(features, n_first, apart, m, share) for name, (features, share) in maps.items()}
    return dict(zip(RIVALS, found.values(), strict=True))


def _scaled(plain: Array, n_first: int, kind: str) -> Array:
    """All features by the transform of the first frames, before any axes."""
    if kind == "sensor":
        deviation = plain[:n_first].std(axis=0)
        return plain / np.where(deviation > 0, deviation, 1.0)
    return np.sqrt(plain) if kind in ("counts", "histogram", "magnitude") else plain


def _linear(features: Array, learnt: Array) -> Array:
    """What is linear in the features of the first frames, for all frames; by least squares, which finds it exactly."""
    n = len(learnt)
    mean = features[:n].mean(axis=0)
    weights = np.linalg.lstsq(features[:n] - mean, learnt - learnt.mean(axis=0), rcond=None)[0]
    return np.concatenate([learnt, learnt.mean(axis=0) + (features[n:] - mean) @ weights])


def _extended(features: Array, n_first: int, spans: rivals.Spans, m: int, ridge: float) -> Array:
    """Diffusion maps of the first frames, and the others by their affinities to these."""
    distances = rivals._distances(features, spans, ridge)
    distances += distances.T.copy()
    epsilon = np.median(distances[:n_first, :n_first][np.triu_indices(n_first, 1)])
    psi = rivals.diffusion_maps(features[:n_first], [s for s in spans if s.stop <= n_first], m, ridge)
    apart = distances[:, :n_first]
    kernel = np.exp((apart.min(axis=1, keepdims=True) - apart) / epsilon)
    kernel /= kernel.sum(axis=1, keepdims=True)
    means = kernel @ psi
    # What a mean over neighbours takes away, as told by the first frames.
    slope = (means[:n_first] * psi).sum(axis=0) / np.square(means[:n_first]).sum(axis=0)
    return np.concatenate([psi, means[n_first:] * slope])
