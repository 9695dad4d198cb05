"""Sound files give exact samples, lazily, and broken ones are refused with what they are."""

import pickle
import struct
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import soundfile
import xarray as xr
from hypothesis import assume, given
from hypothesis import strategies as st
from xarray.indexes import RangeIndex

from manifold_observer.datasets.readers import audio, wave_header
from strategies import examples


@pytest.fixture(scope="module")
def samples():
    """Two channels of 16-bit samples, whole numbers over 32768."""
    return np.random.default_rng(0).integers(-(2**15), 2**15, (30_000, 2)) / 2**15


@pytest.fixture
def wave_bytes(tmp_path, samples):
    soundfile.write(tmp_path / "whole.wav", samples, 8000, subtype="PCM_16")
    return (tmp_path / "whole.wav").read_bytes()


def written(folder, content, name="a.wav"):
    (folder / name).write_bytes(content)
    return folder / name


def with_sizes(content, riff_size, data_size):
    return content[:4] + struct.pack("<I", riff_size) + content[8:40] + struct.pack("<I", data_size) + content[44:]


@pytest.mark.parametrize("suffix", ["wav", "flac", "w64", "rf64", "aiff", "au", "caf"])
def test_open__gives_exact_samples(tmp_path, samples, suffix):
    path = tmp_path / f"a.{suffix}"
    soundfile.write(path, samples, 8000, subtype="PCM_16")
    dataset = xr.open_dataset(path)
    recording = dataset["recording"]
    assert recording.dtype == np.float32
    assert recording.dims == ("time", "channel")
    assert recording.attrs == {
        "sampling_rate": 8000.0,
        "units": "1",
        "long_name": "sample value relative to full scale",
        "source": f"a.{suffix}",
    }
    assert dataset["channel"].values.tolist() == ["ch1", "ch2"]
    np.testing.assert_array_equal(recording.values, samples)


@pytest.mark.parametrize(
    ("subtype", "endian", "dtype"),
    [
        ("PCM_24", "FILE", "f4"),
        ("PCM_24", "BIG", "f4"),
        ("PCM_32", "FILE", "f8"),
        ("FLOAT", "FILE", "f4"),
        ("DOUBLE", "FILE", "f8"),
    ],
)
def test_open__keeps_all_bits(tmp_path, subtype, endian, dtype):
    bits = {"PCM_24": 23, "PCM_32": 31, "FLOAT": 23, "DOUBLE": 40}[subtype]
    values = np.random.default_rng(1).integers(-(2**bits), 2**bits, (500, 3)) / 2**bits
    soundfile.write(tmp_path / "a.wav", values, 1000, subtype=subtype, endian=endian)
    recording = xr.open_dataset(tmp_path / "a.wav")["recording"]
    assert recording.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(recording.values, values)


def test_open__passes_nan_and_inf_on(tmp_path):
    values = np.array([[0.5], [np.nan], [np.inf], [3.0]])
    soundfile.write(tmp_path / "a.wav", values, 10, subtype="FLOAT")
    np.testing.assert_array_equal(xr.open_dataset(tmp_path / "a.wav")["recording"].values, values)


def test_time__is_lazy_and_right_after_slicing(tmp_path, samples):
    soundfile.write(tmp_path / "a.wav", samples, 8000)
    dataset = xr.open_dataset(tmp_path / "a.wav")
    part = dataset.isel(time=slice(8000, 8004))
    assert isinstance(part.xindexes["time"], RangeIndex)
    np.testing.assert_allclose(part["time"].values, 1 + np.arange(4) / 8000, rtol=1e-14)
    assert part["time"].attrs["units"] == "s"


index = st.one_of(st.slices(30_000), st.integers(-30_000, 29_999))


@pytest.fixture(scope="module")
def flac(tmp_path_factory, samples):
    path = tmp_path_factory.mktemp("audio") / "a.flac"
    soundfile.write(path, samples, 8000, subtype="PCM_16")
    return path


@examples(40)
@given(time=index, channel=st.one_of(st.slices(2), st.integers(-2, 1)), block=st.integers(1000, 99_999))
def test_array__indexes_like_numpy(flac, samples, time, channel, block):
    # xarray 2026.9 itself fails on an empty slice with a negative step.
    assume(isinstance(time, int) or range(30_000)[time])
    assume(isinstance(channel, int) or range(2)[channel])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audio, "CHUNK_BYTES", block)
        part = xr.open_dataset(flac)["recording"][time, channel]
        np.testing.assert_array_equal(part.values, samples[time, channel])


def test_array__may_be_empty(flac):
    assert xr.open_dataset(flac)["recording"][5:5].values.shape == (0, 2)


