"""One run at a time; what died is taken over, what lives never is, and no clock but the own one is asked."""

import json
import multiprocessing
import os
import signal
import threading
import time

import pytest

from manifold_observer.pipeline.corpus import lease
from manifold_observer.pipeline.corpus.lease import HeldError, Holder, holding_corpus, lives, read_holder

TAKEOVER = 1.2


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "out" / ".corpus"


@pytest.fixture
def without_locks(monkeypatch):
    """A file system that has no locks, or shows those of other machines to nobody."""

    def refuse(*_args, **_options):
        raise OSError("no locks here")

    monkeypatch.setattr(lease, "try_lock", refuse)


def left_by(folder, **changes):
    """A holder as a killed run leaves it."""
    host, boot = lease.this_machine()
    holder = Holder("0123456789abcdef", host, boot, 2**22 + 1, "yesterday")._replace(**changes)
    folder.mkdir(parents=True)
    (folder / "holder.json").write_text(json.dumps(holder._asdict()))
    return holder


def beating(folder, holder, seconds):
    """Another machine that shows life for so long."""

    def beat():
        for number in range(int(seconds / 0.05)):
            (folder / f"beat-{holder.token}").write_text(str(number))
            time.sleep(0.05)

    thread = threading.Thread(target=beat)
    thread.start()
    return thread


def test_holding__excludes_others_and_ends_with_its_block(folder):
    with holding_corpus(folder, TAKEOVER) as held:
        assert lives(folder, read_holder(folder)) is True
        assert not held.lost
        with pytest.raises(HeldError, match=f"process {os.getpid()} on .* since"), holding_corpus(folder, TAKEOVER):
            pass
    assert read_holder(folder) is None
    with holding_corpus(folder, TAKEOVER):
        pass


def test_holding__of_a_run_that_was_killed_here_is_taken_over_at_once(folder):
    left_by(folder)
    before = time.monotonic()
    with holding_corpus(folder, 60):
        assert time.monotonic() - before < 10


@pytest.mark.usefixtures("without_locks")
def test_holding__without_locks_a_dead_process_of_this_machine_is_taken_over_at_once(folder):
    left_by(folder)
    with holding_corpus(folder, 60) as held:
        assert not held.lost


@pytest.mark.usefixtures("without_locks")
def test_holding__without_locks_a_live_process_of_this_machine_never_is(folder):
    left_by(folder, pid=os.getpid())
    with pytest.raises(HeldError), holding_corpus(folder, TAKEOVER):
        pass


@pytest.mark.parametrize("other", [{"host": "elsewhere"}, {"boot": "an earlier one"}])
def test_holding__of_another_machine_that_is_dead_is_taken_over_after_the_stated_time(folder, other):
    left_by(folder, **other)
    before = time.monotonic()
    with holding_corpus(folder, TAKEOVER):
        assert time.monotonic() - before >= TAKEOVER
        assert read_holder(folder).pid == os.getpid()


@pytest.mark.slow
def test_holding__of_another_machine_that_lives_is_never_taken_over(folder):
    holder = left_by(folder, host="elsewhere")
    thread = beating(folder, holder, 3 * TAKEOVER)
    with pytest.raises(HeldError, match="on elsewhere since yesterday"), holding_corpus(folder, TAKEOVER):
        pass
    thread.join()
    assert read_holder(folder) == holder


@pytest.mark.slow
def test_holding__clocks_that_jump_change_nothing(folder, monkeypatch):
    holder = left_by(folder, host="elsewhere")
    os.utime(folder / "holder.json", (0, 0))
    monkeypatch.setattr(lease.time, "time", lambda: 1e12)
    thread = beating(folder, holder, 3 * TAKEOVER)
    with pytest.raises(HeldError), holding_corpus(folder, TAKEOVER):
        pass
    thread.join()


def test_holding__shows_life_while_it_lasts(folder):
    with holding_corpus(folder, 1.0):
        seen, until = set(), time.monotonic() + 60
        while len(seen) < 3 and time.monotonic() < until:
            seen |= {path.read_text() for path in folder.glob("beat-*")}
            time.sleep(0.05)
    assert len(seen) >= 3
    assert not list(folder.glob("beat-*"))


@pytest.mark.usefixtures("without_locks")
def test_holding__who_slept_too_long_finds_it_lost_and_takes_nothing_back(folder, monkeypatch):
    with holding_corpus(folder, TAKEOVER) as held:
        new = Holder("fedcba9876543210", "elsewhere", "", 1, "now")
        (folder / "holder.json").write_text(json.dumps(new._asdict()))
        assert held.lost
    assert read_holder(folder) == new


def test_holding__a_holder_that_was_not_written_to_its_end_is_taken_over(folder):
    folder.mkdir(parents=True)
    (folder / "holder.json").write_text('{"token": "01')
    with holding_corpus(folder, TAKEOVER):
        assert read_holder(folder).pid == os.getpid()


def _hold(folder, ready):
    with holding_corpus(folder, 60):
        ready.set()
        time.sleep(60)


def test_holding__ends_with_its_process_however_it_ends(folder):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=_hold, args=(folder, ready))
    process.start()
    assert ready.wait(60)
    with pytest.raises(HeldError), holding_corpus(folder, 60):
        pass
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert lives(folder, read_holder(folder)) is False
    with holding_corpus(folder, 60):
        pass


@pytest.mark.usefixtures("without_locks")
def test_holding__of_many_who_take_over_at_once_one_has_it(folder):
    left_by(folder)
    inside, most, refused = [], [], []

    def run():
        try:
            with holding_corpus(folder, TAKEOVER):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.5)
                inside.pop()
        except HeldError:
            refused.append(1)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
    assert len(most) + len(refused) == 8


def test_holding__a_folder_that_cannot_be_written_to_is_said_in_one_sentence(tmp_path, monkeypatch):
    def refuse(*_args):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(lease.atomic, "write", refuse)
    with (
        pytest.raises(OSError, match="must be a folder that can be written to; got: Read-only file system"),
        holding_corpus(tmp_path / ".corpus", 60),
    ):
        pass
