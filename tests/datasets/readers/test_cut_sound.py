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


def with_flac_total(content, total):
    """A FLAC file of which the header claims so many samples; 0 is for an unknown number."""
    return content[:21] + ((content[21] & 0xF0) << 32 | total).to_bytes(5, "big") + content[26:]


@pytest.mark.parametrize("end", [b"", b"TAG".ljust(128, b" ")])
def test_flac__of_unknown_length_is_counted(tmp_path, whole, end):
    content, samples = whole("FLAC", "PCM_16", "flac")
    path = tmp_path / "a.flac"
    path.write_bytes(with_flac_total(content, 0) + end)
    recording = xr.open_dataset(path)["recording"]
    np.testing.assert_array_equal(recording.values, samples)
    np.testing.assert_array_equal(recording[12_345:12_399].values, samples[12_345:12_399])


@pytest.mark.parametrize("cut", [1, 100, 5000, 20_000])
def test_flac__of_unknown_length_and_cut_is_refused(tmp_path, whole, cut):
    content, _ = whole("FLAC", "PCM_16", "flac")
    (tmp_path / "a.flac").write_bytes(with_flac_total(content, 0)[:-cut])
    with pytest.raises(ValueError, match=r"a\.flac must state how many frames it holds; got .*cut short"):
        xr.open_dataset(tmp_path / "a.flac")


@pytest.mark.parametrize(("claimed", "why"), [(5000, "out of date or damaged"), (30_000, "was cut short")])
def test_flac__says_claimed_and_found(tmp_path, whole, claimed, why):
    content, samples = whole("FLAC", "PCM_16", "flac")
    (tmp_path / "a.flac").write_bytes(with_flac_total(content, claimed))
    with pytest.raises(
        ValueError, match=f"must hold the {claimed} frames its header claims; got {len(samples)} .*{why}"
    ):
        xr.open_dataset(tmp_path / "a.flac")


def letters(rng, n_bytes):
    """Bytes that look like names of chunks, as quiet samples of some encodings do."""
    return rng.integers(32, 127, n_bytes).astype(np.uint8).tobytes()


def test_header_that_claims_less__is_refused_whatever_follows(tmp_path, whole):
    content, _ = whole("WAV", "PCM_16", "wav")
    rng, path = np.random.default_rng(3), tmp_path / "a.wav"
    for number in range(400):
        held = int(rng.integers(1000, 10_000))
        tail = letters(rng, 4 if number % 2 else 400) + content[44 + 4 * held :]
        path.write_bytes(content[:40] + struct.pack("<I", 4 * held) + content[44 : 44 + 4 * held] + tail)
        with pytest.raises(ValueError, match=rf"must end with the {held} frames .* its header claims; got \d+ frames"):
            xr.open_dataset(path)


@pytest.mark.parametrize("start", [b"data", b"LIST\x04\0\0\0INFO"])
def test_header_that_claims_less__is_refused_after_true_chunks(tmp_path, whole, start):
    content, _ = whole("WAV", "PCM_16", "wav")
    size = struct.pack("<I", 4000)
    tail = start + struct.pack("<I", len(content) - 4044) * (start == b"data") + content[4044:]
    (tmp_path / "a.wav").write_bytes(content[:40] + size + content[44:4044] + tail)
    with pytest.raises(ValueError, match=r"must end with the 1000 frames .* its header claims; got"):
        xr.open_dataset(tmp_path / "a.wav")


@pytest.mark.parametrize(
    ("container", "suffix", "field", "size"),
    [
        ("AIFF", "aiff", "SSND", ">I"),
        ("AU", "au", "", ">I"),
        ("W64", "w64", "data", "<Q"),
        ("CAF", "caf", "data", ">q"),
    ],
)
def test_header_that_claims_less__is_refused_in_every_container(tmp_path, whole, container, suffix, field, size):
    content, _ = whole(container, "PCM_16", suffix)
    at = 8 if not field else content.index(field.encode()) + (16 if container == "W64" else 4)
    (claimed,) = struct.unpack_from(size, content, at)
    less = bytearray(content)
    struct.pack_into(size, less, at, claimed - 40_000)
    (tmp_path / f"a.{suffix}").write_bytes(less)
    with pytest.raises(
        ValueError, match=r"its header claims; got|named chunks; got|to the end of its last chunk; got|was cut short"
    ):
        xr.open_dataset(tmp_path / f"a.{suffix}")


