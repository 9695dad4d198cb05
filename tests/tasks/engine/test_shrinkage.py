"""Shrunk covariances equal a loop over windows, whatever their widths."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.tasks.engine import shrinkage
from manifold_observer.tasks.engine.shrinkage import Shrinkage
from strategies import generators, smooth_motion


@st.composite
def windows(draw):
    """Frames, and windows of 1 frame or more that lie within them."""
    rng, p = draw(generators()), draw(st.integers(1, 6))
    frames = smooth_motion(rng, 40, p)
    widths = rng.integers(1, 12, size=25)
    return frames, rng.integers(0, 40 - widths), widths


def covariance(frames, start, width):
    """Of one window, by its definition."""
    own = frames[start : start + width]
    apart = own - own.mean(axis=0)
    return sum((np.outer(x, x) for x in apart), np.zeros((frames.shape[1],) * 2)) / max(width - 1, 1)


@given(windows())
def test_covariances__equal_the_loop(found):
    frames, starts, widths = found
    expected = [covariance(frames, *window) for window in zip(starts, widths, strict=True)]
    np.testing.assert_allclose(shrinkage.covariances(frames, starts, widths), expected, atol=1e-10)


@given(windows())
def test_spread__is_the_estimate_of_ledoit_and_wolf(found):
    frames, starts, widths = found
    spread = shrinkage.spread(frames, starts, widths)
    for k, (start, width) in enumerate(zip(starts, widths, strict=True)):
        own, s = frames[start : start + width], covariance(frames, start, width)
        norms = [np.sum((x - own.mean(axis=0)) ** 2) ** 2 for x in own]
        assert spread.spreads[k] == pytest.approx(max(np.mean(norms) - np.sum(s**2), 0) / width, abs=1e-9)
        assert spread.squares[k] == pytest.approx(np.sum(s**2), abs=1e-9)
        assert spread.traces[k] == pytest.approx(np.trace(s), abs=1e-9)
    weighted = sum((w - 1) * covariance(frames, a, w) for a, w in zip(starts, widths, strict=True))
    np.testing.assert_allclose(spread.total, weighted, atol=1e-8)
    assert spread.freedom == sum(widths - 1)


@pytest.mark.parametrize("target", shrinkage.TARGETS)
@given(found=windows(), rho=st.floats(0, 1))
def test_precisions__equal_the_loop_and_windows_that_are_not_whole_borrow_from_the_mean(target, found, rho):
    frames, starts, widths = found
    p = frames.shape[1]
    mean = np.cov(frames, rowvar=False).reshape(p, p)
    how = Shrinkage(rho, 0.1, 8, mean, target)
    precision = shrinkage.precisions(frames, starts, widths, how)
    for k, (start, width) in enumerate(zip(starts, widths, strict=True)):
        own = (min(width, 8) - 1) / 7
        s = own * covariance(frames, start, width) + (1 - own) * mean
        pooled = 0.9 * mean + 0.1 * np.trace(mean) / p * np.eye(p)
        towards = np.trace(s) / p * np.eye(p) if target == "identity" else pooled
        inverse = np.linalg.inv((1 - rho) * s + rho * towards + 0.1 * np.eye(p))
        np.testing.assert_allclose(precision[k], inverse, rtol=1e-6, atol=1e-9)


@given(windows())
def test_precisions__are_the_same_bits_wherever_a_frame_stands(found):
    frames, starts, widths = found
    how = Shrinkage(0.3, 0.1, 8, np.eye(frames.shape[1]), "identity")
    whole = shrinkage.precisions(frames, starts, widths, how)
    for k in (0, 7, 24):
        alone = shrinkage.precisions(frames, starts[k : k + 1], widths[k : k + 1], how)
        np.testing.assert_array_equal(alone[0], whole[k])


def test_intensity__is_none_for_exact_covariances_and_all_for_the_target_itself():
    assert shrinkage.intensity(np.zeros(3), np.ones(3)) == 0
    assert shrinkage.intensity(np.ones(3), np.zeros(3)) == 1


def test_intensity__grows_as_windows_hold_less():
    rng = np.random.default_rng(0)
    scaled = rng.normal(size=(4000, 6)) * [3.0, 2.0, 1.0, 1.0, 0.5, 0.2]
    found = []
    for width in (10, 40, 160):
        starts = np.arange(0, 3800, width)
        spread = shrinkage.spread(scaled, starts, np.full(len(starts), width))
        found.append(shrinkage.intensity(spread.spreads, shrinkage.from_identity(spread.squares, spread.traces, 6)))
    assert 1 > found[0] > found[1] > found[2] > 0
