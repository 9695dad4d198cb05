"""One map for many recordings: states share coordinates, each recording by itself, the same bits in any order."""

import dataclasses
import hashlib
import warnings

import numpy as np
import pytest

import manifold_observer.pipeline as mo

pytestmark = pytest.mark.usefixtures("in_this_thread")
CONFIG = mo.RunConfig(mo.FeatureConfig("identity"), mo.OpenConfig(sampling_rate=10.0), mo.EmbedConfig(n_modes=3))
HOW = mo.MapConfig(frames=600, stretch=50)
P = 5


def night(seed, n=400, shift=0.0):
    """A hidden walk round a circle, seen by sensors that all nights share."""
    rng, sensors = np.random.default_rng(seed), np.random.default_rng(99).normal(size=(3, P))
    angle = rng.uniform(0, 6) + np.cumsum(0.06 + 0.05 * rng.normal(size=n))
    hidden = np.column_stack([np.cos(angle), np.sin(angle), np.sin(2 * angle)])
    return hidden @ sensors + 0.15 * rng.normal(size=(n, P)) + shift, hidden


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nights")
    hidden = {}
    for k in range(5):
        values, hidden[f"night_{k}"] = night(k, 250 + 50 * k)
        np.save(folder / f"night_{k}.npy", values)
    return folder, hidden


@pytest.fixture(scope="module")
def shared(nights, in_this_thread):
    folder, _ = nights
    return mo.fit_map(sorted(folder.glob("*.npy")), folder / "map.zarr", CONFIG, HOW)


