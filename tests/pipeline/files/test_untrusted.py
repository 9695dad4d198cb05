"""A file from somebody else runs no code, reads no other file, takes no memory and no time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("h5py")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is measured through /proc")

from malicious import MALICIOUS  # noqa: E402
from strategies import share  # noqa: E402

OPENER = Path(__file__).parents[2] / "opener.py"
MOST_MEBIBYTES, MOST_SECONDS, MOST_WALL = 500, 2.0, 20.0


@pytest.fixture(scope="module")
def opener():
    """Ask a process that has imported everything to open a file in a child."""
    environment = {**os.environ, "NUMCODECS_ALLOW_UNSAFE_PICKLE_DECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, OPENER], env=environment, **pipes) as process:
        assert process.stdout.readline() == "ready\n"

        def ask(path):
            process.stdin.write(f"{path}\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask
        process.stdin.close()


def assert_cheap(answer):
    assert answer["mebibytes"] < MOST_MEBIBYTES
    assert answer["cpu"] <= MOST_SECONDS
    assert answer["wall"] <= MOST_WALL


@pytest.mark.parametrize("name", share(MALICIOUS, 3))
def test_open_recording__malicious_file_ends_in_one_sentence(opener, tmp_path, name):
    path = MALICIOUS[name](tmp_path)
    answer = opener(path)
    assert not (tmp_path / "canary").exists()
    assert answer.get("error") in ("ValueError", "OSError", "FileNotFoundError"), answer
    assert str(path) in answer["text"]
    assert "\n" not in answer["text"]
    assert len(answer["text"]) < 1000
    assert_cheap(answer)
