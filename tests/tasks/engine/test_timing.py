"""Timings of the parts."""

import numpy as np
import pytest

from manifold_observer.tasks.engine import forms
from manifold_observer.tasks.engine import timing as calibrate
from manifold_observer.tasks.engine.covariance import PseudoInverse
from manifold_observer.tasks.engine.slab import Metric, Slab
from strategies import smooth_motion


@pytest.mark.parametrize("form", forms.FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rates__are_positive_and_finite(form, dtype):
    frames = smooth_motion(np.random.default_rng(0), 50, 4)
    slab = Slab(frames - frames.mean(axis=0), np.arange(50), np.clip(np.arange(50) - 4, 0, 41), None)
    found = calibrate.rates(slab, Metric(9, PseudoInverse()), form, dtype, 21)
    assert np.isfinite(found).all()
    assert min(found) > 0


def test_rates__frames_that_are_all_close_have_a_scale():
    frames = 1e-12 * smooth_motion(np.random.default_rng(0), 20, 2)
    covariances = np.tile(np.eye(2), (20, 1, 1))
    rows = np.arange(20)
    slab = Slab(frames - frames.mean(axis=0), rows, rows, covariances)
    assert min(calibrate.rates(slab, Metric(0, PseudoInverse()), "quadratic", np.float64, 3)) > 0
