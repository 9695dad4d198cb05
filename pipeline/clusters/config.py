"""Settings of a cluster: one dataclass for the command line, TOML files and Python."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ..frames.opening import Names
from ..frames.settings import check_settings, option_name, parts_of, setting

# What --cluster may name, besides addresses, files and classes.
NAMES = ("auto", "local", "none", "slurm", "pbs", "kubernetes")
SCHEMES = ("tcp://", "tls://", "ws://", "wss://", "ucx://", "inproc://")
POSSIBLE = (
    "auto, local, none, slurm, pbs, kubernetes, the address of a scheduler (tcp://HOST:PORT or tls://HOST:PORT), "
    "a scheduler file (file:PATH or PATH.json), or a class (package.module:Class)"
)
_TLS = ("tls_ca_file", "tls_cert", "tls_key")
_STARTED = ("workers", "min_workers", "wait")
_QUEUES = (
    *_STARTED,
    *_TLS,
    *("memory", "dashboard", "cores", "processes", "walltime", "queue", "account", "interface", "python"),
    *("job_extra", "job_prologue", "shared", "scratch"),
)
# The settings that each family of clusters has; others must be left out.
APPLIES = {
    "none": ("memory",),
    "auto": ("workers", "memory", "dashboard"),
    "local": ("workers", "memory", "dashboard"),
    "address": ("wait", *_TLS),
    "file": ("wait", *_TLS),
    "queue": _QUEUES,
    "kubernetes": (*_STARTED, "memory", "cores", "name", "namespace", "image", "manifest"),
    "class": (*_STARTED, "keywords"),
}


@dataclass(frozen=True)
class ClusterConfig:
    """Cluster: where to compute.

    Examples
    --------
    >>> ClusterConfig().kind
    'auto'
    >>> ClusterConfig("slurm", workers=4, memory="8GiB", walltime="2:00:00").family
    'queue'
    >>> ClusterConfig("slrum")
    Traceback (most recent call last):
    ValueError: cluster: cluster must be auto, local, ...; got 'slrum'. Did you mean slurm?
    """

    kind: str = setting("auto", option="--cluster", metavar="KIND")
    """Where to compute: none (in this process, on all its cores), local (worker processes on this machine), auto (none
    for small jobs; local for large ones, and where --workers or --dashboard is given), slurm, pbs, kubernetes, the
    address of a scheduler, a scheduler file (PATH.json), or a class (package.module:Class)."""
    workers: int | None = setting(None, least=1)
    """Worker processes to start, or pods; one per core of this machine, 1 elsewhere, by default."""
    memory: int | None = setting(None, least=1, unit="bytes")
    """Memory limit, such as 4GiB: of all workers of the local cluster together (what is free by default), else of one
    job or pod."""
    min_workers: int | None = setting(None, least=1)
    """Let a started cluster shrink to so many workers while there is less to do, and grow to --workers."""
    wait: str | None = setting(None, metavar="DURATION")
    """How long to wait for the first worker, such as 30m; 60s, and 10m where jobs or pods are started, by default."""
    dashboard: bool = False
    """Serve Dask's dashboard on the loopback device, and print its address."""
    tls_ca_file: str | None = setting(None, metavar="FILE")
    """Certificate of the authority that signed those of the cluster (PEM); Dask's configuration by default."""
    tls_cert: str | None = setting(None, metavar="FILE")
    """Certificate to show to the cluster (PEM)."""
    tls_key: str | None = setting(None, metavar="FILE")
    """Its private key (PEM)."""
    cores: int | None = setting(None, least=1)
    """Cores of one job or pod; 1 by default."""
    processes: int | None = setting(None, least=1)
    """Worker processes of one job; one per core by default."""
    walltime: str | None = setting(None, metavar="H:MM:SS")
    """Time limit of a job. Workers leave a little earlier, and others are submitted in their place."""
    queue: str | None = None
    """Queue, or partition, of the jobs."""
    account: str | None = None
    """Account that the jobs are charged to."""
    interface: str | None = None
    """Network interface that scheduler and workers use, such as ib0."""
    python: str | None = setting(None, metavar="FILE")
    """Interpreter of the workers on the nodes; this one by default."""
    job_extra: Names = ()
    """Further directives of the job script, such as --exclusive."""
    job_prologue: Names = ()
    """Lines of the job script before the worker starts, such as 'module load python'."""
    shared: str | None = setting(None, metavar="FOLDER")
    """Folder that this machine and the nodes share, for certificates and logs of the jobs; the current one by
    default."""
    scratch: str | None = setting(None, metavar="FOLDER")
    """Folder on each node for what workers spill; the node's folder for temporary files by default."""
    name: str | None = setting(None, option="--cluster-name", metavar="NAME")
    """DaskCluster to create with --image, or to use if it exists already."""
    namespace: str | None = None
    """Namespace of Kubernetes; that of the current context by default."""
    image: str | None = None
    """Image of scheduler and workers, which has manifold-observer in this version."""
    manifest: str | None = setting(None, metavar="FILE")
    """DaskCluster to create, as a YAML file, in place of --image."""

    def __post_init__(self) -> None:
        """Refuse what no cluster could be made of."""
        _check_types(self)
        check_settings("cluster", self)
        family(self.kind)
        if self.wait is not None:
            seconds(self.wait)
        if self.min_workers is not None and self.min_workers > (self.workers or self.min_workers):
            raise ValueError(
                f"cluster: min_workers must be at most workers={self.workers}; got {self.min_workers}. "
                f"Give min_workers={self.workers}."
            )

    @property
    def family(self) -> str:
        """What kind of cluster it is: auto, none, local, address, file, queue, kubernetes or class."""
        return family(self.kind)

    @property
    def keywords(self) -> Mapping[str, Any]:
        """Keyword settings of a class; a plain configuration has none."""
        return {}

    @classmethod
    def of_table(cls, table: Mapping[str, Any]) -> ClusterConfig:
        """Settings from the table ``[cluster]`` of a TOML file; ``[cluster.options]`` are keywords of a class.

        Examples
        --------
        >>> ClusterConfig.of_table({"kind": "slurm", "memory": "4GiB", "min-workers": 2}).memory
        4294967296
        """
        known = {own.name for own in fields(cls)} - {"options"}
        given = {name.replace("-", "_"): value for name, value in table.items()}
        keywords = given.pop("options", {})
        for name in given:
            if name not in known:
                close = difflib.get_close_matches(name, known, 1)
                raise ValueError(
                    f"cluster: [cluster] must have settings of a cluster; got {name}. "
                    + (f"Did you mean {close[0]}?" if close else f"It may have {', '.join(sorted(known))}, options.")
                )
        if not isinstance(keywords, Mapping):
            raise ValueError(f"cluster: options must be a table of keywords; got {keywords!r}.")
        return cls(**given).with_keywords(keywords) if keywords else cls(**given)

    def with_keywords(self, keywords: Mapping[str, Any]) -> ClusterConfig:
        """The same settings, with keywords of a class."""
        own = {one.name: getattr(self, one.name) for one in fields(ClusterConfig)}
        return WithKeywords(**own, options=tuple(keywords.items()))

    def check_applies(self) -> None:
        """Refuse settings that this kind of cluster does not have.

        Raises
        ------
        ValueError
            Names one of them, and the kinds that have it.
        """
        has = APPLIES[self.family]
        for own in fields(self):
            name = "keywords" if own.name == "options" else own.name
            if name != "kind" and getattr(self, own.name) != own.default and name not in has:
                others = [_IN_WORDS[other] for other, names in APPLIES.items() if name in names and other in _IN_WORDS]
                spelt = "[cluster.options]" if name == "keywords" else f"--{option_name(own).replace('_', '-')}"
                raise ValueError(
                    f"cluster: {spelt} must be left out with --cluster {self.kind}; got "
                    f"{getattr(self, own.name)!r}. It is a setting of {' and '.join(others)}."
                )


