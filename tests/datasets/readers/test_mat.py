"""MATLAB files of both formats: the variable that is meant, upright, and cells of spike times in bins."""

import os
import warnings

import numpy as np
import pytest
import scipy.io
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from strategies import examples

TABLE = np.random.default_rng(0).normal(size=(40, 3))
SPIKES = [np.array([0.01, 0.02, 0.31]), np.array([]), np.array([0.12, 0.5])]


def five(folder, compressed=True, **variables):
    scipy.io.savemat(folder / "a.mat", variables, do_compression=compressed, oned_as="column")
    return folder / "a.mat"


def cells(parts):
    """A cell array, one row."""
    made = np.empty((1, len(parts)), object)
    for number, part in enumerate(parts):
        made[0, number] = part
    return made


def seven(folder, name="a.mat", **variables):
    """A file as MATLAB 7.3 writes it: HDF5 behind a block of text, dimensions the other way round."""
    h5py = pytest.importorskip("h5py")
    path = folder / name
    with h5py.File(path, "w", userblock_size=512) as file:
        for key, value in variables.items():
            _put(h5py, file, key, value)
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return path


def _put(h5py, group, key, value):
    if isinstance(value, dict):
        inner = group.create_group(key)
        inner.attrs["MATLAB_class"] = np.bytes_("struct")
        for name, part in value.items():
            _put(h5py, inner, name, part)
        return
    if isinstance(value, list):
        refs = group.file.require_group("#refs#")
        made = np.empty((len(value), 1), h5py.ref_dtype)
        for number, part in enumerate(value):
            _put(h5py, refs, f"{key}{number}", part)
            made[number, 0] = refs[f"{key}{number}"].ref
        item = group.create_dataset(key, data=made, dtype=h5py.ref_dtype)
        item.attrs["MATLAB_class"] = np.bytes_("cell")
        return
    value = np.atleast_2d(value)
    item = group.create_dataset(key, data=value.T)
    names = {"f8": "double", "f4": "single", "u1": "uint8", "i2": "int16"}
    item.attrs["MATLAB_class"] = np.bytes_(names[value.dtype.str[1:]])


@pytest.mark.parametrize("write", [five, seven])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "u1"])
def test_the_only_table__is_the_recording(tmp_path, write, dtype):
    values = (TABLE * 20).astype(dtype)
    recording = mo.open_recording(write(tmp_path, lfp=values, fs=np.array([[500.0]])), sampling_rate=500)
    np.testing.assert_array_equal(recording, values)
    assert recording.dtype == values.dtype
    np.testing.assert_allclose(recording.time, np.arange(40) / 500)
    assert recording.channel.values.tolist() == ["ch1", "ch2", "ch3"]


@pytest.mark.parametrize("write", [five, seven])
def test_several_tables__are_listed_and_one_is_chosen(tmp_path, write):
    path = write(tmp_path, run=TABLE, sleep=TABLE[:20] + 1, tracker={"xy": TABLE[:, :2]})
    with pytest.raises(
        ValueError, match=r"run \(40, 3\) numbers, sleep \(20, 3\) numbers.*Choose one with variable='run'"
    ):
        mo.open_recording(path)
    np.testing.assert_array_equal(mo.open_recording(path, variable="sleep"), TABLE[:20] + 1)
    np.testing.assert_array_equal(mo.open_recording(path, variable="tracker.xy"), TABLE[:, :2])
    for wrong in ("walk", "tracker.z", "run.x"):
        with pytest.raises(ValueError, match=f"have the variable '{wrong}'"):
            mo.open_recording(path, variable=wrong)


@pytest.mark.parametrize("write", [five, seven])
def test_wide_tables__are_asked_about(tmp_path, write):
    wide = np.random.default_rng(1).normal(size=(4, 900))
    path = write(tmp_path, x=wide)
    with pytest.raises(ValueError, match=r"900 channels, which looks like \(channel, time\): give channels_first=True"):
        mo.open_recording(path)
    np.testing.assert_array_equal(mo.open_recording(path, channels_first=True), wide.T)
    np.testing.assert_array_equal(mo.open_recording(path, channels_first=False), wide)