def bits(folder):
    """Digest of every chunk that a result holds."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "zarr.json"
    }


def read_out(states, hidden):
    """Weights of the linear reading of hidden numbers from states."""
    return np.linalg.lstsq(np.column_stack([np.ones(len(states)), states]), hidden, rcond=None)[0]


def test_apply_map__a_reading_of_one_night_reads_the_others_too(nights, shared, tmp_path):
    folder, hidden = nights
    states = {
        name: mo.apply_map(shared, folder / f"{name}.npy", tmp_path / f"{name}.zarr")["state/state"].values
        for name in hidden
    }
    weights = read_out(states["night_0"], hidden["night_0"])
    for name in ("night_1", "night_2", "night_3", "night_4"):
        read = np.column_stack([np.ones(len(states[name])), states[name]]) @ weights
        for k in range(2):
            assert np.corrcoef(read[:, k], hidden[name][:, k])[0, 1] > 0.9


def test_apply_map__any_order_gives_the_same_bits(nights, shared, tmp_path):
    folder, _ = nights
    for turn, names in enumerate((["night_1", "night_3"], ["night_3", "night_1"])):
        (tmp_path / str(turn)).mkdir()
        for name in names:
            mo.apply_map(
                mo.read_map(folder / "map.zarr"), folder / f"{name}.npy", tmp_path / str(turn) / f"{name}.zarr"
            )
    assert bits(tmp_path / "0") == bits(tmp_path / "1")


def test_fit_map__does_not_depend_on_the_order_of_files(nights, shared, tmp_path):
    folder, _ = nights
    again = mo.fit_map(sorted(folder.glob("*.npy"), reverse=True), tmp_path / "map.zarr", CONFIG, HOW)
    assert again.fingerprint == shared.fingerprint
    assert bits(tmp_path / "map.zarr") == bits(folder / "map.zarr")


def test_apply_map__says_what_lies_outside(shared, tmp_path):
    np.save(tmp_path / "same.npy", night(77)[0])
    np.save(tmp_path / "other.npy", night(78, shift=3.0)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = mo.apply_map(shared, tmp_path / "same.npy", tmp_path / "same.zarr")
    with pytest.warns(UserWarning, match=r"100 % of the frames of other lie outside the map .* Refit"):
        other = mo.apply_map(shared, tmp_path / "other.npy", tmp_path / "other.zarr")
    assert same.attrs["outside_share"] < 0.05
    assert not same.attrs["outside_refit_due"]
    assert other.attrs["outside_refit_due"]
    assert other.attrs["outside_distance_ratio"] > 3
    assert other["state/outside"].values.mean() == other.attrs["outside_share"]


def test_fit_map__a_recording_with_other_channels_costs_only_itself(nights, shared, tmp_path):
    folder, _ = nights
    np.save(tmp_path / "narrow.npy", night(9)[0][:, :3])
    (tmp_path / "broken.npy").write_bytes(b"nothing")
    paths = [*sorted(folder.glob("*.npy")), tmp_path / "narrow.npy", tmp_path / "broken.npy"]
    found = mo.fit_map(paths, tmp_path / "map.zarr", CONFIG, HOW)
    assert set(found.refused) == {str(tmp_path / "narrow.npy"), str(tmp_path / "broken.npy")}
    assert "5 channels of the map; got 3" in found.refused[str(tmp_path / "narrow.npy")]
    np.testing.assert_array_equal(found.embedding["coordinate"], shared.embedding["coordinate"])


def test_fit_map__again_keeps_order_and_signs(nights, shared, tmp_path):
    """Against a map that is the same but for its signs and the order of its coordinates."""
    folder, _ = nights
    other = shared.embedding.isel(mode=[1, 0, 2])
    signs = np.array([-1.0, 1.0, -1.0])
    other = other.assign(coordinate=other["coordinate"] * signs, principal=-other["principal"])
    earlier = dataclasses.replace(shared, embedding=other, version=4)
    again = mo.fit_map(sorted(folder.glob("*.npy")), tmp_path / "map.zarr", CONFIG, HOW, earlier=earlier)
    assert again.version == 5
    assert min(again.alignment) > 0.9
    order = [1, 0, 2]
    np.testing.assert_allclose(
        again.embedding["coordinate"], shared.embedding["coordinate"].values[:, order] * signs, atol=1e-9
    )
    np.testing.assert_allclose(again.embedding["principal"], -shared.embedding["principal"], atol=1e-9)
    np.testing.assert_allclose(again.embedding["eigenvalue"], shared.embedding["eigenvalue"][order])
    states = []
    for one, name in ((shared, "a"), (again, "b")):
        result = mo.apply_map(one, folder / "night_2.npy", tmp_path / f"{name}.zarr")
        states.append(result["state/state"].values)
        assert result.attrs["map_version"] == one.version
        assert result.attrs["map_fingerprint"] == one.fingerprint
    turned = states[0][:, [1, 0, 2, 3, 4]] * [*signs, -1, -1]
    np.testing.assert_allclose(states[1], turned, atol=1e-6)


def test_fit_map__on_more_recordings_keeps_the_orientation(nights, shared, tmp_path):
    folder, _ = nights
    first = mo.fit_map(sorted(folder.glob("night_[012].npy")), tmp_path / "1.zarr", CONFIG, HOW)
    more = mo.fit_map(sorted(folder.glob("*.npy")), tmp_path / "2.zarr", CONFIG, HOW, earlier=first)
    states = [
        mo.apply_map(one, folder / "night_4.npy", tmp_path / f"state{one.version}.zarr")["state/state"].values
        for one in (first, more)
    ]
    for k in (0, 1, 3, 4):
        assert np.corrcoef(states[0][:, k], states[1][:, k])[0, 1] > 0.9


def test_fit_map__after_other_features_says_that_orientation_is_lost(nights, shared, tmp_path):
    folder, _ = nights
    features = dataclasses.replace(CONFIG, features=mo.FeatureConfig("log_rms", frame=4))
    with pytest.warns(UserWarning, match="the earlier map has other features"):
        found = mo.fit_map(sorted(folder.glob("*.npy")), tmp_path / "map.zarr", features, HOW, earlier=shared)
    assert found.version == 2
    assert found.alignment == ()
