"""Where a run computes: a local cluster of processes, or one that is already there."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import dask
from dask.system import cpu_count
from distributed import Client, Security
from distributed.comm import get_address_host_port, parse_address
from distributed.versions import VersionMismatchWarning

from ..graph.limits import worker_limits
from ..graph.machine import free_memory
from .local import local_cluster
from .lost import LostClusterError, explained
from .workers import GuardedClient, check_workers, guarded

_CONNECT_SECONDS = 20
# Memory that is worth a worker of its own.
_WORKER_BYTES = 2**29
_AGAIN_SECONDS = 0.2
# Each message of Dask begins with the number of its frames.
_HEADER = struct.Struct("<Q")
_MOST_FRAMES = 100
_TLS_SETTINGS = (
    "the files DASK_DISTRIBUTED__COMM__TLS__CA_FILE, DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and "
    "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY (or distributed.comm.tls.ca-file, .client.cert and .client.key in "
    "~/.config/dask/distributed.yaml)"
)


@contextmanager
def connect(cluster: str = "local", *, n_workers: int | None = None, memory: int | None = None) -> Iterator[Client]:
    """Connect to a cluster for the length of a block, with one BLAS thread a worker thread.

    Parameters
    ----------
    cluster
        ``"local"`` starts one process a core here, which nobody else can use; otherwise the address of a
        scheduler, such as ``"tcp://10.0.0.1:8786"``. Its workers must run the same versions and see the same files.
    n_workers
        Processes of a local cluster; one a core by default, fewer where memory is short.
    memory
        Bytes that the workers of a local cluster may take together; what is free here by default, and at most.

    Yields
    ------
    The client. A local cluster is closed at the end; on others nothing is left behind.

    Raises
    ------
    ConnectionError
        Nothing answers at the address, or its workers cannot be used, or are lost during the block.
    ValueError
        A worker's share of the memory is less than it takes to start.
    """
    if cluster != "local" and memory is not None:
        raise ValueError(
            f"cluster: --memory must be left out with --cluster {cluster}; got {memory} bytes. The workers of a "
            "cluster that runs already have their own limits."
        )
    if cluster != "local":
        with _client(cluster) as client, _explained(client, cluster):
            check_workers(client, cluster)
            with guarded(client, cluster):
                yield client
        return
    workers = n_workers or max(1, min(cpu_count(), free_memory() // _WORKER_BYTES))
    with (
        local_cluster(workers, worker_limits(workers, memory).limit) as local,
        GuardedClient(local, direct_to_workers=True) as client,  # results need no detour by the scheduler
        _explained(client, "this machine"),
        guarded(client, "this machine"),
    ):
        yield client


@contextmanager
def _explained(client: GuardedClient, address: str) -> Iterator[None]:
    """Whatever Dask raises within the block ends in one sentence."""
    try:
        yield
    except (Exception, asyncio.CancelledError) as error:
        better = explained(error, client, address, client.trouble)
        if better is error:
            raise
        for note in getattr(error, "__notes__", []):  # from where the same command resumes
            better.add_note(note)
        raise better from error


@contextmanager
def _client(address: str) -> Iterator[GuardedClient]:
    """Client of a cluster that is already there."""
    _check_certificates(address)
    try:
        _check_answer(address)
        with warnings.catch_warnings():
            # Dask's own table of versions; check_workers says which of them matter.
            warnings.simplefilter("ignore", VersionMismatchWarning)
            client = GuardedClient(address, timeout=_CONNECT_SECONDS)
    except Exception as error:  # what strangers answer is not even always an OSError
        text = " ".join(str(error).split()) or type(error).__name__
        raise LostClusterError(
            f"cluster: no scheduler answers at {address} ({text}). Start one with 'dask scheduler', or take "
            "--cluster local."
        ) from None
    with client:
        yield client


def _check_answer(address: str) -> None:
    """Wait until a scheduler begins to speak, as each does; Dask would wait for ever for one that is silent.

    Raises
    ------
    OSError
        Nobody is there, or something else.
    """
    scheme, _ = parse_address(address)
    if scheme not in ("tcp", "tls"):
        return
    where, until = get_address_host_port(address), time.monotonic() + _CONNECT_SECONDS
    while True:
        try:
            said = _first_word(scheme, where, max(until - time.monotonic(), 0.1))
            break
        except ConnectionRefusedError:  # a scheduler may be starting
            if time.monotonic() > until:
                raise
            time.sleep(_AGAIN_SECONDS)
    if len(said) < _HEADER.size or not 0 < _HEADER.unpack(said)[0] <= _MOST_FRAMES:
        raise OSError(f"the server there is not a Dask scheduler: {said!r}")


def _first_word(scheme: str, where: tuple[str, int], seconds: float) -> bytes:
    """The first bytes that come from there: how many frames Dask's first message has."""
    with ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection(where, timeout=seconds))
        if scheme == "tls":
            context = Security().get_connection_args("client")["ssl_context"]
            connection = stack.enter_context(context.wrap_socket(connection))
        return connection.recv(_HEADER.size)


def _check_certificates(address: str) -> None:
    """Refuse an encrypted address where no certificate is set."""
    if not address.startswith("tls://"):
        return
    names = ("ca-file", "client.cert", "client.key")
    missing = [name for name in names if not dask.config.get(f"distributed.comm.tls.{name}", None)]
    if missing:
        raise LostClusterError(
            f"cluster: {address} must be opened with certificates; got none in distributed.comm.tls."
            f"{', '.join(missing)}. Name {_TLS_SETTINGS}; see deploy/README.md."
        )
