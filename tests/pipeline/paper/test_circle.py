"""The circle: a realisation gives finite rates, and pictures and claims follow the numbers."""

import numpy as np
import pytest
import xarray as xr

from manifold_observer.pipeline.paper.circle import CIRCLE, TRUTH, circle_realisation

ALPHAS, FACTORS = [0.0, 0.5], [0.08, 0.16, 0.32, 1.0]
SENSINGS = ["exact, 0.01 s", "exact, 0.3 s", "counts, 0.01 s", "counts, 0.3 s", "counts, 0.3 s, dark"]
COUNTED = [1.0, 1.0, 100.0, 5.0, 8.0]


def made_up(seed=0, scale=1.0):
    """What a realisation would give whose rates are off by a factor, and by 1 % at random."""
    rng = np.random.default_rng(seed)
    rate = scale * TRUTH * (1 + 0.01 * rng.normal(size=(2, 4, 4)))
    rate[1] *= 1.3
    return xr.Dataset(
        {
            "rate": (("alpha", "epsilon_factor", "mode"), rate),
            "sensed_rate": (("sensing", "mode"), np.outer(COUNTED, TRUTH) * (1 + 0.01 * rng.normal(size=(5, 4)))),
        },
        coords={"alpha": ALPHAS, "epsilon_factor": FACTORS, "sensing": SENSINGS, "mode": [1, 2, 3, 4]},
    )


def join(n=6, **options):
    return CIRCLE.join({f"seed{seed:02d}": made_up(seed, **options) for seed in range(n)})


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_thread")
def test_realisation__gives_finite_rates_in_order_and_with_units():
    found = circle_realisation(seed=3, n_frames=150)
    assert dict(found.sizes) == {"alpha": 2, "epsilon_factor": 4, "mode": 4, "sensing": 5}
    for name in ("alpha", "epsilon_factor", "sensing"):
        np.testing.assert_array_equal(found[name], made_up()[name])
    for values in found.data_vars.values():
        assert values.attrs["units"] == "1/s"
        assert np.isfinite(values).all()
        assert (values > 0).all()
        assert (values.diff("mode") >= 0).all()
    np.testing.assert_array_equal(found["sensed_rate"][0], found["rate"].sel(alpha=0.0, epsilon_factor=1.0))


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_thread")
def test_realisation__finds_the_slowest_rate_in_few_frames():
    found = circle_realisation(seed=1, n_frames=400)
    assert found["rate"].sel(alpha=0.0, epsilon_factor=0.16, mode=1).item() == pytest.approx(1, abs=0.25)


def test_works__are_fifty_realisations_or_three():
    whole, quick = CIRCLE.works(False), CIRCLE.works(True)
    assert [work.settings["seed"] for work in whole] == list(range(1, 51))
    assert quick == whole[:3]
    assert {work.function for work in whole} == {circle_realisation}


def test_join__puts_realisations_beside_one_another():
    joined = join(3)
    assert joined.sizes["realisation"] == 3
    xr.testing.assert_equal(joined.isel(realisation=1), made_up(1))


def test_draw__pictures_have_labelled_axes_with_units_and_a_legend_outside():
    pictures = CIRCLE.draw(join())
    assert set(pictures) == {"eigenvalues", "settings"}
    for figure in pictures.values():
        assert figure.legends
        assert all(axes.get_xlabel() for axes in figure.axes)
        assert "/ (1/s)" in figure.axes[0].get_ylabel()
        assert all(axes.get_legend() is None for axes in figure.axes)
    assert "/ (1/s)" in pictures["settings"].axes[2].get_ylabel()


def test_draw__points_are_the_means_and_lines_the_truth():
    joined = join()
    (axes,) = CIRCLE.draw(joined)["eigenvalues"].axes
    mean = joined["rate"].sel(alpha=0.0, epsilon_factor=0.16).mean("realisation")
    points = next(line for line in axes.lines if line.get_marker() == "o")
    np.testing.assert_allclose(points.get_ydata(orig=False), -mean)
    true = axes.collections[0].get_segments()
    np.testing.assert_allclose([segment[:, 1] for segment in true], -np.stack([TRUTH, TRUTH], axis=1))
