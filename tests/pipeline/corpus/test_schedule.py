"""Several at once, never more; what may pass is tried again after growing waits, what may not is not."""

import errno
import threading
import time

import pytest

from manifold_observer.pipeline.clusters.lost import LostClusterError
from manifold_observer.pipeline.corpus import schedule
from manifold_observer.pipeline.corpus.process import Job, Outcome, failure
from manifold_observer.pipeline.corpus.schedule import Here, Patience, Workers, scheduled
from manifold_observer.pipeline.corpus.transient import is_full, is_passing
from manifold_observer.pipeline.jobs.config import RunConfig
from manifold_observer.pipeline.jobs.store import NoSpaceError, check_space
from manifold_observer.pipeline.jobs.workfolder import holding

FAILED = Outcome("failed", "broken")
PASSING = Outcome("failed", "disk away", passing=True)
DONE = Outcome("done")


def jobs(*names):
    return [Job(name, f"/{name}", f"/out/{name}", RunConfig(), True) for name in names]


def outcomes(script, n_retries=2):
    """All attempts at some recordings whose outcomes are given, as (name, number, kind, wait)."""
    left = {name: list(found) for name, found in script.items()}
    pool = Here(lambda job: left[job.name].pop(0))
    found = scheduled(jobs(*script), pool, lambda: 1, Patience(n_retries, 0.01), lambda _: None)
    return [(one.job.name, one.number, one.outcome.kind, one.wait) for one in found]


def test_scheduled__what_may_pass_is_tried_again_and_what_may_not_is_not():
    assert outcomes({"a": [PASSING, DONE], "b": [FAILED], "c": [DONE]}) == [
        ("a", 1, "failed", 0.01),
        ("b", 1, "failed", None),
        ("c", 1, "done", None),
        ("a", 2, "done", None),
    ]


def test_scheduled__waits_double_and_end():
    assert outcomes({"a": [PASSING] * 3}) == [
        ("a", 1, "failed", 0.01),
        ("a", 2, "failed", 0.02),
        ("a", 3, "failed", None),
    ]


def test_scheduled__others_go_on_while_one_waits():
    began = []
    left = {"a": [PASSING, DONE], **{name: [DONE] for name in "bcd"}}

    def process(job):
        began.append(job.name)
        return left[job.name].pop(0)

    list(scheduled(jobs(*"abcd"), Here(process), lambda: 1, Patience(1, 0.3), lambda _: None))
    assert began == ["a", "b", "c", "d", "a"]


def test_scheduled__a_full_disk_is_not_tried_again():
    full = Outcome("failed", "full", passing=True, full=True)
    assert outcomes({"a": [full]}) == [("a", 1, "failed", None)]


INSIDE, MOST = [], []
LOCK = threading.Lock()


def slowly(job):
    """A recording that notes how many are computed at the same time; workers are threads of this process."""
    with LOCK:
        INSIDE.append(job.name)
        MOST.append(len(INSIDE))
    time.sleep(0.1)
    with LOCK:
        INSIDE.remove(job.name)
    return DONE


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_scheduled__as_many_at_once_as_asked_for(workers_here, at_once):
    MOST.clear()
    with workers_here(3) as (_, client):
        pool = Workers(client, slowly)
        found = list(scheduled(jobs(*"abcdef"), pool, lambda: at_once, Patience(0, 0), lambda _: None))
    assert sorted(one.job.name for one in found) == list("abcdef")
    assert max(MOST) == at_once


def test_workers__an_error_of_a_task_is_its_own_outcome(workers_here):
    def process(job):
        if job.name == "b":
            raise SystemError("no task should raise")
        return DONE

    with workers_here(1) as (_, client):
        found = list(scheduled(jobs(*"abc"), Workers(client, process), lambda: 1, Patience(0, 0), lambda _: None))
    assert [one.outcome.kind for one in found] == ["done", "failed", "done"]
    assert "no task should raise" in found[1].outcome.sentence


def test_workers__a_lost_cluster_ends_the_schedule(workers_here, monkeypatch):
    monkeypatch.setattr(schedule, "_TICK_SECONDS", 0.05)

    def process(job):
        time.sleep(0.5)
        return DONE

    with workers_here(1) as (_, client):
        client.trouble = "cluster: the scheduler is gone"
        with pytest.raises(LostClusterError, match="the scheduler is gone"):
            list(scheduled(jobs("a"), Workers(client, process), lambda: 1, Patience(0, 0), lambda _: None))


def chained(error):
    """An error that hides the one it came from, as sentences do."""
    try:
        try:
            raise error
        except OSError:
            raise ValueError("store: cannot be written") from None
    except ValueError as sentence:
        return sentence


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.ENOSPC, errno.EROFS, errno.EMFILE])
def test_transient__errors_of_disks_pass_also_behind_a_sentence(number):
    error = OSError(number, "bad luck")
    assert is_passing(error)
    assert is_passing(chained(error))
    assert is_full(chained(error)) == (number in (errno.ENOSPC, errno.EROFS))


@pytest.mark.parametrize(
    "error", [ValueError("frames: too few"), OSError(errno.EACCES, "Permission denied"), FileNotFoundError(2, "gone")]
)
def test_transient__what_is_wrong_with_a_recording_does_not_pass(error):
    assert not is_passing(error)


def test_transient__a_place_that_is_busy_and_a_result_too_large_pass(tmp_path):
    with (
        holding(tmp_path, "a.zarr", "busy"),
        pytest.raises(ValueError, match="busy") as busy,
        holding(tmp_path, "a.zarr", "busy"),
    ):
        pass
    with pytest.raises(NoSpaceError) as large:
        check_space(tmp_path, 2**62)
    assert is_passing(busy.value)
    assert is_passing(large.value)
    assert not is_full(large.value)


def test_failure__is_one_line_with_what_was_noted():
    error = ValueError("run: two\nlines.")
    error.add_note("Again.")
    assert failure(error).sentence == "run: two lines. Again."
    assert failure(KeyError("x")).sentence == "KeyError: 'x'"
