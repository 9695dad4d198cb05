"""Runs to a bucket that are killed, and leases of a place."""

import json
import os
import signal
import subprocess
import sys

import dask
import psutil
import pytest
from staged import CONFIG, by_name, left, write_small

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine import exact as ways
from manifold_observer.pipeline.jobs import lease as leases
from manifold_observer.pipeline.jobs import run as job
from manifold_observer.pipeline.stores.address import place
from manifold_observer.pipeline.stores.objects import look, read, sizes, write, write_new
from manifold_observer.pipeline.stores.refusals import StoreError
from strategies import seldom, share

WORDS = ["--features", "identity", "--n-modes", "2", "--home", "recomputed", "--form", "quadratic", "--tile", "64"]
COMMAND = [sys.executable, "-m", "manifold_observer.pipeline.cli.entry", "run", "--cluster", "none"]


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@seldom
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


@pytest.mark.slow
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