@dataclass(frozen=True)
class WithKeywords(ClusterConfig):
    """Cluster: of a class, with keyword settings from a file."""

    options: tuple[tuple[str, Any], ...] = field(default=())
    """Keywords of the class and their values."""

    @property
    def keywords(self) -> Mapping[str, Any]:
        """Keyword settings of the class."""
        return dict(self.options)


_IN_WORDS = {
    "local": "local",
    "address": "addresses",
    "file": "scheduler files",
    "queue": "slurm and pbs",
    "kubernetes": "kubernetes",
    "class": "classes",
}


def family(kind: str) -> str:
    """Which family of clusters a name belongs to.

    Examples
    --------
    >>> [family(kind) for kind in ("pbs", "tls://10.0.0.1:8786", "scheduler.json", "distributed:LocalCluster")]
    ['queue', 'address', 'file', 'class']
    """
    if kind in ("slurm", "pbs"):
        return "queue"
    if kind in NAMES:
        return kind
    if kind.startswith(SCHEMES):
        return "address"
    if kind.startswith("file:") or kind.endswith(".json"):
        return "file"
    module, colon, name = kind.partition(":")
    if colon and name.isidentifier() and all(part.isidentifier() for part in module.split(".")):
        return "class"
    host, colon, port = kind.rpartition(":")
    if colon and host and port.isdigit():  # as Dask takes it, too
        return "address"
    close = difflib.get_close_matches(kind.lower(), NAMES, 1)
    remedy = f" Did you mean {close[0]}?" if close else ""
    raise ValueError(f"cluster: cluster must be {POSSIBLE}; got {kind!r}.{remedy}")


