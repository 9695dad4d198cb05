"""Options of embedding and observer: written once, moved into an engine, read back from attributes and old results."""

import dataclasses
import inspect

import dask
import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from strategies import smooth_motion

FRAMES = xr.DataArray(smooth_motion(np.random.default_rng(0), 90, 3), dims=("frame", "feature"))
ENGINE = mo.Engine(form="factor", precision="float64", seed=3)
# As version 0.1.0 stored it while options were dictionaries of what had been given.
STORED = (
    '{"features": "histogram", "feature_options": {"frame": 60, "hop": null, "bins": 4, "floor": null}, '
    '"open_options": {"sampling_rate": 8000.0, "variable": null, "decimal": ","}, '
    '"embed_options": {"n_modes": 4, "window": 21, "rank": null, "tolerance": 0.001, "regularization": 0.0, '
    '"epsilon": "median", "epsilon_factor": 0.5, "alpha": 0.0, "method": "landmarks", "home": "auto", '
    '"landmarks": 500, "refine": 1, "precision": "auto", "seed": 3}, '
    '"observe_options": {"gamma": 0.1, "gain": "kalman", "rates": [0.1, 0.2], "step": "exact", "substeps": null, '
    '"initial": "steady"}, "smooth": true}'
)


@pytest.fixture(autouse=True)
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


def own_fields(kind, *inherited):
    names = {field.name for other in inherited for field in dataclasses.fields(other)}
    return {field.name: field.default for field in dataclasses.fields(kind) if field.name not in names}


@pytest.mark.parametrize(
    ("function", "fields"),
    [(mo.embed, own_fields(mo.EmbedConfig, mo.Engine, mo.Geometry)), (mo.observe, own_fields(mo.ObserverConfig))],
    ids=["embed", "observe"],
)
def test_signature__has_every_setting_with_its_default(function, fields):
    found = inspect.signature(function).parameters
    assert {name: found[name].default for name in fields} == fields


def test_embed__has_at_most_15_parameters():
    names = list(inspect.signature(mo.embed).parameters)
    assert len(names) <= 15
    assert names[-3:] == ["engine", "checkpoint", "progress"]


def test_embed__old_keywords_work_and_point_at_the_caller():
    expected = mo.embed(FRAMES, n_modes=2, engine=ENGINE, preset="paper")
    with pytest.warns(
        DeprecationWarning, match=r"write engine=Engine\(form='factor', precision='float64', seed=3\)"
    ) as told:
        found = mo.embed(FRAMES, n_modes=2, form="factor", precision="float64", seed=3, preset="paper")
    assert [warning.filename for warning in told] == [__file__]
    xr.testing.assert_identical(found, expected)


def test_embed__old_keywords_outrank_the_engine_beside_them():
    with pytest.warns(DeprecationWarning, match="seed is now an option of Engine"):
        found = mo.embed(FRAMES, n_modes=2, engine=dataclasses.replace(ENGINE, seed=0), seed=3, preset="paper")
    assert found.attrs["seed"] == 3
    assert found.attrs["form"] == "factor"


def test_plan__old_keywords_work_too():
    with pytest.warns(DeprecationWarning, match="plan: method, landmarks are now options of Engine"):
        found = mo.plan(FRAMES, method="landmarks", landmarks=20, preset="paper")
    assert found.method == "landmarks"
    assert mo.plan(FRAMES, engine=mo.Engine(method="landmarks", landmarks=20), preset="paper").method == "landmarks"


def test_embed__a_keyword_that_never_was_is_refused_as_ever():
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        mo.embed(FRAMES, colour="red", preset="paper")


@pytest.mark.parametrize("store", ["zarr", "netcdf"])
def test_embed_config__comes_back_from_the_attributes_of_an_embedding(tmp_path, store):
    config = mo.EmbedConfig(n_modes=2, window=15, epsilon=30.0, form="factor", precision="float64", seed=3)
    embedding = mo.embed(FRAMES, **config.options())
    if store == "zarr":
        embedding.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
        attrs = xr.open_zarr(tmp_path / "a.zarr", consolidated=False).attrs
    else:  # which has 32-bit numbers of NumPy
        xr.Dataset(attrs=embedding.attrs).to_netcdf(tmp_path / "a.nc", engine="scipy")
        attrs = xr.open_dataset(tmp_path / "a.nc", engine="scipy").attrs
    found = mo.EmbedConfig.from_attrs(attrs)
    chosen = {"home": "local", "method": embedding.attrs["method"], "tile": found.tile}
    assert found == dataclasses.replace(config, **chosen)
    assert found.rank is None


def test_embed_config__of_attributes_that_lack_some_has_defaults():
    assert mo.EmbedConfig.from_attrs({"window": 9, "units": "m"}) == mo.EmbedConfig(window=9)


def test_run_config__reads_what_was_stored_before():
    assert mo.RunConfig.from_json(STORED) == mo.RunConfig(
        mo.FeatureConfig("histogram", frame=60, bins=4),
        mo.OpenConfig(sampling_rate=8000.0, decimal=","),
        mo.EmbedConfig(
            preset="paper", n_modes=4, epsilon_factor=0.5, method="landmarks", landmarks=500, refine=1, seed=3
        ),
        mo.ObserverConfig(gamma=0.1, gain="kalman", rates=(0.1, 0.2), initial="steady"),  # the gain of then
        smooth=True,
    )


def test_run_config__comes_back_from_its_own_text():
    config = mo.RunConfig(
        mo.FeatureConfig("stft", frame="23ms", window="boxcar"),
        mo.OpenConfig(channels_first=True),
        mo.EmbedConfig(n_modes=4, epsilon="local", neighbours=7, landmark_choice="farthest"),
        mo.ObserverConfig(step="euler", substeps=3, rates="generator", burst_duration=0.1),
    )
    assert mo.RunConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mo.ObserverConfig(rates=np.ones((2, 2))), "rates must be a row of numbers"),
        (lambda: mo.ObserverConfig(rates="fast"), "rates must be one of 'step'"),
        (lambda: mo.Engine(tile=2.5), "tile must be at least 1, or None; got 2.5"),
    ],
)
def test_configs__refuse_what_cannot_work(make, message):
    with pytest.raises(ValueError, match=message):
        make()
