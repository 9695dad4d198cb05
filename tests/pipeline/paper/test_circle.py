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


@pytest.mark.usefixtures("in_this_thread")
def test_realisation__finds_the_slowest_rate_in_few_frames():
    found = circle_realisation(seed=1, n_frames=400)
    assert found["rate"].sel(alpha=0.0, epsilon_factor=0.16, mode=1).item() == pytest.approx(1, abs=0.25)


def test_works__are_fifty_realisations_or_five():
    whole, quick = CIRCLE.works(False), CIRCLE.works(True)
    assert [work.settings["seed"] for work in whole] == list(range(1, 51))
    assert quick == whole[:5]
    assert {work.function for work in whole} == {circle_realisation}


def test_join__puts_realisations_beside_one_another():
    joined = join(3)
    assert joined.sizes["realisation"] == 3
    xr.testing.assert_equal(joined.isel(realisation=1), made_up(1))


def test_judge__all_holds_where_the_numbers_do():
    claims = CIRCLE.judge(join())
    verdicts = {claim.claim: claim.holds for claim in claims}
    assert len(verdicts) == 12
    refuted = [text for text, holds in verdicts.items() if not holds]
    assert len(refuted) == 2
    assert refuted[0].startswith("alpha = 1/2")
    assert refuted[1].startswith("histograms of 60 counts")
    assert all(claim.remedy for claim in claims if not claim.holds)
    assert [claim.figure for claim in claims] == ["eigenvalues"] * 4 + ["settings"] * 8


@pytest.mark.parametrize(("scale", "holds"), [(1.12, True), (1.18, False), (0.88, True), (0.82, False)])
def test_judge__an_eigenvalue_must_be_within_15_percent(scale, holds):
    claims = CIRCLE.judge(join(scale=scale))
    assert [claim.holds for claim in claims[:6]] == [holds] * 6  # each of the four, and all four at two sorts of scale
    assert f"magnitude {scale - 1:+.0%}"[:-2] in claims[1].measured


def test_judge__one_eigenvalue_away_is_one_claim_less():
    joined = join()
    joined["rate"].loc[{"alpha": 0.0, "epsilon_factor": 0.16, "mode": 3}] *= 1.2
    assert [claim.holds for claim in CIRCLE.judge(joined)[:4]] == [True, True, False, True]
    assert "over 6 realisations" in CIRCLE.judge(joined)[2].measured


def test_judge__nearer_is_judged_realisation_by_realisation():
    joined = join()
    turned = joined.assign_coords(alpha=[0.5, 0.0]).sortby("alpha")
    assert not CIRCLE.judge(turned)[7].holds
    names = [*SENSINGS[:2], "counts, 0.3 s, dark", "counts, 0.01 s", "counts, 0.3 s"]
    worse = CIRCLE.judge(joined.assign_coords(sensing=names))
    assert [claim.holds for claim in worse[-2:]] == [False, True]


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
