"""Workers as pods of Kubernetes, by the Dask operator: a DaskCluster that is made for a run, or one that is there."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from distributed.core import Status

from .config import ClusterConfig, seconds
from .lost import LostClusterError
from .place import Place

_WAIT = "10m"
_START_SECONDS = 120
_END_SECONDS = 30
_COMMAND = ("dask-worker", "--nthreads", "1", "--no-dashboard")
_REMEDY = (
    "Look at 'kubectl get daskcluster,pods' and 'kubectl describe pod': the image may be missing, or no node have "
    "room; else give a longer --wait."
)


@contextmanager
def pods(config: ClusterConfig) -> Iterator[tuple[Any, Place]]:
    """A DaskCluster; one that is made here is deleted at the end.

    Raises
    ------
    LostClusterError
        dask-kubernetes, the configuration of Kubernetes, or the operator are missing.
    """
    made = _class()
    options = keywords(config)
    try:
        cluster = made(**options, quiet=True, resource_timeout=_START_SECONDS)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        text = " ".join(str(error).split()) or type(error).__name__
        raise LostClusterError(
            f"cluster: --cluster kubernetes must reach Kubernetes with the Dask operator; got {text}. Check 'kubectl "
            "get daskclusters', $KUBECONFIG, --namespace and --cluster-name."
        ) from None
    try:
        _scale(cluster, config)
        wanted = config.min_workers or config.workers or 1
        yield cluster, Place(f"Kubernetes ({cluster.name})", _REMEDY, wanted, seconds(config.wait or _WAIT))
    finally:
        cluster.close()


def keywords(config: ClusterConfig) -> dict[str, Any]:
    """What dask-kubernetes is given.

    Examples
    --------
    >>> keywords(ClusterConfig("kubernetes", name="nights"))["name"]
    'nights'
    """
    if config.manifest is not None:
        _check_alone(config)
        return {"custom_cluster_spec": manifest(config.manifest), "namespace": config.namespace}
    if config.image is None:
        if config.name is None:
            raise ValueError(
                "cluster: image must be given with --cluster kubernetes; got none. Give --image, --manifest, or the "
                "--cluster-name of a DaskCluster that exists."
            )
        return {"name": config.name, "namespace": config.namespace, "create_mode": _mode("CONNECT_ONLY")}
    return {
        "name": config.name or f"manifold-observer-{uuid4().hex[:8]}",
        "namespace": config.namespace,
        "image": config.image,
        "n_workers": config.min_workers or config.workers or 1,
        "resources": resources(config),
        "worker_command": [*_COMMAND, *(("--memory-limit", str(config.memory)) if config.memory else ())],
        "env": {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        "create_mode": _mode("CREATE_ONLY"),
    }


def resources(config: ClusterConfig) -> dict[str, dict[str, str]]:
    """What a pod asks for, and may take.

    Examples
    --------
    >>> resources(ClusterConfig("kubernetes", image="i", cores=2, memory="4GiB"))["limits"]
    {'cpu': '2', 'memory': '4096Mi'}
    """
    own = {"cpu": str(config.cores or 1)}
    if config.memory is not None:
        own["memory"] = f"{math.ceil(config.memory / 2**20)}Mi"
    return {"requests": dict(own), "limits": dict(own)}


def manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A DaskCluster from a YAML file."""
    import yaml  # noqa: PLC0415 - Dask brings it

    try:
        found = [one for one in yaml.safe_load_all(Path(path).read_text(encoding="utf-8")) if one]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        text = " ".join(str(error).split())
        raise ValueError(f"cluster: manifest must be a YAML file; got {path} ({text}). Give another.") from None
    clusters = [one for one in found if isinstance(one, dict) and one.get("kind") == "DaskCluster"]
    if len(clusters) != 1 or not _named(clusters[0]):
        raise ValueError(
            f"cluster: manifest must hold one DaskCluster with a name; got {len(clusters)} in {path}. "
            "See deploy/ for an example."
        )
    return dict(clusters[0])


def _named(cluster: dict[str, Any]) -> bool:
    """Whether a manifest has a name."""
    about = cluster.get("metadata")
    return isinstance(about, dict) and isinstance(about.get("name"), str)


def _check_alone(config: ClusterConfig) -> None:
    """Refuse settings that a manifest has already."""
    for name in ("name", "image", "cores", "memory"):
        if getattr(config, name) is not None:
            raise ValueError(
                f"cluster: {name} must be left out with manifest={config.manifest!r}; got {getattr(config, name)!r}. "
                "Write it into the manifest."
            )


def _scale(cluster: Any, config: ClusterConfig) -> None:
    """Let the cluster shrink and grow, or give one that was there as many workers as were asked for."""
    if config.min_workers is not None:
        cluster.adapt(minimum=config.min_workers, maximum=config.workers or config.min_workers)
    elif config.workers is not None and config.image is None:
        cluster.scale(config.workers)


def _mode(name: str) -> Any:
    """One of dask-kubernetes' modes; its name where that package is missing."""
    try:
        from dask_kubernetes.operator.kubecluster.kubecluster import CreateMode  # noqa: PLC0415 - of an extra
    except ImportError:
        return name
    return CreateMode[name]


def _class() -> Any:
    """dask-kubernetes' cluster."""
    try:
        from dask_kubernetes.operator import KubeCluster  # noqa: PLC0415 - of an extra
    except ImportError as error:
        raise LostClusterError(
            f"cluster: --cluster kubernetes needs dask-kubernetes ({error}). Install it with: pip "
            "install dask-kubernetes."
        ) from None

    class Cluster(KubeCluster):  # type: ignore[misc]
        """One that leaves nothing behind where it does not start."""

        def __init__(self, **options: Any) -> None:
            try:
                super().__init__(**options)
            except BaseException:
                if getattr(self, "shutdown_on_close", None):  # the resource may be there already
                    with suppress(Exception):
                        self.close(timeout=_END_SECONDS)
                self.status = Status.closed
                raise

    return Cluster