def ogg_pages(content):
    """Pages of an Ogg file."""
    starts = [at for at in range(len(content)) if content.startswith(b"OggS", at)]
    return [content[a:b] for a, b in zip(starts, [*starts[1:], len(content)], strict=True)]


@pytest.mark.parametrize(("coding", "suffix"), [("VORBIS", "ogg"), ("OPUS", "opus")])
def test_ogg__without_a_page_is_refused(tmp_path, whole, coding, suffix):
    content, _ = whole("OGG", coding, suffix)
    pages = ogg_pages(content)
    (tmp_path / f"a.{suffix}").write_bytes(b"".join(pages[:-2] + pages[-1:]))
    # A short Opus stream has one page beside its headers, which libsndfile misses itself.
    with pytest.raises(ValueError, match=r"hold all pages of its Ogg stream; got page \d+ after page \d+|malformed"):
        xr.open_dataset(tmp_path / f"a.{suffix}")


def test_ogg__of_two_streams_is_refused(tmp_path, whole):
    content = whole("OGG", "VORBIS", "ogg")[0]
    (tmp_path / "b.ogg").touch()
    soundfile.write(tmp_path / "b.ogg", SOUND[:3000], RATE, format="OGG", subtype="VORBIS")
    (tmp_path / "a.ogg").write_bytes(content + (tmp_path / "b.ogg").read_bytes())
    with pytest.raises(ValueError, match="must hold one Ogg stream; got several"):
        xr.open_dataset(tmp_path / "a.ogg")


@pytest.mark.skipif("MP3" not in available, reason="libsndfile does not know MP3")
def test_mp3__without_its_length_is_counted(tmp_path, whole):
    """Libsndfile guesses the length of an MP3 file by its first frames; the guess may be half."""
    content = whole("MP3", "MPEG_LAYER_III", "mp3")[0]
    sound = content[content.index(b"\xff\xfb", 10) :]  # without the frame that tells
    (tmp_path / "a.mp3").write_bytes(sound)
    with pytest.raises(ValueError, match=r"must state how many frames it holds; got \d+ of 21888 by a guess"):
        xr.open_dataset(tmp_path / "a.mp3")


@pytest.fixture(scope="module")
def varying(tmp_path_factory):
    """An MP3 file of variable bit rate, and its samples as they are decoded at once."""
    if "MP3" not in available:
        pytest.skip("libsndfile does not know MP3")
    rng, path = np.random.default_rng(1), tmp_path_factory.mktemp("mp3") / "a.mp3"
    seconds = np.arange(15 * RATE) / RATE
    loud = 0.3 * rng.normal(size=len(seconds)) * (np.sin(3 * seconds) > 0)
    sound = np.sin(2 * np.pi * 440 * seconds) * (np.sin(2 * seconds) > 0) + loud
    settings = {"format": "MP3", "subtype": "MPEG_LAYER_III", "bitrate_mode": "VARIABLE", "compression_level": 0.7}
    soundfile.write(path, (sound / 2).clip(-1, 1), RATE, **settings)
    return path, soundfile.read(path, dtype="float32", always_2d=True)[0]


def test_mp3_of_variable_rate__is_right_from_anywhere(varying):
    path, samples = varying
    recording = xr.open_dataset(path)["recording"]
    for start in np.random.default_rng(2).integers(0, len(samples) - 3000, 20):
        np.testing.assert_array_equal(recording[start : start + 3000].values, samples[start : start + 3000])
    np.testing.assert_array_equal(recording.chunk(time=100_000).values, samples)


def test_mp3_of_variable_rate__is_refused_without_its_length(tmp_path, varying):
    content = varying[0].read_bytes()
    first = content.index(b"\xff\xfb")
    second = content.index(content[first : first + 2], first + 4)
    (tmp_path / "a.mp3").write_bytes(content[second:])
    with pytest.raises(ValueError, match=r"must state how many frames it holds; got \d+ of \d+ by a guess"):
        xr.open_dataset(tmp_path / "a.mp3")


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_mp3_of_variable_rate__says_claimed_and_found(tmp_path, varying, share):
    content, samples = varying[0].read_bytes(), varying[1]
    (tmp_path / "a.mp3").write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=f"must hold the {len(samples)} frames it claims; got \\d+ .*cut short"):
        xr.open_dataset(tmp_path / "a.mp3")
