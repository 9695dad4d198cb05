"""Recordings at addresses are the local ones, whatever their format."""

import json
import warnings

import dask
import numpy as np
import pytest
import soundfile
import xarray as xr
import zarr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.stores.address import place
from manifold_observer.pipeline.stores.connection import basic
from manifold_observer.pipeline.stores.copies import cache_folder
from manifold_observer.pipeline.stores.objects import remove, upload, write
from manifold_observer.pipeline.stores.refusals import MissingError, StoreError
from store_server import web_server
from strategies import share

WALK = np.round(np.random.default_rng(0).normal(size=(500, 3)).cumsum(axis=0), 3)
CONFIG = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))


def dataset(chunks=100):
    """A recording as a Dataset."""
    walk = xr.Dataset({"walk": (("time", "channel"), WALK)}, {"time": np.arange(500) / 100})
    return walk.assign_coords(channel=["a", "b", "c"]).chunk(time=chunks)


MADE = {
    "walk.npy": lambda path: np.save(path, WALK),
    "walk.csv": lambda path: path.write_text(
        "time,a,b,c\n" + "".join(f"{k / 100},{row[0]},{row[1]},{row[2]}\n" for k, row in enumerate(WALK))
    ),
    "walk.wav": lambda path: soundfile.write(path, WALK / 100, 8000),
    "walk.nc": lambda path: dataset().to_netcdf(path, engine="h5netcdf"),
    "walk.zarr": lambda path: dataset().to_zarr(path, zarr_format=3, consolidated=True),
    "two.zarr": lambda path: dataset().to_zarr(path, zarr_format=2, consolidated=True),
    "bare.zarr": lambda path: zarr.create_array(path, data=WALK, chunks=(100, 3)),
    "walk.hea": lambda path: as_wfdb(path),  # noqa: PLW0108 - it is defined below
}


