"""A result in a bucket is the local one, whatever happens on the way."""

import json
import os
import signal
import subprocess
import sys

import dask
import numpy as np
import psutil
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine import exact as ways
from manifold_observer.pipeline.jobs import lease as leases
from manifold_observer.pipeline.jobs import run as job
from manifold_observer.pipeline.jobs.store import start, write_group, writing
from manifold_observer.pipeline.stores.address import place
from manifold_observer.pipeline.stores.objects import look, read, remove, sizes, write, write_new
from manifold_observer.pipeline.stores.refusals import StoreError
from manifold_observer.pipeline.stores.zarrs import zarr_target
from store_server import web_server
from strategies import QUICK, share

OPTIONS = {"n_modes": 2, "home": "recomputed", "form": "quadratic", "tile": 64, "window": 9}
CONFIG = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(**OPTIONS))
WORDS = ["--features", "identity", "--n-modes", "2", "--home", "recomputed", "--form", "quadratic", "--tile", "64"]
COMMAND = [sys.executable, "-m", "manifold_observer.pipeline.cli.entry", "run", "--cluster", "none"]


@pytest.fixture(scope="session")
def walk(tmp_path_factory):
    """A folder with a recording, and the result of a local run."""
    folder = tmp_path_factory.mktemp("walk")
    np.save(folder / "walk.npy", np.random.default_rng(0).normal(size=(200, 3)).cumsum(axis=0))
    mo.run([folder / "walk.npy"], folder / "walk.zarr", CONFIG)
    return folder


def by_name(out):
    """Files of a result and their bytes; its root as what it says, for each store lists it in its order."""
    if hasattr(out, "rglob"):
        found = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    else:
        found = {name: read(out / name) for name in sizes(out)}
    root = json.loads(found["zarr.json"])
    # In a bucket it also says by which versions of the recordings, since no times of files do.
    root["attributes"].pop("source_stamps", None)
    root["attributes"]["_nc_manifest"].pop("root")
    return found | {"zarr.json": root}


def left(bucket, *names):
    """What lies in a bucket beside some results."""
    return [name for name in sizes(place(bucket)) if not name.startswith(tuple(f"{name}/" for name in names))]


def test_run__to_a_bucket_equals_the_local_run_to_the_bit(walk, bucket):
    out = place(f"{bucket}/out/walk.zarr")
    mo.run([walk / "walk.npy"], out, CONFIG)
    assert by_name(out) == by_name(walk / "walk.zarr")
    assert left(bucket, "out/walk.zarr") == []
    theirs, ours = xr.open_datatree(zarr_target(out), engine="zarr"), xr.open_datatree(walk / "walk.zarr")
    xr.testing.assert_identical(theirs["state/state"].load(), ours["state/state"].load())
    xr.testing.assert_equal(mo.read_embedding(str(out)).load(), mo.read_embedding(walk / "walk.zarr").load())


def write_small(out, value=1.0, *, overwrite=False, meanwhile=lambda: None):
    """A small result, written as a run writes its own."""
    with writing(place(out), overwrite=overwrite) as folder:
        start(folder, {"settings": "{}"})
        for group in ("frames", "state"):
            write_group(folder, group, xr.Dataset({group: ("frame", np.full(50, value))}))
        meanwhile()


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A small result in a folder."""
    write_small(folder := tmp_path_factory.mktemp("small") / "a.zarr")
    return by_name(folder)


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


def killed_at(s3, process, method, within, number=1):
    """Kill a process as it makes a request, before it is answered."""
    count = [0]

    def rule(asked, path):
        if process and asked == method and within in path:
            count[0] += 1
            if count[0] == number:
                process[0].kill()

    s3.app.rules.append(rule)
    return rule


SMALL = """
import sys, numpy as np, xarray as xr
from manifold_observer.pipeline.jobs.store import start, write_group, writing
from manifold_observer.pipeline.stores.address import place
with writing(place(sys.argv[1]), overwrite=len(sys.argv) > 2) as folder:
    start(folder, {"settings": "{}"})
    for group in ("frames", "state"):
        write_group(folder, group, xr.Dataset({group: ("frame", np.full(50, 1.0))}))
