"""Drift over recordings: a line that names what moves, and none where nothing does."""

import numpy as np
import pytest

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.corpus.drift import Told, judged

pytestmark = pytest.mark.usefixtures("in_this_thread")
DAY = 86400.0
NAMES = ["mean of a", "mean of b", "share outside"]


def told(values, times=None):
    """What results say whose quantities are given."""
    times = [None] * len(values) if times is None else times
    return [
        Told(f"night_{k:02d}.zarr", "map", time, dict(zip(NAMES, row, strict=True)))
        for k, (row, time) in enumerate(zip(values, times, strict=True))
    ]


def drifting(n=14, slope=0.2, seed=0):
    """Recordings of which the second quantity rises."""
    values = np.random.default_rng(seed).normal(size=(n, 3))
    values[:, 1] = slope * np.arange(n) + 0.3 * values[:, 1]
    return values


def test_drift__names_what_moves_and_how_fast():
    found = judged(told(drifting()))
    assert "mean of b changes by +0.198 from one to the next (p = 0.00" in found.attrs["line"]
    assert found["p"].sel(quantity="mean of b") < 0.01
    assert found["p"].sel(quantity="mean of a") > 0.05
    assert found.attrs["per"] == "recording"


def test_drift__goes_by_dates_where_all_have_them():
    """The names are in another order than the nights."""
    values = drifting()
    order = np.random.default_rng(1).permutation(14)
    found = judged(told(values[order], 2 * DAY * order + 1.7e9))
    assert "in order of time: mean of b changes by +0.0988 a day" in found.attrs["line"]  # as much in two days
    np.testing.assert_array_equal(found["value"], values)


@pytest.mark.parametrize("missing", [0, 7, 13])
def test_drift__goes_by_names_where_a_date_is_missing(missing):
    times = [1e9 - DAY * k if k != missing else None for k in range(14)]
    assert "in order of their names: mean of b changes by +0.198" in judged(told(drifting(), times)).attrs["line"]


def test_drift__none_is_found_where_there_is_none():
    """No more often than the level says, of which 60 sets would have 3 on average and 9 hardly ever."""
    lines = [judged(told(drifting(slope=0.0, seed=seed))).attrs["line"] for seed in range(60)]
    assert sum("none found" not in line for line in lines) < 9


@pytest.mark.parametrize("n", [0, 1, 4])
def test_drift__too_few_recordings_are_said_to_be(n):
    assert (
        judged(told(drifting(n) if n else [])).attrs["line"] == f"drift: {n} recordings are too few to tell; it takes 5"
    )


def test_drift__what_does_not_vary_does_not_move():
    assert judged(told(np.ones((9, 3)))).attrs["line"] == "drift: nothing varies over 9 recordings"


@pytest.mark.slow
def test_drift__of_results_that_a_map_has_read(tmp_path):
    """A sensor's offset wanders; the dates are those of the files' clocks, which are none here."""
    rng, turns = np.random.default_rng(5), np.random.default_rng(99).normal(size=(2, 4))
    for k in range(6):
        angle = rng.uniform(0, 6) + np.cumsum(0.1 + 0.05 * rng.normal(size=150))
        values = np.column_stack([np.cos(angle), np.sin(angle)]) @ turns + 0.2 * rng.normal(size=(150, 4))
        values[:, 2] += 0.3 * k
        np.save(tmp_path / f"night_{k}.npy", values)
    paths = sorted(tmp_path.glob("*.npy"))
    config = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
    shared = mo.fit_map(paths, tmp_path / "map.zarr", config, mo.MapConfig(frames=300, stretch=50))
    for path in paths:
        mo.apply_map(shared, path, path.with_suffix(".zarr"))
    found = mo.drift([path.with_suffix(".zarr") for path in paths])
    assert found["p"].sel(quantity="mean of feature ch3") < 0.05
    assert "6 recordings" in found.attrs["line"]
    assert "none" not in found.attrs["line"]
    with pytest.raises(ValueError, match="must be read by a map"):
        mo.drift([tmp_path / "map.zarr"])


def test_drift__refuses_results_of_different_maps():
    results = told(drifting(6))
    results[4] = results[4]._replace(fingerprint="another")
    with pytest.raises(ValueError, match=r"read by one map; got night_00\.zarr and night_04\.zarr"):
        judged(results)
