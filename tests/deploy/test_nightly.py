"""A nightly job fires for real: cron itself reads deploy/crontab, with other paths and the next minute as the night."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from manifold_observer.pipeline.watch.counts import from_text
from strategies import QUICK

DEPLOY = Path(__file__).parents[2] / "deploy"
SCRIPTS = Path(sys.executable).parent
# cron sees these folders and files of its own, and nothing of the machine's.
APART = """
mount -t tmpfs none /run
mount -t tmpfs none /var/spool/cron
mount -t tmpfs none /etc/cron.d
mount --bind /dev/null /etc/crontab
mkdir -p /var/spool/cron/crontabs
install -m 600 "$1" /var/spool/cron/crontabs/root
exec cron -f
"""
# A minute until it fires, and a corpus on a machine that is busy.
WAIT = 240


def reason():
    """Why cron cannot be tried here."""
    if QUICK:
        return "waits for the next minute; the full suite (HYPOTHESIS_PROFILE=all) has it"
    if not hasattr(os, "getuid") or os.getuid() != 0:
        return "cron is started by root"
    if shutil.which("cron") is None or shutil.which("unshare") is None:
        return "Debian's cron is not installed"
    done = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/run"], capture_output=True, check=False)
    return "" if done.returncode == 0 else "this container may not mount"


@pytest.fixture
def nights(tmp_path):
    """A folder with two recordings and a corpus, and the crontab for it."""
    (tmp_path / "in").mkdir()
    for name in ("monday", "tuesday"):
        np.save(tmp_path / "in" / f"{name}.npy", np.random.default_rng(0).normal(size=(80, 3)).cumsum(axis=0))
    settings = 'output = "out"\ncluster = "none"\n[run]\nfeatures = "identity"\nn-modes = 2\n'
    (tmp_path / "corpus.toml").write_text(f'[corpus]\ninputs = ["in/*.npy"]\n{settings}')
    text = (DEPLOY / "crontab").read_text()
    for old, new in (
        ("30 2 * * *", "* * * * *"),
        ("/srv/nights", str(tmp_path)),
        ("/opt/manifold-observer/bin", str(SCRIPTS)),
        ("/var/lib/prometheus/node-exporter", str(tmp_path)),
    ):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "crontab").write_text(text)
    return tmp_path


def test_cron__fires_the_nightly_corpus(nights):
    if reason():
        pytest.skip(reason())
    words = ["unshare", "-m", "sh", "-ec", APART, "sh", nights / "crontab"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as cron:
        try:
            until = time.monotonic() + WAIT
            while _ended(nights) < 1 and time.monotonic() < until and cron.poll() is None:
                time.sleep(1)
        finally:
            cron.terminate()
            cron.wait(30)
    values = from_text((nights / "nights.prom").read_text().splitlines())
    assert values["runs_total", "0"] >= 1
    assert values["recordings_total", "done"] == 2
    assert values["last_success_timestamp_seconds", ""] > 0
    assert {"monday.zarr", "tuesday.zarr"} <= {path.name for path in (nights / "out").iterdir()}
    assert " INFO finished recording=monday " in (nights / "nights.log").read_text()


def _ended(folder):
    """Commands that have ended so far."""
    file = folder / "nights.prom"
    if not file.exists():
        return 0
    return sum(value for (name, _), value in from_text(file.read_text().splitlines()).items() if name == "runs_total")
