"""The main job stores frames, embedding and state of any recording, labelled and complete."""

import warnings

import numpy as np
import pytest
import soundfile
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine import exact as ways
from manifold_observer.pipeline.jobs import run as job
from manifold_observer.pipeline.jobs.config import RunConfig
from manifold_observer.pipeline.jobs.load import load
from manifold_observer.pipeline.jobs.progress import Stages
from manifold_observer.pipeline.jobs.run import read_embedding, run
from manifold_observer.pipeline.jobs.workfolder import work_folders
from strategies import embed_options, share

pytestmark = pytest.mark.usefixtures("in_this_thread")

RATE = 1000


def walk(n=80, p=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p)).cumsum(axis=0)


def sound(path, seconds=2.0, seed=0):
    rng = np.random.default_rng(seed)
    time = np.arange(int(seconds * RATE)) / RATE
    pitch = 100 + 80 * np.sin(2 * np.pi * 1.5 * time)
    samples = 0.4 * np.sin(2 * np.pi * np.cumsum(pitch) / RATE) + 0.05 * rng.normal(size=len(time))
    soundfile.write(path, samples[:, None], RATE, subtype="PCM_16")
    return path


def table(path):
    rows = np.column_stack([np.arange(80) * 0.5, walk()])
    path.write_text("time,x,y,z\n" + "\n".join(",".join(f"{cell:.6f}" for cell in row) for row in rows) + "\n")
    return path


def array(path, seed=0, n=80):
    np.save(path, walk(n, seed=seed))
    return path


SMALL = {"embedding": mo.EmbedConfig(n_modes=2)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "name", "config", "n_frames"),
    [
        (sound, "a.wav", RunConfig(mo.FeatureConfig("stft", frame="20ms"), **SMALL), 100),
        (array, "a.npy", RunConfig(mo.FeatureConfig("identity"), **SMALL), 80),
        (table, "a.csv", RunConfig(mo.FeatureConfig("identity"), **SMALL), 80),
    ],
)
def test_run__stores_groups_labels_and_settings(tmp_path, make, name, config, n_frames):
    recording = make(tmp_path / name)
    result = run([recording], tmp_path / "out.zarr", config)
    tree = xr.open_datatree(tmp_path / "out.zarr")
    xr.testing.assert_equal(result, tree)
    assert set(tree.children) == {"frames", "embedding", "state"}
    assert tree.attrs["complete"] is True
    assert tree.attrs["sources"] == [str(recording)]
    assert tree.attrs["features"] == config.features.name
    assert tree.attrs["n_modes"] == 2
    assert tree["state/state"].sizes == {"frame": n_frames, "mode": 4}  # two of them principal components
    for variable in ("frames/frames", "embedding/eigenvalue", "embedding/coordinate", "state/state", "state/carry"):
        assert tree[variable].attrs["units"], variable
        assert tree[variable].attrs["long_name"], variable
    for group in ("frames", "embedding", "state"):
        np.testing.assert_array_equal(tree[f"{group}/time"], tree["frames/time"])
    assert tree["frames/time"].attrs["units"] == "s"
    assert tree["embedding"].attrs["window"] == 21
    assert tree["state"].attrs["reading"] == "coordinates"
    assert tree["embedding/bank_weights"].sizes == {"bank": 28, "reading": 4}
    assert np.isfinite(tree["state/state"]).all()


def test_run__is_the_functions_one_after_the_other(tmp_path):
    recording = sound(tmp_path / "a.wav")
    options = {"n_modes": 2, "form": "factor"}
    config = RunConfig(
        mo.FeatureConfig("stft", frame=20), embedding=mo.EmbedConfig(**options), observer=mo.ObserverConfig(gamma=0.5)
    )
    tree = run([recording], tmp_path / "out.zarr", config)
    frames = mo.stft(mo.open_recording(recording), frame=20)
    embedding = mo.embed(frames, **embed_options(**options))
    state = mo.observe(embedding, frames, 0.5)
    np.testing.assert_array_equal(tree["frames/frames"], frames)
    np.testing.assert_allclose(tree["embedding/coordinate"], embedding["coordinate"], atol=1e-9)
    np.testing.assert_allclose(tree["state/state"], state["state"], atol=1e-9)


