"""Landmarks against whole matrices."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manifold_observer.tasks.engine import diffusion, forms, kernel, landmarks
from manifold_observer.tasks.engine.covariance import PseudoInverse
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.forms import build_block
from manifold_observer.tasks.engine.kernel import Scale
from manifold_observer.tasks.engine.moments import Axes
from manifold_observer.tasks.engine.slab import Metric, Slab, narrow
from reference import dense
from strategies import chunkings, generators, smooth_motion, spans

N, WINDOW = 60, 9
METRIC = Metric(WINDOW, PseudoInverse())


def distance_of(form, p=3):
    return Distance(METRIC, Axes(np.zeros(p), None), form, "float64")


def slab_of(n=N, p=3, seed=0, noise=0.1):
    frames = smooth_motion(np.random.default_rng(seed), n, p, noise)
    starts = np.clip(np.arange(n) - WINDOW // 2, 0, n - WINDOW)
    return Slab(frames - frames.mean(axis=0), np.arange(n), starts, None)


def slow_kernel(slab):
    covariances = dense.window_covariances(slab.frames, np.zeros(len(slab.rows)), WINDOW)
    d = dense.distances(slab.frames, [dense.pseudo_inverse(c) for c in covariances])
    epsilon = dense.epsilon_median(d)
    return dense.kernel(d, epsilon), Scale(epsilon)


def unit(psi):
    psi = psi / np.sqrt(np.mean(np.square(psi), axis=0))
    return psi * diffusion.signs(psi)


def markov(affinities, alpha):
    weight = affinities.sum(axis=1) ** -alpha
    weighted = weight[:, None] * affinities * weight
    return weighted / weighted.sum(axis=1, keepdims=True)


# ----------------------------------------------------------------------------------------------- the choice


@given(st.integers(1, 400), st.data())
def test_uniform__is_ascending_distinct_and_even(n, data):
    m = data.draw(st.integers(1, n))
    chosen = landmarks.uniform(n, m)
    assert len(chosen) == m
    assert chosen[0] >= 0
    assert chosen[-1] < n
    steps = np.diff(chosen)
    assert (steps >= 1).all()
    assert len(set(steps)) <= 2
    if m == n:
        assert_array_equal(chosen, np.arange(n))


@given(generators(), st.integers(2, 40), st.booleans(), st.integers(0, 5), st.data())
def test_spread_points__are_distinct_ascending_and_seeded(rng, c, farthest, seed, data):
    m = data.draw(st.integers(1, c))
    frames = rng.integers(0, 4, (c, 2)).astype(float)  # many are equal
    chosen = landmarks.spread_points(frames, m, seed, farthest)
    assert len(chosen) == m
    assert (np.diff(chosen) > 0).all()
    assert (chosen >= 0).all()
    assert (chosen < c).all()
    assert_array_equal(landmarks.spread_points(frames, m, seed, farthest), chosen)


@given(generators(), st.integers(3, 40), st.data())
def test_spread_points__farthest_ones_are_apart_at_least_as_far_as_any_frame_from_them(rng, c, data):
    m = data.draw(st.integers(2, c - 1))
    frames = rng.normal(size=(c, 3))
    chosen = landmarks.spread_points(frames, m, seed=0, farthest=True)
    scaled = frames / frames.std(axis=0)
    apart = np.linalg.norm(scaled[:, None] - scaled[chosen], axis=2)
    covered = apart.min(axis=1).max()
    among = apart[chosen][np.triu_indices(m, 1)]
    assert among.min() >= covered - 1e-12


def test_spread_points__a_silent_feature_does_not_matter():
    frames = np.random.default_rng(0).normal(size=(30, 2))
    one = landmarks.spread_points(frames, 5, seed=3)
    other = landmarks.spread_points(np.column_stack([frames, np.full(30, 4.0)]), 5, seed=3)
    assert_array_equal(one, other)


def carried_over(slab, distance, anchors, sample, alpha, first=0, sampled=()):
    """What one span gives, by name."""
    placed, summed = landmarks.carry_over(slab, distance, anchors, sample, alpha, first, np.array(sampled, np.int64))
    return SimpleNamespace(**placed._asdict(), **summed._asdict())


# -------------------------------------------------------------------------------------------- Nystrom route


@pytest.mark.parametrize("form", forms.FORMS)
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_nystrom__with_all_frames_as_landmarks_is_the_reference(form, alpha):
    slab = slab_of()
    affinities, scale = slow_kernel(slab)
    mu, psi = dense.eigenpairs(affinities, alpha, 4)
    block = build_block(slab, METRIC, form)
    maps = landmarks.landmark_maps(block, scale, alpha, 4)
    assert_allclose(maps.eigenvalues, mu[1:5], atol=1e-9)
    assert_allclose(maps.coordinates, psi, atol=1e-6)
    assert_allclose(maps.degrees, affinities.sum(axis=1), rtol=1e-9)
    anchors = landmarks.nystrom_anchors(block, scale, maps, alpha)
    carried = carried_over(slab, distance_of(form), anchors, block, alpha)
    assert_allclose(carried.coordinates, psi, atol=1e-6)
    assert_allclose(carried.affinity, affinities.mean(axis=1), rtol=1e-9)
    assert_allclose(carried.lift, slab.frames.T @ psi, atol=1e-6)
    assert_allclose(carried.squares, np.full(4, N), rtol=1e-6)
    assert_allclose(carried.rows / carried.row_sums[:, None], markov(affinities, alpha) @ psi, atol=1e-6)
    near, affinity = landmarks.near_coordinates(block, anchors)
    assert_allclose(near, psi, atol=1e-6)
    assert_allclose(affinity, carried.affinity, rtol=1e-9)


@given(st.integers(1, N).flatmap(lambda m: st.tuples(st.just(m), chunkings(N))))
def test_carry_over__spans_add_up(drawn):
    m, chunks = drawn[0], drawn[1]
    slab = slab_of()
    block = build_block(slab, METRIC, "quadratic")
    _, scale = slow_kernel_of_all()
    chosen = block.take(landmarks.uniform(N, max(m, 8)))
    maps = landmarks.landmark_maps(chosen, scale, 0.0, 3)
    anchors = landmarks.nystrom_anchors(chosen, scale, maps, 0.0)
    sample = block.take(np.array([0, 30, 59]))
    whole = carried_over(slab, distance_of("quadratic"), anchors, sample, 0.0)
    parts = [
        carried_over(narrow(slab, *span, WINDOW), distance_of("quadratic"), anchors, sample, 0.0)
        for span in spans(chunks)
    ]
    size = np.abs(whole.coordinates).max()
    for name in ("coordinates", "affinity"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert_allclose(joined, getattr(whole, name), atol=1e-9 * size, rtol=0)
    for name in ("lift", "squares", "rows", "row_sums"):
        total = sum(getattr(part, name) for part in parts)
        assert_allclose(total, getattr(whole, name), atol=1e-8 * np.abs(getattr(whole, name)).max(), rtol=0)


@functools.cache
def slow_kernel_of_all():
    return slow_kernel(slab_of())


def test_carry_over__frames_worked_on_together_do_not_show(monkeypatch):
    slab = slab_of()
    block = build_block(slab, METRIC, "window")
    scale = slow_kernel_of_all()[1]
    maps = landmarks.landmark_maps(block, scale, 0.0, 2)
    anchors = landmarks.nystrom_anchors(block, scale, maps, 0.0)
    whole = carried_over(slab, distance_of("window"), anchors, block, 0.0)
    monkeypatch.setattr(landmarks, "FRAMES_TOGETHER", 7)
    again = vars(carried_over(slab, distance_of("window"), anchors, block, 0.0))
    for name, other in vars(whole).items():
        assert_allclose(again[name], other, atol=1e-9 * np.abs(other).max() if np.size(other) else 0)


def test_carry_over__sums_tell_what_is_asked_of_all_coordinates():
    slab = slab_of()
    block = build_block(slab, METRIC, "quadratic")
    scale = slow_kernel_of_all()[1]
    anchors = landmarks.nystrom_anchors(block, scale, landmarks.landmark_maps(block, scale, 0.0, 2), 0.0)
    anchors = anchors._replace(scale=scale._replace(epsilon=1e-6 * scale.epsilon))  # most frames are out of reach
    few = block.take(np.array([3, 40]))
    anchors = anchors._replace(block=few, density=anchors.density[:2], weights=anchors.weights[[3, 40]])
    cuts, parts = [(0, 20), (20, 50), (50, N)], []
    for low, high in cuts:
        part = narrow(slab, low, high, WINDOW)
        own = np.array([k - low for k in (7, 40) if low <= k < high], np.int64)
        parts.append(landmarks.carry_over(part, distance_of("quadratic"), anchors, block, 0.0, low, own))
    placed = landmarks.placed_together([placed for placed, _ in parts])
    summed = landmarks.summed_together(summed for _, summed in parts)
    alone = np.flatnonzero(placed.affinity == 0)
    assert (summed.alone, summed.first_alone) == (len(alone), alone[0])
    assert 0 < len(alone) < N
    assert_allclose(summed.sampled, placed.coordinates[[7, 40]], rtol=0)
    largest = np.abs(placed.coordinates).argmax(axis=0)
    assert_allclose(summed.largest, placed.coordinates[largest, [0, 1]], rtol=0)


@given(generators(), st.integers(1, 4))
def test_judge__over_all_frames_is_the_dense_residual(rng, k):
    affinities = slow_kernel_of_all()[0]
    psi = rng.normal(size=(N, k))
    judged = landmarks.judge(affinities @ psi, affinities.sum(axis=1), psi)
    moved = affinities / affinities.sum(axis=1, keepdims=True) @ psi
    for mode in range(k):
        mu, left, _, _ = np.linalg.lstsq(psi[:, [mode]], moved[:, mode], rcond=None)
        assert judged.eigenvalues[mode] == pytest.approx(mu[0], rel=1e-10)
        assert judged.residuals[mode] == pytest.approx(np.sqrt(left[0]) / np.linalg.norm(psi[:, mode]), rel=1e-9)


def test_judge__eigenvectors_have_no_residual():
    affinities = slow_kernel_of_all()[0]
    mu, psi = dense.eigenpairs(affinities, 0.0, 3)
    judged = landmarks.judge(affinities @ psi, affinities.sum(axis=1), psi)
    assert_allclose(judged.eigenvalues, mu[1:4], atol=1e-12)
    assert_allclose(judged.residuals, 0, atol=1e-12)


# ------------------------------------------------------------------------------------------ diffusion route


@pytest.mark.parametrize("form", forms.FORMS)
def test_diffusion_route__is_the_singular_value_decomposition_of_all_strips(form):
    slab = slab_of()
    affinities, scale = slow_kernel_of_all()
    chosen = landmarks.uniform(N, 15)
    strips = affinities[:, chosen]
    block = build_block(slab, METRIC, form).take(chosen)
    anchors = landmarks.Anchors(block, scale, np.ones(15), np.zeros((15, 1)), None)
    sums = landmarks.column_sums(slab, distance_of(form), anchors)
    assert_allclose(sums, strips.sum(axis=0), rtol=1e-8)
    anchors = anchors._replace(degrees=sums)
    links = landmarks.link_sums(slab, distance_of(form), anchors)
    degrees = strips @ strips.sum(axis=0)
    left, singular, right = scipy.linalg.svd(strips / np.sqrt(degrees)[:, None], full_matrices=False)
    assert_allclose(links, right.T @ np.diag(singular**2) @ right, atol=1e-8)
    assert singular[0] == pytest.approx(1.0)
    values, vectors = landmarks.diffusion_maps(links, 3)
    assert_allclose(values, singular[1:4], atol=1e-8)
    carried = carried_over(slab, distance_of(form), anchors._replace(weights=vectors), block, 0.0)
    expected = unit(left[:, 1:4] / np.sqrt(degrees)[:, None])
    assert_allclose(unit(carried.coordinates), expected, atol=1e-6)


# ------------------------------------------------------------------------------- blocks that come and go


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", forms.FORMS)
@given(st.data())
def test_take_and_join__keep_distances(dtype, form, data):
    whole = build_block(slab_of(40, 5), METRIC, form, dtype)
    truth = kernel.squared_distances(whole, whole)
    chosen = np.array(sorted(data.draw(st.sets(st.integers(0, 39), min_size=1))))
    part = whole.take(chosen)
    size = {np.float32: 1e-3, np.float64: 1e-9}[dtype] * truth.max()
    assert part.precision == dtype
    assert_allclose(kernel.squared_distances(part, whole), truth[chosen], atol=size, rtol=0)
    joined = forms.join([part.take(np.arange(a, b)) for a, b in spans(data.draw(chunkings(len(chosen))))])
    assert joined.n_frames == len(chosen)
    assert joined.precision == dtype
    assert_allclose(kernel.squared_distances(joined, whole), truth[chosen], atol=size, rtol=0)
    assert_allclose(kernel.squared_distances(joined, joined), truth[np.ix_(chosen, chosen)], atol=size, rtol=0)


@pytest.mark.parametrize("form", ["factor", "window"])
def test_join__blocks_of_different_ranks(form):
    slab = slab_of(40, 5)
    full, few = (build_block(slab, Metric(WINDOW, PseudoInverse(rank)), form) for rank in (None, 2))
    joined = forms.join([few.take(np.arange(10)), full.take(np.arange(10, 40))])
    found = kernel.squared_distances(joined, joined)
    assert_allclose(found[10:, 10:], kernel.squared_distances(full, full)[10:, 10:], atol=1e-9 * found.max())
    assert_allclose(found[:10, :10], kernel.squared_distances(few, few)[:10, :10], atol=1e-9 * found.max())


@pytest.mark.parametrize("form", forms.FORMS)
@given(st.data())
def test_narrow__has_the_distances_of_its_frames_and_no_more_halo_than_they_need(form, data):
    slab = slab_of(40, 4)
    first = data.draw(st.integers(0, 39))
    stop = data.draw(st.integers(first + 1, 50))
    few = narrow(slab, first, stop, WINDOW)
    assert len(few.rows) == min(stop, 40) - first
    assert len(few.frames) <= len(few.rows) + 2 * (WINDOW - 1)
    assert_array_equal(few.frames[few.rows], slab.frames[first:stop])
    whole = build_block(slab, METRIC, form)
    truth = kernel.squared_distances(whole, whole)
    found = kernel.squared_distances(build_block(few, METRIC, form), whole)
    assert_allclose(found, truth[first:stop], atol=1e-9 * truth.max(), rtol=0)


def test_narrow__given_covariances_go_along():
    covariances = np.arange(5.0)[:, None, None] + 1
    rows = np.arange(5)
    few = narrow(Slab(np.arange(5.0)[:, None], rows, rows, covariances), 2, 9, window=0)
    assert few.frames.ravel().tolist() == [2, 3, 4]
    assert few.rows.tolist() == few.starts.tolist() == [0, 1, 2]
    assert few.covariances.ravel().tolist() == [3, 4, 5]
