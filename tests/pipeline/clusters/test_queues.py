"""Jobs as workers: what is submitted, what is submitted again, what is refused. The queue is three scripts."""

import getpass
import os
import signal
import sys

import dask
import psutil
import pytest
from foreign import wait_until

from manifold_observer.pipeline.clusters import queues, shared
from manifold_observer.pipeline.clusters.cluster import connect
from manifold_observer.pipeline.clusters.config import ClusterConfig
from manifold_observer.pipeline.graph.compute import compute, task

pytest.importorskip("dask_jobqueue")
QSUB = """#!/bin/bash
if [ -e {place}/refused ]; then echo "qsub: Unknown queue" >&2; exit 1; fi
number=$(ls {place} | grep -c "[.]pid$")
cp "$1" {place}/$number.sh
setsid bash {place}/$number.sh >{place}/$number.out 2>"$(sed -n 's/^#PBS -e //p' "$1")$number.err" </dev/null &
echo $! >{place}/$number.pid
if [ -e {place}/slow ]; then kill -STOP -- -$!; (sleep 6; kill -CONT -- -$!) </dev/null >/dev/null 2>&1 & fi
echo $number.here
"""
QSELECT = """#!/bin/bash
[ "$1 $2" = "-u {user}" ] || exit 1
for file in {place}/*.pid; do
  number=$(basename "$file" .pid)
  kill -0 "$(cat "$file")" 2>/dev/null && echo "$number.here"
done
exit 0
"""
QDEL = """#!/bin/bash
kill -- "-$(cat {place}/$1.pid)"
"""


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """A folder with the jobs of a queue whose commands are found first."""
    monkeypatch.setattr(queues, "_LIST_SECONDS", 0.5)
    monkeypatch.setattr(queues, "_LOOK_SECONDS", 0.2)
    programs, place = tmp_path / "programs", tmp_path / "queue"
    programs.mkdir()
    place.mkdir()
    for name, text in (("qsub", QSUB), ("qselect", QSELECT), ("qdel", QDEL)):
        (programs / name).write_text(text.format(place=place, user=getpass.getuser()))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    yield place
    for pid in pids(place):
        os.killpg(pid, signal.SIGKILL)


def pids(place):
    """Jobs that run, by the processes that lead them."""
    found = [int(file.read_text()) for file in sorted(place.glob("*.pid"))]
    return [pid for pid in found if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]


def pbs(folder, **more):
    own = {"workers": 1, "memory": "1GiB", "interface": "lo", "shared": str(folder), "walltime": "1:00:00"}
    return ClusterConfig.of_table({"kind": "pbs"} | own | more)


@pytest.mark.slow
def test_pbs__jobs_compute_are_submitted_again_and_end(queue, tmp_path):
    before = sorted(tmp_path.iterdir())
    # A queue takes longer than Dask would wait for the worker of a job before it cancels it.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "3s"}),
        connect(pbs(tmp_path, wait="30s")) as client,
    ):
        assert client.scheduler.address.startswith("tls://127.0.0.1:")
        assert compute([task(abs, -4)]) == [4]
        assert client.run_on_scheduler(lambda dask_scheduler: type(dask_scheduler).__name__) == "QuietScheduler"
        (first,) = client.run(os.getpid).values()
        (queue / "slow").touch()
        os.killpg(pids(queue)[0], signal.SIGKILL)
        assert compute([task(abs, -5)]) == [5]
        (second,) = client.run(os.getpid).values()
        assert first != second
        assert len(list(queue.glob("*.pid"))) == 2
    wait_until(lambda: not pids(queue))
    assert sorted(tmp_path.iterdir()) == before


def test_pbs__a_queue_that_refuses_is_quoted(queue, tmp_path):
    (queue / "refused").touch()
    sentence = r"PBS must take the jobs; got qsub: Unknown queue\. Check --queue"
    with pytest.raises(ConnectionError, match=sentence), connect(pbs(tmp_path)):
        pass
    assert not list(tmp_path.glob(".manifold*"))


@pytest.mark.slow
def test_pbs__jobs_that_start_no_worker_are_quoted(queue, tmp_path):
    sentence = r"; 3 jobs of PBS ended before one came \(the last one said: .*/no/python: No such file"
    with pytest.raises(ConnectionError, match=sentence), connect(pbs(tmp_path, python="/no/python")):
        pass
    assert len(list(queue.glob("*.pid"))) == 3


# ------------------------------------------------------------------------------------------------------- what is asked


def script(config, folder):
    """The script of a job."""
    made = queues._class(config.kind)
    own = queues.keywords(config, folder)
    own.pop("scheduler_options")
    return made.job_cls("tls://10.0.0.1:1", name="w", **own).job_script()


