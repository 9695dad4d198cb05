"""What the property tests draw: shapes and seeds by Hypothesis, numbers by NumPy from the seed."""

import dataclasses
import itertools
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from profiles import QUICK

import manifold_observer.pipeline as mo
from manifold_observer.tasks.engine import kernel, quadratic
from reference import dense

seeds = st.integers(0, 2**32 - 1)


def examples(number):
    """Settings of a property that has its own number of examples; a third of them in a quick run."""
    return settings(max_examples=max(2, number // 3) if QUICK else number)


def share(cases, of):
    """All cases, or one in so many of them in a quick run."""
    return list(cases)[:: of if QUICK else 1]


seldom = pytest.mark.skipif(QUICK, reason="takes long, and others are near it: HYPOTHESIS_PROFILE=all")
"""For tests that take long and whose parts have quicker tests of their own."""

_GROUPS = {"engine": mo.Engine, "geometry": mo.Geometry}


def embed_options(**options):
    """Options of embed and plan out of flat ones: what belongs to a group is put into it."""
    for group, kind in _GROUPS.items():
        names = {own.name for own in dataclasses.fields(kind)} & set(options)
        options[group] = kind(**{name: options.pop(name) for name in names})
    return options


class Motion(NamedTuple):
    """Frames (n, p) that follow a hidden smooth motion, the segment of each (n,), and a window that fits."""

    frames: np.ndarray
    segment: np.ndarray
    window: int


def smooth_motion(rng, n, p, noise=0.1):
    """Two hidden numbers on a smooth path, seen by ``p`` linear sensors with noise, away from zero; (n, p)."""
    time = np.arange(n)[:, None] / 12
    hidden = np.sin(time * rng.uniform(0.5, 2, 2) + rng.uniform(0, 6, 2))
    return 2.0 + hidden @ rng.normal(size=(2, p)) + noise * rng.normal(size=(n, p))


def generators():
    """Seeded NumPy generators."""
    return seeds.map(np.random.default_rng)


@st.composite
def motions(draw, max_features=40, min_window=2, max_window=25, max_segments=3, extra=7):
    """Segmented frames; every segment holds at least one window."""
    p, window = draw(st.integers(1, max_features)), draw(st.integers(min_window, max_window))
    lengths = draw(st.lists(st.integers(window, window + extra), min_size=1, max_size=max_segments))
    segment = np.repeat(np.arange(len(lengths)), lengths)
    return Motion(smooth_motion(draw(generators()), len(segment), p), segment, window)


def chunkings(n):
    """Tuples of positive chunk sizes that sum to ``n`` >= 1."""
    if n == 1:
        return st.just((1,))
    cuts = st.sets(st.integers(1, n - 1), max_size=min(n - 1, 8))
    return cuts.map(lambda chosen: tuple(b - a for a, b in itertools.pairwise([0, *sorted(chosen), n])))


def spans(chunks):
    """(start, stop) of every chunk."""
    stops = np.cumsum(chunks)
    return [(int(stop - size), int(stop)) for size, stop in zip(chunks, stops, strict=True)]


def spd(rng, n, p, rank=None, condition=100.0):
    """``n`` symmetric matrices (p, p) with ``rank`` eigenvalues (all by default) between 1 and ``condition``."""
    rank = p if rank is None else rank
    values = np.zeros((n, p))
    values[:, :rank] = condition ** rng.uniform(size=(n, rank))
    turns = np.linalg.qr(rng.normal(size=(n, p, p)))[0]
    matrices = (turns * values[:, None, :]) @ np.swapaxes(turns, 1, 2)
    return (matrices + np.swapaxes(matrices, 1, 2)) / 2


@st.composite
def spd_matrices(draw, n=1, max_size=8, condition=100.0):
    """Stacks (n, p, p) of positive definite matrices."""
    return spd(draw(generators()), n, draw(st.integers(1, max_size)), condition=condition)


def misaligned(values):
    """The same numbers at an address that is no multiple of their size, as arrays from a network may lie."""
    memory = np.empty(values.nbytes + values.itemsize, np.uint8)
    order = "C" if values.flags.c_contiguous else "F"
    shifted = np.ndarray(values.shape, values.dtype, buffer=memory.data, offset=values.itemsize // 2 + 1, order=order)
    shifted[...] = values
    return shifted


def cut_kernel(rng, cut, dtype, local):
    """Blocks of some frames in the quadratic form, one a span of ``cut``, the scale, and the dense kernel."""
    n = cut[-1][1]
    frames = smooth_motion(rng, n, 3)
    frames -= frames.mean(axis=0)
    precisions = spd(rng, n, 3, condition=4.0)
    distances = dense.distances(frames, precisions)
    epsilon = max(float(np.median(distances)), 1.0)
    scale = kernel.Scale(epsilon, epsilon * rng.uniform(0.5, 2, n) if local else None)
    whole = dense.kernel_local(distances, scale.local) if local else dense.kernel(distances, epsilon)
    block = quadratic.quadratic_block(frames, precisions).astype(dtype)
    return [block.take(slice(*span)) for span in cut], scale, whole
