"""The printed settings beside the others: what works give, and the pictures."""

import made_up
import numpy as np
import pytest

from manifold_observer.pipeline.paper import printed
from manifold_observer.pipeline.paper.printed import CIRCLES, SPHERES

pytestmark = pytest.mark.usefixtures("in_this_thread")


def test_circle__known_points_have_the_metric_of_the_angle():
    seen = printed._simulate(1, 60, {"arc": 1.0})
    for metric, far in ((printed._angle, seen.angle), (printed._point, None)):
        frames, covariance, rank = metric(seen)
        difference = frames.values[:, None] - frames.values
        found = (difference**2).sum(axis=-1) / covariance.values[0, 0, 0] * 2 * seen.duration
        hidden = np.abs(seen.angle[:, None] - seen.angle)
        expected = hidden**2 if far is not None else (2 * np.sin(hidden / 2)) ** 2
        np.testing.assert_allclose(found, expected, atol=1e-9)
        assert rank == frames.shape[1]


def test_circle__isotropic_covariances_have_the_largest_power_in_all_directions():
    seen = printed._simulate(1, 60, {"arc": 1.0})
    _, covariance, rank = printed._isotropic(seen)
    powers = np.linalg.eigvalsh(covariance.values)
    largest = np.linalg.eigvalsh(seen.covariance.values)[:, -1:]
    np.testing.assert_allclose(powers, np.broadcast_to(largest, powers.shape))
    assert rank == 3


@pytest.mark.slow
def test_circle__a_realisation_has_all_ways_and_the_mend_is_nearer():
    found = printed.printed_circle(1, 500)["rate"]
    assert list(found["case"].values) == list(CIRCLES)
    assert (found > 0).all()
    assert found.attrs["units"] == "1/s"
    error = np.abs(found / printed.TRUTH - 1).max("mode")
    assert error.sel(case="arc 1, isotropic") < error.sel(case="arc 1")


@pytest.mark.slow
def test_sphere__settings_change_what_they_say():
    options = {"seed": 1, "drift_rate": 0.024, "n_samples": 60 * 600}
    found = {case: printed.printed_sphere(**options, **SPHERES[case]) for case in SPHERES}
    scores = [tuple(one["correlation"].values.ravel()) for one in found.values()]
    assert len(set(scores)) == len(scores)
    windows = [found[case]["window"] for case in ("π/10, ε = half", "π/10", "π/10, ε = twice")]
    assert (windows[0] > windows[1]).all()
    assert (windows[1] > windows[2]).all()


@pytest.mark.parametrize("quick", [True, False])
def test_works__hold_both_settings(quick):
    names = [work.name for work in printed.PRINTED_SPHERE.works(quick)]
    assert len(set(names)) == len(names)
    assert {name[0] for name in names} >= {"0", "1"}


def test_draw__both_settings_stand_beside_one_another():
    sphere = printed.PRINTED_SPHERE.draw(made_up.printed_sphere())["settings"]
    assert len(sphere.axes) == 4
    assert [tick.get_text() for tick in sphere.axes[-1].get_xticklabels()][:2] == ["0.2", "π/10"]
    (axes,) = printed.PRINTED_CIRCLE.draw(made_up.printed_circle())["settings"].axes
    ticks = [tick.get_text() for tick in axes.get_xticklabels()]
    assert {"arc 0.5", "arc 1"} <= set(ticks)
    assert "/ (1/s)" in axes.get_ylabel()
