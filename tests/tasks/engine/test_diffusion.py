"""Coordinates, rates and the spectral gap against the slow reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manifold_observer.tasks.engine import diffusion
from reference import dense
from strategies import chunkings, generators, smooth_motion, spans

ALPHAS = [0, 0.5, 1]


def kernel_of(rng, n):
    frames = rng.normal(size=(n, 2)) * [2.0, 1.0]
    return dense.kernel(np.sum((frames[:, None] - frames) ** 2, axis=2), 2.0)


def scaling_of(k, alpha):
    degrees = k.sum(axis=1)
    return degrees, diffusion.symmetric_scaling(degrees, alpha, k @ degrees**-alpha)


@pytest.mark.parametrize("alpha", [*ALPHAS, 0.3])
def test_symmetric_scaling__makes_the_conjugate_of_a_markov_matrix(alpha):
    k = kernel_of(np.random.default_rng(0), 15)
    degrees, scaling = scaling_of(k, alpha)
    s = scaling[:, None] * k * scaling
    root = 1 / (scaling * degrees**alpha)  # D^1/2
    markov = s / root[:, None] * root
    assert_allclose(markov.sum(axis=1), 1)
    normalised = k / np.outer(degrees**alpha, degrees**alpha)
    assert_allclose(markov, normalised / normalised.sum(axis=1, keepdims=True))


def test_symmetric_scaling__alpha_needs_density_degrees():
    with pytest.raises(ValueError, match="needs density_degrees"):
        diffusion.symmetric_scaling(np.ones(2), 0.5)


@pytest.mark.parametrize("alpha", ALPHAS)
@given(rng=generators(), n=st.integers(6, 20))
def test_coordinates__are_the_reference(alpha, rng, n):
    k = kernel_of(rng, n)
    mu, expected = dense.eigenpairs(k, alpha, 3)
    degrees, scaling = scaling_of(k, alpha)
    _, vectors = np.linalg.eigh(scaling[:, None] * k * scaling)
    psi = diffusion.coordinates(vectors[:, [-2, -3, -4]], scaling, alpha, degrees)
    for mode in range(3):
        gap = min(mu[mode] - mu[mode + 1], mu[mode + 1] - mu[mode + 2])
        sizes = np.sort(np.abs(expected[:, mode]))
        if gap > 1e-3 and sizes[-1] - sizes[-2] > 1e-6:
            assert_allclose(psi[:, mode], expected[:, mode], atol=1e-9)
    assert_allclose(np.mean(psi**2, axis=0), 1)
    assert (psi[np.argmax(np.abs(psi), axis=0), range(3)] > 0).all()


@given(generators(), st.integers(1, 9))
def test_coordinates__do_not_know_the_sign_or_length_of_the_vectors(rng, n):
    vectors, scaling = rng.normal(size=(n, 2)), rng.uniform(0.5, 2, n)
    psi = diffusion.coordinates(vectors, scaling, 0.5, np.ones(n))
    assert_allclose(diffusion.coordinates(vectors * [-3.0, 0.1], scaling, 0.5, np.ones(n)), psi)


def test_signs__first_of_equals_decides():
    assert_array_equal(diffusion.signs(np.array([[-1.0, 2, 0], [1, -3, 0]])), [-1, -1, 1])


def test_step_rates__by_hand_and_never_negative():
    assert_allclose(diffusion.step_rates(np.array([1 + 1e-15, 1.0, np.exp(-2)])), [0, 0, 2])


@given(generators(), st.floats(0.1, 10), st.floats(1e-3, 1))
def test_generator_rates__of_both_alphas(rng, epsilon, duration):
    mu = rng.uniform(0.01, 1, 4)
    step = diffusion.step_rates(mu)
    plain = -np.log(mu) / (epsilon * duration)
    assert_allclose(diffusion.generator_rates(step, epsilon, 0, duration), plain)
    assert_allclose(diffusion.generator_rates(step, epsilon, 0.5, duration), 2 * plain)


def test_generator_rates__refuses_other_alphas():
    with pytest.raises(ValueError, match=r"alpha 0 and 0\.5, got 1"):
        diffusion.generator_rates(np.ones(1), 1.0, 1, 1.0)


@given(generators(), st.integers(2, 12), st.integers(0, 3))
def test_spectral_gap__is_the_reference(rng, positive, negative):
    values = np.concatenate([rng.uniform(0, 1, positive) + 1e-9, -rng.uniform(0, 1, negative)])
    values = np.sort(values)[::-1]
    assert diffusion.spectral_gap(values) == dense.spectral_gap(values)


def test_spectral_gap__few_values_and_equal_gaps():
    assert diffusion.spectral_gap(np.array([0.5])) == 1
    assert diffusion.spectral_gap(np.array([0.5, -0.9])) == 1
    assert diffusion.spectral_gap(np.array([0.75, 0.5, 0.25])) == 1


@given(st.data(), generators(), st.integers(2, 20), st.integers(1, 4))
def test_lift_sum__blocks_add_up_to_the_reference(data, rng, n, p):
    frames, psi = smooth_motion(rng, n, p), rng.normal(size=(n, 2))
    mean = frames.mean(axis=0)
    cut = spans(data.draw(chunkings(n)))
    total = sum(diffusion.lift_sum(frames[a:b], mean, psi[a:b]) for a, b in cut)
    assert_allclose(total / n, dense.lift(frames, psi), atol=1e-12)


def test_isolated__frames_with_no_affinity_but_their_own():
    assert_array_equal(diffusion.isolated(np.array([1.0, 1 + 1e-9, 1.1, 5])), [0, 1])
