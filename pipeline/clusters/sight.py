"""Whether all workers see the files of a run; nothing that they compute would show that one sees only some."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from ..graph.client import session_client
from . import census

_TOKEN = "token"


def check_files(inputs: Sequence[str | os.PathLike[str]], folder: str | os.PathLike[str] | None = None) -> None:
    """Refuse workers of the session's cluster that do not see the inputs, or do not share the folder of the output.

    Without a cluster there is nothing to refuse.

    Parameters
    ----------
    inputs
        Files and folders that workers will read.
    folder
        Where workers will write; a folder with a token is made there for a moment.

    Raises
    ------
    ConnectionError
        Names the worker and the path.

    Examples
    --------
    >>> check_files(["day.wav"], ".")  # without a cluster
    """
    client = session_client()
    if client is None:
        return
    from .lost import LostClusterError  # noqa: PLC0415 - distributed starts slowly
    from .workers import ask, unseen_sentence  # noqa: PLC0415

    files = {path: census.looks(path) for path in map(os.path.abspath, inputs)}
    with _token(folder) as token:
        for number, worker in enumerate(sorted(client.nthreads())):
            (unseen,) = ask(client, "seen", files, token, str(number), workers=[worker]).values()
            if unseen is None and token is not None and not Path(token, str(number)).exists():
                unseen = f"{folder} (what it writes there does not appear here)"
            if unseen is not None:
                raise LostClusterError(unseen_sentence(worker, unseen))


@contextmanager
def sighted(inputs: Sequence[str | os.PathLike[str]], folder: str | os.PathLike[str] | None) -> Iterator[None]:
    """As :func:`check_files`, for workers that join within the block as well: they look before they compute.

    Examples
    --------
    >>> with sighted(["day.wav"], "."):  # without a cluster
    ...     pass
    """
    client = session_client()
    topic = getattr(client, "guest", None)
    if topic is None:  # no cluster, or one that somebody else looks after
        check_files(inputs, folder)
        yield
        return
    job = uuid4().hex
    places = [*inputs, *([] if folder is None else [folder])]
    files = {path: census.looks(path) for path in map(os.path.abspath, places)}
    client.log_event(f"{topic}-files", {"job": job, "files": files})  # first: who joins from now on looks by itself
    try:
        check_files(inputs, folder)
        yield
    finally:
        if client.status == "running":
            with suppress(Exception):  # the cluster may go at any moment
                client.log_event(f"{topic}-files", {"job": job})


@contextmanager
def _token(folder: str | os.PathLike[str] | None) -> Iterator[str | None]:
    """A folder with a file that tells it from all others, for a moment; None in no folder."""
    if folder is None:
        yield None
        return
    token = Path(folder).absolute() / f".manifold-observer-{uuid4().hex}"
    token.mkdir()
    try:
        (token / _TOKEN).touch()
        yield str(token)
    finally:
        shutil.rmtree(token, ignore_errors=True)
