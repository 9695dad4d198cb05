"""The distance as one value, which travels to every task."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from manifold_observer.tasks.arrays import aligned
from manifold_observer.tasks.engine import forms
from manifold_observer.tasks.engine.covariance import PseudoInverse
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.kernel import squared_distances
from manifold_observer.tasks.engine.moments import Axes
from manifold_observer.tasks.engine.slab import Metric, Slab
from strategies import misaligned, smooth_motion

FRAMES = smooth_motion(np.random.default_rng(0), 30, 4)
MEAN = FRAMES.mean(axis=0)
METRIC = Metric(7, PseudoInverse())
SLAB = Slab(FRAMES - MEAN, np.arange(30), np.clip(np.arange(30) - 3, 0, 23), None)


@pytest.mark.parametrize("form", forms.FORMS)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_block__is_that_of_its_form_and_precision(form, precision):
    block = Distance(METRIC, Axes(MEAN, None), form, precision).block(SLAB)
    expected = forms.build_block(SLAB, METRIC, form, precision)
    assert block.precision == precision
    for one, other in zip(block, expected, strict=True):
        assert_array_equal(one, other)


def test_points__are_centred_and_taken_in_the_axes():
    basis = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0][:, :2]
    distance = Distance(METRIC, Axes(MEAN, basis), "factor", "float64")
    assert_array_equal(distance.points(FRAMES).frames, (FRAMES - MEAN) @ basis)


def test_distance__comes_out_of_the_network_as_what_it_was():
    sent = Distance(METRIC, Axes(misaligned(MEAN), None), "quadratic", "float64")
    come = aligned(sent)
    assert type(come) is Distance
    assert come.axes.mean.flags.aligned
    assert come._replace(axes=sent.axes) == sent
    block = come.block(SLAB)
    assert squared_distances(block, block).shape == (30, 30)


@pytest.mark.parametrize(
    ("window", "inverse", "span", "rank"),
    [
        (21, PseudoInverse(), 4, 4),
        (3, PseudoInverse(), 2, 2),
        (3, PseudoInverse(rank=1), 2, 1),
        (0, PseudoInverse(), 4, 4),
    ],
)
def test_rank__is_bounded_by_window_features_and_options(window, inverse, span, rank):
    metric = Metric(window, inverse)
    assert Distance(metric, Axes(MEAN, None), "factor", "float32").rank == span
    assert metric.rank(4) == rank
