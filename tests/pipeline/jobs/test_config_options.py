"""The options of features that settings know without importing them."""

import inspect

from manifold_observer.pipeline.frames.features import FEATURES
from manifold_observer.pipeline.jobs.config import FEATURE_OPTIONS


def test_feature_options__are_those_of_the_functions():
    known = {name: tuple(inspect.signature(make).parameters)[1:] for name, make in FEATURES.items()}
    assert known == FEATURE_OPTIONS
