"""A cluster of any class that Dask's own interface fits, by its import path: ``package.module:Class``."""

from __future__ import annotations

import importlib
import inspect
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dask
from distributed import LocalCluster, Security
from distributed.deploy import Cluster

from .config import ClusterConfig, seconds
from .local import unheard_loop
from .lost import LostClusterError, root_cause
from .place import Place

_WAIT = "10m"


@contextmanager
def instance(config: ClusterConfig) -> Iterator[tuple[Any, Place]]:
    """A cluster of the class with its keywords, closed at the end.

    Raises
    ------
    ValueError
        There is no such class, or it does not take the keywords.
    LostClusterError
        It does not start.
    """
    made = _class(config.kind)
    options = {**quiet(made), **config.keywords}
    with dask.config.set(_settings(options)), unheard_loop() as loop:
        cluster = _started(made, config.kind, {**options, **({"loop": loop} if "loop" in _parameters(made) else {})})
        try:
            wanted = _scaled(cluster, config)
            yield cluster, Place(config.kind, "Give a longer --wait.", wanted, seconds(config.wait or _WAIT))
        finally:
            cluster.close()


def quiet(made: Any) -> dict[str, Any]:
    """Keywords that a class is given unless the settings have others: its dashboard is not for other machines.

    A local cluster shows certificates, too: whoever can talk to a scheduler can run code as its owner.

    Examples
    --------
    >>> quiet(LocalCluster)["dashboard_address"]
    '127.0.0.1:0'
    """
    own: dict[str, Any] = {}
    if "dashboard_address" in _parameters(made):
        own["dashboard_address"] = "127.0.0.1:0"
    if issubclass(made, LocalCluster):
        own |= {"host": "127.0.0.1", "security": Security.temporary(), "threads_per_worker": 1}
        own["silence_logs"] = logging.CRITICAL  # the command reports a failed task once
    return own


def _settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Dask's settings while the cluster lives."""
    return {"distributed.deploy.lost-worker-timeout": "10 minutes"} if options else {}


def _class(path: str) -> Any:
    """The class that a path names."""
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"cluster: cluster must name a class that can be imported; got {path} ({error}).") from None
    if not (inspect.isclass(found) and issubclass(found, Cluster)):
        raise ValueError(
            f"cluster: cluster must name a class of clusters of Dask (distributed.deploy.Cluster); got {path}. "
            "'distributed:LocalCluster' is one."
        )
    return found


def _parameters(made: Any) -> Mapping[str, inspect.Parameter]:
    """What a class takes."""
    return inspect.signature(made).parameters


def _started(made: Any, path: str, options: dict[str, Any]) -> Any:
    """The cluster, or one sentence."""
    try:
        return made(**options)
    except TypeError as error:
        raise ValueError(f"cluster: options must suit {path}; got {error}. Correct [cluster.options].") from None
    except Exception as error:
        raise LostClusterError(
            f"cluster: {path} must start; got {root_cause(error)}. Check [cluster.options]."
        ) from None


def _scaled(cluster: Any, config: ClusterConfig) -> int:
    """Give the cluster its size, where one is set; workers that should come."""
    if config.min_workers is not None:
        cluster.adapt(minimum=config.min_workers, maximum=config.workers or config.min_workers)
        return config.min_workers
    if config.workers is not None:
        cluster.scale(config.workers)
        return config.workers
    return max(1, len(getattr(cluster, "worker_spec", ())))
