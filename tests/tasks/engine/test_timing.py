"""Timings of the parts."""

import numpy as np
import pytest

from manifold_observer.tasks.engine import forms, timing
from manifold_observer.tasks.engine.covariance import PseudoInverse
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.moments import Axes
from manifold_observer.tasks.engine.slab import Metric, Slab
from strategies import smooth_motion


@pytest.mark.parametrize("form", forms.FORMS)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_rates__are_positive_and_finite(form, precision):
    frames = smooth_motion(np.random.default_rng(0), 50, 4)
    slab = Slab(frames - frames.mean(axis=0), np.arange(50), np.clip(np.arange(50) - 4, 0, 41), None)
    found = timing.rates(slab, Distance(Metric(9, PseudoInverse()), Axes(np.zeros(4), None), form, precision), 21)
    assert np.isfinite(found).all()
    assert min(found) > 0


def test_rates__frames_that_are_all_close_have_a_scale():
    frames = 1e-12 * smooth_motion(np.random.default_rng(0), 20, 2)
    covariances = np.tile(np.eye(2), (20, 1, 1))
    rows = np.arange(20)
    slab = Slab(frames - frames.mean(axis=0), rows, rows, covariances)
    distance = Distance(Metric(0, PseudoInverse()), Axes(np.zeros(2), None), "quadratic", "float64")
    assert min(timing.rates(slab, distance, 3)) > 0
