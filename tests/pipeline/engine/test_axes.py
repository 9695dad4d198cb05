"""More axes than usual are taken where what lies beyond the usual ones lasts, and the usual ones do not know it."""

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine.config import EmbedConfig

pytestmark = pytest.mark.usefixtures("in_this_thread")
N, P = 500, 48


def frames_with(size, seed=0):
    """Noise in 24 directions, fainter noise in all others, and a slow state on a curve in three of these."""
    rng = np.random.default_rng(seed)
    phase = np.cumsum(0.05 + 0.05 * rng.normal(size=N))
    directions = np.linalg.qr(rng.normal(size=(P, P)))[0]
    values = rng.normal(size=(N, P)) * np.where(np.arange(P) < 24, 1.2, 0.2)
    values[:, 24:27] += size * np.column_stack([np.cos(phase), np.sin(phase), np.cos(2 * phase)])
    return xr.DataArray(values @ directions.T, dims=("frame", "feature")), phase


def embed(frames, **geometry):
    return mo.embed(frames, n_modes=4, geometry=mo.Geometry(condition="none", **geometry))


def reads(embedding, phase):
    """How well a plane through the coordinates reads the phase."""
    known = np.column_stack([np.ones(N), embedding["coordinate"].values])
    wanted = np.cos(phase)
    return np.corrcoef(known @ np.linalg.lstsq(known, wanted, rcond=None)[0], wanted)[0, 1]


def test_auto__takes_40_axes_where_a_faint_state_lies_beyond_20():
    frames, phase = frames_with(1.2)
    found, usual = embed(frames), embed(frames, max_axes=20)
    assert (found.attrs["max_axes"], found.attrs["axes"]) == ("auto", 40)
    assert found.sizes["axis"] == 40
    more, known = found.attrs["foretold_further_in_more_axes"], found.attrs["foretold_further"]
    assert more > 2 * max(known, found.attrs["foretold_further_by_chance"])
    assert reads(found, phase) > 0.8
    assert reads(usual, phase) < 0.4
    asked = embed(frames, max_axes=40)
    np.testing.assert_array_equal(found["coordinate"], asked["coordinate"])


def test_auto__takes_20_axes_where_nothing_lasts_beyond_them():
    found = embed(frames_with(0.0)[0])
    assert found.attrs["axes"] == 20
    more, known = found.attrs["foretold_further_in_more_axes"], found.attrs["foretold_further"]
    assert more <= 2 * max(known, found.attrs.get("foretold_further_by_chance", 0.0))


@pytest.mark.parametrize(("geometry", "width"), [({"max_axes": 20}, 20), ({"max_axes": 24}, 24), ({}, 20)])
def test_axes__a_number_is_what_it_says_and_narrow_features_are_not_asked(geometry, width):
    frames = frames_with(1.2)[0]
    found = embed(frames if geometry else frames[:, :39], **geometry)
    assert found.attrs["axes"] == width
    assert not [name for name in found.attrs if "further" in name]


def test_auto__is_the_same_for_any_chunks_and_known_to_the_plan():
    frames = frames_with(1.2)[0]
    found, chunked = embed(frames), embed(frames.chunk({"frame": 97}))
    assert found.attrs == chunked.attrs
    np.testing.assert_array_equal(found["coordinate"], chunked["coordinate"])
    assert mo.plan(frames, geometry=mo.Geometry(condition="none")).n_axes == 40


def test_auto__is_kept_by_settings_and_other_words_are_refused():
    config = EmbedConfig()
    assert EmbedConfig.from_attrs(config.attrs()) == config
    assert EmbedConfig.from_attrs(config.attrs() | {"max_axes": np.int64(30)}).max_axes == 30
    for wrong in ("many", 0, 2.5):
        with pytest.raises(ValueError, match=r"max_axes must be at least 1, or 'auto', or None; got"):
            EmbedConfig(max_axes=wrong)


@pytest.mark.slow
def test_auto__of_a_map_that_is_made_again_gives_the_same_bits(tmp_path):
    """The number of axes is learnt, and neither the form nor the numbers of a map depend on where it is made."""
    paths = []
    for seed in range(2):
        paths.append(tmp_path / f"night_{seed}.npy")
        np.save(paths[-1], frames_with(1.2, seed=0)[0].values[seed * 250 : (seed + 1) * 250])
    config = mo.RunConfig(
        mo.FeatureConfig("identity"), mo.OpenConfig(sampling_rate=10.0), mo.EmbedConfig(n_modes=3, condition="none")
    )
    how = mo.MapConfig(frames=500, stretch=100)
    one, other = (mo.fit_map(paths, tmp_path / f"{name}.zarr", config, how) for name in ("one", "other"))
    assert one.embedding.sizes["axis"] == 40
    assert one.embedding.attrs["max_axes"] == "auto"
    assert one.fingerprint == other.fingerprint
