"""What the paper derives: realisations against what is known in another way."""

import numpy as np
import pytest

from manifold_observer.pipeline.paper import theory

pytestmark = pytest.mark.usefixtures("in_this_thread")


def test_drift_rate__of_an_exponential_decay():
    rng, x = np.random.default_rng(0), np.zeros(200_000)
    steps = rng.normal(size=len(x))
    decay = np.exp(-1.5 * 0.1)
    for i in range(1, len(x)):
        x[i] = decay * x[i - 1] + steps[i]
    assert theory._drift_rate(x) == pytest.approx(1.5, rel=0.05)
    assert theory._curved(x) < 0.01
    assert theory._curved(np.exp(x)) > theory._curved(x) + 0.01, "no other function of it drifts along a line"


def test_linear_drift__of_the_coordinates_is_that_of_the_polynomials():
    found = theory.linear_drift(1, n_frames=800)
    np.testing.assert_allclose(found["drift_rate"][0], found["known_rate"][0], rtol=0.25)
    assert (found["curved"] < 0.3).all()


def test_hidden_distance__has_orders_4_and_3_and_the_right_size():
    found = theory.hidden_distance(1, n=300)
    np.testing.assert_allclose(found["order"].sel(kind="symmetric"), 4, atol=0.4)
    np.testing.assert_allclose(found["order"].sel(kind="one-sided"), 3, atol=0.3)
    np.testing.assert_allclose(found["ratio"], 1, atol=0.1)


def test_double_well__rates_of_the_generator_by_relaxation_of_its_matrix():
    """A coarse chain that jumps between neighbours, in detailed balance."""
    x = np.linspace(-2.3, 2.3, 300)
    h, u = x[1] - x[0], theory.double_well_potential(np.linspace(-2.3, 2.3, 300))
    up, down = np.exp(-np.diff(u) / 2) / h**2, np.exp(np.diff(u) / 2) / h**2
    generator = np.diag(up, 1) + np.diag(down, -1)
    generator -= np.diag(generator.sum(axis=1))
    rates = np.sort(-np.linalg.eigvals(generator).real)[1:4]
    np.testing.assert_allclose(theory.double_well_rates(3), rates, rtol=0.01)


def test_double_well__alpha_one_half_is_nearer():
    error = np.abs(theory.double_well(1, 800)["rate"] / theory.double_well_rates(3) - 1).max("mode")
    assert error.sel(alpha=0.5) < error.sel(alpha=0.0) / 2


@pytest.mark.slow
def test_draw__names_the_orders_and_units():
    works = {work.name: work.function(**work.settings) for work in theory.THEORY.works(True) if "distance" in work.name}
    fill = {
        f"{name}-seed01": function(1)
        for name, function in (
            ("drift", lambda s: theory.linear_drift(s, 300)),
            ("well", lambda s: theory.double_well(s, 300)),
        )
    }
    figure = theory.THEORY.draw(theory.THEORY.join(works | fill))["distance"]
    assert "/ rad" in figure.axes[0].get_xlabel()
    assert figure.legends
