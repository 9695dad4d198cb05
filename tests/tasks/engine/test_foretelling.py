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


def brute(coordinates, frames, run):
    """Share that the mean of what followed the ten nearest frames of other blocks foretells, frame by frame."""
    target, shares = frames / frames.std(axis=0), []
    for ahead in (4, 8):
        now = np.flatnonzero(run[:-ahead] == run[ahead:])
        later, block = target[now + ahead], np.arange(len(now)) * 5 // len(now)
        left, total = np.zeros(frames.shape[1]), np.zeros(frames.shape[1])
        for i, frame in enumerate(now):
            learn = np.flatnonzero(block != block[i])
            scale = coordinates[now[learn]].std(axis=0)
            far = np.square((coordinates[now[learn]] - coordinates[frame]) / scale).sum(axis=1)
            left += np.square(later[i] - later[learn[np.argsort(far)[:10]]].mean(axis=0))
            total += np.square(later[i] - later[learn].mean(axis=0))
        shares.append(np.maximum(1 - left / total, 0).mean())
    return np.mean(shares)


def test_nearby__is_what_followed_the_nearest_frames_of_other_blocks():
    rng = np.random.default_rng(2)
    frames, run = smooth_motion(rng, 150, 3), np.repeat([0, 1], 75)
    said = foretelling.nearby(frames, frames, run).foretold
    assert said.share == pytest.approx(brute(frames, frames, run), abs=1e-9)
    assert said.by_chance < 0.05 < said.share


def test_nearby__of_few_pairs_or_frames_in_another_order_there_is_nothing():
    rng = np.random.default_rng(3)
    frames = smooth_motion(rng, 400, 3)
    few = foretelling.nearby(frames, frames, np.arange(400) // 5)
    assert few.foretold == foretelling.Foretold(0.0, 0.0)
    assert not foretelling.surely_more(few, few)
    shuffled = frames[rng.permutation(400)]
    assert foretelling.nearby(shuffled, shuffled, np.zeros(400, int)).foretold.share < 0.05


def test_surely_more__asks_for_more_than_a_tenth_and_more_than_luck():
    def of(left):
        """Squared errors by pieces, of variance 1 each."""
        squares = np.stack([np.stack([left, np.ones((20, 1))])] * 2)
        return foretelling.Nearby(squares, 0.0)

    rng = np.random.default_rng(4)
    plain, steady, lucky = np.full((20, 1), 0.7), np.full((20, 1), 0.6), np.full((20, 1), 0.7)
    lucky[3] = 0.0  # more on average, by one piece alone
    assert foretelling.surely_more(of(steady), of(plain))
    assert of(lucky).foretold.share > 1.1 * of(plain).foretold.share
    assert not foretelling.surely_more(of(lucky), of(plain))
    assert not foretelling.surely_more(of(plain - 0.02 + 0.001 * rng.normal(size=(20, 1))), of(plain))
    assert not foretelling.surely_more(of(plain), of(steady))
