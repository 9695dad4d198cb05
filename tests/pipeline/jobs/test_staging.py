"""Results in a bucket: written in one step, and nothing of others is replaced."""

import json

import dask
import pytest
import xarray as xr
from staged import CONFIG, by_name, left, write_small

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.stores.address import place
from manifold_observer.pipeline.stores.objects import read, remove, sizes, write
from manifold_observer.pipeline.stores.refusals import StoreError
from manifold_observer.pipeline.stores.zarrs import zarr_target
from store_server import web_server


@pytest.mark.slow
def test_run__to_a_bucket_equals_the_local_run_to_the_bit(walk, bucket):
    out = place(f"{bucket}/out/walk.zarr")
    mo.run([walk / "walk.npy"], out, CONFIG)
    assert by_name(out) == by_name(walk / "walk.zarr")
    assert left(bucket, "out/walk.zarr") == []
    theirs, ours = xr.open_datatree(zarr_target(out), engine="zarr"), xr.open_datatree(walk / "walk.zarr")
    xr.testing.assert_identical(theirs["state/state"].load(), ours["state/state"].load())
    xr.testing.assert_equal(mo.read_embedding(str(out)).load(), mo.read_embedding(walk / "walk.zarr").load())


@pytest.mark.slow
def test_writing__what_is_at_the_place_goes_only_with_overwrite_and_only_where_it_is_ours(small, bucket):
    out = place(f"{bucket}/a.zarr")
    write_small(out, 2.0)
    with pytest.raises(ValueError, match=r"a\.zarr already exists\. Choose another name, or give --overwrite\."):
        write_small(out)
    note = out / "frames" / "note.txt"
    write(note, b"mine")
    with pytest.raises(ValueError, match=r"holds frames/note\.txt, which is not part of the result, and is not"):
        write_small(out, overwrite=True)
    assert read(note) == b"mine"
    remove([note, out / "frames" / "frames" / "c" / "0"])
    write_small(out, overwrite=True)
    assert by_name(out) == small
    assert left(bucket, "a.zarr") == []


@pytest.mark.slow
def test_writing__what_appears_meanwhile_is_never_replaced_and_the_result_is_kept(small, bucket):
    out = place(f"{bucket}/a.zarr")
    chunk = out / "frames" / "frames" / "c" / "0"
    with pytest.raises(ValueError, match=r"appeared during the run and is not replaced.* kept at s3://.*/result\."):
        write_small(out, meanwhile=lambda: write(chunk, b"mine"))
    for _ in range(2):
        assert {name: read(out / name) for name in sizes(out)} == {"frames/frames/c/0": b"mine"}
        (root,) = [name for name in left(bucket) if name.endswith("/result/zarr.json")]
        assert by_name(place(bucket) / root.removesuffix("/zarr.json")) == small
        with pytest.raises(ValueError, match="already exists"):
            write_small(out)
    remove([chunk])
    write_small(out)
    assert by_name(out) == small


def test_load__a_copy_without_its_root_is_no_result(bucket):
    out = place(f"{bucket}/a.zarr")
    write_small(out)
    remove([out / "zarr.json"])
    with pytest.raises(ValueError, match="is not a result, or was not finished"):
        mo.load(str(out))
    with pytest.raises(FileNotFoundError, match=r"none\.zarr does not exist\. Check the path\."):
        mo.load(f"{bucket}/none.zarr")


@pytest.mark.parametrize("damage", ["missing", "cut", "bytes", "metadata"])
def test_load__damage_is_found(bucket, damage):
    out = place(f"{bucket}/a.zarr")
    write_small(out)
    chunk, metadata = out / "state" / "state" / "c" / "0", out / "state" / "state" / "zarr.json"
    content = read(chunk)
    if damage == "missing":
        remove([chunk])
    elif damage == "cut":
        write(chunk, content[:-1])
    elif damage == "bytes":
        write(chunk, content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    else:
        write(metadata, read(metadata) + b" ")
    with pytest.raises(ValueError, match=r"state/state.*(missing|has \d+ bytes|damaged|has been changed)"):
        mo.load(str(out))["state/state"].load()


REFUSED = [
    ((503, "SlowDown"), {"methods": ("PUT",)}, r"could not be written: the server answered 503 again and again"),
    ((500, "InternalError"), {"methods": ("GET",)}, r"the server answered 500 again and again"),
    ((403, "AccessDenied"), {"methods": ("PUT",)}, r"may not be written with these credentials.* Ask for permission"),
    ((403, "AccessDenied"), {"methods": ("GET", "HEAD")}, r"may not be (read|listed) with these credentials"),
    ((403, "SignatureDoesNotMatch"), {}, r"the credentials are not valid"),
    ((400, "AuthorizationHeaderMalformed"), {}, r"is in another region than was asked.* Set AWS_REGION"),
    (
        (503, "SlowDown"),
        {"methods": ("PUT",), "within": "/result/state/"},
        r"could not be written: the server answered",
    ),
    ((403, "AccessDenied"), {"methods": ("PUT",), "within": "/a.zarr/state/"}, r"may not be written"),
]


@pytest.mark.parametrize(("answer", "which", "sentence"), REFUSED)
def test_writing__what_a_store_refuses_ends_in_one_sentence(bucket, s3, answer, which, sentence):
    few = {"manifold-observer.stores.retries": 1}
    with dask.config.set(few), s3.app.spoilt(*answer, **which), pytest.raises((StoreError, ValueError), match=sentence):
        write_small(f"{bucket}/a.zarr")


def test_writing__an_answer_that_fails_twice_costs_nothing(small, bucket, s3):
    with s3.app.spoilt(503, "SlowDown", methods=("PUT",), within="/result/state/", times=2):
        write_small(f"{bucket}/a.zarr")
    assert by_name(place(f"{bucket}/a.zarr")) == small


@pytest.mark.parametrize("out", ["https://example.org/a.zarr", "s3://{host}/", "s3://no-such-{host}/a.zarr"])
def test_writing__a_place_that_cannot_be_written_is_refused(bucket, out):
    with pytest.raises((ValueError, StoreError), match=r"must be a path, s3://|must have a name|does not exist"):
        write_small(out.format(host=place(bucket).host))


def test_load__of_a_web_server_is_checked_too(bucket, tmp_path):
    write_small(tmp_path / "a.zarr")
    server = web_server(tmp_path)
    try:
        assert mo.load(f"{server.address}/a.zarr")["state/state"].values.tolist() == [1.0] * 50
        (tmp_path / "a.zarr" / "state" / "state" / "c" / "0").unlink()
        with pytest.raises(ValueError, match="state/state/c/0 is missing"):
            mo.load(f"{server.address}/a.zarr")
    finally:
        server.stop()


@pytest.mark.slow
def test_writing__to_googles_storage(small, bucket, s3, monkeypatch):
    there = {"gcs_base_url": s3.address, "disable_oauth": True, "client_email": "", "private_key": ""}
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", json.dumps({**there, "private_key_id": ""}))
    monkeypatch.setenv("GOOGLE_ALLOW_HTTP", "true")
    s3.make("google")
    out = place("gs://google/a.zarr")

    def second():
        with pytest.raises(ValueError, match="another run is writing"):
            write_small(out)

    with dask.config.set({"manifold-observer.stores.beat": 0.05}):
        write_small(out, meanwhile=second)
    assert by_name(out) == small
    write_small(out, 2.0, overwrite=True)
    assert mo.load(out)["state/state"].values.tolist() == [2.0] * 50
    assert left("gs://google", "a.zarr") == []
