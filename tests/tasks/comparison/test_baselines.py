"""Principal components by blocks."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from manifold_observer.tasks.comparison.baselines import principal_axes, scatter
from reference import dense
from strategies import chunkings, generators, spans


@given(st.data(), generators(), st.integers(4, 30), st.integers(1, 6))
def test_principal_axes__give_the_scores_of_the_reference(data, rng, n, p):
    frames = 5 + rng.normal(size=(n, p)) * 3.0 ** np.arange(p)
    mean = frames.mean(axis=0)
    total = sum(scatter(frames[a:b], mean) for a, b in spans(data.draw(chunkings(n))))
    assert_allclose(total, (n - 1) * np.cov(frames, rowvar=False).reshape(p, p), rtol=1e-9, atol=1e-9)

    n_components = data.draw(st.integers(1, min(p, n - 1)))
    axes = principal_axes(total, n_components)
    assert_allclose(axes.T @ axes, np.eye(n_components), atol=1e-12)
    variance = np.sum(((frames - mean) @ axes) ** 2, axis=0)
    assert_allclose(variance, np.sum(dense.pca(frames, n_components) ** 2, axis=0), rtol=1e-9, atol=1e-9)


def test_principal_axes__scores_by_hand_and_sign():
    frames = np.array([[0.0, 0], [-3, -4], [-9, -12]])
    axes = principal_axes(scatter(frames, frames.mean(axis=0)), 1)
    assert_allclose(axes, [[0.6], [0.8]])
    assert_allclose(np.abs((frames - frames.mean(axis=0)) @ axes), np.abs(dense.pca(frames, 1)))


def test_principal_axes__largest_entry_is_positive():
    axes = principal_axes(np.array([[1.0, -2], [-2, 5]]), 2)
    largest = axes[np.argmax(np.abs(axes), axis=0), [0, 1]]
    assert (largest > 0).all()
