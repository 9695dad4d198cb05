"""A kernel projected on what landmarks span: exact where they are all, near where they are few, judged rightly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manifold_observer.tasks.engine import projected
from reference import dense
from strategies import examples, smooth_motion

N = 400
VALUES = smooth_motion(np.random.default_rng(0), N, 3)
DISTANCES = np.square(VALUES[:, None] - VALUES).sum(axis=-1)
KERNEL = np.exp(-DISTANCES / np.median(DISTANCES))


def solved(m, alpha=0.0, kernel=KERNEL, cut=97):
    """Eigenvalues, coordinates and row sums through the first m frames of the nested sequence, cut into blocks."""
    order = projected.nested(len(kernel), min(2 * m, len(kernel)))
    core = projected.core(kernel[np.ix_(order, order)], m)
    strips = [[kernel[first : first + cut][:, order[:m]]] for first in range(0, len(kernel), cut)]
    rows = projected.rows_of(core, strips, alpha)
    values, weights = projected.modes(core, projected.link_sums(strips, rows), rows, 4)
    sample = projected.spread_sample(len(kernel), 64, 0)
    with_sample = [
        [kernel[first : first + cut][:, sample], *own]
        for first, own in zip(range(0, len(kernel), cut), strips, strict=True)
    ]
    return values, projected.carry_over(with_sample, weights), sample


def residuals(values, carried, alpha, kernel=KERNEL):
    density = kernel.sum(axis=1) ** -alpha
    weighted = kernel * density[:, None] * density
    degrees = weighted.sum(axis=1)
    left = weighted @ carried.coordinates / degrees[:, None] - values * carried.coordinates
    return np.sqrt(degrees @ np.square(left) / (degrees @ np.square(carried.coordinates)))


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_modes__of_all_frames_are_those_of_the_kernel(alpha):
    values, carried, _ = solved(N, alpha)
    assert_allclose(values, dense.eigenpairs(KERNEL, alpha, 4)[0][1:5], rtol=1e-6)
    assert_allclose(carried.degrees, KERNEL.sum(axis=1), rtol=1e-5)
    assert residuals(values, carried, alpha).max() < 1e-5  # directions below 1e-5 of the largest are left out


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_estimate__bounds_the_true_residual(alpha):
    for m in (16, 32, 64):
        values, carried, sample = solved(m, alpha)
        found, truth = projected.estimate(carried, sample, values, alpha), residuals(values, carried, alpha)
        assert (truth <= found.bounds).all()
        assert found.bounds.max() < 4 * truth.max() + 1e-12


def test_modes__of_a_kernel_that_is_not_positive_stay_near():
    noise = np.random.default_rng(1).normal(size=(N, N))
    kernel = np.exp(-DISTANCES / np.median(DISTANCES) * (1 + 0.05 * (noise + noise.T)))
    assert np.linalg.eigvalsh(kernel)[0] < -0.1
    for m in (64, 128, 256):
        values, carried, _ = solved(m, kernel=kernel)
        assert_allclose(values, dense.eigenpairs(kernel, 0.0, 4)[0][1:5], rtol=0.05)
        assert residuals(values, carried, 0.0, kernel).max() < 0.03


@examples(20)
@given(st.integers(1, 300), st.data())
def test_nested__each_beginning_is_spread_and_stays(n, data):
    m = data.draw(st.integers(1, n))
    found = projected.nested(n, m)
    assert_array_equal(projected.nested(n, n)[:m], found)
    assert_array_equal(np.sort(projected.nested(n, n)), np.arange(n))
    gaps = np.diff([-1, *np.sort(found), n])
    assert gaps.max() <= 4 * n / m + 1


def test_foresee__tells_what_more_frames_than_it_saw_will_leave():
    order = projected.nested(N, N // 2)
    seen, _ = projected.foresee(KERNEL[np.ix_(order, order)], [16, 32], 4, 0.0)
    for m, foreseen in zip((16, 32), seen, strict=True):
        values, carried, _ = solved(m)
        assert 0.3 < foreseen / (residuals(values, carried, 0.0).max() / values[0]) < 3