"""
POINTS = [
    ("PUT", "/a.zarr/frames/", 1),  # the first copy
    ("PUT", "/a.zarr/zarr.json", 1),  # all but the root is there
    ("PUT", "/result/zarr.json", 3),  # as the result is sealed
    ("PUT", "/result/state/", 1),
    ("PUT", "/lease.json", 1),
    ("PUT", "/mark.json", 1),
    ("PUT", "/a.zarr/state/", 2),
]


def killed(s3, command, method, within, number):
    """Run a command that is killed at a request."""
    process = []
    rule = killed_at(s3, process, method, within, number)
    try:
        process.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        _, err = process[0].communicate(timeout=120)
    finally:
        s3.app.rules.remove(rule)
    assert process[0].returncode == -signal.SIGKILL, err.decode()


@pytest.mark.parametrize(("method", "within", "number"), share(POINTS, 3))
def test_writing__killed_at_any_request_the_next_one_finishes_with_the_same_bits(
    small, bucket, s3, method, within, number
):
    out = place(f"{bucket}/a.zarr")
    at = f"{out.host}{within}" if "a.zarr" in within else within
    killed(s3, [sys.executable, "-c", SMALL, str(out)], method, at, number)
    if look(out / "zarr.json") is None:
        with pytest.raises((ValueError, FileNotFoundError)):
            mo.load(out)
        write_small(out)
    else:  # the request was heard, though nobody heard the answer
        with pytest.raises(ValueError, match="already exists"):
            write_small(out)
    assert by_name(out) == small
    assert left(bucket, "a.zarr") == []


@pytest.mark.parametrize(
    ("method", "within", "number"),
    share([("PUT", "/a.zarr/state/", 1), ("PUT", "/a.zarr/frames/", 1), ("POST", "", 1)], 2),
)
def test_writing__killed_while_an_earlier_result_is_replaced_one_of_both_comes_back(
    small, bucket, s3, method, within, number
):
    out = place(f"{bucket}/a.zarr")
    write_small(out)
    killed(s3, [sys.executable, "-c", SMALL, str(out), "overwrite"], method, f"{out.host}{within}", number)
    # Without overwrite: what was being put there is there whole before anything else is done.
    with pytest.raises(ValueError, match="already exists"):
        write_small(out, 3.0)
    assert by_name(out) == small


@pytest.mark.skipif(QUICK, reason="it takes two runs more: HYPOTHESIS_PROFILE=all")
def test_run__killed_in_its_passes_the_same_command_resumes(walk, bucket, s3):
    out = place(f"{bucket}/walk.zarr")
    command = [*COMMAND, *WORDS, "--window", "9", str(walk / "walk.npy"), str(out)]
    killed(s3, command, "PUT", "/result/state/", 3)
    assert any("/passes/pass-" in name for name in left(bucket))
    s3.app.seen.clear()
    mo.run([walk / "walk.npy"], out, CONFIG)
    passes = [path for method, path in s3.app.seen if method == "GET" and "/passes/pass-" in path]
    assert passes
    assert by_name(out) == by_name(walk / "walk.zarr")
    assert left(bucket, "walk.zarr") == []


def test_run__passes_are_kept_in_the_bucket_and_used(walk, bucket, monkeypatch, tmp_path):
    out, products, made = place(f"{bucket}/walk.zarr"), [], ways.recomputed_product

    def fail(*_args, **_options):
        raise RuntimeError("scheduler gone")

    def counting(*arguments):
        matmat = made(*arguments)
        return lambda x: products.append(1) or matmat(x)

    with monkeypatch.context() as patched:
        patched.setattr(job, "observe", fail)
        with pytest.raises(RuntimeError) as failed:
            mo.run([walk / "walk.npy"], out, CONFIG)
    kept = [name for name in left(bucket) if "/passes/pass-" in name]
    assert len(kept) == mo.read_embedding(walk / "walk.zarr").attrs["passes"]
    assert failed.value.__notes__[0].startswith(
        f"The same command resumes after pass {len(kept)}, which is kept in s3:"
    )
    assert not any("/result/" in name for name in left(bucket))
    monkeypatch.setattr(ways, "recomputed_product", counting)
    monkeypatch.setenv("MANIFOLD_OBSERVER_CACHE", str(tmp_path))  # as on another machine
    mo.run([walk / "walk.npy"], out, CONFIG)
    assert products == []  # nothing is left to be done of the solve
    assert by_name(out) == by_name(walk / "walk.zarr")
    assert left(bucket, "walk.zarr") == []
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_writing__a_second_run_to_the_place_is_refused_while_the_first_lives(small, bucket, monkeypatch, tmp_path):
    out = place(f"{bucket}/a.zarr")

    def second(cache):
        monkeypatch.setenv("MANIFOLD_OBSERVER_CACHE", cache)
        with pytest.raises(ValueError, match=r"another run is writing s3://.*a\.zarr\. Wait for it"):
            write_small(out)

    before = os.environ["MANIFOLD_OBSERVER_CACHE"]
    write_small(out, meanwhile=lambda: [second(cache) for cache in (before, str(tmp_path))])
    assert by_name(out) == small
    assert left(bucket, "a.zarr") == []


LEASE = {"token": "0", "machine": "elsewhere", "pid": 1, "started": 0.0, "seconds": 0.05, "beat": 0}


def test_leased__one_of_a_dead_holder_elsewhere_is_taken_and_of_a_living_one_is_not(bucket, monkeypatch):
    lease = place(f"{bucket}/lease.json")
    write(lease, json.dumps(LEASE).encode())
    with leases.leased(lease, "busy") as held:
        assert json.loads(read(lease))["token"] == held.content["token"]
    assert look(lease) is None
    write(lease, json.dumps(LEASE).encode())

    def beats(_seconds):
        write(lease, json.dumps({**LEASE, "beat": json.loads(read(lease))["beat"] + 1}).encode())

    monkeypatch.setattr(leases.time, "sleep", beats)
    with pytest.raises(ValueError, match="busy"), leases.leased(lease, "busy"):
        pass
    assert json.loads(read(lease))["token"] == "0"


def test_leased__one_of_a_dead_process_of_this_machine_is_taken_at_once(bucket, monkeypatch):
    lease = place(f"{bucket}/lease.json")
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    dead.wait()
    write(lease, json.dumps({**LEASE, "machine": leases._machine(), "pid": dead.pid}).encode())
    monkeypatch.setattr(leases.time, "sleep", lambda _seconds: pytest.fail("it waited"))
    with leases.leased(lease, "busy"):
        pass
    own = {"pid": os.getpid(), "started": psutil.Process().create_time()}
    write(lease, json.dumps({**LEASE, "machine": leases._machine(), **own}).encode())
    with pytest.raises(ValueError, match="busy"), leases.leased(lease, "busy"):
        pass


def test_writing__a_run_that_has_lost_its_lease_puts_nothing(bucket):
    out = place(f"{bucket}/a.zarr")
    lease = out.parent / ".manifold-observer" / "a.zarr" / "lease.json"
    with pytest.raises(ValueError, match=r"another run has taken over s3://.*a\.zarr, since"):
        write_small(out, meanwhile=lambda: write(lease, json.dumps(LEASE).encode()))
    assert list(sizes(out)) == []
    assert json.loads(read(lease)) == LEASE


def test_leased__a_beat_is_put_again_and_again(bucket):
    lease = place(f"{bucket}/lease.json")
    with dask.config.set({"manifold-observer.stores.beat": 0.01}), leases.leased(lease, "busy") as held:
        for _ in range(3000):
            if held.content["beat"] < 3:
                held._end.wait(0.01)
        assert json.loads(read(lease))["beat"] >= 2


def test_leased__a_store_without_conditions_is_told_of(bucket, monkeypatch):
    def heedless(address, content):
        write(address, content)
        return look(address).tag

    monkeypatch.setattr(leases, "write_new", heedless)
    with (
        pytest.warns(UserWarning, match="does not heed conditions"),
        leases.leased(place(f"{bucket}/.manifold-observer/a.zarr/lease.json"), "busy"),
    ):
        pass


def test_write_new__is_put_once(bucket):
    one = place(f"{bucket}/one")
    assert write_new(one, b"1") == write_new(one, b"1")  # as of a request that was repeated
    with pytest.raises(StoreError, match="exists already"):
        write_new(one, b"2")
    assert read(one) == b"1"


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