@pytest.mark.slow
def test_run__two_recordings_are_two_segments(tmp_path):
    parts = [sound(tmp_path / f"{seed}.wav", seed=seed) for seed in (1, 2)]
    tree = run(parts, tmp_path / "out.zarr", RunConfig(mo.FeatureConfig("stft", frame=20), **SMALL))
    segment = tree["frames/segment"].values
    assert segment.tolist() == [0] * 100 + [1] * 100
    steps = np.diff(tree["state/time"])
    np.testing.assert_allclose(steps[np.arange(199) != 99], 0.02)
    assert steps[99] == pytest.approx(0.04)
    whole = np.concatenate([mo.stft(mo.open_recording(part), frame=20).values for part in parts])
    np.testing.assert_array_equal(tree["frames/frames"], whole)
    assert tree["frames/frames"].attrs["sources"] == [str(part) for part in parts]
    # The recursion starts anew: the second part observed alone gives the same.
    alone = mo.observe(read_embedding(tmp_path / "out.zarr").load(), tree["frames/frames"][100:].load())
    np.testing.assert_array_equal(tree["state/state"][100:], alone["state"])


def test_run__histograms_of_several_recordings_share_their_bins(tmp_path):
    paths = []
    for k, top in enumerate((3, 5)):
        np.save(tmp_path / f"{k}.npy", np.random.default_rng(k).integers(0, top, (600, 2)))
        paths.append(tmp_path / f"{k}.npy")
    tree = run(paths, tmp_path / "out.zarr", RunConfig(mo.FeatureConfig("histogram", frame=10), **SMALL))
    assert tree["frames/frames"].attrs["edges"] == [0, 1, 2, 3, 4, 5]
    assert tree["frames/frames"].sizes == {"frame": 120, "feature": 10}


def test_run__the_embedding_comes_back_with_its_frames(tmp_path):
    run([array(tmp_path / "a.npy")], tmp_path / "out.zarr", RunConfig(mo.FeatureConfig("identity"), **SMALL))
    embedding = read_embedding(tmp_path / "out.zarr")
    np.testing.assert_array_equal(embedding["reference"], walk())
    stored = xr.open_datatree(tmp_path / "out.zarr")["embedding"]
    assert "reference" not in stored
    assert stored.attrs["reference"] == "../frames"


def test_run__reports_stages_and_seconds(tmp_path):
    stages = Stages()
    run(
        [array(tmp_path / "a.npy")],
        tmp_path / "out.zarr",
        RunConfig(mo.FeatureConfig("identity"), **SMALL),
        stages=stages,
    )
    assert list(stages.seconds) == ["features", "embed", "observe"]


@pytest.mark.slow
def test_run__overwrites_when_asked(tmp_path):
    config = RunConfig(mo.FeatureConfig("identity"), **SMALL)
    run([array(tmp_path / "a.npy")], tmp_path / "out.zarr", config)
    other = array(tmp_path / "b.npy", seed=1, n=60)
    with pytest.raises(ValueError, match="already exists"):
        run([other], tmp_path / "out.zarr", config)
    assert run([other], tmp_path / "out.zarr", config, overwrite=True)["state/state"].sizes["frame"] == 60


