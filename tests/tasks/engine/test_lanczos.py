"""Block Lanczos against the whole eigendecomposition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import circulant, subspace_angles

from manifold_observer.tasks.engine import diffusion, lanczos
from manifold_observer.tasks.engine.lanczos import NotConvergedError, largest_eigenpairs
from reference import dense
from strategies import generators


def solve(matrix, n_pairs, width=6, tolerance=1e-10, max_passes=200, on_pass=None):
    start = lanczos.random_block(len(matrix), width, seed=0)
    state = lanczos.begin(start, matrix @ start)
    options = {"tolerance": tolerance, "max_passes": max_passes, "on_pass": on_pass}
    return largest_eigenpairs(lambda x: matrix @ x, state, n_pairs, **options)


def with_spectrum(rng, values):
    turn = np.linalg.qr(rng.normal(size=(len(values), len(values))))[0]
    matrix = (turn * values) @ turn.T
    return (matrix + matrix.T) / 2


def assert_eigenpairs(matrix, pairs, n_pairs, tolerance=1e-8):
    scale = max(np.abs(np.linalg.eigvalsh(matrix)).max(), 1e-300)
    expected = np.linalg.eigvalsh(matrix)[::-1][:n_pairs]
    assert_allclose(pairs.values, expected, atol=tolerance * scale)
    assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(n_pairs), atol=1e-9)
    true = np.linalg.norm(matrix @ pairs.vectors - pairs.vectors * pairs.values, axis=0)
    assert_allclose(pairs.residuals, true, atol=1e-12 * scale)
    assert true.max() <= tolerance * scale


@given(generators(), st.integers(8, 40), st.integers(1, 6), st.integers(1, 8))
def test_largest_eigenpairs__of_any_symmetric_matrix(rng, n, n_pairs, width):
    matrix = with_spectrum(rng, rng.uniform(-1, 1, n))
    pairs, state = solve(matrix, n_pairs, width)
    assert_eigenpairs(matrix, pairs, n_pairs)
    basis = np.asarray(state.basis)
    assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    assert_allclose(state.images, matrix @ basis, atol=1e-11)


def test_largest_eigenpairs__largest_algebraic_not_largest_magnitude():
    pairs, _ = solve(np.diag([-9.0, -5, 1, 2, 0, -7]), 2, width=2)
    assert_allclose(pairs.values, [2, 1], atol=1e-9)


def test_largest_eigenpairs__degenerate_pairs_of_a_circulant():
    n = 60
    distance = np.minimum(np.arange(n), n - np.arange(n))
    matrix = circulant(np.exp(-(distance**2) / 20.0))
    pairs, _ = solve(matrix, 5)
    assert_eigenpairs(matrix, pairs, 5)
    assert_allclose(pairs.values[1::2], pairs.values[2::2], rtol=1e-8)
    angle = 2 * np.pi * np.arange(n) / n
    for mode in (1, 2):
        plane = np.column_stack([np.cos(mode * angle), np.sin(mode * angle)])
        assert subspace_angles(pairs.vectors[:, [2 * mode - 1, 2 * mode]], plane).max() < 1e-6


@pytest.mark.parametrize("spread", [0.0, 1e-12, 1e-6])
def test_largest_eigenpairs__clusters_up_to_the_width(spread):
    rng = np.random.default_rng(1)
    values = np.concatenate([1 - spread * np.arange(6), rng.uniform(-0.5, 0.5, 44)])
    matrix = with_spectrum(rng, values)
    pairs, _ = solve(matrix, 6, width=6)
    assert_eigenpairs(matrix, pairs, 6)
    _, vectors = np.linalg.eigh(matrix)
    assert subspace_angles(pairs.vectors, vectors[:, -6:]).max() < 1e-7


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_largest_eigenpairs__fewer_frames_than_vectors(n):
    matrix = with_spectrum(np.random.default_rng(n), np.arange(1.0, n + 1))
    pairs, state = solve(matrix, n, width=20)
    assert_eigenpairs(matrix, pairs, n)
    assert (state.passes, state.basis.shape) == (1, (n, n))


@pytest.mark.parametrize("rank", [0, 1, 2, 5])
def test_largest_eigenpairs__of_low_rank(rank):
    values = np.zeros(30)
    values[:rank] = 1.0 + np.arange(rank)
    matrix = with_spectrum(np.random.default_rng(rank), values)
    pairs, _ = solve(matrix, 4, width=6)
    assert_eigenpairs(matrix, pairs, 4, tolerance=1e-9)


def test_largest_eigenpairs__more_pairs_than_vectors_a_pass():
    matrix = with_spectrum(np.random.default_rng(3), np.linspace(-1, 1, 30))
    pairs, _ = solve(matrix, 9, width=2)
    assert_eigenpairs(matrix, pairs, 9)


def test_largest_eigenpairs__looks_beyond_an_invariant_subspace():
    pairs, _ = solve(np.eye(30), 8, width=4)
    assert_eigenpairs(np.eye(30), pairs, 8)


def test_largest_eigenpairs__goes_on_from_a_state():
    matrix = with_spectrum(np.random.default_rng(4), np.linspace(-1, 1, 60))
    whole, after = solve(matrix, 3)
    states = []
    with pytest.raises(NotConvergedError):
        solve(matrix, 3, max_passes=3, on_pass=lambda krylov, _: states.append(krylov))
    assert [krylov.passes for krylov in states] == [1, 2, 3]
    options = {"tolerance": 1e-10, "max_passes": 200}
    rest, end = largest_eigenpairs(lambda x: matrix @ x, states[-1], 3, **options)
    assert_array_equal(rest.values, whole.values)
    assert_array_equal(rest.vectors, whole.vectors)
    assert end.passes == after.passes > 3


def test_largest_eigenpairs__says_how_far_it_came():
    matrix = with_spectrum(np.random.default_rng(5), np.linspace(-1, 1, 80))
    with pytest.raises(
        NotConvergedError, match=r"3 of 3 pairs, the largest residual .* after 2 passes; it must be at most 1\.0e-10"
    ):
        solve(matrix, 3, max_passes=2)


def test_largest_eigenpairs__residuals_fall_and_are_reported():
    matrix = with_spectrum(np.random.default_rng(6), np.linspace(-1, 1, 80))
    seen = []
    pairs, _ = solve(matrix, 3, on_pass=lambda _, found: seen.append(found.residuals.max()))
    assert seen[-1] == pairs.residuals.max() <= 1e-10
    assert seen[0] > 1e-3


@given(generators(), st.integers(3, 20), st.integers(1, 6))
def test_begin__orthonormalises_and_takes_the_images_along(rng, n, width):
    matrix = with_spectrum(rng, rng.normal(size=n))
    block = rng.normal(size=(n, width)) * 10.0 ** rng.integers(-9, 9, width)
    block[:, -1] = block[:, 0]  # a vector twice is one direction
    state = lanczos.begin(block, matrix @ block)
    assert state.basis.shape[1] == state.newest == min(n, max(width - 1, 1))
    assert_state(matrix, state, passes=1)


@given(generators(), st.integers(3, 30), st.integers(1, 6))
def test_extend__keeps_basis_images_and_projection_together(rng, n, width):
    matrix = with_spectrum(rng, rng.normal(size=n))
    start = rng.normal(size=(n, width))
    state = lanczos.begin(start, matrix @ start)
    for passes in (2, 3, 4):
        block = lanczos.next_block(state)
        state = lanczos.extend(state, block, matrix @ block)
        assert_state(matrix, state, passes)
        assert state.newest == block.shape[1] <= width


def assert_state(matrix, state, passes):
    basis = np.asarray(state.basis)
    assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    assert_allclose(state.images, matrix @ basis, atol=1e-8)
    assert_allclose(state.projected, basis.T @ matrix @ basis, atol=1e-8)
    assert state.passes == passes


def test_begin__zero_vectors_span_nothing():
    assert lanczos.begin(np.zeros((4, 2)), np.zeros((4, 2))).basis.shape == (4, 0)


def test_next_block__of_an_invariant_subspace_is_empty():
    start = np.eye(5)[:, :2]
    state = lanczos.begin(start, np.diag([1.0, 2, 3, 4, 5]) @ start)
    assert lanczos.next_block(state).shape == (5, 0)


def test_random_block__is_seeded():
    assert_array_equal(lanczos.random_block(5, 2, 7), lanczos.random_block(5, 2, 7))
    assert (lanczos.random_block(5, 2, 7) != lanczos.random_block(5, 2, 8)).all()


@pytest.mark.parametrize("alpha", [0, 0.5, 1])
@pytest.mark.parametrize("n", [12, 60])
def test_first_pass__and_normalised_lead_to_the_reference(alpha, n):
    rng = np.random.default_rng(n)
    frames = rng.normal(size=(n, 2)) * [2.0, 1.0]
    k = dense.kernel(np.sum((frames[:, None] - frames) ** 2, axis=2), 1.0)
    start = lanczos.random_block(n, 8, seed=1)
    degrees = k.sum(axis=1)
    operator = lanczos.Normalised(degrees, alpha, None if alpha == 0 else k @ degrees**-alpha)
    state = lanczos.first_pass(operator, start, k @ start)
    assert state.passes == 1
    dense_s = operator.scaling[:, None] * k * operator.scaling
    x = rng.normal(size=(n, 2))
    values, vectors = np.linalg.eigh(dense_s)
    deflated = dense_s - np.outer(vectors[:, -1], vectors[:, -1])
    assert values[-1] == pytest.approx(1)
    assert_allclose(operator.apply(lambda v: k @ v, x), deflated @ x, atol=1e-12)
    assert_allclose(state.images, deflated @ np.asarray(state.basis), atol=1e-10)

    options = {"tolerance": 1e-11, "max_passes": 50}
    pairs, _ = largest_eigenpairs(lambda v: operator.apply(lambda w: k @ w, v), state, 3, **options)
    mu, expected = dense.eigenpairs(k, alpha, 3)
    assert_allclose(pairs.values, mu[1:4], atol=1e-11)
    psi = diffusion.coordinates(pairs.vectors, operator.scaling, alpha, degrees)
    assert_allclose(psi, expected, atol=1e-7)


def test_expected_passes__by_hand():
    assert lanczos.expected_passes(7, 1e-10, 1e-9) == 7
    assert lanczos.expected_passes(1, 0.5, 1e-9) == 8
    assert lanczos.expected_passes(4, 1e-4, 1.1e-8) == 8
    assert lanczos.expected_passes(9, 0.99e-4, 1e-4) == 9
    assert lanczos.expected_passes(9, 1.01e-4, 1e-4) == 10
    assert lanczos.expected_passes(3, 0.0, 1e-9) == 3
