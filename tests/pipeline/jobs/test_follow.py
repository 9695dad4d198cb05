"""A stream that is followed, and the command that continues a result."""

import contextlib
import functools
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from streams import ALL, EMBED, LEARNT, acting, assert_same, everything, grow, one_run, write_npy, write_zarr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.graph.ending import Ending, unheard
from manifold_observer.pipeline.jobs.config import RunConfig
from manifold_observer.pipeline.jobs.run import run
from manifold_observer.pipeline.jobs.stream import continue_run, follow
from strategies import share

pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.mark.slow
def test_follow__a_growing_recording(tmp_path):
    recording, result = write_zarr(tmp_path, "recording", ALL[:503]), tmp_path / "result.zarr"
    run([recording], result, RunConfig(mo.FeatureConfig("stft", frame=10), embedding=mo.EmbedConfig(**EMBED)))
    cuts = [503, 506, 530, 531, 700, len(ALL)]
    waits = acting(*(lambda a=a, b=b: grow(recording, ALL[a:b]) for a, b in itertools.pairwise(cuts)))
    steps = list(follow(result, [recording], tmp_path / "out", wait=waits))
    assert [step.added for step in steps] == [3, 17, 11]
    assert [step.total for step in steps] == [3, 20, 31]
    assert_same(tmp_path / "out", one_run(result, recording, first=50))


@pytest.mark.slow
def test_follow__files_that_appear_and_are_not_ready(learnt, tmp_path):
    """A pattern is looked up again; what cannot be opened yet is waited for, and what follows it with it."""
    parts = np.split(ALL[LEARNT:], [83, 150])
    folder = tmp_path / "new"

    def half_written():
        whole = write_npy(folder, "1", parts[1]).read_bytes()
        (folder / "1.npy").write_bytes(whole[:-100])
        write_npy(folder, "2", parts[2])

    waits = acting(
        folder.mkdir,
        lambda: write_npy(folder, "0", parts[0]),
        half_written,
        lambda: None,
        lambda: write_npy(folder, "1", parts[1]),
    )
    said = []
    steps = list(follow(learnt("stft"), [folder / "*.npy"], tmp_path / "out", wait=waits, notice=said.append))
    assert [step.added for step in steps] == [8, 13]
    assert len(said) == 1
    assert said[0].startswith(f"waiting for {folder / '1.npy'}: ")
    assert_same(tmp_path / "out", one_run(learnt("stft"), write_npy(tmp_path, "w", ALL[LEARNT:])), times=False)


def test_follow__waits_for_a_recording_and_stops_when_nothing_comes(learnt, tmp_path):
    new, said, looks = tmp_path / "new.npy", [], []
    assert list(follow(learnt("stft"), [new], tmp_path / "out", idle=0, notice=said.append)) == []
    assert said == [
        f"waiting for {new}: open_recording: {new} does not exist. Check the path; relative ones start at {Path.cwd()}."
    ]
    write_npy(tmp_path, "new", ALL[LEARNT:])
    steps = list(follow(learnt("stft"), [new], tmp_path / "out", idle=0, interval=7, wait=looks.append))
    assert [step.added for step in steps] == [21]
    assert looks == [7]
    assert list(follow(learnt("stft"), [new], tmp_path / "out", idle=0)) == []