def test_array__reads_only_the_range(tmp_path, samples, monkeypatch):
    path = tmp_path / "a.wav"
    soundfile.write(path, samples, 8000)
    recording = xr.open_dataset(path)["recording"]
    asked = []
    read = soundfile.SoundFile.read
    monkeypatch.setattr(
        soundfile.SoundFile,
        "read",
        lambda self, frames, **options: asked.append((self.tell(), frames)) or read(self, frames, **options),
    )
    recording.isel(time=slice(20_000, 20_100)).load()
    assert asked == [(20_000, 100)]
    monkeypatch.setattr(audio, "CHUNK_BYTES", 8 * 1000)  # a thousand frames of two float32
    recording.isel(time=slice(0, 2500), channel=1).load()
    assert asked[1:] == [(0, 1000), (1000, 1000), (2000, 500)]


def test_array__opens_in_chunks_of_8_megabytes(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, np.zeros((2_500_000, 1), np.int16), 8000)
    lazy = xr.open_dataset(path, chunks={})
    assert lazy["recording"].chunks == ((2_000_000, 500_000), (1,))


def test_array__pickles_and_reads_in_threads(flac, samples):
    lazy = xr.open_dataset(flac, chunks={})["recording"].chunk(time=5000)
    again = pickle.loads(pickle.dumps(lazy))
    np.testing.assert_array_equal(again.compute(scheduler="threads").values, samples)
    eager = pickle.loads(pickle.dumps(xr.open_dataset(flac, cache=False)["recording"]))
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(lambda k: eager[k : k + 3000].values, range(0, 30_000, 3000)))
    np.testing.assert_array_equal(np.concatenate(parts), samples)


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
def test_array__reads_ogg_alike_from_anywhere(tmp_path, subtype):
    path = tmp_path / "a.ogg"
    noise = np.random.default_rng(2).standard_normal((60_000, 1)) / 10
    soundfile.write(path, noise, 48_000, format="OGG", subtype=subtype)
    whole, _ = soundfile.read(path, dtype="float32", always_2d=True)
    recording = xr.open_dataset(path, cache=False)["recording"]
    for start in (0, 1, 20_000, *range(40_000, 60_000, 1999), 59_999):  # the last page is the trap
        np.testing.assert_array_equal(recording[start : start + 500].values, whole[start : start + 500])


@pytest.mark.parametrize("cut", [1, 4, 50_001, 119_990])
def test_truncated_wave__says_expected_and_found(tmp_path, wave_bytes, cut):
    left = len(wave_bytes) - 44 - cut
    sentence = rf"audio: .*a\.wav must hold the 30000 frames .*; got {left // 4} frames .*cut short"
    with pytest.raises(ValueError, match=sentence):
        xr.open_dataset(written(tmp_path, wave_bytes[:-cut]))


@pytest.mark.parametrize("length", [12, 13, 30, 40, 43])
def test_truncated_wave__may_end_in_its_header(tmp_path, wave_bytes, length):
    with pytest.raises(ValueError, match=r"a\.wav must hold a 'data' chunk; got \d+ bytes that end before it"):
        xr.open_dataset(written(tmp_path, wave_bytes[:length]))