def test_load__refuses_what_is_not_complete(tmp_path):
    xr.Dataset(attrs={"complete": False}).to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=True)
    with pytest.raises(ValueError, match="was not finished"):
        load(tmp_path / "a.zarr")
    with pytest.raises(ValueError, match="is not a result"):
        load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"b\.zarr does not exist"):
        load(tmp_path / "b.zarr")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mo.FeatureConfig("waves"), "features must be one of histogram, stft, log_rms, identity; got 'waves'"),
        (lambda: mo.FeatureConfig("identity", frame=60), "identity features have no frame"),
        (lambda: mo.FeatureConfig("stft", frame=60, bins=3, floor=None), "stft features have no bins"),
        (lambda: mo.ObserverConfig(gamma=1.0), "gamma must lie in"),
        (lambda: mo.EmbedConfig(window=1), "window must be at least 2"),
        (lambda: mo.FeatureConfig("histogram", frame=60, outside="fold"), "outside must be one of 'raise', 'clip'"),
    ],
)
def test_run_config__refuses_before_anything_is_read(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_run_config__flat_settings_are_all_that_have_a_value():
    config = RunConfig(mo.FeatureConfig("stft", frame="23ms", hop=None), embedding=mo.EmbedConfig(n_modes=4))
    flat = config.flat()
    assert flat.items() >= {"features": "stft", "smooth": False, "frame": "23ms", "n_modes": 4, "gamma": 0.85}.items()
    assert {"hop", "rank", "rates", "stft_window"}.isdisjoint(flat)


def test_run_config__comes_back_from_a_stored_result(tmp_path):
    options = {"gamma": np.float64(0.1), "rates": np.array([0.1, 1 / 3])}
    config = RunConfig(
        mo.FeatureConfig("histogram", frame=np.int64(5), edges=np.linspace(-20, 20, 4)),
        embedding=mo.EmbedConfig(n_modes=2),
        observer=mo.ObserverConfig(**options),
    )
    run([array(tmp_path / "a.npy", n=200)], tmp_path / "out.zarr", config)
    attrs = xr.open_datatree(tmp_path / "out.zarr").attrs
    found = RunConfig.from_json(attrs["settings"])
    assert found == config
    assert (found.observer.gamma, found.observer.rates) == (0.1, (0.1, 1 / 3))
    assert found.features.options() == {"frame": 5, "edges": tuple(np.linspace(-20, 20, 4))}
    assert found.to_json() == config.to_json() == attrs["settings"]
    assert attrs["source_paths"] == [str((tmp_path / "a.npy").resolve())]
    assert (attrs["source_samples"], attrs["end_time"]) == ([200], 199.0)
    with pytest.raises(TypeError, match="settings must be numbers, text and lists of them"):
        RunConfig(mo.FeatureConfig("stft", frame=tmp_path)).to_json()


def test_run__features_need_a_frame_length(tmp_path):
    with pytest.raises(
        ValueError,
        match=r"stft features need a frame length; got none\. Give frame='23ms' .* features='identity' needs none",
    ):
        run([array(tmp_path / "a.npy")], tmp_path / "out.zarr", RunConfig(mo.FeatureConfig("stft")))
    assert not (tmp_path / "out.zarr").exists()


@pytest.mark.slow
def test_run__smooths_and_keeps_the_calibration_that_a_later_observer_needs(tmp_path):
    recording = array(tmp_path / "a.npy", n=2000)
    config = RunConfig(mo.FeatureConfig("identity"), observer=mo.ObserverConfig(gain="kalman"), smooth=True, **SMALL)
    assert config.calibrated
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a walk remembers longer than this recording
        tree = run([recording], tmp_path / "out.zarr", config)
    assert set(tree.children) == {"frames", "embedding", "state", "smoothed"}
    assert tree["smoothed/state"].sizes == tree["state/state"].sizes == {"frame": 2000, "mode": 2}
    assert tree.attrs["gain"] == "kalman"
    assert tree.attrs["smooth"]
    embedding = read_embedding(tmp_path / "out.zarr")
    assert embedding.attrs["calibration"] == "frames"
    frames = mo.identity(mo.open_recording(recording))
    np.testing.assert_array_equal(mo.observe(embedding, frames, gain="kalman")["state"], tree["state/state"])
    np.testing.assert_array_equal(mo.smooth(embedding, frames, gain="kalman")["state"], tree["smoothed/state"])


@pytest.mark.parametrize(
    ("options", "smoothed", "expected"),
    [
        ({}, False, False),
        ({}, True, False),
        ({"gamma": 0.5}, True, True),
        ({"gain": "kalman"}, False, True),
        ({"gain": "kalman", "rates": "step"}, True, False),
        ({"gain": "dmk"}, True, False),
        ({"rates": "calibrated"}, False, True),
    ],
)
def test_config__calibrates_only_for_filters_that_ask(options, smoothed, expected):
    assert (
        RunConfig(mo.FeatureConfig("identity"), observer=mo.ObserverConfig(**options), smooth=smoothed).calibrated
        is expected
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "error", share([RuntimeError("scheduler gone"), OSError(28, "disk full"), KeyboardInterrupt()], 2)
)
def test_run__passes_outlive_every_failure_and_are_used(tmp_path, monkeypatch, error):
    options = {"n_modes": 2, "home": "recomputed", "form": "quadratic", "tile": 64, "window": 9}
    source, out, config = (
        array(tmp_path / "a.npy", n=300),
        tmp_path / "out.zarr",
        RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(**options)),
    )
    expected, products, made = run([source], tmp_path / "b.zarr", config).load(), [], ways.recomputed_product

    def fail(*_args, **_options):
        raise error

    def counting(*arguments):
        matmat = made(*arguments)
        return lambda x: products.append(1) or matmat(x)

    with monkeypatch.context() as patched:
        patched.setattr(job, "observe", fail)
        with pytest.raises(type(error)) as failed:
            run([source], out, config)
    (hidden,) = work_folders(tmp_path, "out.zarr")
    number = len(list((hidden / "passes").glob("pass-*.npz")))
    assert number == expected["embedding"].attrs["passes"]
    note = f"The same command resumes after pass {number}, which is kept in {hidden / 'passes'}."
    assert failed.value.__notes__ == [note]

    monkeypatch.setattr(ways, "recomputed_product", counting)
    resumed = run([source], out, config)
    assert products == []  # nothing is left to be done of the solve
    for name in ("frames", "embedding", "state"):
        xr.testing.assert_equal(resumed[name].to_dataset(), expected[name].to_dataset())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "b.zarr", "out.zarr"]
