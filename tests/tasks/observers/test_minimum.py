"""The least value between two bounds is where SciPy finds it, to the last digit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from manifold_observer.tasks.observers.minimum import least_between

FUNCTIONS = {
    "parabola": lambda x: (x - 0.3) ** 2,
    "flat": lambda x: 1.0,
    "stairs": lambda x: float(np.round(8 * np.abs(x - 0.3))),
    "cusp": lambda x: float(np.sqrt(abs(x - 0.3))),
    "falling": lambda x: -x,
    "rising": lambda x: float(np.arctan(x)),
    "quartic": lambda x: x**4 - x,
    "waves": lambda x: float(np.sin(7 * x) + x * x),
    "unknown": lambda x: float("nan"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@given(low=st.floats(-1e3, 1e3), width=st.floats(0, 100))
def test_least_between__is_scipys_to_the_last_digit(name, low, width):
    asked = {"ours": [], "theirs": []}

    def noted(whose):
        return lambda x: asked[whose].append(float(x)) or FUNCTIONS[name](x)

    found = least_between(noted("ours"), low, low + width)
    assert found == minimize_scalar(noted("theirs"), bounds=(low, low + width), method="bounded").x
    assert asked["ours"] == asked["theirs"]


@pytest.mark.parametrize(("low", "high", "least"), [(-1.0, 1.0, 0.3), (0.5, 2.0, 0.5), (-3.0, 0.0, 0.0)])
def test_least_between__finds_the_minimum_or_the_bound_that_is_nearest(low, high, least):
    assert least_between(FUNCTIONS["parabola"], low, high) == pytest.approx(least, abs=2e-5)
