"""Whether all workers reach what a run reads and writes, here and at addresses."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..clusters.sight import check_files, sighted
from ..files.remote import at_hand
from ..graph.client import session_client
from ..stores.address import Address, Place
from ..stores.objects import found_in, look, remove, write
from ..stores.refusals import MissingError, StoreError


def check_reach(inputs: Sequence[Place]) -> None:
    """Refuse workers of the session's cluster that do not see the inputs.

    Parameters
    ----------
    inputs
        Recordings: files at addresses are copied to this machine first, and workers must see the copies.

    Raises
    ------
    ConnectionError
        Names the worker and the place.
    """
    if session_client() is None:
        return
    hands = [_at_hand(one) for one in inputs]
    check_files([one for one in hands if isinstance(one, Path)])
    _check_stores(hands, None)


@contextmanager
def reaching(inputs: Sequence[Place], folder: Place) -> Iterator[None]:
    """As :func:`check_reach`, and for workers that join within the block; they must also write where the output goes.

    Parameters
    ----------
    inputs
        Recordings.
    folder
        Where workers will write.

    Raises
    ------
    ConnectionError
        Names the worker and the place.
    """
    if session_client() is None:
        yield
        return
    hands = [_at_hand(one) for one in inputs]
    with sighted([one for one in hands if isinstance(one, Path)], folder if isinstance(folder, Path) else None):
        _check_stores(hands, folder)
        yield


def _check_stores(inputs: Sequence[Place], folder: Place | None) -> None:
    """Refuse workers that cannot read addresses, or write beside one."""
    there = [one for one in inputs if isinstance(one, Address)]
    target = folder.parent if isinstance(folder, Address) else None
    client = session_client()
    if client is None or (not there and target is None):
        return
    from ..clusters.lost import LostClusterError  # noqa: PLC0415 - distributed starts slowly

    for worker, why in client.run(unreached, there, target).items():
        if why is not None:
            raise LostClusterError(
                f"cluster: all workers must reach the same stores; {worker} says: {why} Give every worker the same "
                "credentials and endpoint in its environment."
            )


def unreached(inputs: Sequence[Address], target: Address | None) -> str | None:
    """Why this process cannot read some addresses, or write below another; None where it can."""
    try:
        for address in inputs:
            if not address.is_web:
                next(found_in(address), None)
            elif look(address / "zarr.json") is None and look(address / ".zmetadata") is None:
                return f"{address} has no metadata."
        if target is not None:
            probe = target / f"reach-{secrets.token_hex(8)}"
            write(probe, b"")
            remove([probe])
    except (StoreError, MissingError, ImportError, ValueError) as error:
        return str(error)
    return None


def _at_hand(given: Place) -> Place:
    """What is read for a recording."""
    if isinstance(given, Path):
        return given
    with at_hand(given) as here:
        return here