def test_keywords__become_directives_and_options_of_workers(tmp_path):
    config = ClusterConfig.of_table(
        {
            "kind": "slurm",
            "cores": 4,
            "memory": "8GiB",
            "walltime": "2:00:00",
            "queue": "long",
            "account": "birds",
            "python": "/opt/python",
            "scratch": "/local",
            "job_extra": ["--exclusive"],
            "job_prologue": ["module load x"],
        }
    )
    text = script(config, tmp_path)
    for part in (
        "#SBATCH -p long\n",
        "#SBATCH -A birds\n",
        "#SBATCH --cpus-per-task=4\n",
        "#SBATCH --mem=8G\n",
        "#SBATCH -t 2:00:00\n",
        "#SBATCH --exclusive\n",
        "\nmodule load x\n",
        "/opt/python -m distributed.cli.dask_worker tls://10.0.0.1:1",
        "--nthreads 1 --memory-limit 2.00GiB --nworkers 4",
        "--local-directory /local",
        "--lifetime 6120s --lifetime-stagger 360s",
        "--no-dashboard --dashboard-address 127.0.0.1:0",
    ):
        assert part in text


def test_keywords__what_is_not_said_comes_from_the_configuration_of_dask_jobqueue(tmp_path):
    queues._class("slurm")  # brings its defaults
    own = {"memory": "3GiB", "cores": 2, "queue": "site", "walltime": "0:20:00"}
    with dask.config.set({f"jobqueue.slurm.{name}": value for name, value in own.items()}):
        text = script(ClusterConfig("slurm"), tmp_path)
    for part in ("#SBATCH -p site\n", "#SBATCH --mem=3G\n", "--nworkers 2", "--lifetime 1020s"):
        assert part in text


@pytest.mark.parametrize(
    ("walltime", "seconds"),
    [("30", 1800), ("30:00", 1800), ("2:00:00", 7200), ("1-0", 86400), ("1-2:30", 95400), ("2-0:0:30", 172830)],
)
def test_duration__of_a_time_limit(walltime, seconds):
    assert queues.duration(walltime) == seconds


@pytest.mark.parametrize("walltime", ["soon", "1:2:3:4", "2h", "", "-1", "1:-2"])
def test_duration__of_something_else_is_refused(walltime):
    with pytest.raises(ValueError, match="walltime must be a time such as 2:00:00; got"):
        queues.duration(walltime)


@pytest.mark.parametrize("minutes", [1, 5, 60, 1440])
def test_lifetime__ends_before_the_limit_whatever_the_stagger_draws(minutes):
    _, life, _, stagger = queues._lifetime(ClusterConfig("slurm", walltime=str(minutes)))
    latest = float(life[:-1]) + float(stagger[:-1])
    assert float(life[:-1]) - float(stagger[:-1]) > 0
    assert latest <= 60 * minutes - min(60 * minutes * 0.1, 60)


# ------------------------------------------------------------------------------------------------- what is not there


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"memory": None}, r"memory must be given with --cluster pbs; got none\. .*--memory 4GiB"),
        ({"interface": "ib7"}, r"interface must be one of .*lo.*; got ib7"),
        ({"walltime": "soon"}, r"walltime must be a time"),
        ({"shared": "/proc"}, r"shared must be a folder that can be written to; got /proc"),
        ({"tls_ca_file": "ca.pem"}, r"certificates must be given by .*; got no --tls-cert, --tls-key"),
    ],
)
@pytest.mark.usefixtures("queue")
def test_connect__wrong_settings_are_said_before_anything_is_submitted(tmp_path, more, sentence):
    with (
        pytest.raises((ValueError, ConnectionError), match=sentence),
        connect(pbs(tmp_path, **more)),
    ):
        pass
    assert not list((tmp_path / "queue").iterdir())
    assert not list(tmp_path.glob(".manifold*"))


def test_connect__without_the_commands_of_the_queue(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConnectionError, match=r"got no command qsub, qdel, qselect here\."), connect(pbs(tmp_path)):
        pass


def test_connect__without_dask_jobqueue_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(ConnectionError, match=r"Install it with: pip install dask-jobqueue\."), connect(pbs(tmp_path)):
        pass


def test_shared_folder__clears_away_those_of_the_dead_alone(tmp_path):
    with shared.shared_folder(tmp_path) as living:
        dead = tmp_path / f"{shared._PREFIX}dead"
        strange = tmp_path / f"{shared._PREFIX}strange"
        elsewhere = tmp_path / f"{shared._PREFIX}elsewhere"
        for folder, text in (
            (dead, (living / "owner.json").read_text().replace(f'"pid": {os.getpid()}', '"pid": 4194305')),
            (strange, "{}"),
            (elsewhere, '{"host": "another", "pid": 4194305, "since": 0}'),
        ):
            folder.mkdir()
            (folder / "owner.json").write_text(text)
        with shared.shared_folder(tmp_path):
            assert not dead.exists()
            assert all(folder.exists() for folder in (living, strange, elsewhere))
    assert not living.exists()
