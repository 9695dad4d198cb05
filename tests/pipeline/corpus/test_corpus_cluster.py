"""Where a corpus computes: as its file says, and before that as the options say."""

import contextlib

import numpy as np
import pytest

FILE = """
[corpus]
inputs = ["*.npy"]
output = "out"
[cluster]
kind = "slurm"
workers = 4
queue = "night"
[run]
features = "identity"
"""


@pytest.fixture
def asked(console, tmp_path, monkeypatch):
    """The cluster that 'corpus run' asks for with some options, and how the command ends."""
    (tmp_path / "corpus.toml").write_text(FILE)
    for name in "abc":
        np.save(tmp_path / f"{name}.npy", np.random.default_rng(0).normal(size=(90, 2)).cumsum(axis=0))
    seen = []

    def connected(cluster):
        seen.append(cluster)
        return contextlib.nullcontext()

    monkeypatch.setattr("manifold_observer.pipeline.cli.corpus.connected", connected)
    monkeypatch.setattr("manifold_observer.pipeline.corpus.under_way.compute_due", lambda *_: None)
    return lambda *options: (console("corpus", "run", tmp_path / "corpus.toml", *options), seen)


def test_corpus_run__computes_where_its_file_says(asked):
    _, (cluster,) = asked()
    assert (cluster.kind, cluster.workers, cluster.queue) == ("slurm", 4, "night")


def test_corpus_run__options_change_single_settings_of_the_file(asked):
    _, (cluster,) = asked("--workers", 2, "--memory", "2GiB")
    assert (cluster.kind, cluster.workers, cluster.queue, cluster.memory) == ("slurm", 2, "night", 2**31)


def test_corpus_run__nothing_of_the_file_counts_for_a_cluster_of_another_kind(asked):
    _, (cluster,) = asked("--cluster", "local")
    assert (cluster.kind, cluster.workers, cluster.queue) == ("local", None, None)


def test_corpus_run__options_that_do_not_apply_are_refused(asked):
    (code, out, err), seen = asked("--cluster", "local", "--queue", "night")
    assert (code, out, seen) == (2, "", [])
    assert "--queue must be left out with --cluster local" in err