def as_config(cluster: str | ClusterConfig, workers: int | None = None, memory: int | None = None) -> ClusterConfig:
    """Settings of a cluster, of which Python may give the name alone.

    Examples
    --------
    >>> as_config("local", workers=2).workers
    2
    """
    return cluster if isinstance(cluster, ClusterConfig) else ClusterConfig(cluster, workers, memory)


def _check_types(config: ClusterConfig) -> None:
    """Refuse values of another type than the field's; bytes may be text with a unit, names a list."""
    for own in fields(config):
        value, parts = getattr(config, own.name), parts_of(own)
        if own.metadata.get("unit") == "bytes" and isinstance(value, str):
            object.__setattr__(config, own.name, _bytes(own.name, value))
        elif "Names" in parts:
            object.__setattr__(config, own.name, _names(own.name, value))
        elif "str" in parts and not isinstance(value, str) and not (value is None and "None" in parts):
            raise ValueError(f"cluster: {own.name} must be text; got {value!r}.")
        elif parts == {"bool"} and not isinstance(value, bool):
            raise ValueError(f"cluster: {own.name} must be true or false; got {value!r}.")


def seconds(wait: str) -> float:
    """Seconds of a duration with its unit.

    Examples
    --------
    >>> seconds("10m")
    600.0
    """
    from dask.utils import parse_timedelta  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it

    try:
        found = float(parse_timedelta(wait))
    except (ValueError, KeyError, TypeError):
        found = -1.0
    if not 0 <= found < float("inf"):
        raise ValueError(f"cluster: wait must be a duration, such as 10m; got {wait!r}.")
    return found


def _bytes(name: str, value: str) -> int:
    """Bytes that a text names."""
    from dask.utils import parse_bytes  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it

    try:
        return int(parse_bytes(value))
    except ValueError:
        raise ValueError(f"cluster: {name} must be a number of bytes, such as 4GiB; got {value!r}.") from None


def _names(name: str, value: Any) -> tuple[str, ...]:
    """Several texts."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"cluster: {name} must be a list of texts; got {value!r}.")
    return tuple(value)