def as_wfdb(path):
    """A header, and beside it the samples."""
    lines = [f"{path.stem}.dat 16 1000/mV 16 0 0 0 0 {name}" for name in "abc"]
    path.write_text("\n".join([f"{path.stem} 3 100 500", *lines]) + "\n")
    np.round(WALK * 1000).astype("<i2").tofile(path.with_suffix(".dat"))


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Recordings of several formats, in one folder."""
    folder = tmp_path_factory.mktemp("made")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in MADE.items():
            make(folder / name)
    return folder


def put(folder, address):
    """Put everything in a folder below an address."""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        upload(path, place(f"{address}/{path.relative_to(folder).as_posix()}"))


def assert_same(remote, local):
    """Two recordings are the same, but for where they come from."""
    assert remote.attrs | {"source": ""} == local.attrs | {"source": ""}
    xr.testing.assert_identical(remote.drop_attrs().load(), local.drop_attrs().load())


@pytest.mark.parametrize("name", MADE)
def test_open_recording__from_a_bucket_is_the_local_one(made, bucket, name):
    put(made, f"{bucket}/in")
    recording = mo.open_recording(f"{bucket}/in/{name}")
    assert recording.attrs["source"] == f"{bucket}/in/{name}"
    assert_same(recording, mo.open_recording(made / name))
    assert any(cache_folder().rglob(name)) == (not name.endswith(".zarr"))  # Zarr is read where it lies


@pytest.mark.parametrize("name", MADE)
def test_open_recording__from_a_web_server_is_the_local_one(made, bucket, name):
    server = web_server(made)
    try:
        if name == "bare.zarr":
            assert mo.open_recording(f"{server.address}/{name}").sizes == {"time": 500, "channel": 3}
        assert_same(mo.open_recording(f"{server.address}/{name}"), mo.open_recording(made / name))
    finally:
        server.stop()


def test_open_recording__a_copy_is_used_again_until_the_object_changes(made, bucket, s3):
    address = place(f"{bucket}/walk.npy")
    upload(made / "walk.npy", address)

    def fetched():
        s3.app.seen.clear()
        mo.open_recording(address)
        return ("GET", f"/{address.host}/walk.npy") in s3.app.seen

    assert [fetched(), fetched()] == [True, False]
    np.save(made / "other.npy", -WALK)
    upload(made / "other.npy", address)
    assert fetched()
    np.testing.assert_array_equal(mo.open_recording(address).values, -WALK)
    # One that was cut, or spoilt by hand, is fetched again.
    (copy,) = [path for path in cache_folder().rglob("walk.npy") if np.load(path)[0, 0] == -WALK[0, 0]]
    copy.write_bytes(copy.read_bytes()[:200])
    assert fetched()


def test_open_recording__errors_and_warnings_name_the_address(bucket):
    write(place(f"{bucket}/a.csv"), b"time,a\n0,1\n1,x\n2,3\n")
    with pytest.raises(ValueError, match=f"{bucket}/a.csv") as told:
        mo.open_recording(f"{bucket}/a.csv")
    assert str(cache_folder()) not in str(told.value)
    write(place(f"{bucket}/b.csv"), b"time,a,b\n0,1,2\n1,2,3\n2,3,4")
    with pytest.warns(UserWarning, match=f"{bucket}/b.csv"):
        mo.open_recording(f"{bucket}/b.csv")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("none.npy", r"none\.npy does not exist\. Check the address\."),
        ("none.zarr", r"none\.zarr does not exist"),
        ("in", r"/in must name an object, or a Zarr store; got names that begin so"),
        ("/a//b.npy", "must have a name between any two slashes"),
    ],
)
def test_open_recording__what_is_not_there_is_one_sentence(bucket, name, sentence):
    write(place(f"{bucket}/in/other.txt"), b"")
    with pytest.raises((MissingError, ValueError), match=sentence):
        mo.open_recording(f"{bucket}/{name}")


def test_open_recording__a_store_that_would_run_code_is_refused(bucket):
    array = {"shape": [4], "chunks": [2], "dtype": "|O", "filters": [{"id": "pickle"}], "zarr_format": 2}
    write(place(f"{bucket}/a.zarr/.zgroup"), b'{"zarr_format": 2}')
    write(place(f"{bucket}/a.zarr/x/.zarray"), json.dumps(array).encode())
    with pytest.raises(ValueError, match=r"a\.zarr must be decoded by known codecs; got 'pickle' for array 'x'"):
        mo.open_recording(f"{bucket}/a.zarr")


def test_open_recording__chunks_that_are_missing_are_told_of(made, bucket):
    put(made / "walk.zarr", f"{bucket}/walk.zarr")
    remove([place(f"{bucket}/walk.zarr/walk/c/2/0")])
    with pytest.warns(UserWarning, match=r"walk\.zarr stores 4 of 5 chunks of 'walk'"):
        mo.open_recording(f"{bucket}/walk.zarr")


def test_open_recording__a_web_server_with_a_password_that_breaks_off(made, bucket):
    server = web_server(made, password=basic("me:s3cret"), breaks=1)
    try:
        host = server.address.removeprefix("http://")
        recording = mo.open_recording(f"http://me:s3cret@{host}/walk.npy?X-Amz-Signature=0f")
        np.testing.assert_array_equal(recording.values, WALK)
        assert recording.attrs["source"] == f"http://{host}/walk.npy"
        with pytest.raises(StoreError, match=r"walk\.csv may not be read .*401.* Put user and password") as told:
            mo.open_recording(f"http://me:wrong@{host}/walk.csv")
        assert "wrong" not in str(told.value)
    finally:
        server.stop()


def test_open_recording__a_zarr_store_of_a_web_server_must_be_consolidated(made, bucket, tmp_path):
    dataset().drop_vars("channel").to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    server = web_server(tmp_path)
    try:
        with pytest.raises(ValueError, match=r"a\.zarr must have consolidated metadata to be read from a web server"):
            mo.open_recording(f"{server.address}/a.zarr")
    finally:
        server.stop()


@pytest.mark.parametrize("address", ["s3://b/a.npy", "https://127.0.0.1:9/a.npy"])
def test_open_recording__an_endpoint_that_does_not_answer_is_given_up(monkeypatch, bucket, address):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with dask.config.set({"manifold-observer.stores.retries": 1}), pytest.raises(StoreError, match="no answer"):
        mo.open_recording(address)


def test_open_recording__plain_http_to_another_machine_must_be_allowed(monkeypatch, bucket):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://198.51.100.1")
    with pytest.raises(StoreError, match=r"the endpoint is plain http\. .* set AWS_ALLOW_HTTP=true"):
        mo.open_recording("s3://b/a.npy")


def test_open_labels__beside_a_recording_in_a_bucket(made, bucket):
    put(made, f"{bucket}/in")
    write(place(f"{bucket}/labels/walk.csv"), b"start,stop,stage\n0,2,W\n2,5,N1\n")
    config = mo.RunConfig(mo.FeatureConfig("log_rms", frame=50), mo.OpenConfig(labels=f"{bucket}/labels/{{stem}}.csv"))
    from manifold_observer.pipeline.jobs.run import features_of, open_all  # noqa: PLC0415

    frames = features_of(open_all([place(f"{bucket}/in/walk.zarr")], config), config)
    assert frames.label.values.tolist() == ["W"] * 4 + ["N1"] * 6


@pytest.mark.parametrize("name", share(["walk.zarr", "walk.npy", "two.zarr"], 2))
def test_open_recording__workers_read_it_without_credentials_in_their_tasks(made, bucket, name, workers_here):
    put(made, f"{bucket}/in")
    recording = mo.open_recording(f"{bucket}/in/{name}")
    import cloudpickle  # noqa: PLC0415

    packed = cloudpickle.dumps(recording.data)
    assert b"secret" not in packed
    assert b"tester" not in packed
    with workers_here(2):
        np.testing.assert_array_equal(recording.compute().values, WALK)


def test_list_places__of_a_bucket_and_a_folder(bucket, tmp_path):
    for name in ("in/a.npy", "in/b.zarr/zarr.json", "in/b.zarr/x/c/0", "in/.c.npy", "in/deep/d.npy", "e.npy"):
        write(place(f"{bucket}/{name}"), b"{}")
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"{}")
    patterns = ["in/*.npy", "in/*", "*/?.zarr", "in/[ab].*", "*.npy", "in/a.npy", "none/*", "**/d.npy"]
    for pattern in patterns:
        there = [str(one).removeprefix(f"{bucket}/") for one in mo.list_places(f"{bucket}/{pattern}")]
        here = [str(one.relative_to(tmp_path)) for one in mo.list_places(tmp_path / pattern)]
        assert there == here, pattern
    with pytest.raises(ValueError, match="Web servers cannot list what they have"):
        mo.list_places("https://example.org/*.npy")


def test_open_recording__an_answer_that_does_not_come_is_given_up(made, bucket, s3):
    upload(made / "walk.npy", place(f"{bucket}/walk.npy"))
    s3.app.rules.append(lambda _method, _path: 1.5)
    try:
        with (
            dask.config.set({"manifold-observer.stores.retries": 1, "manifold-observer.stores.timeout": 0.2}),
            pytest.raises(StoreError, match=r"walk\.npy could not be read: no answer in time\. Check AWS_ENDPOINT_URL"),
        ):
            mo.open_recording(f"{bucket}/walk.npy")
    finally:
        s3.app.rules.clear()


def test_open_labels__errors_name_the_address(bucket):
    write(place(f"{bucket}/labels.csv"), b"nothing\n")
    with pytest.raises(ValueError, match=f"{bucket}/labels.csv"):
        mo.open_labels(f"{bucket}/labels.csv")
