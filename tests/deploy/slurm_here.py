"""A Slurm of one node on the loopback device, with files of its own: munged, slurmctld and slurmd in one folder.

As a script it runs a command with it: ``python tests/deploy/slurm_here.py sinfo``. It needs Debian's slurm-wlm and
munge, and root, whose jobs slurmd may start; nothing of a Slurm that is there already is touched.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

WAIT = 60
CONFIGURATION = """\
ClusterName=here
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0,defer_batch=0
KillWait=2
MinJobAge=10
StateSaveLocation={folder}/controller
SlurmdSpoolDir={folder}/node
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/node.pid
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/node.log
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory}
PartitionName=debug Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES:8
"""


def missing():
    """Why no Slurm can be started here; None where one can."""
    if not hasattr(os, "getuid") or os.getuid() != 0:
        return "Slurm's daemons start jobs as root alone"
    lacking = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if program(name) is None]
    return f"no {', '.join(lacking)} here (Debian: slurm-wlm, munge)" if lacking else None


def program(name):
    """Path of a program, which may lie where root alone looks."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")


@contextlib.contextmanager
def slurm(folder):
    """Start Slurm in an empty folder; yields what its commands need in their environment."""
    folder = Path(folder)
    configuration = folder / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(
            host=socket.gethostname().partition(".")[0],
            controller=_free_port(),
            node=_free_port(),
            folder=folder,
            cpus=os.cpu_count(),
            memory=psutil.virtual_memory().total // 2**20 - 512,
        )
    )
    for name in ("controller", "node"):
        (folder / name).mkdir(mode=0o700)
    environment = {"SLURM_CONF": str(configuration)}
    with contextlib.ExitStack() as stack:
        stack.enter_context(_munge(folder))
        stack.enter_context(_daemon([program("slurmctld"), "-D", "-f", str(configuration)], environment))
        stack.enter_context(_daemon([program("slurmd"), "-D", "-f", str(configuration)], environment))
        _until_idle(environment)
        stack.callback(subprocess.run, ["scancel", "-u", "root"], env={**os.environ, **environment}, check=False)
        yield environment


@contextlib.contextmanager
def _munge(folder):
    """The daemon by which Slurm knows who speaks, with a key of its own."""
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    places = {"socket": "munge.socket", "pid-file": "munge.pid", "log-file": "munge.log", "seed-file": "munge.seed"}
    options = [f"--{name}={folder / place}" for name, place in places.items()]
    command = [program("munged"), "--foreground", "--force", f"--key-file={key}", *options]
    with _daemon(command, {}):
        until = time.monotonic() + WAIT
        while not (folder / "munge.socket").exists():
            assert time.monotonic() < until, (folder / "munge.log").read_text()
            time.sleep(0.05)
        yield


@contextlib.contextmanager
def _daemon(command, environment):
    """Run a daemon that stays in the foreground."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    process = subprocess.Popen(command, env={**os.environ, **environment}, start_new_session=True, **quiet)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(timeout=10)


def _until_idle(environment):
    """Wait until the node takes jobs."""
    until, said = time.monotonic() + WAIT, ""
    while said != "idle":
        assert time.monotonic() < until, f"the node is {said or 'silent'}"
        time.sleep(0.1)
        asked = subprocess.run(
            ["sinfo", "-h", "-o", "%t"], env={**os.environ, **environment}, capture_output=True, text=True, check=False
        )
        said = asked.stdout.strip()


def _free_port():
    """A port that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


if __name__ == "__main__":
    if (reason := missing()) is not None:
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as place, slurm(place) as added:
        sys.exit(subprocess.run(sys.argv[1:] or ["sinfo"], env={**os.environ, **added}, check=False).returncode)
