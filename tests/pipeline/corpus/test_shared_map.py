"""One map for many recordings: states share coordinates, each recording by itself, the same bits in any order."""

import dataclasses
import hashlib
import warnings

import numpy as np
import pytest

import manifold_observer.pipeline as mo
from strategies import seldom

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_apply_map__any_order_gives_the_same_bits(nights, shared, tmp_path):
    folder, _ = nights
    for turn, names in enumerate((["night_1", "night_3"], ["night_3", "night_1"])):
        (tmp_path / str(turn)).mkdir()
        for name in names:
            mo.apply_map(
                mo.read_map(folder / "map.zarr"), folder / f"{name}.npy", tmp_path / str(turn) / f"{name}.zarr"
            )
    assert bits(tmp_path / "0") == bits(tmp_path / "1")


@pytest.mark.slow
def test_fit_map__does_not_depend_on_the_order_of_files(nights, shared, tmp_path):
    folder, _ = nights
    again = mo.fit_map(sorted(folder.glob("*.npy"), reverse=True), tmp_path / "map.zarr", CONFIG, HOW)
    assert again.fingerprint == shared.fingerprint
    assert bits(tmp_path / "map.zarr") == bits(folder / "map.zarr")


@pytest.mark.slow
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


@pytest.mark.slow
def test_fit_map__a_recording_with_other_channels_costs_only_itself(nights, shared, tmp_path):
    folder, _ = nights
    np.save(tmp_path / "narrow.npy", night(9)[0][:, :3])
    (tmp_path / "broken.npy").write_bytes(b"nothing")
    paths = [*sorted(folder.glob("*.npy")), tmp_path / "narrow.npy", tmp_path / "broken.npy"]
    found = mo.fit_map(paths, tmp_path / "map.zarr", CONFIG, HOW)
    assert set(found.refused) == {str(tmp_path / "narrow.npy"), str(tmp_path / "broken.npy")}
    assert "5 channels of the map; got 3" in found.refused[str(tmp_path / "narrow.npy")]
    np.testing.assert_array_equal(found.embedding["coordinate"], shared.embedding["coordinate"])


@pytest.mark.slow
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


@seldom
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


@seldom
def test_fit_map__after_other_features_says_that_orientation_is_lost(nights, shared, tmp_path):
    folder, _ = nights
    features = dataclasses.replace(CONFIG, features=mo.FeatureConfig("log_rms", frame=4))
    with pytest.warns(UserWarning, match="the earlier map has other features"):
        found = mo.fit_map(sorted(folder.glob("*.npy")), tmp_path / "map.zarr", features, HOW, earlier=shared)
    assert found.version == 2
    assert found.alignment == ()


@pytest.mark.slow
def test_fit_map__histograms_share_their_bins_and_labels_are_kept(tmp_path):
    """Recordings of counts with other ranges, and a label column; a later one reaches beyond all bins."""
    for k in range(4):
        rng = np.random.default_rng(k)
        level = 3 + 2 * np.sin(np.arange(900) / 40 + k)
        stage = np.where(level > 3, "up", "down")
        rows = [f"{a},{b},{s}" for a, b, s in zip(rng.poisson(level), rng.poisson(8 - level), stage, strict=True)]
        (tmp_path / f"n{k}.csv").write_text("\n".join(["a,b,stage", *rows, ""]))
    paths = sorted(tmp_path.glob("*.csv"))
    opening = mo.OpenConfig(labels="stage", sampling_rate=1.0)
    config = mo.RunConfig(mo.FeatureConfig("histogram", frame=10), opening, mo.EmbedConfig(n_modes=2))
    shared = mo.fit_map(paths[:3], tmp_path / "map.zarr", config, mo.MapConfig(frames=150, stretch=30))
    assert set(shared.embedding["stage"].values) == {"up", "down"}
    edges = shared.config.features.edges
    highest = max(
        int(line.split(",")[k]) for path in paths[:3] for line in path.read_text().split()[1:] for k in (0, 1)
    )
    assert edges[-1] == highest + 1
    text = paths[3].read_text().split("\n")
    paths[3].write_text("\n".join([text[0], "90,1,up", *text[1:]]))
    result = mo.apply_map(shared, paths[3], tmp_path / "n3.zarr")
    np.testing.assert_array_equal(result["frames"].ds["frames"].attrs["edges"], edges)
    assert set(result["state"].ds["stage"].values) == {"up", "down"}


