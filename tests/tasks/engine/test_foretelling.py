"""What lasts is foretold, and what is shuffled is not."""

import numpy as np
import pytest
from hypothesis import given, settings

from manifold_observer.tasks.engine import foretelling
from strategies import generators, smooth_motion


def precisions(frames):
    return np.repeat(np.linalg.inv(np.cov(frames, rowvar=False))[None], len(frames), axis=0)


@settings(max_examples=5)
@given(generators())
def test_foretold__beats_chance_on_a_smooth_motion_and_not_on_its_frames_in_another_order(rng):
    frames = smooth_motion(rng, 600, 5)
    frames -= frames.mean(axis=0)
    psi = foretelling.coordinates(frames, precisions(frames), 3).coordinates
    run = np.zeros(600, int)
    said = foretelling.foretold(psi, frames, run)
    assert said.share > 10 * said.by_chance
    order = rng.permutation(600)
    assert foretelling.foretold(psi[order], frames[order], run).share < 0.05


def test_coordinates__are_the_eigenvectors_of_the_markov_matrix():
    rng = np.random.default_rng(0)
    frames = smooth_motion(rng, 80, 4) - 2.0
    precision = precisions(frames) * rng.uniform(0.5, 2, (80, 1, 1))
    apart = frames[:, None] - frames[None]
    squared = np.einsum("ijp,ipq,ijq->ij", apart, precision, apart)
    d = (squared + squared.T) / 2
    kernel = np.exp(-d / np.median(d[np.triu_indices(80, 1)]))
    values, vectors = np.linalg.eig(kernel / kernel.sum(axis=1, keepdims=True))
    order = np.argsort(-values.real)[1:4]
    psi = foretelling.coordinates(frames, precision, 3).coordinates
    for k, j in enumerate(order):
        assert abs(np.corrcoef(psi[:, k], vectors[:, j].real)[0, 1]) == pytest.approx(1, abs=1e-4)
    np.testing.assert_allclose(np.mean(psi**2, axis=0), 1)


def test_foretold__pairs_do_not_reach_over_the_end_of_a_run():
    rng = np.random.default_rng(1)
    frames = smooth_motion(rng, 400, 3)
    alone = foretelling.foretold(frames, frames, np.arange(400) // 4)  # runs of 4: three ahead only, and no five
    assert alone == foretelling.Foretold(0.0, 0.0)
    assert foretelling.foretold(frames[:30], frames[:30], np.zeros(30, int)) == foretelling.Foretold(0.0, 0.0)


def test_coordinates__of_frames_that_are_mostly_equal_are_finite():
    frames = np.where(np.arange(120)[:, None] % 10 == 5, np.random.default_rng(0).normal(size=(120, 3)), 0.0)
    found = foretelling.coordinates(frames, np.repeat(np.eye(3)[None], 120, axis=0), 2)
    assert found.mostly_equal
    assert found.scale > 0.1
    assert np.isfinite(found.coordinates).all()
    assert foretelling.foretold(found.coordinates, frames, np.zeros(120, int)).share < 0.2
