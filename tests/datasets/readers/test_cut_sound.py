"""A sound file that was cut anywhere is refused with its name, in every container."""

import struct

import numpy as np
import pytest
import soundfile
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from strategies import examples

RATE = 48_000
SOUND = (np.random.default_rng(0).normal(size=(20_000, 2)).cumsum(axis=0) / 400).clip(-1, 1)
CONTAINERS = [
    ("WAV", "PCM_16", "wav"),
    ("WAVEX", "PCM_24", "wav"),
    ("RF64", "PCM_16", "rf64"),
    ("W64", "PCM_16", "w64"),
    ("AIFF", "PCM_16", "aiff"),
    ("AIFF", "FLOAT", "aifc"),
    ("AU", "PCM_16", "au"),
    ("AU", "ULAW", "snd"),
    ("CAF", "PCM_16", "caf"),
    ("CAF", "FLOAT", "caf"),
    ("CAF", "ALAC_16", "caf"),
    ("FLAC", "PCM_16", "flac"),
    ("OGG", "VORBIS", "ogg"),
    ("OGG", "OPUS", "opus"),
    ("MP3", "MPEG_LAYER_III", "mp3"),
]
each_container = pytest.mark.parametrize(
    ("container", "coding", "suffix"), CONTAINERS, ids=["-".join(parts[:2]) for parts in CONTAINERS]
)
available = soundfile.available_formats()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Bytes and samples of a sound in each container, made once."""
    made = {}

    def get(container, coding, suffix):
        if container not in available:
            pytest.skip(f"libsndfile does not know {container}")
        if (container, coding) not in made:
            path = tmp_path_factory.mktemp("whole") / f"a.{suffix}"
            soundfile.write(path, SOUND, RATE, format=container, subtype=coding)
            made[container, coding] = path.read_bytes(), xr.open_dataset(path)["recording"].values
        return made[container, coding]

    return get


def assert_right_or_refused(path, samples):
    """The samples are those of the whole sound, or one sentence names the file."""
    try:
        found = xr.open_dataset(path)["recording"].values
    except (ValueError, OSError) as refused:
        said = str(refused)
        assert str(path) in said
        return said
    np.testing.assert_array_equal(found, samples)
    return None


@each_container
def test_cut__is_refused(tmp_path, whole, container, coding, suffix):
    content, samples = whole(container, coding, suffix)
    path = tmp_path / f"a.{suffix}"
    for length in (len(content) // 3, len(content) // 2, 2 * len(content) // 3, len(content) - 10, len(content) - 1):
        path.write_bytes(content[:length])
        assert_right_or_refused(path, samples)


@examples(8)
@given(which=st.sampled_from(CONTAINERS), share=st.floats(0, 1))
def test_cut__anywhere(whole, tmp_path_factory, which, share):
    content, samples = whole(*which)
    path = tmp_path_factory.mktemp("cut") / f"a.{which[2]}"
    path.write_bytes(content[: int(share * (len(content) - 1))])
    assert_right_or_refused(path, samples)


def test_cut_caf__says_expected_and_found(tmp_path, whole):
    content, samples = whole("CAF", "PCM_16", "caf")
    (tmp_path / "a.caf").write_bytes(content[: 2 * len(content) // 3])
    said = assert_right_or_refused(tmp_path / "a.caf", samples)
    claimed, held = 4 * len(SOUND) + 4, 2 * len(content) // 3 - (len(content) - 4 * len(SOUND) - 4)
    assert f"must hold the {claimed} bytes that its chunk 'data' claims; got {held} (the file was cut short)" in said


def test_caf__to_the_end_of_the_file(tmp_path, whole):
    content, samples = whole("CAF", "PCM_16", "caf")
    at = content.index(b"data")
    (tmp_path / "a.caf").write_bytes(content[: at + 4] + struct.pack(">q", -1) + content[at + 12 :])
    assert_right_or_refused(tmp_path / "a.caf", samples)


def test_flac__of_unknown_length_is_refused(tmp_path, whole):
    content = bytearray(whole("FLAC", "PCM_16", "flac")[0])
    content[21] &= 0xF0  # the 36 bits of the length in STREAMINFO
    content[22:26] = bytes(4)
    (tmp_path / "a.flac").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"a\.flac must state how many frames it holds; got a stream of unknown length"
    ):
        xr.open_dataset(tmp_path / "a.flac")


@pytest.mark.skipif("MP3" not in available, reason="libsndfile does not know MP3")
def test_mp3__without_its_length_is_counted(tmp_path, whole):
    """Libsndfile guesses the length of an MP3 file by its first frames; the guess may be half."""
    content = whole("MP3", "MPEG_LAYER_III", "mp3")[0]
    sound = content[content.index(b"\xff\xfb", 10) :]  # without the frame that tells
    (tmp_path / "a.mp3").write_bytes(sound)
    with pytest.raises(ValueError, match=r"must state how many frames it holds; got \d+ of 21888 by a guess"):
        xr.open_dataset(tmp_path / "a.mp3")
