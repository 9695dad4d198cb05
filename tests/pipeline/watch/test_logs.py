"""Every event is one line that machines can read, whatever names hold, and a log costs no result."""

import json
import logging
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

from manifold_observer.pipeline.jobs.events import Event, emit
from manifold_observer.pipeline.watch import logs
from manifold_observer.pipeline.watch.lines import logged

HOSTILE = (
    "night 1",
    'say "so"',
    "two\nlines\r\n",
    "back\\slash",
    "\x1b[31mred\x07",
    "caf\udce9",
    "half \ud83d pair",
    "ночь 🌙",
    "\u202etxt.exe",
    "\x00",
    "a=b",
    "",
)
IDENTITY = ("--features", "identity", "--n-modes", 2, "--cluster", "none")


def walk(path, n=80):
    np.save(path, np.random.default_rng(0).normal(size=(n, 3)).cumsum(axis=0))
    return path


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
@pytest.mark.parametrize("form", logs.FORMATS)
def test_lines__one_event_is_one_line_of_plain_unicode(tmp_path, name, form):
    file = tmp_path / "a.log"
    with logged(file, form):
        emit(Event("failed", recording=name, sentence=f"run: {name} must be better."))
    line = file.read_bytes().decode("utf-8")
    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert all(letter.isprintable() for letter in line[:-1])
    if form == "json":
        found = json.loads(line)
        assert found.get("recording", "") == logs.spelt(name)
        assert not any("\ud800" <= letter <= "\udfff" for letter in found["sentence"])


def test_lines__have_time_level_and_what_the_event_says(tmp_path):
    file = tmp_path / "a.log"
    with logged(file, "json"):
        emit(Event("stage", recording="one", stage="embed", done=1, total=1, seconds=0.25))
        emit(Event("warned", recording="one", sentence="look"))
        emit(Event("failed", recording="one", sentence="no frames"))
    stage, warned, failed = map(json.loads, file.read_text().splitlines())
    assert stage.pop("time").endswith("Z")
    told = {"event": "stage", "recording": "one", "stage": "embed", "done": 1, "total": 1, "seconds": 0.25}
    assert stage == {"level": "info"} | told
    assert (warned["level"], failed["level"]) == ("warning", "error")


