"""Settings of clusters: from names, tables and options to one configuration; what does not suit is refused."""

import numpy as np
import pytest

from manifold_observer.pipeline.cli.commands import cli
from manifold_observer.pipeline.clusters import config as settings
from manifold_observer.pipeline.clusters.cluster import connect
from manifold_observer.pipeline.clusters.config import ClusterConfig

NIGHT = """
features = "identity"
n-modes = 2
[cluster]
kind = "slurm"
memory = "4GiB"
job_extra = ["--exclusive", "--constraint=ib,hdd"]
"""


@pytest.mark.parametrize(
    ("kind", "family"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("slurm", "queue"),
        ("tcp://10.0.0.1:8786", "address"),
        ("tls://[::1]:8786", "address"),
        ("ucx://10.0.0.1:8786", "address"),
        ("head.cluster:8786", "address"),
        ("file:here", "file"),
        ("scheduler.json", "file"),
        ("a.b_c:D", "class"),
    ],
)
def test_family__of_a_name(kind, family):
    assert settings.family(kind) == family


@pytest.mark.parametrize("kind", ["", "slrum", "LOCAL", "lokal", "http://10.0.0.1", "a.b:", ":C", "a-b:C", "tcp:/x"])
def test_family__unknown_names_get_a_list_of_what_is_possible(kind):
    with pytest.raises(ValueError, match=r"must be auto, local, none, slurm, pbs, kubernetes, the address .*; got"):
        ClusterConfig(kind)


def test_of_table__is_the_same_as_in_python():
    table = {"kind": "pbs", "memory": "2 GB", "min-workers": 1, "workers": 3, "job_extra": ["-l x"], "dashboard": True}
    made = ClusterConfig.of_table(table)
    assert made == ClusterConfig(
        "pbs", workers=3, memory=2_000_000_000, min_workers=1, job_extra=("-l x",), dashboard=True
    )
    own = ClusterConfig.of_table({"kind": "a:B", "options": {"n": 2}})
    assert (own.kind, dict(own.keywords)) == ("a:B", {"n": 2})
    assert hash(own) == hash(ClusterConfig("a:B").with_keywords({"n": 2}))


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"walltme": "1"}, r"got walltme\. Did you mean walltime\?"),
        ({"address": "tcp://x:1"}, r"got address\. "),
        ({"workers": 0}, r"workers must be at least 1, or None; got 0"),
        ({"workers": 1.5}, r"workers must be at least 1, or None; got 1\.5"),
        ({"workers": True}, r"workers must be at least 1, or None; got True"),
        ({"memory": "lots"}, r"memory must be a number of bytes, such as 4GiB; got 'lots'"),
        ({"memory": -1}, r"memory must be at least 1 bytes"),
        ({"queue": 3}, r"queue must be text; got 3"),
        ({"kind": ["local"]}, r"kind must be text"),
        ({"dashboard": "yes"}, r"dashboard must be true or false; got 'yes'"),
        ({"job-extra": "--exclusive"}, r"job_extra must be a list of texts; got '--exclusive'"),
        ({"job-extra": [1]}, r"job_extra must be a list of texts"),
        ({"job-extra": 1}, r"job_extra must be a list of texts"),
        ({"wait": "soon"}, r"wait must be a duration, such as 10m; got 'soon'"),
        ({"wait": "-10s"}, r"wait must be a duration, such as 10m; got '-10s'"),
        ({"workers": 2, "min_workers": 3}, r"min_workers must be at most workers=2; got 3"),
        ({"options": 3}, r"options must be a table of keywords; got 3"),
    ],
)
def test_of_table__wrong_values_are_refused(table, sentence):
    with pytest.raises(ValueError, match=f"^cluster: .*{sentence}"):
        ClusterConfig.of_table({"kind": "slurm"} | table)


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            ClusterConfig("local", walltime="1:00:00"),
            r"--walltime must be left out with --cluster local; got '1:00:00'\.",
        ),
        (
            ClusterConfig("local", min_workers=1),
            r"--min-workers .* It is a setting of slurm and pbs and kubernetes and",
        ),
        (ClusterConfig("tcp://h:1", memory=5), r"--memory must be left out with --cluster tcp://h:1; got 5"),
        (ClusterConfig("tcp://h:1", workers=5), r"--workers must be left out"),
        (ClusterConfig("none", workers=5), r"--workers must be left out with --cluster none"),
        (ClusterConfig("local", tls_key="k"), r"--tls-key must be left out"),
        (ClusterConfig("slurm", name="k"), r"--cluster-name must be left out with --cluster slurm; got 'k'"),
        (ClusterConfig("local").with_keywords({"n": 2}), r"\[cluster\.options\] must be left out with --cluster local"),
    ],
)
def test_check_applies__settings_of_other_kinds_are_refused(made, sentence):
    with pytest.raises(ValueError, match=sentence):
        made.check_applies()
    if made.kind != "none":
        with pytest.raises(ValueError, match=sentence), connect(made):
            pass


