"""What is free: the least of the machine, its control groups of both versions, and the limits of a process."""

import resource

import psutil
import pytest

from manifold_observer.pipeline.clusters.cluster import connect
from manifold_observer.pipeline.graph import limits, machine
from manifold_observer.pipeline.graph.machine import free_memory

MIB = 2**20


@pytest.fixture(autouse=True)
def a_large_machine(monkeypatch):
    """64 GiB that nothing but what a test makes limits."""
    monkeypatch.setattr(machine.psutil, "virtual_memory", lambda: psutil._ntp.svmem(*[2**36] * 11))
    monkeypatch.setattr("distributed.system.MEMORY_LIMIT", 2**36)
    monkeypatch.setattr(machine.resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def first_version(root, group, limit, usage, cache=0):
    place = root / "sys/fs/cgroup/memory" / group
    write(place / "memory.limit_in_bytes", limit)
    write(place / "memory.usage_in_bytes", usage)
    write(place / "memory.stat", f"cache 0\ntotal_inactive_file {cache}")


def second_version(root, group, limit, usage, cache=0):
    place = root / "sys/fs/cgroup" / group
    write(place / "memory.max", limit)
    write(place / "memory.current", usage)
    write(place / "memory.stat", f"anon 0\ninactive_file {cache}")


def test_free_memory__without_limits_is_what_the_machine_has(tmp_path):
    assert free_memory(tmp_path) == 2**36
    write(tmp_path / "proc/self/cgroup", "4:memory:/job\n0::/job")
    assert free_memory(tmp_path) == 2**36
    first_version(tmp_path, "job", 9223372036854771712, 5)  # as a group without a limit says
    second_version(tmp_path, "job", "max", 5)
    assert free_memory(tmp_path) == 2**36


@pytest.mark.parametrize(
    ("lines", "make"),
    [("12:cpu,cpuacct:/x\n4:memory:/job/step\n0::/", first_version), ("0::/job/step", second_version)],
)
def test_free_memory__is_what_the_group_and_those_around_it_have_left(tmp_path, lines, make):
    write(tmp_path / "proc/self/cgroup", lines)
    make(tmp_path, "job/step", 900 * MIB, 300 * MIB, cache=200 * MIB)
    assert free_memory(tmp_path) == 800 * MIB
    make(tmp_path, "job", 1000 * MIB, 600 * MIB)
    assert free_memory(tmp_path) == 400 * MIB
    make(tmp_path, "job", 1000 * MIB, 1200 * MIB)
    assert free_memory(tmp_path) == 0


def test_free_memory__within_a_container_the_mounted_group_counts(tmp_path):
    write(tmp_path / "proc/self/cgroup", "0::/../../outside")
    second_version(tmp_path, "", 700 * MIB, 100 * MIB)
    assert free_memory(tmp_path) == 600 * MIB


def test_free_memory__a_machine_of_both_versions(tmp_path):
    write(tmp_path / "proc/self/cgroup", "0::/job")
    second_version(tmp_path, "unified/job", 500 * MIB, 100 * MIB)
    assert free_memory(tmp_path) == 400 * MIB


def test_free_memory__limits_of_a_process_and_of_dask_count(tmp_path, monkeypatch):
    limits = {resource.RLIMIT_AS: 3 * 2**30, resource.RLIMIT_DATA: 2 * 2**30}
    unlimited = resource.RLIM_INFINITY
    monkeypatch.setattr(machine.resource, "getrlimit", lambda which: (limits.get(which, unlimited), unlimited))
    assert free_memory(tmp_path) == 2 * 2**30
    monkeypatch.setattr("distributed.system.MEMORY_LIMIT", 2**30)
    assert free_memory(tmp_path) == 2**30


# ------------------------------------------------------------------------------------------ shares of workers


def test_worker_limits__a_share_of_what_is_free_or_given(monkeypatch):
    monkeypatch.setattr(limits, "free_memory", lambda: 2**33)
    assert limits.worker_limits(2)[:2] == (2, 2**32)
    assert limits.worker_limits(4, 2**32)[:2] == (4, 2**30)
    assert limits.worker_limits(2, 2**40)[:2] == (2, 2**32)  # no more than there is
    with pytest.raises(
        ValueError, match=r"a worker must have at least 0\.31 GiB; got 0\.12 GiB for each of 8 .*--memory"
    ):
        limits.worker_limits(8, 2**30)


def test_workers__this_process_may_take_what_is_free_and_what_it_has(monkeypatch):
    monkeypatch.setattr(limits, "free_memory", lambda: 2**30)
    monkeypatch.setattr(limits, "own_memory", lambda: 2**28)
    with limits.dask.config.set(num_workers=3):
        assert limits.workers() == (1, 2**30 + 2**28, 3)
    with limits.dask.config.set({"manifold-observer.memory": 2**29}):
        assert limits.workers()[:2] == (1, 2**29)


def test_connect__workers_share_what_they_are_given(monkeypatch):
    made = {}

    def local_cluster(n_workers, memory_limit, **_):
        made.update(n_workers=n_workers, memory_limit=memory_limit)
        raise InterruptedError

    monkeypatch.setattr("manifold_observer.pipeline.clusters.cluster.local_cluster", local_cluster)
    monkeypatch.setattr(limits, "free_memory", lambda: 2**33)
    with pytest.raises(InterruptedError), connect(n_workers=2, memory=2**32):
        pass
    assert (made["n_workers"], made["memory_limit"]) == (2, 2**31)
    monkeypatch.setattr("manifold_observer.pipeline.clusters.cluster.free_memory", lambda: 700 * MIB)
    monkeypatch.setattr(limits, "free_memory", lambda: 700 * MIB)
    with pytest.raises(InterruptedError), connect():
        pass
    assert (made["n_workers"], made["memory_limit"]) == (1, 700 * MIB)
    with (
        pytest.raises(ValueError, match="--memory must be left out with --cluster tcp://nowhere:1"),
        connect("tcp://nowhere:1", memory=2**30),
    ):
        pass
