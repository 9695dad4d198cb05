"""A library that is missing is named in one sentence, with what to install."""

import sys

import numpy as np
import pytest

import manifold_observer.pipeline as mo
from manifold_observer.datasets.readers import mne_raw

HDF5 = b"\x89HDF\r\n\x1a\n" + bytes(600)
CASES = [
    ("a.hea", b"a 1 100 4\na.dat 16 200 16 0 0 0 0 x\n", "wfdb", "wfdb", {}),
    ("a.parquet", b"PAR1" + bytes(40), "pyarrow", "pyarrow", {}),
    ("a.xdf", b"XDF:" + bytes(40), "pyxdf", "pyxdf", {}),
    ("a_raw.fif", b"\0\0\0\x64\0\0\0\x1f\0\0\0\x14" + bytes(40), "mne", "mne", {}),
    ("a.nwb", HDF5, "h5py", "h5py", {}),
    ("a.mat", b"MATLAB 7.3 MAT-file".ljust(512) + HDF5, "h5py", "h5py", {}),
]


@pytest.mark.parametrize(("name", "content", "module", "package", "options"), CASES)
def test_recordings__say_what_to_install(tmp_path, monkeypatch, name, content, module, package, options):
    (tmp_path / name).write_bytes(content)
    monkeypatch.setitem(sys.modules, module, None)
    mne_raw.opened.cache_clear()
    said = rf"{name} needs the package {package}, which is not installed\. Install it with: pip install {package}\."
    with pytest.raises(ImportError, match=said):
        mo.open_recording(tmp_path / name, **options)


def test_labels__say_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "a.mid").write_bytes(b"MThd\0\0\0\6\0\0\0\1\0\x60")
    monkeypatch.setitem(sys.modules, "mido", None)
    with pytest.raises(ImportError, match=r"a\.mid needs the package mido, .* pip install mido\."):
        mo.open_labels(tmp_path / "a.mid")


def test_edf_and_matlab_5__need_none(tmp_path, monkeypatch):
    for module in ("edfio", "wfdb", "mne", "h5py", "pyarrow", "pyxdf", "mido"):
        monkeypatch.setitem(sys.modules, module, None)
    import scipy.io  # noqa: PLC0415

    scipy.io.savemat(tmp_path / "a.mat", {"x": np.arange(6.0).reshape(3, 2)})
    assert mo.open_recording(tmp_path / "a.mat").shape == (3, 2)
