"""Workers as jobs of Slurm or PBS, by dask-jobqueue, with what it leaves undone.

A job that the queue loses (cancelled, preempted, out of time) is submitted again; workers leave before their time is
over; scheduler and workers show each other certificates, since they listen on a network.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dask
import psutil
from distributed.core import Status

from .config import ClusterConfig, seconds
from .local import QUIET, unheard_loop
from .lost import LostClusterError
from .place import Place
from .quiet import QuietScheduler
from .security import cluster_security, temporary_security
from .shared import shared_folder

# How each queue is asked which jobs of a user wait or run, one a line.
_LISTING = {"slurm": ("squeue", "-h", "-o", "%i", "-u"), "pbs": ("qselect", "-u")}
_COMMANDS = {"slurm": ("sbatch", "scancel", "squeue"), "pbs": ("qsub", "qdel", "qselect")}
_NAMES = {"slurm": "Slurm", "pbs": "PBS"}
WAIT = "10m"
_LOOK_SECONDS = 1.0
_LIST_SECONDS = 5.0
# Jobs in a row of which no worker came.
_FRUITLESS = 3
# Part of the time limit that workers leave to what they still have to hand over, and its least.
_LEAVE_PART = 0.1
_LEAVE_SECONDS = 60.0
_NO_PAGES = ("--no-dashboard", "--dashboard-address", "127.0.0.1:0")
_PAGES: dict[str, Any] = {"distributed.scheduler.http.routes": []}
# Dask would cancel a job that was submitted in the place of a lost one, were it still waiting some seconds later.
_SETTINGS = QUIET | {"distributed.deploy.lost-worker-timeout": "365 days"}


@contextmanager
def queued(config: ClusterConfig) -> Iterator[tuple[Any, Place]]:
    """A scheduler in this process with workers in a queue, and what is known of it.

    Raises
    ------
    LostClusterError
        dask-jobqueue, the queue's commands or the interface are missing, or the queue refuses the jobs.
    """
    made = _class(config.kind)
    _check_here(config)
    own = _SETTINGS | ({} if config.dashboard else _PAGES)
    with shared_folder(config.shared) as folder, dask.config.set(own), unheard_loop() as loop:
        security = cluster_security(config) or temporary_security(folder)
        cluster = made(loop=loop, security=security, scheduler_cls=QuietScheduler, **keywords(config, folder))
        jobs = _Jobs(cluster, config, folder)
        try:
            jobs.submit()
            yield cluster, jobs.place()
        finally:
            jobs.stop()
            with suppress(Exception):  # whatever the queue says now: workers without a scheduler end by themselves
                cluster.close()


def keywords(config: ClusterConfig, folder: Path) -> dict[str, Any]:
    """What dask-jobqueue is given; what is not set comes from Dask's configuration of it (jobqueue.yaml)."""
    cores = config.cores or dask.config.get(f"jobqueue.{config.kind}.cores", None) or 1
    own = {
        "cores": cores,
        "processes": config.processes or dask.config.get(f"jobqueue.{config.kind}.processes", None) or cores,
        "memory": _memory(config),
        "walltime": config.walltime,
        "queue": config.queue,
        "account": config.account,
        "interface": config.interface,
        "python": config.python,
        "local_directory": config.scratch,
        "job_extra_directives": list(config.job_extra) or None,
        "job_script_prologue": list(config.job_prologue) or None,
        "worker_extra_args": [*_of_dask(config, "worker-extra-args", []), *_lifetime(config), *_NO_PAGES],
        "log_directory": str(folder),
        "scheduler_options": {
            "dashboard": config.dashboard,
            "dashboard_address": "127.0.0.1:0",
            **_of_dask(config, "scheduler-options", {}),
        },
    }
    return {name: value for name, value in own.items() if value is not None}


