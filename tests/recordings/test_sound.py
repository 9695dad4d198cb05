"""Real files of awkward kinds are read, or refused with what they are."""

import numpy as np
import pytest
import xarray as xr

from manifold_observer.datasets.readers import audio, sniff

READABLE = {
    "derived/rf64.wav": (44100, 1),
    "derived/w64.w64": (44100, 1),
    "derived/streamed_sizes_ffffffff.wav": (44100, 1),
    "derived/recorder_crash_sizes_zero.wav": (44100, 1),
    "derived/float32_nan_stretch_and_inf.wav": (44100, 1),
    "derived/float32_peaks_above_1.wav": (44100, 1),
    "derived/rate_44056Hz.wav": (22028, 1),
    "derived/silence.wav": (22050, 1),
    "derived/wavex_24bit_6ch_zero_const_clipped_lag_inverted.wav": (22050, 6),
    "wav/test-1234Hz-le-1ch-10S-20bit-extra.wav": (10, 1),
    "wav/test-44100Hz-2ch-32bit-float-be.wav": (441, 2),
    "wav/test-44100Hz-2ch-32bit-float-le.wav": (441, 2),
    "wav/test-44100Hz-be-1ch-4bytes.wav": (4410, 1),
    "wav/test-44100Hz-le-1ch-4bytes.wav": (4410, 1),
    "wav/test-44100Hz-le-1ch-4bytes-rf64.wav": (4410, 1),
    "wav/test-48000Hz-2ch-64bit-float-le-wavex.wav": (480, 2),
    "wav/test-8000Hz-be-3ch-5S-24bit.wav": (5, 3),
    "wav/test-8000Hz-le-1ch-1byte-ulaw.wav": (9, 1),
    "wav/test-8000Hz-le-2ch-1byteu.wav": (800, 2),
    "wav/test-8000Hz-le-3ch-5S-24bit-inconsistent.wav": (5, 3),
    "wav/test-8000Hz-le-3ch-5S-24bit-rf64.wav": (5, 3),
    "wav/test-8000Hz-le-3ch-5S-24bit.wav": (5, 3),
    "wav/test-8000Hz-le-4ch-9S-12bit.wav": (9, 4),
    "wav/test-8000Hz-le-5ch-9S-5bit.wav": (9, 5),
}
REFUSED = {
    "derived/crlf_mangled.wav": "88244 bytes its header claims; got 88835 .every LF became CRLF",
    "derived/empty.wav": "an empty file",
    "derived/git_lfs_pointer.wav": "git lfs pull",
    "derived/html_error_page.wav": "an HTML page",
    "derived/odd_list_chunk_unpadded.wav": "for a name at byte 52",
    "derived/truncated_header_claims_more.wav": "the 44100 frames .*; got 26460 frames",
    "derived/truncated_mid_sample.wav": "the 44100 frames .*; got 26460 frames",
    "wav/4channels.flac": r"4channels\.flac must be sound that can be read in frames 0 to",
    "wav/empty.ogg": "must hold samples",
    "wav/test-44100Hz-le-1ch-4bytes-early-eof-no-data.wav": "must hold a 'data' chunk",
    "wav/test-44100Hz-le-1ch-4bytes-early-eof.wav": "4410 frames .*; got 236 frames",
    "wav/test-44100Hz-le-1ch-4bytes-incomplete-chunk.wav": "must hold a 'data' chunk",
    "wav/test-8000Hz-le-3ch-5S-36bit.wav": "unimplemented format",
    "wav/test-8000Hz-le-3ch-5S-45bit.wav": "unimplemented format",
    "wav/test-8000Hz-le-3ch-5S-53bit.wav": "unimplemented format",
    "wav/test-8000Hz-le-3ch-5S-64bit.wav": "unimplemented format",
}


@pytest.mark.parametrize(("name", "shape"), READABLE.items())
def test_awkward_file__is_read(awkward, name, shape):
    recording = xr.open_dataset(awkward / name)["recording"].load()
    assert recording.shape == shape


@pytest.mark.parametrize(("name", "sentence"), REFUSED.items())
def test_awkward_file__is_refused(awkward, name, sentence):
    with pytest.raises(ValueError, match=sentence):
        xr.open_dataset(awkward / name)


def test_awkward_files__are_all_listed(awkward):
    found = [path for folder in ("wav", "derived") for path in (awkward / folder).iterdir()]
    sounds = {f"{path.parent.name}/{path.name}" for path in found if audio.has_suffix(path, audio._SUFFIXES)}
    assert sounds == READABLE.keys() | REFUSED.keys()


def test_recovered_file__equals_the_streamed_one(awkward):
    recovered, streamed = (
        xr.open_dataset(awkward / "derived" / name)["recording"].values
        for name in ("recorder_crash_sizes_zero.wav", "streamed_sizes_ffffffff.wav")
    )
    np.testing.assert_array_equal(recovered, streamed)


def test_npy__reads_fortran_big_endian_and_refuses_pickle(awkward):
    path = awkward / "derived" / "npy_fortran_big_endian.npy"
    recording = xr.open_dataset(path)["recording"]
    assert recording.dtype == np.dtype("f4")
    np.testing.assert_array_equal(recording.values, np.load(path))
    with pytest.raises(ValueError, match="never unpickled"):
        xr.open_dataset(awkward / "derived" / "npy_object_array_pickle.npy")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("other/A8604-211122.nwb", "HDF5 (NetCDF 4)"),
        ("other/eeglab_single_file.set", "a MATLAB 5 file"),
        ("other/test.xdf", "an XDF recording"),
        ("brainvision/test.vhdr", "a BrainVision header"),
        ("edf/bdfPlusC.bdf", "a BDF recording"),
        ("edf/edfPlusD.edf", "an EDF recording"),
        ("derived/git_lfs_pointer.wav", "a Git LFS pointer, not the data: run 'git lfs pull'"),
        ("derived/html_error_page.wav", "an HTML page"),
        ("derived/empty.wav", "an empty file"),
    ],
)
def test_describe__knows_real_files(awkward, name, words):
    assert sniff.describe(awkward / name) == words
