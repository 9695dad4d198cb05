"""EvTAF: samples as the file beside them says."""

import os

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo

VALUES = np.random.default_rng(0).integers(-9000, 9000, (50, 2))


def written(folder, text="ADFREQ =   32000\nChans = 2\nSamples = 50\n"):
    (folder / "a.141.cbin").write_bytes(VALUES.astype(">i2").tobytes())
    (folder / "a.141.rec").write_text(text)
    return folder / "a.141.cbin"


def test_open__has_values_and_clock(tmp_path):
    recording = mo.open_recording(written(tmp_path))
    np.testing.assert_array_equal(recording, VALUES)
    assert recording.attrs["sampling_rate"] == 32_000
    lazy = xr.open_dataset(tmp_path / "a.141.cbin")["recording"]
    for key in (np.s_[3:9], np.s_[2:41:7, ::-1], np.s_[5]):
        np.testing.assert_array_equal(lazy[key], VALUES[key])


def test_faults__are_named(tmp_path):
    path = written(tmp_path)
    os.truncate(path, 103)
    with pytest.warns(UserWarning, match="claims 50 samples of each channel, and 25 whole ones are there"):
        np.testing.assert_array_equal(mo.open_recording(path), VALUES[:25])
    for text, said in (("Chans = 2\n", "tell ADFREQ, Chans"), ("ADFREQ = 1\nChans = 0\n", "at least 1 channel")):
        with pytest.raises(ValueError, match=said):
            mo.open_recording(written(tmp_path, text))
    (tmp_path / "a.141.rec").unlink()
    with pytest.raises(ValueError, match=r"have its \.rec file beside it"):
        mo.open_recording(path)