def test_apply_map__units_and_the_order_of_channels_are_mended(shared, nights, tmp_path):
    """A recording in another order of channels reads as the same one in the map's order."""
    folder, _ = nights
    values = np.load(folder / "night_1.npy")
    names = [str(name) for name in shared.embedding["channel"].values]
    order = [2, 0, 1, 4, 3]
    table = "\n".join(
        [",".join(names[k] for k in order), *(",".join(map(repr, row)) for row in values[:, order].tolist())]
    )
    (tmp_path / "swapped.csv").write_text(table + "\n")
    swapped = mo.apply_map(shared, tmp_path / "swapped.csv", tmp_path / "swapped.zarr")
    plain = mo.apply_map(shared, folder / "night_1.npy", tmp_path / "plain.zarr")
    np.testing.assert_array_equal(swapped["state/state"], plain["state/state"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:map. .* lie outside the map")
def test_standardise_recording__undoes_offset_and_gain(tmp_path):
    """Each sensor of a later night has another offset and gain."""
    for k in range(2):
        np.save(tmp_path / f"n{k}.npy", night(k, 400)[0])
    values, _ = night(9, 400)
    gains, offsets = np.random.default_rng(1).uniform(0.4, 2.5, (2, P))
    np.save(tmp_path / "plain.npy", values)
    np.save(tmp_path / "other.npy", values * gains + offsets)
    how = mo.MapConfig(frames=200, stretch=50, standardise="recording")
    shared = mo.fit_map(sorted(tmp_path.glob("n*.npy")), tmp_path / "map.zarr", CONFIG, how)
    plain, other = (
        mo.apply_map(shared, tmp_path / f"{name}.npy", tmp_path / f"{name}.zarr") for name in ("plain", "other")
    )
    np.testing.assert_allclose(plain["state/state"], other["state/state"], atol=1e-5)
    np.testing.assert_allclose(plain.attrs["outside_distance_ratio"], other.attrs["outside_distance_ratio"], rtol=1e-6)


def test_fit_map__that_fails_leaves_nothing(nights, tmp_path):
    folder, _ = nights
    before = sorted(tmp_path.iterdir())
    config = dataclasses.replace(CONFIG, embedding=mo.EmbedConfig(n_modes=5000))
    with pytest.raises(ValueError, match="n_modes"):
        mo.fit_map(sorted(folder.glob("*.npy")), tmp_path / "map.zarr", config, HOW)
    assert sorted(tmp_path.iterdir()) == before
    with pytest.raises(ValueError, match=r"at least 1 that can be read; got none\. The first: "):
        mo.fit_map([tmp_path / "nothing.npy"], tmp_path / "map.zarr", CONFIG, HOW)


@pytest.mark.parametrize(
    "change",
    [
        {"embedding": mo.EmbedConfig(preset="paper")},
        {"embedding": mo.EmbedConfig(epsilon="local")},
        {"observer": mo.ObserverConfig(gain="kalman")},
    ],
)
def test_fit_map__refuses_what_cannot_read_new_recordings(nights, tmp_path, change):
    folder, _ = nights
    with pytest.raises(ValueError, match="map: states must be read by coordinates"):
        mo.fit_map(sorted(folder.glob("*.npy")), tmp_path / "map.zarr", dataclasses.replace(CONFIG, **change), HOW)


@pytest.mark.slow
def test_read_map__refuses_another_result(nights, tmp_path):
    folder, _ = nights
    mo.run([folder / "night_0.npy"], tmp_path / "run.zarr", CONFIG)
    with pytest.raises(ValueError, match="must be a map; got another result"):
        mo.read_map(tmp_path / "run.zarr")
