"""A scheduler that runs already: by its address, or by the file that it wrote."""

from __future__ import annotations

import json
import socket
import struct
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from distributed import Security
from distributed.comm import get_address_host_port, parse_address
from distributed.versions import VersionMismatchWarning

from .config import ClusterConfig
from .lost import LostClusterError
from .security import client_security
from .workers import GuardedClient

CONNECT_SECONDS = 20
_AGAIN_SECONDS = 0.2
# Each message of Dask begins with the number of its frames.
_HEADER = struct.Struct("<Q")
_MOST_FRAMES = 100


@contextmanager
def running(config: ClusterConfig) -> Iterator[tuple[GuardedClient, str]]:
    """Client of a cluster that is already there, and its address; it outlives the block.

    Raises
    ------
    LostClusterError
        Nothing answers there, or not to this client.
    """
    address = of_file(config.kind) if config.family == "file" else config.kind
    security = client_security(config, address)
    try:
        check_answer(address, security)
        client = guarded_client(address, security=security, timeout=CONNECT_SECONDS)
    except Exception as error:  # what strangers answer is not even always an OSError
        text = " ".join(str(error).split()) or type(error).__name__
        raise LostClusterError(
            f"cluster: no scheduler answers at {address} ({text}). Start one with 'dask scheduler', or take "
            "--cluster local."
        ) from None
    with client:
        yield client, address


def guarded_client(*arguments: object, **options: object) -> GuardedClient:
    """A client without Dask's own table of versions: check_workers says which of them matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VersionMismatchWarning)
        return GuardedClient(*arguments, **options)


def of_file(name: str) -> str:
    """Address in a scheduler file, which ``dask scheduler --scheduler-file`` writes; one that is starting may be late.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "scheduler.json")
    >>> _ = path.write_text('{"address": "tcp://10.0.0.1:8786"}')
    >>> of_file(f"file:{path}")
    'tcp://10.0.0.1:8786'
    """
    path, until = Path(name.removeprefix("file:")), time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            address = json.loads(path.read_text(encoding="utf-8"))["address"]
            if isinstance(address, str):
                return address
            reason = "its address is no text"
        except FileNotFoundError:
            reason = "there is no such file"
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = f"it cannot be read, {' '.join(str(error).split())}"
        if time.monotonic() > until:
            raise LostClusterError(
                f"cluster: a scheduler file must be written by 'dask scheduler --scheduler-file'; got {path} "
                f"({reason}). Start a scheduler with this file, or name the address of one."
            )
        time.sleep(_AGAIN_SECONDS)


def check_answer(address: str, security: Security) -> None:
    """Wait until a scheduler begins to speak, as each does; Dask would wait for ever for one that is silent.

    Raises
    ------
    OSError
        Nobody is there, or something else.
    """
    scheme, _ = parse_address(address)
    if scheme not in ("tcp", "tls"):
        return
    where, until = get_address_host_port(address), time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            said = _first_word(security if scheme == "tls" else None, where, max(until - time.monotonic(), 0.1))
            break
        except ConnectionRefusedError:  # a scheduler may be starting
            if time.monotonic() > until:
                raise
            time.sleep(_AGAIN_SECONDS)
    if len(said) < _HEADER.size or not 0 < _HEADER.unpack(said)[0] <= _MOST_FRAMES:
        raise OSError(f"the server there is not a Dask scheduler: {said!r}")


def _first_word(security: Security | None, where: tuple[str, int], seconds: float) -> bytes:
    """The first bytes that come from there: how many frames Dask's first message has."""
    with ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection(where, timeout=seconds))
        if security is not None:
            context = security.get_connection_args("client")["ssl_context"]
            connection = stack.enter_context(context.wrap_socket(connection))
        return connection.recv(_HEADER.size)
