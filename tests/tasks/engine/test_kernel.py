"""Distances in their three forms against the slow loop, and the kernel."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manifold_observer.tasks.engine import cache, factor, forms, kernel, quadratic
from manifold_observer.tasks.engine import window as window_form
from manifold_observer.tasks.engine.covariance import PseudoInverse
from manifold_observer.tasks.engine.forms import build_block
from manifold_observer.tasks.engine.slab import Metric, Slab
from reference import dense
from strategies import Motion, chunkings, generators, motions, smooth_motion, spans, spd

GIVEN_FORMS = ("quadratic", "factor")
EPS32 = float(np.finfo(np.float32).eps)


def window_slab(motion, start, stop):
    """Frames start .. stop with the halo of their windows, as a task receives them."""
    starts = np.array([members[0] for members in dense.windows(motion.segment, motion.window)])[start:stop]
    low, high = min(starts[0], start), max(starts[-1] + motion.window, stop)
    frames = motion.frames - motion.frames.mean(axis=0)
    return Slab(frames[low:high], np.arange(start, stop) - low, starts - low, None)


def given_slab(frames, covariances, start, stop):
    rows = np.arange(stop - start)
    return Slab((frames - frames.mean(axis=0))[start:stop], rows, rows, covariances[start:stop])


def slow_distances(frames, covariances, how):
    if how.regularization:
        inverses = [np.linalg.inv(c + how.regularization * np.eye(frames.shape[1])) for c in covariances]
    else:
        inverses = [dense.pseudo_inverse(c, how.rank, how.tolerance) for c in covariances]
    return dense.distances(frames, inverses)


def clearly_cut(covariances, how):
    """Whether neither tolerance nor rank cuts through rounding."""
    if how.regularization:
        return True
    values = np.linalg.eigvalsh(covariances)[:, ::-1]
    shares = values / values[:, :1]
    clear = np.all(np.abs(shares / how.tolerance - 1) > 1e-2)
    if how.rank is not None and how.rank < shares.shape[1]:
        below, above = shares[:, how.rank], shares[:, how.rank - 1]
        clear &= np.all((above - below > 1e-3 * above) | (above < how.tolerance / 2))
    return bool(clear)


def all_tiles(blocks):
    """The whole matrix, as tiles of every pair of blocks."""
    return np.block([[kernel.squared_distances(rows, columns) for columns in blocks] for rows in blocks])


@st.composite
def inverses(draw, full_rank):
    """Ways to invert; a ridge goes without a rank."""
    tolerance = draw(st.sampled_from([1e-3, 0.02, 0.2]))
    if draw(st.booleans()):
        return PseudoInverse(None, tolerance, draw(st.sampled_from([1e-3, 0.1, 10.0])))
    return PseudoInverse(draw(st.none() | st.integers(1, full_rank + 1)), tolerance)


@given(st.data(), motions())
def test_squared_distances__all_forms_are_the_reference(data, motion):
    n, p = motion.frames.shape
    how = data.draw(inverses(min(p, motion.window - 1)))
    covariances = dense.window_covariances(motion.frames, motion.segment, motion.window)
    assume(clearly_cut(covariances, how))
    first = data.draw(st.integers(0, max(n - 35, 0)))
    looked_at = slice(first, first + 35)
    expected = slow_distances(motion.frames[looked_at], covariances[looked_at], how)
    cut = [(first + start, first + stop) for start, stop in spans(data.draw(chunkings(len(expected))))]
    for form in forms.FORMS:
        blocks = [build_block(window_slab(motion, *span), Metric(motion.window, how), form) for span in cut]
        assert_allclose(all_tiles(blocks), expected, atol=1e-9 * expected.max(), rtol=0, err_msg=form)


@pytest.mark.parametrize("form", forms.FORMS)
def test_squared_distances__small_eigenvalues_cost_no_digits(form):
    # 16 features and 17 frames: eigenvalues down to 2e-6 of the largest, beside the exact zero of the mean
    frames = smooth_motion(np.random.default_rng(238), 30, 16)
    motion = Motion(frames, np.zeros(30), 17)
    how = PseudoInverse(tolerance=1e-7)
    covariances = dense.window_covariances(*motion)
    assert clearly_cut(covariances, how)
    expected = slow_distances(frames, covariances, how)
    block = build_block(window_slab(motion, 0, 30), Metric(17, how), form)
    assert_allclose(kernel.squared_distances(block, block), expected, atol=1e-9 * expected.max(), rtol=0)


@given(st.data(), generators(), st.integers(2, 25), st.integers(1, 40))
def test_squared_distances__given_covariances_are_the_reference(data, rng, n, p):
    frames = smooth_motion(rng, n, p)
    covariances = spd(rng, n, p, data.draw(st.integers(1, p)), condition=data.draw(st.sampled_from([10.0, 1e4])))
    how = data.draw(inverses(p))
    assume(clearly_cut(covariances, how))
    expected = slow_distances(frames, covariances, how)
    for form in GIVEN_FORMS:
        cut = spans(data.draw(chunkings(n)))
        blocks = [build_block(given_slab(frames, covariances, *span), Metric(0, how), form) for span in cut]
        assert_allclose(all_tiles(blocks), expected, atol=1e-9 * expected.max(), rtol=0, err_msg=form)


@given(st.data(), motions(max_features=12))
def test_squared_distances__tile_is_symmetric_never_negative_zero_on_the_diagonal(data, motion):
    how = data.draw(inverses(motion.frames.shape[1]))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    for form in forms.FORMS:
        block = build_block(window_slab(motion, 0, len(motion.frames)), Metric(motion.window, how), form, dtype)
        tile = kernel.squared_distances(block, block)
        assert tile.dtype == dtype
        assert (tile >= 0).all()
        assert_allclose(tile, tile.T, atol=1e3 * np.finfo(dtype).eps * _size(block))
        exact = kernel.symmetric(tile)
        assert exact.dtype == dtype
        assert_array_equal(exact, exact.T)
        assert_array_equal(np.diag(exact), 0)
        assert (exact >= 0).all()


def _size(block):
    """The largest sum of magnitudes that a distance is the difference of."""
    magnitudes = block.astype(np.float64)
    if isinstance(block, quadratic.QuadraticBlock):
        half = magnitudes.features.shape[1] // 2
        features = np.abs(magnitudes.features)
        return (features[:, :half] @ features[:, half:].T).max()
    if isinstance(block, factor.FactorBlock):
        return ((np.abs(magnitudes.factors) @ np.abs(magnitudes.frames).T) ** 2).sum(axis=1).max() * 4
    halo, window = np.abs(magnitudes.halo), block.mixing.shape[2]
    factors = np.abs(magnitudes.mixing) @ np.stack([halo[first : first + window] for first in block.starts])
    spanned = ((factors @ halo.T) ** 2).sum(axis=1).max() * 4
    return spanned + (halo**2).sum(axis=1).max() * 4 * magnitudes.floor.max()


@given(st.data(), motions())
def test_squared_distances__float32_error_is_bounded(data, motion):
    how = data.draw(inverses(motion.frames.shape[1]))
    for form in forms.FORMS:
        exact = build_block(window_slab(motion, 0, len(motion.frames)), Metric(motion.window, how), form)
        single = exact.astype(np.float32)
        truth, tile = kernel.squared_distances(exact, exact), kernel.squared_distances(single, single)
        assert tile.dtype == np.float32
        assert np.abs(tile - truth).max() <= 32 * EPS32 * _size(exact)


@given(generators(), st.integers(1, 6), st.integers(8, 20))
def test_squared_distances__an_invertible_map_of_the_features_changes_nothing(rng, p, window):
    frames = smooth_motion(rng, 40, p, noise=0.3)
    turn = np.linalg.qr(rng.normal(size=(p, p)))[0]
    mapped = frames @ (spd(rng, 1, p, condition=30.0)[0] @ turn)
    metric = Metric(window, PseudoInverse(tolerance=1e-10))
    tiles = []
    for z in (frames, mapped + rng.normal(size=p)):
        starts = np.clip(np.arange(40) - window // 2, 0, 40 - window)
        slab = Slab(z - z.mean(axis=0), np.arange(40), starts, None)
        tiles.append(kernel.squared_distances(*2 * [build_block(slab, metric, "quadratic")]))
    assert tiles[0].max() > 1
    assert_allclose(tiles[0], tiles[1], atol=1e-8 * tiles[0].max(), rtol=0)


@pytest.mark.parametrize("form", forms.FORMS)
def test_squared_distances__one_feature_by_hand(form):
    # every window of two frames one apart has variance 1/2: d = 2 (z_i - z_j)^2
    slab = Slab(np.array([[-1.0], [0], [1]]), np.arange(3), np.array([0, 0, 1]), None)
    block = build_block(slab, Metric(2, PseudoInverse()), form)
    assert_allclose(kernel.squared_distances(block, block), [[0, 2, 8], [2, 0, 2], [8, 2, 0]], atol=1e-14)


@pytest.mark.parametrize("chosen", [np.array([3, 4, 29]), slice(5, 8)], ids=["some", "a slice"])
@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("shared", [0, 0.75, np.inf])
@pytest.mark.parametrize("form", forms.FORMS)
def test_take__is_a_part_of_the_tile(monkeypatch, form, shared, ridge, chosen):
    monkeypatch.setattr(window_form, "_SHARED", shared)
    # In the window form frames far apart bring a halo each, those that follow each other share one.
    rng = np.random.default_rng(4)
    slab = Slab(smooth_motion(rng, 30, 6), np.arange(30), np.clip(np.arange(30) - 4, 0, 22), None)
    block = build_block(slab, Metric(8, PseudoInverse(regularization=ridge)), form)
    part = block.take(chosen)
    assert (block.n_frames, part.n_frames) == (30, 3)
    whole = kernel.squared_distances(block, block)
    for rows, columns, expected in (
        (part, block, whole[chosen]),
        (block, part, whole[:, chosen]),
        (part, part, whole[chosen][:, chosen]),
    ):
        assert_allclose(kernel.squared_distances(rows, columns), expected, atol=1e-10 * whole.max())


@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize(
    "way", [{"_SPARSE": np.inf}, {"BAND_COST": 99}, {"BAND_COST": -99}, {"BAND_COST": -99, "GRAM_NUMBERS": 1}]
)
def test_squared_distances__sparse_windows_give_the_same_by_factors_and_by_gram_tiles(monkeypatch, way, ridge):
    rng = np.random.default_rng(4)
    frames, metric = smooth_motion(rng, 90, 6), Metric(8, PseudoInverse(regularization=ridge))
    whole = build_block(Slab(frames, np.arange(90), np.clip(np.arange(90) - 4, 0, 82), None), metric, "window")
    chosen = np.arange(0, 90, 4)
    expected = kernel.squared_distances(whole, whole)
    for name, value in way.items():
        monkeypatch.setattr(window_form, name, value)
    few = whole.take(chosen)
    assert_allclose(kernel.squared_distances(few, whole), expected[chosen], atol=1e-10 * expected.max())
    assert_allclose(kernel.squared_distances(whole, few), expected[:, chosen], atol=1e-10 * expected.max())
    assert_allclose(kernel.squared_distances(few, few), expected[chosen][:, chosen], atol=1e-10 * expected.max())


@pytest.mark.parametrize("rank", [None, 2], ids=["by factors", "by Gram tiles"])
def test_squared_distances__sparse_windows_take_a_few_times_the_tile(rank):
    rng, window, m, n = np.random.default_rng(6), 21, 800, 400
    far = Slab(rng.normal(size=(m * window, 25)), np.arange(m) * window + 10, np.arange(m) * window, None)
    near = Slab(rng.normal(size=(n + 20, 25)), np.arange(n) + 10, np.arange(n), None)
    metric = Metric(window, PseudoInverse(rank=rank))
    blocks = [build_block(slab, metric, "window") for slab in (far, near)]
    tracemalloc.start()
    tile = kernel.squared_distances(*blocks)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Tile, the other side of it, its Gram tile; a piece of that of the far windows, or scratch. Their whole Gram tile
    # would be 21 times the tile.
    assert peak < 4 * tile.nbytes + 2**25


def test_squared_distances__scratch_steps_do_not_show(monkeypatch):
    rng = np.random.default_rng(5)
    slab = Slab(smooth_motion(rng, 30, 9), np.arange(30), np.clip(np.arange(30) - 4, 0, 22), None)
    blocks = [build_block(slab, Metric(8, PseudoInverse()), form) for form in ("factor", "window")]
    before = [kernel.squared_distances(block, block) for block in blocks]
    for module, steps in ((cache, ("_SCRATCH_BYTES", "_COLUMNS")), (window_form, ("_BAND", "_IMAGE_NUMBERS"))):
        for name in steps:
            monkeypatch.setattr(module, name, 1)
    for block, tile in zip(blocks, before, strict=True):
        assert_allclose(kernel.squared_distances(block, block), tile, rtol=1e-10, atol=1e-10)


def test_squared_distances__refuses_two_forms():
    frames, eye = np.zeros((2, 1)), np.ones((2, 1, 1))
    with pytest.raises(TypeError, match="one form"):
        kernel.squared_distances(quadratic.quadratic_block(frames, eye), factor.factor_block(frames, eye))


@given(generators(), st.floats(0.01, 100), st.sampled_from([np.float32, np.float64]))
def test_kernel_from_distances__is_the_reference(rng, epsilon, dtype):
    distances = rng.exponential(size=(4, 7)).astype(dtype)
    affinities = kernel.kernel_from_distances(distances, epsilon)
    assert affinities.dtype == dtype
    assert_allclose(affinities, dense.kernel(distances, epsilon), rtol=200 * np.finfo(dtype).eps, atol=1e-37)


def test_kernel_from_distances__writes_where_it_is_told_and_nowhere_else():
    distances = np.array([[0.0, 1.0]])
    kernel.kernel_from_distances(distances, 1.0)
    assert distances.tolist() == [[0, 1]]
    assert kernel.kernel_from_distances(distances, 1.0, out=distances) is distances
    assert_allclose(distances, [[1, np.exp(-1)]])


def test_kernel_from_distances__far_frames_underflow_to_zero_quietly():
    assert kernel.kernel_from_distances(np.array([[1e30]], np.float32), 1e-6).tolist() == [[0]]


@given(generators(), st.integers(2, 9), st.sampled_from([np.float32, np.float64]))
def test_kernel_local__is_the_reference_by_tiles(rng, n, dtype):
    distances = rng.exponential(size=(n, n))
    distances = (distances + distances.T) / 2
    scales = rng.uniform(0.1, 10, n)
    cut = n // 2
    rows, columns = slice(0, cut), slice(cut, n)
    tile = kernel.kernel_local(distances[rows, columns].astype(dtype), scales[rows], scales[columns])
    assert tile.dtype == dtype
    assert_allclose(tile, dense.kernel_local(distances, scales)[rows, columns], rtol=500 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel_local__a_tile_on_the_diagonal_is_symmetric_to_the_bit(dtype):
    rng = np.random.default_rng(0)
    distances = kernel.symmetric(rng.exponential(size=(80, 80)).astype(dtype))
    scales = rng.exponential(size=80) + 0.1
    tile = kernel.kernel_local(distances, scales, scales)
    assert_array_equal(tile, tile.T)