@pytest.mark.slow
def test_follow__holds_the_place(learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    with contextlib.closing(follow(learnt("stft"), [new], tmp_path / "out")) as steps:
        assert next(steps).added == 21
        with pytest.raises(ValueError, match="another run is writing"):
            continue_run(learnt("stft"), [new], tmp_path / "out")
    assert continue_run(learnt("stft"), [new], tmp_path / "out").added == 0


@pytest.fixture
def call(console):
    """The console, with the command continue."""
    return functools.partial(console, "continue")


def test_command__adds_one_part(call, learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    code, text, err = call(learnt("stft"), new, tmp_path / "out", "--json")
    assert (code, err) == (0, "")
    step = json.loads(text)
    assert step.pop("seconds") > 0
    assert step == {"part": str(tmp_path / "out/000000.zarr"), "added": 21, "total": 21, "warnings": []}
    assert call(learnt("stft"), new, tmp_path / "out") == (0, "no new whole frame; 21 frames in all\n", "")
    more = write_npy(tmp_path, "p", ALL[:4])
    code, text, err = call(learnt("stft"), new, more, tmp_path / "out", "--cluster", "none")
    assert (code, err) == (0, "")
    assert text == f"1 frames added, 22 in all, written to {tmp_path / 'out/000001.zarr'}\n"


def test_command__extend_is_the_old_name(console, learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    code, text, err = console("extend", learnt("stft"), new, tmp_path / "out", "--json")
    assert code == 0
    assert json.loads(text)["added"] == 21
    assert err == "Warning: extend is now called continue; the old name will be removed in the next version.\n"
    code, text, err = console("--help")
    assert (code, err) == (0, "")
    assert " continue " in text
    assert " extend " not in text


def test_command__follows_until_nothing_comes(call, learnt, tmp_path):
    write_npy(tmp_path, "new", ALL[LEARNT:])
    options = ("--follow", "--idle", 0, "--interval", 0, "--json")
    code, text, err = call(learnt("stft"), tmp_path / "new*.npy", tmp_path / "out", *options)
    assert (code, err) == (0, "")
    assert [json.loads(line)["added"] for line in text.splitlines()] == [21]
    assert call(learnt("stft"), tmp_path / "new*.npy", tmp_path / "out", *options) == (0, "", "")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["a.zarr", "b.npy"], 2, "Name the result, at least one new recording, and the output last"),
        (["a.zarr", "b.npy", "out", "--workers", 2, "--cluster", "none"], 2, "--workers must be left out"),
        (["a.zarr", "b.npy", "out", "--interval", -1], 2, "-1.0 is not in the range"),
        (["a.zarr", "b.npy", "out"], 1, "a.zarr does not exist"),
        (["a.zarr", "b.npy", "out", "--follow"], 1, "a.zarr does not exist"),
    ],
)
def test_command__errors_are_one_sentence(call, tmp_path, monkeypatch, words, code, message):
    monkeypatch.chdir(tmp_path)
    found, text, err = call(*words)
    assert (found, text) == (code, "")
    assert message in err
    assert "Traceback" not in err
    assert everything(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("ask", share([signal.SIGTERM, signal.SIGINT], 2))
def test_command__follows_until_it_is_asked_to_end(learnt, tmp_path, ask):
    parts = np.split(ALL[LEARNT:], [83])
    write_npy(tmp_path, "0", parts[0])
    script = Path(sys.executable).parent / "manifold-observer"
    words = [script, "continue", learnt("stft"), "*.npy", "out", "--follow", "--interval", "0.05", "--json"]
    with subprocess.Popen(list(map(str, words)), cwd=tmp_path, stdout=subprocess.PIPE, text=True) as following:
        try:
            assert json.loads(following.stdout.readline())["added"] == 8
            write_npy(tmp_path, "1.part", parts[1])
            os.rename(tmp_path / "1.part.npy", tmp_path / "1.npy")
            assert json.loads(following.stdout.readline())["total"] == 21
            following.send_signal(ask)
            assert following.wait(timeout=60) == 0
            assert following.stdout.read() == ""
        finally:
            following.kill()
    assert_same(tmp_path / "out", one_run(learnt("stft"), write_npy(tmp_path, "w", ALL[LEARNT:])), times=False)


@pytest.fixture
def interruptible():
    """Ctrl-C is heard, as on a terminal: processes that are started in the background may be deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ending__a_second_interrupt_ends_at_once():
    with Ending() as ending:
        signal.raise_signal(signal.SIGINT)
        assert ending.wait(0)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("interruptible")
def test_ending__processes_started_unheard_do_not_hear_an_interrupt():
    script = "import signal; signal.raise_signal(signal.SIGINT); print('goes on')"
    with unheard():
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "goes on\n"
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
