"""MP3 of any bit rate reads from anywhere as it reads from the start."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import soundfile

import manifold_observer.pipeline as mo
from manifold_observer.datasets.readers import audio, decoders
from manifold_observer.datasets.readers.audio import inspect_audio, read_blocks

RATE = 22_050


def written(folder, mode, seconds=20, name="a.mp3"):
    """Bursts of noise over a tone, so that the bit rate varies."""
    rng, n = np.random.default_rng(0), seconds * RATE
    bursts = 0.1 * rng.normal(size=(n, 2)) * (np.sin(np.arange(n) / RATE * 3) > 0)[:, None]
    sound = bursts + 0.3 * np.sin(0.05 * np.arange(n))[:, None]
    options = {"format": "MP3", "subtype": "MPEG_LAYER_III", "bitrate_mode": mode, "compression_level": 0.5}
    soundfile.write(folder / name, sound, RATE, **options)
    return folder / name, soundfile.read(folder / name, dtype="float32")[0]


@pytest.mark.parametrize("mode", ["CONSTANT", "AVERAGE", "VARIABLE"])
def test_slices__are_those_of_the_whole(tmp_path, mode):
    path, whole = written(tmp_path, mode)
    recording = mo.open_recording(path)
    assert recording.shape == whole.shape
    for start in np.random.default_rng(1).integers(0, len(whole) - 3000, 12):
        np.testing.assert_allclose(recording[start : start + 3000].values, whole[start : start + 3000], atol=1e-6)
    np.testing.assert_allclose(recording[-1].values, whole[-1], atol=1e-6)


def test_slabs_in_order__cost_one_pass(tmp_path, monkeypatch):
    path, whole = written(tmp_path, "VARIABLE")
    file, opened = inspect_audio(str(path)), []
    plain = decoders.InOrder
    monkeypatch.setattr(audio, "InOrder", lambda name: opened.append(name) or plain(name))
    bounds = [*range(0, len(whole), 40_000), len(whole)]
    parts = [np.concatenate([*read_blocks(file, a, b)]) for a, b in itertools.pairwise(bounds)]
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-6)
    assert len(opened) <= 1


def test_threads_and_changed_files__do_not_mix(tmp_path):
    path, whole = written(tmp_path, "VARIABLE")
    recording = mo.open_recording(path)
    starts = np.random.default_rng(2).integers(0, len(whole) - 500, 24)
    with ThreadPoolExecutor(4) as pool:
        parts = [*pool.map(lambda at: recording[at : at + 500].values, starts)]
    for start, part in zip(starts, parts, strict=True):
        np.testing.assert_allclose(part, whole[start : start + 500], atol=1e-6)
    path, other = written(tmp_path, "VARIABLE", seconds=7)
    np.testing.assert_allclose(mo.open_recording(path)[5000:9000].values, other[5000:9000], atol=1e-6)
