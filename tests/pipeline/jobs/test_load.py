"""Whatever was stored opens under one name, checked and lazily, with the times that somebody wants."""

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.jobs.load import by_convention
from strategies import smooth_motion

WALK = smooth_motion(np.random.default_rng(3), 160, 3)
CONFIG = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
DATES = np.datetime64("2020-03-09T12:00", "ns") + np.arange(160) * np.timedelta64(500, "ms")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A plain result, one of a recording with dates, and a stream after the first."""
    folder = tmp_path_factory.mktemp("stored")
    np.save(folder / "plain.npy", WALK[:100])
    np.save(folder / "more.npy", WALK[100:])
    dated = xr.DataArray(WALK, dims=("time", "channel"), coords={"time": DATES}, name="recording")
    dated.to_netcdf(folder / "dated.nc")
    (folder / "out").mkdir()
    mo.run([folder / "plain.npy"], folder / "out" / "plain.zarr", CONFIG)
    mo.run([folder / "dated.nc"], folder / "out" / "dated.zarr", CONFIG)
    mo.continue_run(folder / "out" / "plain.zarr", [folder / "more.npy"], folder / "stream")
    return folder


@pytest.mark.slow
def test_load__a_result_is_lazy_and_has_all_groups(stored):
    tree = mo.load(stored / "out" / "plain.zarr")
    assert set(tree.children) == {"frames", "embedding", "state"}
    assert tree["state/state"].chunks
    np.testing.assert_array_equal(tree["frames/frames"], WALK[:100])


@pytest.mark.slow
def test_load__attributes_follow_the_cf_conventions_and_say_so(stored, tmp_path):
    tree = mo.load(stored / "out" / "dated.zarr")
    assert {group.attrs["Conventions"] for group in tree.subtree} == {"CF-1.11"}
    units = {v.attrs["units"] for group in tree.subtree for v in group.variables.values() if "units" in v.attrs}
    assert units <= {"1", "s", "Hz"}, "what UDUNITS knows"
    tree.to_netcdf(tmp_path / "out.nc")
    with xr.open_datatree(tmp_path / "out.nc", decode_times=False) as stored_tree:
        assert stored_tree.attrs["Conventions"] == "CF-1.11"
        assert " since " in stored_tree["state/time"].attrs["units"]


def test_load__sensors_of_several_units_do_not_claim_to_follow_them():
    values = xr.Dataset({"frames": ("frame", [1.0], {"units": "mixed"}), "state": ("frame", [1.0], {"units": "none"})})
    found = by_convention(values)
    assert "Conventions" not in found.attrs
    assert (found["frames"].attrs, found["state"].attrs) == ({"units": "mixed"}, {})
    assert values["state"].attrs == {"units": "none"}, "what was given is as it was"


@pytest.mark.slow
def test_load__a_stream_has_the_groups_of_a_result(stored):
    tree = mo.load(stored / "stream")
    assert set(tree.children) == {"frames", "state"}
    np.testing.assert_array_equal(tree["frames/frames"], WALK[100:])
    assert tree["state/state"].chunks
    mo.observe(mo.read_embedding(stored / "out" / "plain.zarr"), tree["frames/frames"], carry=tree["state/carry"])


def test_load__a_folder_of_results_is_a_tree_of_them(stored, tmp_path):
    tree = mo.load(stored / "out")
    assert set(tree.children) == {"plain", "dated"}
    xr.testing.assert_identical(
        tree["plain/state"].to_dataset().load(), mo.load(stored / "out/plain.zarr")["state"].to_dataset().load()
    )
    (stored / "out" / "dated.zarr" / "zarr.json").rename(tmp_path / "kept")
    try:
        assert set(mo.load(stored / "out").children) == {"plain"}
    finally:
        (tmp_path / "kept").rename(stored / "out" / "dated.zarr" / "zarr.json")


@pytest.mark.parametrize(
    ("name", "options", "kind", "first"),
    [
        ("plain", {}, "f", 0.0),
        ("plain", {"times": "seconds"}, "f", 0.0),
        ("plain", {"start": "2021-01-01"}, "M", np.datetime64("2021-01-01")),
        ("plain", {"start": np.datetime64("2021-01-01"), "times": "datetime"}, "M", np.datetime64("2021-01-01")),
        ("dated", {}, "M", DATES[0]),
        ("dated", {"times": "datetime"}, "M", DATES[0]),
        ("dated", {"times": "seconds"}, "f", 0.0),
        ("dated", {"start": DATES[0]}, "M", DATES[0]),
    ],
)
def test_load__time_is_as_it_was_asked_for(stored, name, options, kind, first):
    tree = mo.load(stored / "out" / f"{name}.zarr", **options)
    for group in tree.children:
        time = tree[group].to_dataset().time
        assert time.dtype.kind == kind
        assert time.values[0] == first
    if kind == "M":
        assert tree["state"].to_dataset().resample(time="5s").mean().sizes["time"] > 1


@pytest.mark.parametrize(
    ("place", "options", "match"),
    [
        ("out/plain.zarr", {"times": "datetime"}, r"no date-times; got times='datetime'\. Say when its second 0"),
        ("out/plain.zarr", {"times": "dates"}, "times must be one of 'recorded', 'datetime', 'seconds'; got 'dates'"),
        ("out/plain.zarr", {"start": "noon"}, "start must be a date-time such as .*; got 'noon'"),
        ("out/dated.zarr", {"start": "2019-01-01"}, "start must be that of the recording, 2020-03-09T12:00"),
        ("plain.npy", {}, "got a file. Open recordings with mo.open_recording"),
    ],
)
def test_load__refuses_in_a_sentence(stored, place, options, match):
    with pytest.raises(ValueError, match=match):
        mo.load(stored / place, **options)


def test_load__of_a_folder_without_results_says_so(tmp_path):
    with pytest.raises(ValueError, match="is not a result"):
        mo.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        mo.load(tmp_path / "none")


def test_load__took_the_place_of_two_names(stored):
    with pytest.warns(DeprecationWarning, match="open_result is now called load"):
        mo.open_result(stored / "out" / "plain.zarr")
    with pytest.warns(DeprecationWarning, match="mo.load opens streams as well"):
        assert mo.open_stream(stored / "stream").sizes["frame"] == 60