@pytest.mark.parametrize("write", [five, seven])
@pytest.mark.parametrize("turn", [np.atleast_2d, lambda x: x[:, None]])
def test_vectors__are_one_channel(tmp_path, write, turn):
    vector = np.arange(50.0)
    recording = mo.open_recording(write(tmp_path, x=turn(vector)))
    np.testing.assert_array_equal(recording, vector[:, None])


@pytest.mark.parametrize("key", [np.s_[3:17], np.s_[2:30:7, ::-1], np.s_[5, 1], np.s_[[1, 4, 2]]])
@pytest.mark.parametrize("turned", [False, True])
def test_slices_of_version_7__are_those_of_the_whole(tmp_path, key, turned):
    path = seven(tmp_path, x=TABLE.T if turned else TABLE)
    lazy = xr.open_dataset(path, engine="manifold-mat", channels_first=turned)["recording"]
    np.testing.assert_array_equal(lazy[key].values, TABLE[key])


EXPECTED = np.array([[2, 0, 0], [0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize("write", [five, seven])
def test_cells_of_spikes__are_counted(tmp_path, write):
    parts = [part[:, None] for part in SPIKES]
    path = write(tmp_path, spikes=cells(parts) if write is five else [p if p.size else np.zeros((0, 1)) for p in parts])
    with pytest.raises(ValueError, match=r"be counted in bins; got spike times of 2 units\. Give .* bin=0.1"):
        mo.open_recording(path)
    counts = mo.open_recording(path, bin=0.1)
    np.testing.assert_array_equal(counts, EXPECTED[:, [0, 2]])
    assert counts.channel.values.tolist() == ["1", "3"]
    np.testing.assert_allclose(counts.time, np.arange(6) * 0.1 + 0.05)
    assert counts.attrs["sampling_rate"] == 10.0


def test_cells_within_cells__name_units_by_their_place(tmp_path):
    """Tetrodes of units with a field of times, as MatClust writes them."""
    unit = [np.array([(t[:, None], 1.0)], [("time", "O"), ("meanrate", "O")]).reshape(1, 1) for t in SPIKES]
    nested = cells([cells([cells([unit[0]]), np.zeros((1, 0)), cells([unit[1], unit[2]])])])
    counts = mo.open_recording(five(tmp_path, spikes=nested), bin=0.1)
    assert counts.channel.values.tolist() == ["1-1", "3-2"]
    np.testing.assert_array_equal(counts, EXPECTED[:, [0, 2]])


def test_spikes_before_zero_and_far_away__are_counted_or_asked_about(tmp_path):
    counts = mo.open_recording(five(tmp_path, s=cells([np.array([[-0.25, -0.05, 0.1]])])), bin=0.1)
    assert counts[:, 0].values.tolist() == [1, 0, 1, 0, 1]
    np.testing.assert_allclose(counts.time, [-0.25, -0.15, -0.05, 0.05, 0.15])
    with pytest.raises(
        ValueError, match=r"make at most .* Give a longer bin, and make sure that the times are in seconds"
    ):
        mo.open_recording(five(tmp_path, s=cells([np.array([[0.0, 1e9]])])), bin=0.1)
    with pytest.raises(ValueError, match="bin must be a positive number of seconds; got 0"):
        mo.open_recording(five(tmp_path, s=cells([np.array([[0.0, 1e9]])])), bin=0)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.array([[1 + 2j, 3]]), "hold real numbers in 'x'; got complex128"),
        ("text", "hold real numbers in 'x'; got <U4"),
        (np.zeros((3, 4, 5)), r"hold samples \(time, channel\) in 'x'; got shape \(3, 4, 5\)"),
        (np.zeros((0, 3)), r"got shape \(0, 3\)"),
    ],
)
def test_other_variables__are_refused(tmp_path, value, said):
    with pytest.raises(ValueError, match=said):
        mo.open_recording(five(tmp_path, x=value), variable="x")