def test_connect__to_nothing_is_refused():
    with pytest.raises(ValueError, match="must be one to connect to; got 'none'"), connect("none"):
        pass


# ------------------------------------------------------------------------------------------------ on the command line


def test_settings__no_command_has_two_options_of_one_name():
    for command in cli.commands.values():
        names = [option for parameter in command.params for option in parameter.opts]
        assert len(names) == len(set(names))
    assert {"--walltime", "--tls-ca-file", "--dashboard", "--cluster-name"} <= {
        option for parameter in cli.commands["run"].params for option in parameter.opts
    }


@pytest.fixture
def given(monkeypatch):
    """Settings that a command computes by."""
    found = []

    def session(cluster, **_):
        found.append(cluster)
        raise InterruptedError

    monkeypatch.setattr("manifold_observer.pipeline.cli.run.session", session)
    return found


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """A recording in the current folder."""
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.random.default_rng(0).normal(size=(80, 3)).cumsum(axis=0))
    (tmp_path / "night.toml").write_text(NIGHT)
    return tmp_path


@pytest.mark.usefixtures("recorded")
def test_run__options_go_before_the_table_of_a_file(given, console):
    console("run", "a.npy", "out", "--config", "night.toml", "--memory", "8GiB", "--queue", "long")
    extra = ("--exclusive", "--constraint=ib,hdd")
    assert given == [ClusterConfig("slurm", memory=2**33, queue="long", job_extra=extra)]


@pytest.mark.usefixtures("recorded")
def test_run__another_cluster_than_the_file_names_takes_nothing_from_its_table(given, console):
    console("run", "a.npy", "out", "--config", "night.toml", "--cluster", "local", "--workers", 2)
    assert given == [ClusterConfig("local", workers=2)]


def test_run__keywords_of_a_class_come_from_a_file(given, console, recorded):
    table = '[cluster]\nkind = "distributed:LocalCluster"\n[cluster.options]\nn_workers = 2\n'
    (recorded / "night.toml").write_text(f'features = "identity"\n{table}')
    console("run", "a.npy", "out", "--config", "night.toml")
    assert given == [ClusterConfig("distributed:LocalCluster").with_keywords({"n_workers": 2})]
    console("run", "a.npy", "out", "--config", "night.toml", "--cluster", "none")
    assert given[1] == ClusterConfig("none")


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--cluster", "slrum"], "got 'slrum'. Did you mean slurm?"),
        (["--cluster", "local", "--walltime", "1:00:00"], "--walltime must be left out with --cluster local"),
        (["--cluster", "slurm", "--cores", "0"], "0 is not in the range x>=1"),
        (["--config", "wrong.toml"], "wrong.toml: cluster: [cluster] must have settings of a cluster; got walltme."),
        (["--config", "odd.toml"], "odd.toml: cluster: workers must be at least 1, or None; got 'two'."),
    ],
)
def test_run__wrong_settings_of_a_cluster_are_wrong_usage(console, recorded, words, sentence):
    (recorded / "wrong.toml").write_text('[cluster]\nkind = "slurm"\nwalltme = "1"\n')
    (recorded / "odd.toml").write_text('[cluster]\nworkers = "two"\n')
    code, out, err = console("run", "a.npy", "out", "--features", "identity", *words)
    assert (code, out) == (2, "")
    assert sentence in " ".join(err.split())
    assert not (recorded / "out").exists()
