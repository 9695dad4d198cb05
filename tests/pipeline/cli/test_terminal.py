"""What a command shows on a terminal, in a pipe, and to those who want less or more; how it ends by Ctrl-C there."""

import contextlib
import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sysconfig
import termios
import time
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(sysconfig.get_path("scripts")) / "manifold-observer"
WAIT = 120
OPTIONS = ("--features", "identity", "--n-modes", "2", "--cluster", "none")


def take_terminal():
    """As a shell starts a command: the terminal is its own, and Ctrl-C is not ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A command on a terminal of its own: what it has drawn so far, and keys."""

    def __init__(self, words, folder, columns=80, **environment):
        self.master, slave = pty.openpty()
        self.resize(columns)
        env = {**os.environ, "TERM": "xterm-256color", **environment}
        self.process = subprocess.Popen(
            [SCRIPT, *map(str, words)], cwd=folder, stdin=slave, stdout=slave, stderr=slave, env=env,
            start_new_session=True, preexec_fn=take_terminal,  # noqa: PLW1509
        )  # fmt: skip
        os.close(slave)
        self.text = ""

    def resize(self, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read_until(self, pattern):
        """Read until something is drawn, or to the end."""
        until = time.monotonic() + WAIT
        while pattern is None or not re.search(pattern, self.text):
            assert time.monotonic() < until, self.text
            if not select.select([self.master], [], [], 1)[0]:
                continue
            try:
                self.text += os.read(self.master, 65536).decode("utf-8", "replace")
            except OSError:  # the other end is closed
                return self
        return self

    def press(self, key):
        os.write(self.master, key)

    def end(self):
        """Exit code, after everything has been read."""
        self.read_until(None)
        return self.process.wait(WAIT)

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(WAIT)
        os.close(self.master)


@pytest.fixture
def terminal(tmp_path):
    """Start commands on terminals, in a folder with a recording."""
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(900, 6)).cumsum(axis=0))
    opened = []

    def start(*words, **options):
        opened.append(Terminal(words, tmp_path, **options))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def drawn(text):
    """What was on the line of the bar, one drawing after the other."""
    return [part.split("\n")[-1] for part in text.split("\r\x1b[K")[1:]]


@pytest.mark.slow
def test_run__on_a_terminal_says_its_cost_and_draws_a_bar(terminal):
    shown = terminal("run", "a.npy", *OPTIONS, columns=60)
    shown.read_until("\x1b")
    shown.resize(40)
    before = len(shown.text)
    assert shown.end() == 0
    assert re.search(r"900 frames to compute in this process: ", shown.text)
    lines = drawn(shown.text)
    assert lines
    assert all(len(line) < 60 for line in lines)
    assert all(len(line) < 40 for line in drawn(shown.text[before + 200 :]))
    assert "\x1b[3" not in shown.text  # no colour
    rest = shown.text.rpartition("\x1b[K")[2]
    assert rest.startswith(("900 frames, 2 modes", "features:"))


@pytest.mark.slow
def test_run__with_no_colour_and_a_dumb_terminal_there_are_no_escapes(terminal):
    shown = terminal("run", "a.npy", *OPTIONS, TERM="dumb", NO_COLOR="1")
    assert shown.end() == 0
    assert "\x1b" not in shown.text


@pytest.mark.slow
def test_run__quietly_prints_one_line(terminal):
    shown = terminal("run", "a.npy", *OPTIONS, "-q")
    assert shown.end() == 0
    assert shown.text.splitlines() == ["written to a.zarr"]


@pytest.mark.slow
def test_run__ctrl_c_says_what_is_kept_and_which_command_goes_on(terminal, tmp_path):
    never = ("--residual-tolerance", "1e-15", "--max-passes", "60")  # so that it still runs when the key is pressed
    words = ("run", "a.npy", "out.zarr", *OPTIONS[:4], "--home", "recomputed", *never, "--workers", "1")
    shown = terminal(*words, "--cluster", "local")
    shown.read_until(r"eigensolve[^\r]* [2-9] of ")
    assert any(tmp_path.rglob("*pass-*.npz"))
    shown.press(b"\x03")
    assert shown.end() == 130
    said = shown.text.rpartition("Error: ")[2].strip()
    assert re.match(r"interrupted\. The same command resumes after pass \d+( of about \d+)?, which is kept in ", said)
    command = said.partition("Type it again: ")[2]
    assert shlex.split(command) == ["manifold-observer", *words, "--cluster", "local"]


def in_a_pipe(folder, *words):
    done = subprocess.run(
        [SCRIPT, *words], cwd=folder, capture_output=True, text=True, timeout=WAIT, check=False
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("terminal")
def test_run__in_a_pipe_there_is_no_bar_and_stages_are_lines_for_who_asks(tmp_path):
    np.save(tmp_path / "b.npy", np.load(tmp_path / "a.npy")[:300])
    code, out, err = in_a_pipe(tmp_path, "run", "b.npy", *OPTIONS)
    assert (code, err) == (0, "")
    assert out.startswith("300 frames")
    code, out, err = in_a_pipe(tmp_path, "run", "b.npy", *OPTIONS, "--overwrite", "-v")
    assert code == 0
    assert re.search(r"^300 frames to compute in this process: about ", err, re.MULTILINE)
    assert re.search(r"^eigensolve +█+ +\d+ of \d+ +took ", err, re.MULTILINE)
    assert "\x1b" not in err