def test_sparse_and_logical__are_numbers(tmp_path):
    import scipy.sparse  # noqa: PLC0415

    made = np.eye(6)[:, :2]
    np.testing.assert_array_equal(mo.open_recording(five(tmp_path, x=scipy.sparse.csc_array(made))), made)
    flags = mo.open_recording(five(tmp_path, x=made > 0))
    assert flags.dtype == np.uint8


def test_links_out_of_version_7__are_not_followed(tmp_path):
    h5py = pytest.importorskip("h5py")
    other = seven(tmp_path, "secret.mat", x=TABLE)
    path = seven(tmp_path, x=TABLE)
    with h5py.File(path, "r+") as file:
        file["y"] = h5py.ExternalLink(str(other), "x")
    with pytest.raises(ValueError, match="must hold its data itself"):
        mo.open_recording(path, variable="y")


def test_twenty_gigabytes_of_version_7__are_read_in_part(tmp_path):
    h5py = pytest.importorskip("h5py")
    path, n = seven(tmp_path), 1_300_000_000
    with h5py.File(path, "r+") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((2, n)), plist)
        file["x"].attrs["MATLAB_class"] = np.bytes_("double")
        file["x"][:, n - 5 :] = np.arange(10.0).reshape(2, 5)
    assert os.path.getsize(path) > 20e9
    recording = mo.open_recording(path)
    assert recording.shape == (n, 2)
    lazy = xr.open_dataset(path, engine="manifold-mat", create_default_indexes=False)["recording"]
    np.testing.assert_array_equal(lazy[n - 6 :], np.vstack([[0, 0], np.arange(10.0).reshape(2, 5).T]))


@examples(90)
@given(data=st.data())
def test_mutated_files__give_values_or_one_sentence(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mat")
    parts = cells([part[:, None] for part in SPIKES])
    path = five(folder, data.draw(st.booleans()), x=TABLE, spikes=parts, fs=1.0, s={"x": TABLE[:9]})
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(120, 1200))
        content[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    path.write_bytes(content[: data.draw(st.sampled_from([len(content), 500, 130]))])
    options = data.draw(st.sampled_from([{}, {"variable": "spikes", "bin": 0.1}, {"variable": "s.x"}]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            recording = mo.open_recording(path, **options)
            assert recording.values.shape == recording.shape
            return
        except ValueError as error:
            said = str(error)
    assert str(path) in said


def test_version_4__is_refused(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"x": TABLE}, format="4")
    with pytest.raises(ValueError, match=r"be a MATLAB file of version 5 or 7\.3"):
        mo.open_recording(tmp_path / "a.mat")


@pytest.mark.parametrize("sep", [",", ";", "\t"])
def test_spike_tables__are_counted(tmp_path, sep):
    rows = [(3, t) for t in SPIKES[0]] + [(10, t) for t in SPIKES[2]]
    order = np.random.default_rng(0).permutation(len(rows))
    lines = ["cluster_id" + sep + "spike_time"] + [f"{rows[k][0]}{sep}{rows[k][1]}" for k in order]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    counts = mo.open_recording(tmp_path / "a.csv", bin="0.1")
    np.testing.assert_array_equal(counts, EXPECTED[:, [0, 2]])
    assert counts.channel.values.tolist() == ["3", "10"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("unit,time\na,x\n", "got 'x' for unit 'a' in line 2"),
        ("unit,time\na,1\nb,\n", "in line 3"),
        ("a,b\n1,2\n", "have one column of the unit of each spike; got none among"),
        ("unit,cell,time\na,b,1\n", "got .*'unit', 'cell'"),
        ("", "be a table of spike times; got an empty file"),
        ("unit,time\n", "hold spikes; got 0 units"),
    ],
)
def test_spike_tables__with_faults_are_refused(tmp_path, text, said):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=said):
        mo.open_recording(tmp_path / "a.csv", bin=0.1)


def test_bin__goes_with_spike_times(tmp_path):
    np.save(tmp_path / "a.npy", TABLE)
    with pytest.raises(ValueError, match=r"not in a supported format|bin goes with"):
        mo.open_recording(tmp_path / "a.npy", bin=0.1)
