"""Blocks of new frames against whole matrices."""

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

from manifold_observer.tasks.engine import extension, factor, kernel
from manifold_observer.tasks.engine.covariance import PseudoInverse
from manifold_observer.tasks.engine.extension import Reference
from manifold_observer.tasks.engine.forms import FORMS, build_block
from manifold_observer.tasks.engine.slab import Metric, Slab
from reference import dense
from strategies import chunkings, smooth_motion, spans

N, M, P, WINDOW, K = 50, 20, 3, 9, 4
FRAMES = smooth_motion(np.random.default_rng(1), N + M, P)
FRAMES -= FRAMES[:N].mean(axis=0)
PSI = np.random.default_rng(2).normal(size=(N, 2))
MU = np.array([0.6, 0.3])
DEGREES = np.random.default_rng(3).uniform(1, 9, size=N)


def slab_of(frames):
    n = len(frames)
    return Slab(frames, np.arange(n), np.clip(np.arange(n) - WINDOW // 2, 0, n - WINDOW), None)


def precisions_of(frames, ridge=0.0):
    covariances = dense.window_covariances(frames, np.zeros(len(frames)), WINDOW)
    if ridge:
        return [np.linalg.inv(c + ridge * np.eye(P)) for c in covariances]
    return [dense.pseudo_inverse(c) for c in covariances]


def distances(one_sided, ridge=0.0):
    old, new = FRAMES[:N], FRAMES[N:]
    if one_sided:
        return dense.one_sided_distances(new, old, precisions_of(old, ridge))
    return dense.distances_to_known(new, precisions_of(new, ridge), old, precisions_of(old, ridge))


def point_block(frames, form, dtype=np.float64):
    return FORMS[form].points(frames).astype(dtype)


def blocks_of(form, one_sided, ridge=0.0, dtype=np.float64):
    metric = Metric(WINDOW, PseudoInverse(regularization=ridge))
    new = point_block(FRAMES[N:], form, dtype) if one_sided else build_block(slab_of(FRAMES[N:]), metric, form, dtype)
    return new, build_block(slab_of(FRAMES[:N]), metric, form, dtype)


def cut(block, columns, scales, chunks):
    for start, stop in spans(chunks):
        some = np.arange(start, stop)
        yield Reference(block.take(some), columns[some], None if scales is None else scales[some])


@pytest.mark.parametrize("ridge", [0.0, 0.05])
@pytest.mark.parametrize("form", FORMS)
def test_points__give_half_the_one_sided_distance(form, ridge):
    new, old = blocks_of(form, one_sided=True, ridge=ridge)
    assert new.n_frames == M
    assert_allclose(kernel.squared_distances(new, old), distances(True, ridge) / 2, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_shares__summed_and_finished_are_the_reference(form, one_sided, alpha, local):
    d = distances(one_sided)
    epsilon, scales = np.median(d), np.random.default_rng(4).uniform(0.5, 2, N) * np.median(d)
    over = d / epsilon
    new, old = blocks_of(form, one_sided)
    references = list(
        cut(old, extension.reference_columns(PSI, DEGREES, alpha), scales if local else None, (7, 30, 13))
    )
    own = None
    if local:
        tables = [extension.nearest(new, part, K, one_sided) for part in references]
        own = extension.own_scales(tables, K, 0.7, 1e-6)
        assert_allclose(own, dense.scales_of_new(d, K, 0.7), rtol=1e-9)
        over = d / np.sqrt(own[:, None] * scales)
    shares = [extension.shares(new, part, epsilon, own, one_sided) for part in references]
    found = extension.finish(shares, np.sqrt(MU) if one_sided else MU, 2.0, 1.0)
    if one_sided:
        expected = dense.one_sided(over, DEGREES, alpha, PSI, MU)
    else:
        expected = np.exp(-over) / DEGREES**alpha
        expected = expected / expected.sum(axis=1, keepdims=True) @ PSI / MU
    assert_allclose(found.coordinates, expected, rtol=0, atol=1e-8)
    assert_allclose(found.kernel_sums, 2 * np.exp(-over).sum(axis=1), rtol=1e-8)
    assert_array_equal(found.far, found.kernel_sums < 1.0)


@given(chunkings(N))
def test_shares__any_blocks_of_references_give_the_same(chunks):
    new, old = blocks_of("quadratic", one_sided=False)
    columns = extension.reference_columns(PSI, DEGREES, 0.5)
    whole, parts = (
        extension.finish(
            [extension.shares(new, part, 5.0, None, False) for part in cut(old, columns, None, cuts)], MU, 1, 0
        )
        for cuts in ((N,), chunks)
    )
    assert_allclose(parts.coordinates, whole.coordinates, rtol=0, atol=1e-10)


@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_shares__single_precision_is_near(form, one_sided):
    found = []
    for dtype in (np.float32, np.float64):
        new, old = blocks_of(form, one_sided, dtype=dtype)
        part = Reference(old, extension.reference_columns(PSI, DEGREES, 0.0), None)
        shares = extension.shares(new, part, np.median(distances(one_sided)), None, one_sided)
        assert shares.dtype == np.float64
        found.append(extension.finish([shares], MU, 1, 0))
    assert_allclose(found[0].coordinates, found[1].coordinates, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1e3, 1e17, 1e18, 5e18, 1e30, 1e154, 1e200])
def test_shares__frames_beyond_all_reach_are_far_and_never_nan(form, dtype, size):
    with np.errstate(over="ignore", invalid="ignore"):
        new = point_block(np.full((2, P), size), form, dtype)
    _, old = blocks_of(form, one_sided=True, dtype=dtype)
    for scales in (None, np.ones(N)):
        part = Reference(old, extension.reference_columns(PSI, DEGREES, 0.5), scales)
        own = None
        if scales is not None:
            own = extension.own_scales([extension.nearest(new, part, K, True)], K, 1.0, 1e-6)
        found = extension.finish([extension.shares(new, part, 1.0, own, True)], MU, 1.0, 0.0)
        assert np.isfinite(found.kernel_sums).all()
        assert np.isfinite(found.coordinates).all()
        if scales is None:
            assert_array_equal(found.coordinates, 0)
            assert found.far.all()


def test_own_scales__a_frame_that_equals_its_neighbours_has_the_least():
    assert_array_equal(extension.own_scales([np.zeros((1, 3))], 2, 1.0, 0.25), [0.25])


def test_far_below__is_what_all_but_one_in_a_thousand_have():
    rng = np.random.default_rng(0)
    sums = rng.uniform(3, 9, 1000)
    everyone, some = np.arange(1000), np.arange(5, 1000, 20)
    assert extension.far_below(sums + 1, everyone) == pytest.approx(np.quantile(sums, 0.001))
    through_landmarks = sums.copy()
    through_landmarks[some] += 1000 / len(some)
    assert extension.far_below(through_landmarks, some) == pytest.approx(np.quantile(sums, 0.001))


def test_one_sided__half_a_step_is_a_root_where_the_metric_is_even_and_the_scale_small():
    """Points on a circle of unit covariances: coordinates of unit mean square come back as such."""
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    points = 10 * np.column_stack([np.cos(angle), np.sin(angle)])
    d = dense.one_sided_distances(points, points, np.tile(np.eye(2), (400, 1, 1)))
    for epsilon in (2.0, 20.0):
        affinities = np.exp(-d / epsilon)
        mu, psi = dense.eigenpairs(affinities, 0.0, 4)
        block = factor.factor_block(points, np.tile(np.eye(2), (400, 1, 1)))
        part = Reference(block, extension.reference_columns(psi, affinities.sum(axis=1), 0.0), None)
        shares = extension.shares(point_block(points, "factor"), part, epsilon, None, True)
        found = extension.finish([shares], np.sqrt(mu[1:5]), 1.0, 0.0)
        assert_allclose(np.mean(np.square(found.coordinates), axis=0), 1, rtol=epsilon / 100)