def test_progress__of_a_recording_is_told_at_intervals(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    seen = []
    logger = logging.Logger("example")
    logger.addHandler(logging.NullHandler())
    logger.addFilter(lambda record: seen.append((record.event, record.recording, record.done)) or False)
    log = logs.EventLog(logger)
    for second in range(25):
        now[0] = float(second)
        log(Event("stage", recording="one", stage="kernel", done=second, total=100))
    log(Event("finished", recording="one"))
    assert seen == [("stage", "one", 10), ("stage", "one", 20), ("finished", "one", None)]


def test_logger__gives_events_to_handlers_of_the_program(caplog):
    from manifold_observer.pipeline.jobs.events import listen  # noqa: PLC0415

    with caplog.at_level(logging.INFO, "manifold_observer"), listen(logs.EventLog()):
        emit(Event("finished", recording="one", n_frames=80))
    (record,) = caplog.records
    assert (record.event, record.recording, record.n_frames) == ("finished", "one", 80)
    assert record.getMessage() == "finished recording=one n_frames=80"


def test_file__is_added_to_and_a_line_that_broke_off_is_ended(tmp_path):
    file = tmp_path / "a.log"
    for _ in range(2):
        with logged(file, "json"):
            emit(Event("finished", recording="one"))
    with file.open("a") as stream:
        stream.write('{"time": "2026-')  # a run that was killed
    with logged(file, "json"):
        emit(Event("finished", recording="two"))
    lines = file.read_text().splitlines()
    assert len(lines) == 4
    assert json.loads(lines[-1])["recording"] == "two"


def test_file__that_is_something_else_stays_as_it_is(tmp_path):
    recording = walk(tmp_path / "a.npy")
    before = recording.read_bytes()
    with (
        pytest.raises(ValueError, match=r"log-file: .*a.npy must be a file that this option wrote"),
        logged(recording, "text"),
    ):
        pass
    assert recording.read_bytes() == before


@pytest.mark.parametrize(
    ("place", "error", "sentence"),
    [("no/a.log", FileNotFoundError, "no does not exist"), (".", ValueError, "must be a file")],
)
def test_file__that_cannot_be_is_refused(tmp_path, place, error, sentence):
    with pytest.raises(error, match=f"^log-file: .*{sentence}"), logged(tmp_path / place, "text"):
        pass


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device that is always full")
def test_file__on_a_full_disk_costs_one_sentence(capsys):
    with logged(Path("/dev/full"), "text"):
        for _ in range(3):
            emit(Event("finished", recording="one"))
    assert capsys.readouterr().err == "Warning: log-file: /dev/full misses lines: [Errno 28] No space left on device.\n"


def test_file__moved_by_logrotate_is_begun_anew(tmp_path):
    file = tmp_path / "a.log"
    with logged(file, "text"):
        emit(Event("finished", recording="one"))
        file.rename(tmp_path / "a.log.1")
        emit(Event("finished", recording="two"))
    assert "one" in (tmp_path / "a.log.1").read_text()
    assert "two" in file.read_text()


# ------------------------------------------------------------------------------------------------ the command


def events(text):
    return [json.loads(line) for line in text.splitlines()]


def test_command__standard_error_is_the_log_alone(console, tmp_path):
    walk(tmp_path / "a.npy")
    code, out, err = console("run", tmp_path / "a.npy", tmp_path / "night.zarr", *IDENTITY, "--log-format", "json")
    assert code == 0
    assert "written to" in out
    found = events(err)
    finished = [one for one in found if one["event"] == "finished"]
    assert (found[0]["event"], len(finished)) == ("started", 1)
    assert {one["recording"] for one in found} == {"night"}
    assert finished[0]["n_frames"] == 80
    stages = {one["stage"]: one["seconds"] for one in found if one["event"] == "stage"}
    assert {"features", "embed", "observe", "total"} <= set(stages)


def test_command__its_error_is_the_last_event(console, tmp_path):
    np.save(tmp_path / "a.npy", np.full((80, 3), np.nan))
    words = ("run", tmp_path / "a.npy", tmp_path / "night.zarr", *IDENTITY)
    code, out, plain = console(*words)
    assert (code, out) == (1, "")
    code, out, err = console(*words, "--log-format", "json")
    assert (code, out) == (1, "")
    last = events(err)[-1]
    assert (last["event"], last["level"], last["recording"]) == ("failed", "error", "night")
    assert plain == f"Error: {last['sentence']}\n"


def test_command__with_a_log_file_standard_error_stays_as_it_was(console, tmp_path):
    np.save(tmp_path / "a.npy", np.full((80, 3), np.nan))
    words = ("run", tmp_path / "a.npy", tmp_path / "night.zarr", *IDENTITY)
    plain = console(*words)
    assert console(*words, "--log-file", tmp_path / "a.log") == plain
    assert " ERROR failed recording=night " in (tmp_path / "a.log").read_text()


def test_command__warnings_are_events(console, tmp_path, monkeypatch):
    walk(tmp_path / "a.npy")

    def check(*_args, **_options):
        warnings.warn("look here", UserWarning, stacklevel=1)
        warnings.warn("divide", RuntimeWarning, stacklevel=1)
        raise ValueError("enough")

    monkeypatch.setattr("manifold_observer.pipeline.jobs.run.check", check)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        *_, err = console("run", tmp_path / "a.npy", tmp_path / "night.zarr", *IDENTITY, "--log-format", "json")
    assert [(one["event"], one["sentence"]) for one in events(err)[1:]] == [
        ("warned", "look here"),
        ("warned", "RuntimeWarning: divide"),
        ("failed", "enough"),
    ]


def test_command__what_other_loggers_say_comes_in_the_same_form(console, tmp_path, monkeypatch):
    walk(tmp_path / "a.npy")
    before = {name: logging.getLogger(name).handlers[:] for name in (None, "distributed", "manifold_observer")}

    def check(*_args, **_options):
        logging.getLogger("distributed.worker").error("lost\n%s", "one")
        logging.getLogger("elsewhere").warning("beware")
        raise ValueError("enough")

    monkeypatch.setattr("manifold_observer.pipeline.jobs.run.check", check)
    *_, err = console("run", tmp_path / "a.npy", tmp_path / "night.zarr", *IDENTITY, "--log-format", "json")
    told = {one.get("logger"): (one["level"], one["sentence"]) for one in events(err)[1:]}
    assert told["elsewhere"] == ("warning", "beware")
    assert told["distributed.worker"] == ("error", "lost one")
    assert {name: logging.getLogger(name).handlers for name in before} == before


def test_command__log_options_may_stand_in_the_file_of_settings(console, tmp_path):
    walk(tmp_path / "a.npy")
    (tmp_path / "run.toml").write_text(f'log-format = "json"\nlog-file = "{tmp_path}/a.log"\n')
    words = ("run", tmp_path / "a.npy", tmp_path / "night.zarr", *IDENTITY, "--config", tmp_path / "run.toml")
    code, _, err = console(*words)
    assert (code, err) == (0, "")
    assert "finished" in {one["event"] for one in events((tmp_path / "a.log").read_text())}


@pytest.mark.slow
def test_command__an_interrupt_is_its_last_event(tmp_path):
    """SIGTERM silences all other loggers."""
    walk(tmp_path / "a.npy", 6000)
    words = [
        sys.executable,
        "-m",
        "manifold_observer.pipeline.cli.entry",
        "run",
        "a.npy",
        "b.zarr",
        *map(str, IDENTITY),
    ]
    with subprocess.Popen(
        [*words, "--home", "recomputed", "--log-format", "json"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as running:
        killer = threading.Timer(100, running.kill)
        killer.start()
        lines = [running.stderr.readline() for _ in range(3)]  # it works
        running.terminate()
        lines += running.stderr.readlines()
        killer.cancel()
    assert running.returncode == 143
    last = events("".join(lines))[-1]
    assert (last["event"], last["level"]) == ("failed", "error")
    assert last["sentence"].startswith("interrupted")
    assert not os.path.lexists(tmp_path / "b.zarr")