class _Jobs:
    """The jobs of a cluster: submitted, listed, and submitted again where the queue has lost them."""

    def __init__(self, cluster: Any, config: ClusterConfig, folder: Path) -> None:
        self.cluster, self.config, self.folder = cluster, config, folder
        self.watching: Any = None
        self.failure: str | None = None
        self.fruitless = 0

    def submit(self) -> None:
        """Submit the jobs; what the queue says against them is raised here."""
        cluster, config = self.cluster, self.config
        first = self._jobs(config.min_workers or config.workers)
        for _ in range(first):
            cluster.worker_spec.update(cluster.new_worker_spec())
        try:
            cluster.sync(cluster._correct_state)
        except (RuntimeError, OSError, ValueError) as error:
            raise LostClusterError(
                f"cluster: {_NAMES[config.kind]} must take the jobs; got {_said(error)}. Check --queue, --account, "
                "--memory, --walltime and --job-extra."
            ) from None
        if config.min_workers is not None:
            most = self._jobs(config.workers or config.min_workers)
            cluster.adapt(minimum_jobs=first, maximum_jobs=most, interval="2s", wait_count=5)
        self.watching = asyncio.run_coroutine_threadsafe(self._watch(), cluster.loop.asyncio_loop)

    def stop(self) -> None:
        """Submit no more."""
        if self.watching is not None:
            self.watching.cancel()

    def place(self) -> Place:
        """What a run must know of them."""
        wanted = self._jobs(self.config.min_workers or self.config.workers) * self._processes
        return Place(
            f"{_NAMES[self.config.kind]} ({self.cluster.scheduler_address})",
            "Give a longer --wait, another --queue, or less --memory, --cores or --walltime a job.",
            wanted,
            seconds(self.config.wait or WAIT),
            lambda: self.failure,
        )

    @property
    def _processes(self) -> int:
        """Workers of one job."""
        return int(self.cluster._dummy_job.worker_processes)

    def _jobs(self, workers: int | None) -> int:
        """Jobs that have so many workers."""
        return -(-(workers or 1) // self._processes)

    async def _watch(self) -> None:
        """Look who has come, and now and then which jobs the queue has lost."""
        last = 0.0
        joined: set[str] = set()
        while self.failure is None:
            await asyncio.sleep(_LOOK_SECONDS)
            there = {str(worker.name) for worker in self.cluster.scheduler.workers.values()}
            for name in self.cluster.workers:
                if any(worker == str(name) or worker.startswith(f"{name}-") for worker in there):
                    joined.add(self.cluster.workers[name].job_id)
                    self.fruitless = 0
            now = asyncio.get_running_loop().time()
            if now > last + _LIST_SECONDS:
                last = now
                with suppress(OSError, RuntimeError, ValueError):  # the queue is busy; again a little later
                    await self._renew(joined)

    async def _renew(self, joined: set[str]) -> None:
        """Submit jobs again that the queue does not list any more."""
        known = {name: job for name, job in self.cluster.workers.items() if job.job_id}
        command = (*_LISTING[self.config.kind], _user())
        listed = (await self.cluster.job_cls._call(list(command))).split()
        alive = {line.partition(".")[0].partition("_")[0] for line in listed}
        gone = [name for name, job in known.items() if job.job_id not in alive]
        for name in gone:
            job = self.cluster.workers.pop(name, None)
            if job is not None:
                job.status = Status.closed
                self.fruitless += job.job_id not in joined
        if self.fruitless >= _FRUITLESS * len(self.cluster.worker_spec) > 0:
            self.failure = self._fruitless()
        elif set(self.cluster.worker_spec) - set(self.cluster.workers):
            await self.cluster._correct_state()

    def _fruitless(self) -> str:
        """Why no worker comes, as far as the jobs say."""
        last = _last_line(self.folder)
        said = f"the last one said: {last}" if last else "they said nothing"
        return (
            f"cluster: jobs must start workers; {self.fruitless} jobs of {_NAMES[self.config.kind]} ended before one "
            f"came ({said}). Check --python, --interface, --job-prologue and --shared, which the nodes must have, too."
        )


def _class(kind: str) -> Any:
    """dask-jobqueue's cluster of a queue, whose jobs close properly."""
    try:
        from dask_jobqueue import pbs, slurm  # noqa: PLC0415 - of an extra
    except ImportError as error:
        raise LostClusterError(
            f"cluster: --cluster {kind} needs dask-jobqueue ({error}). Install it with: pip install dask-jobqueue."
        ) from None
    base, job = {
        "slurm": (slurm.SLURMCluster, slurm.SLURMJob),
        "pbs": (pbs.PBSCluster, pbs.PBSJob),
    }[kind]

    class Job(job):  # type: ignore[misc, valid-type]
        """A job that is closed once it has been cancelled; dask-jobqueue's own claims to run, and its cluster fails."""

        async def close(self) -> None:
            await super().close()
            self.status = Status.closed

    class Cluster(base):  # type: ignore[misc, valid-type]
        """dask-jobqueue's cluster of such jobs."""

        job_cls = Job

    return Cluster


def _check_here(config: ClusterConfig) -> None:
    """Refuse what would fail only within a job, or with a traceback."""
    missing = [command for command in _COMMANDS[config.kind] if shutil.which(command) is None]
    if missing:
        raise LostClusterError(
            f"cluster: --cluster {config.kind} must run where jobs can be submitted; got no command "
            f"{', '.join(missing)} here. Log in to such a machine, or take --cluster local."
        )
    interface = config.interface or _of_dask(config, "interface", None)
    if interface is not None and interface not in psutil.net_if_addrs():
        raise LostClusterError(
            f"cluster: interface must be one of {', '.join(sorted(psutil.net_if_addrs()))}; got {interface}. "
            "Give another --interface."
        )


def _memory(config: ClusterConfig) -> Any:
    """Memory of a job."""
    memory = config.memory or _of_dask(config, "memory", None)
    if memory is None:
        raise ValueError(
            f"cluster: memory must be given with --cluster {config.kind}; got none. Give what one job may take, such "
            "as --memory 4GiB."
        )
    return memory


def _of_dask(config: ClusterConfig, name: str, otherwise: Any) -> Any:
    """A setting of dask-jobqueue's own configuration."""
    value = dask.config.get(f"jobqueue.{config.kind}.{name}", None)
    return otherwise if value is None else value


def _lifetime(config: ClusterConfig) -> list[str]:
    """Options of a worker that leaves before its job is ended, and not at the moment at which all others leave.

    Examples
    --------
    >>> _lifetime(ClusterConfig("slurm", walltime="1:00:00"))
    ['--lifetime', '3060s', '--lifetime-stagger', '180s']
    """
    walltime = config.walltime or _of_dask(config, "walltime", None)
    if walltime is None:
        return []
    limit = duration(str(walltime))
    leave = min(max(limit * _LEAVE_PART, _LEAVE_SECONDS), limit / 2)
    life = limit - 1.5 * leave
    return ["--lifetime", f"{life:.0f}s", "--lifetime-stagger", f"{min(leave, life) / 2:.0f}s"]


def duration(walltime: str) -> float:
    """Seconds of a time limit: minutes, MM:SS, H:MM:SS, D-H, D-H:MM or D-H:MM:SS.

    Examples
    --------
    >>> [duration(text) for text in ("90", "1:00:00", "1-12", "0:30")]
    [5400.0, 3600.0, 129600.0, 30.0]
    """
    days, dash, rest = walltime.strip().rpartition("-")
    try:
        parts = [int(part) for part in rest.split(":")]
        whole = 86400 * int(days or 0)
    except ValueError:
        parts = []
    if not 1 <= len(parts) <= 3 or min(parts) < 0 or (dash and not days):
        raise ValueError(
            f"cluster: walltime must be a time such as 2:00:00; got {walltime!r}. Give hours:minutes:seconds."
        )
    units = (3600, 60, 1) if dash or len(parts) == 3 else (60, 1)
    seconds_of = sum(number * unit for number, unit in zip(parts, units, strict=False))
    return float(whole + seconds_of)


def _said(error: BaseException) -> str:
    """What a queue's command said, without dask-jobqueue's words around it."""
    text = str(error)
    said = text.partition("stderr:\n")[2].strip() or text
    return " ".join(said.split())[:300]


def _last_line(folder: Path) -> str:
    """The last line that a job wrote."""
    logs = sorted(folder.glob("*.err"), key=lambda path: path.stat().st_mtime) or sorted(folder.glob("*[eo][0-9]*"))
    for log in reversed(logs):
        with suppress(OSError):
            lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
            if lines:
                return lines[-1][:200]
    return ""


def _user() -> str:
    """Name of the user."""
    return psutil.Process().username()
