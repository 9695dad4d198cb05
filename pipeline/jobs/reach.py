"""Whether all workers reach what a run reads and writes, here and at addresses."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from ..files.remote import at_hand
from ..graph.compute import session_client
from ..graph.sight import check_files
from ..stores.address import Address, Place
from ..stores.objects import found_in, look, remove, write
from ..stores.refusals import MissingError, StoreError


def check_reach(inputs: Sequence[Place], folder: Place | None = None) -> None:
    """Refuse workers of the session's cluster that do not see the inputs, or cannot write where the output goes.

    Parameters
    ----------
    inputs
        Recordings: files at addresses are copied to this machine first, and workers must see the copies.
    folder
        Where workers will write.

    Raises
    ------
    ConnectionError
        Names the worker and the place.
    """
    client = session_client()
    if client is None:
        return
    hands = [_at_hand(one) for one in inputs]
    check_files([one for one in hands if isinstance(one, Path)], folder if isinstance(folder, Path) else None)
    there = [one for one in hands if isinstance(one, Address)]
    target = folder.parent if isinstance(folder, Address) else None
    if not there and target is None:
        return
    from ..graph.lost import LostClusterError  # noqa: PLC0415 - distributed starts slowly

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