@pytest.mark.parametrize("suffix", ["rf64", "w64", "aiff", "au", "flac", "ogg", "caf", "mp3"])
def test_truncated__is_refused_in_every_format(tmp_path, samples, suffix):
    soundfile.write(tmp_path / f"whole.{suffix}", samples, 8000)
    content = (tmp_path / f"whole.{suffix}").read_bytes()
    path = written(tmp_path, content[: len(content) * 6 // 10], f"a.{suffix}")
    with pytest.raises(ValueError, match=rf"audio: .*a\.{suffix} must .*(cut short|damaged)"):
        xr.open_dataset(path)


def test_truncated_later__is_named_when_it_is_read(tmp_path, samples):
    path = tmp_path / "a.flac"
    soundfile.write(path, samples, 8000)
    recording = xr.open_dataset(path)["recording"]
    path.write_bytes(path.read_bytes()[:30_000])
    with pytest.raises(ValueError, match=r"audio: .*a\.flac must .* in frames 20000 to 29999"):
        recording[20_000:].load()


def test_shrunk_later__is_named_when_it_is_read(tmp_path, samples, wave_bytes):
    path = written(tmp_path, wave_bytes)
    recording = xr.open_dataset(path)["recording"]
    path.write_bytes(wave_bytes[:40_044])
    with pytest.raises(ValueError, match=r"must hold the 30000 frames its header claims; got only 10000"):
        recording.load()


def test_zero_sizes__are_recovered_when_certain(tmp_path, samples, wave_bytes):
    path = written(tmp_path, with_sizes(wave_bytes, 0, 0))
    recording = xr.open_dataset(path)["recording"]
    np.testing.assert_array_equal(recording.values, samples)
    np.testing.assert_array_equal(recording[12_345:12_350].values, samples[12_345:12_350])


def test_zero_sizes__are_refused_when_not(tmp_path, wave_bytes):
    with pytest.raises(ValueError, match="must state how much sound it holds; got 0 bytes claimed where 120000"):
        xr.open_dataset(written(tmp_path, with_sizes(wave_bytes, 999, 0)))


def test_streamed_sizes__are_read_to_the_end(tmp_path, samples, wave_bytes):
    path = written(tmp_path, with_sizes(wave_bytes, 0xFFFFFFFF, 0xFFFFFFFF))
    np.testing.assert_array_equal(xr.open_dataset(path)["recording"].values, samples)


def test_streamed_sizes__beyond_4_gigabytes_are_refused(tmp_path, wave_bytes):
    path = written(tmp_path, with_sizes(wave_bytes, 0xFFFFFFFF, 0xFFFFFFFF))
    with path.open("r+b") as file:
        file.seek(2**32 + 100)  # a hole, which takes no room
        file.write(b"\x01\x02\x03\x04" * 200)
    with pytest.raises(ValueError, match="header is out of date"):
        xr.open_dataset(path)


def test_stale_sizes__are_refused(tmp_path, wave_bytes):
    stale = with_sizes(wave_bytes, 36 + 4000, 4000)
    with pytest.raises(ValueError, match=r"must end with the 1000 frames .*; got 29000 frames .* more"):
        xr.open_dataset(written(tmp_path, stale))


@pytest.mark.parametrize("tail", [b"LIST\x04\0\0\0INFO", b"TAG some title", bytes(100)])
def test_chunks_after_the_samples__are_fine(tmp_path, samples, wave_bytes, tail):
    path = written(tmp_path, wave_bytes + tail)
    np.testing.assert_array_equal(xr.open_dataset(path)["recording"].values, samples)


def test_crlf_mangled__is_found_by_arithmetic(tmp_path, wave_bytes):
    mangled = wave_bytes.replace(b"\n", b"\r\n")
    assert len(mangled) > len(wave_bytes)
    sentence = f"must be the {len(wave_bytes)} bytes its header claims; got {len(mangled)} .every LF became CRLF"
    with pytest.raises(ValueError, match=sentence):
        xr.open_dataset(written(tmp_path, mangled))


def test_crlf_mangled__is_found_across_blocks(tmp_path, wave_bytes, monkeypatch):
    monkeypatch.setattr(wave_header, "_BLOCK_BYTES", 7)
    with pytest.raises(ValueError, match="every LF became CRLF"):
        xr.open_dataset(written(tmp_path, wave_bytes.replace(b"\n", b"\r\n")))


def test_crlf_mangled__is_the_remedy_for_flac_too(tmp_path, flac):
    path = written(tmp_path, flac.read_bytes().replace(b"\n", b"\r\n"), "a.flac")
    with pytest.raises(ValueError, match="Copy it again in binary mode"):
        xr.open_dataset(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "an empty file"),
        (b"<html><title>404 Not Found</title></html>", "an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\nsize 9", "a Git LFS pointer, not the data: run 'git"),
        (b"time,x\n0,1\n", "text"),
        (pickle.dumps([1]), "a Python pickle"),
    ],
)
@pytest.mark.parametrize("name", ["a.wav", "a.FLAC", "a.ogg"])
def test_other_content__is_named(tmp_path, content, words, name):
    with pytest.raises(ValueError, match=f"audio: .*{name} must be a sound file; got {words}"):
        xr.open_dataset(written(tmp_path, content, name))


def test_unknown_content__is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"a\.wav must be sound that can be opened; got \"Format not recog"):
        xr.open_dataset(written(tmp_path, bytes(range(256))))


def test_no_samples__is_refused(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros((0, 1)), 8000)
    with pytest.raises(ValueError, match="must hold samples; got 0 frames"):
        xr.open_dataset(tmp_path / "a.wav")


def test_missing_file__is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"audio: .*a\.wav must be a local file"):
        xr.open_dataset(tmp_path / "a.wav")


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
@pytest.mark.parametrize("channels", [1, 3])
def test_open__whole_numbers_are_the_floats_of_libsndfile_to_the_bit(tmp_path, monkeypatch, suffix, channels):
    whole = np.resize(np.arange(-(2**15), 2**15, dtype=np.int16), (2**16, channels))
    soundfile.write(tmp_path / f"a{suffix}", whole, 8000, subtype="PCM_16")
    expected = soundfile.read(tmp_path / f"a{suffix}", dtype="float32", always_2d=True)[0]
    monkeypatch.setattr(audio, "_WHOLE_BYTES", 5000)
    found = xr.open_dataset(tmp_path / f"a{suffix}", engine="manifold-audio")["recording"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.values, expected)
    np.testing.assert_array_equal(found[7:40_000:3, -1].values, expected[7:40_000:3, -1])
