"""Results to continue, the recordings that follow them, and what one long run would give."""

import numpy as np
import soundfile
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames import features as feature_graphs
from manifold_observer.pipeline.frames.dates import in_dates
from manifold_observer.pipeline.jobs.config import RunConfig
from manifold_observer.pipeline.jobs.parts import parts_of
from manifold_observer.pipeline.jobs.run import read_embedding, run
from manifold_observer.pipeline.jobs.store import open_group
from manifold_observer.pipeline.jobs.stream import stream_dataset

LEARNT, NEW = 600, 217
RATE = 1000
EMBED = {"n_modes": 2, "form": "factor", "window": 9}
KINDS = {
    "stft": ("stft", {"frame": 10}),
    "stft, overlapping": ("stft", {"frame": 12, "hop": 5}),
    "stft, apart": ("stft", {"frame": 6, "hop": 11}),
    "histogram": ("histogram", {"frame": 10, "bins": 4}),
    "log_rms": ("log_rms", {"frame": 7, "hop": 7}),
    "identity": ("identity", {}),
}


def samples(n=LEARNT + NEW, seed=0):
    """Two channels within -1 .. 1, whole numbers of 2**-15 so that sound files hold them exactly."""
    rng = np.random.default_rng(seed)
    slow = np.sin(np.arange(n)[:, None] / [37, 53])
    return np.round((0.6 * slow + 0.3 * rng.uniform(-1, 1, (n, 2))) * 2**14) / 2**15


ALL = samples()


def write_npy(folder, name, values):
    np.save(folder / f"{name}.npy", values)
    return folder / f"{name}.npy"


def write_wav(folder, name, values):
    soundfile.write(folder / f"{name}.wav", values, RATE, subtype="PCM_16")
    return folder / f"{name}.wav"


def write_zarr(folder, name, values, **coords):
    path = folder / f"{name}.zarr"
    recording = xr.DataArray(values, dims=("time", "channel"), coords=coords, name="recording")
    recording.to_zarr(path, zarr_format=3, consolidated=False, mode="w", encoding={"recording": {"chunks": (50, 2)}})
    return path


WRITERS = {"npy": write_npy, "wav": write_wav}


def learn(folder, kind, write=write_npy, values=ALL[:LEARNT], **observe):
    features, options = KINDS[kind]
    config = RunConfig(
        mo.FeatureConfig(features, **options), embedding=mo.EmbedConfig(**EMBED), observer=mo.ObserverConfig(**observe)
    )
    run([write(folder, "source", values)], folder / "learnt.zarr", config)
    return folder / "learnt.zarr"


def frames_of(result, path):
    """Frames of a recording, made as those of a result."""
    stored = xr.open_datatree(result)["frames/frames"]
    features, options = KINDS[next(kind for kind in KINDS if KINDS[kind][0] == stored.attrs["features"])]
    options = {"frame": stored.attrs["frame_samples"], "hop": stored.attrs["hop_samples"]} if options else {}
    if features == "histogram":
        options["edges"] = stored.attrs["edges"]
    return feature_graphs.FEATURES[features](mo.open_recording(path), **options).load()


def one_run(result, path, first=0, **options):
    """Features and observer over one long recording at once, from its ``first`` frame on."""
    stored = xr.open_datatree(result)
    frames = frames_of(result, path)[first:]
    return mo.observe(read_embedding(result), frames, carry=stored["state/carry"].load(), **options)


def assert_same(out, expected, *, segment=0, times=True):
    """All parts together are the expected state to the bit."""
    found = stream_dataset(out).load()
    np.testing.assert_array_equal(found["state"], expected["state"])
    np.testing.assert_array_equal(found["carry"], expected["carry"])
    np.testing.assert_array_equal(found["segment"], expected["segment"] + segment)
    if times:
        stored = [open_group(part, "state")["time"] for part in parts_of(out)]
        np.testing.assert_array_equal(np.concatenate(stored), expected["time"])
        dated = in_dates(expected) if "start_time" in stored[0].attrs else expected
        np.testing.assert_array_equal(found["time"], dated["time"])
    return found


def everything(folder):
    return sorted(path.name for path in folder.iterdir())


def grow(path, values, **coords):
    """Add rows as xarray's append does."""
    recording = xr.DataArray(values, dims=("time", "channel"), coords=coords, name="recording")
    recording.to_zarr(path, zarr_format=3, consolidated=False, append_dim="time")


def acting(*actions):
    """A wait that does the next thing, and asks to stop when there is none left."""
    left = list(actions)

    def wait(_seconds):
        if not left:
            return True
        left.pop(0)()
        return False

    return wait
