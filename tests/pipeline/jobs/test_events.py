"""Whoever listens hears every event, and can cost no result."""

import threading

import pytest

from manifold_observer.pipeline.jobs.events import Event, about, emit, listen
from manifold_observer.pipeline.jobs.progress import Stages


def test_listen__ends_with_its_block():
    seen = []
    with listen(seen.append):
        emit(Event("started", "night"))
    emit(Event("finished", "night"))
    assert seen == [Event("started", "night")]


def test_listen__a_listener_that_fails_is_left_out_and_the_others_hear_on():
    seen = []

    def broken(event):
        raise KeyError(event)

    with listen(broken), listen(seen.append):
        with pytest.warns(UserWarning, match="a listener failed and is not called again"):
            emit(Event("started", "one"))
        emit(Event("started", "two"))
    assert [event.recording for event in seen] == ["one", "two"]


def test_about__names_the_recording_of_its_own_thread():
    seen = []

    def work(name):
        with about(name):
            emit(Event("stage", stage="features"))
            emit(Event("stage", recording="other", stage="features"))

    with listen(seen.append):
        threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(event.recording for event in seen) == ["one", "other", "other", "two"]


def test_stages__tell_progress_and_seconds():
    seen, stages = [], Stages()
    with listen(seen.append), stages("observe"):
        stages.report("observer", 1, 2)
    assert [(event.kind, event.stage, event.done, event.total) for event in seen] == [
        ("stage", "observer", 1, 2),
        ("stage", "observe", 1, 1),
    ]
    assert seen[0].seconds == 0 < seen[1].seconds
