"""A lease on a place in an object store: one run at a time, and a dead one's place can be taken.

Throughout: the *lease* is an object beside the output, put on the condition that there is none. Its holder puts it
again every few seconds (*beats*), on the condition that it still is the one that was put last. Who finds a lease waits
whether it changes: clocks are never compared. A run that slept too long and lost its lease finds that out before it
touches the output, so that two runs never write one result.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from typing import Any

import dask
import psutil

from ..graph.host import process_lives, this_machine
from ..graph.warn import warn
from ..stores.address import Address
from ..stores.objects import TakenError, read_tagged, remove, write_new, write_over
from ..stores.refusals import MissingError, StoreError
from .workfolder import BusyError

_BEAT = 10.0
# Beats that must have been missed before a run counts as dead.
_MISSED = 4
_NAMESPACE = "/proc/self/ns/pid"


class Lease:
    """A lease that this process holds."""

    def __init__(self, address: Address, content: dict[str, Any], tag: str) -> None:
        self.address, self.content, self.tag = address, content, tag
        self._lost = False
        self._lock, self._end = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._beat, name="manifold-observer-lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Refuse to go on where another run has taken the lease.

        Raises
        ------
        ValueError
            It has.
        StoreError
            The store does not answer.
        """
        self._renew()
        if self._lost:
            raise ValueError(
                f"store: another run has taken over {_place_of(self.address)}, since this one was not heard of for "
                "too long. Wait for that one, or run this one again."
            )

    def release(self) -> None:
        """Give the lease back, unless it is another's by now."""
        self._end.set()
        self._thread.join()
        with suppress(StoreError, MissingError):
            if not self._lost:
                # On the condition that it is ours; from now on anybody may take it.
                self.tag = write_over(self.address, _text({**self.content, "released": True}), self.tag)
                remove([self.address])

    def _beat(self) -> None:
        """Put the lease again and again; a store that does not answer for a while costs nothing."""
        while not self._end.wait(beat_seconds()):
            with suppress(StoreError):
                self._renew()

    def _renew(self) -> None:
        """Put the lease once more."""
        with self._lock:
            self.content["beat"] += 1
            try:
                self.tag = write_over(self.address, _text(self.content), self.tag)
            except TakenError:
                self._lost = True
            except MissingError:  # whoever released it last has removed it a moment too late
                with suppress(TakenError):
                    self.tag = write_new(self.address, _text(self.content))
                    return
                self._lost = True


def beat_seconds() -> float:
    """Seconds between two beats; a setting of Dask.

    Examples
    --------
    >>> beat_seconds()
    10.0
    """
    return float(dask.config.get("manifold-observer.stores.beat", _BEAT))


@contextmanager
def leased(address: Address, busy: str) -> Iterator[Lease]:
    """Hold a lease for the length of a block.

    Parameters
    ----------
    address
        Of the lease.
    busy
        What to say where another run holds it.

    Raises
    ------
    BusyError
        Another run holds it.
    StoreError
        It could not be put.
    """
    lease = _taken(address, busy)
    try:
        yield lease
    finally:
        lease.release()


def lease_is_dead(address: Address) -> bool:
    """Whether a lease was that of a process of this machine that has ended; of others nothing is known at once."""
    try:
        return _dead_here(read_tagged(address)[0])
    except MissingError:
        return False


def _taken(address: Address, busy: str) -> Lease:
    """Take a lease that nobody holds, or whose holder is dead."""
    content = _content()
    for _ in range(5):
        try:
            tag = write_new(address, _text(content))
        except TakenError:
            with suppress(MissingError):  # released in this moment
                return Lease(address, content, _taken_over(address, content, busy))
            continue
        _check_conditions(address, content)
        return Lease(address, content, tag)
    raise BusyError(busy)


def _taken_over(address: Address, content: dict[str, Any], busy: str) -> str:
    """The tag of a lease taken from a holder that is dead; one that lives is left alone."""
    found, tag = read_tagged(address)
    if not _is_free(found) and (_lives_here(found) or not _stays(address, tag)):
        raise BusyError(busy)
    try:
        return write_over(address, _text(content), tag)
    except TakenError:
        raise BusyError(busy) from None


def _stays(address: Address, tag: str) -> bool:
    """Whether a lease stays as it is for longer than its holder would leave it alone."""
    content, _ = read_tagged(address)
    if _dead_here(content):
        return True
    beat = float(_read(content).get("seconds", _BEAT))
    until = time.monotonic() + _MISSED * beat
    while time.monotonic() < until:
        time.sleep(min(beat, 1.0))
        if read_tagged(address)[1] != tag:
            return False
    return True


def _check_conditions(address: Address, content: dict[str, Any]) -> None:
    """Warn where the store puts whatever the condition: then nothing tells two runs from each other."""
    with suppress(TakenError):
        write_new(address, _text({**content, "beat": -1}))
        warn(
            f"store: the store of {_place_of(address)} does not heed conditions (If-None-Match), so that a second run "
            "to the same place would not be noticed. Start one at a time."
        )


def _content() -> dict[str, Any]:
    """What a lease says of its holder."""
    return {
        "token": secrets.token_hex(8),
        "manifold_observer": version("manifold-observer"),
        "machine": _machine(),
        "pid": os.getpid(),
        "started": psutil.Process().create_time(),
        "seconds": beat_seconds(),
        "beat": 0,
    }


def _machine() -> str:
    """What tells this machine, since it was started, and this container from all others."""
    found = [part for part in this_machine() if part]
    with suppress(OSError):
        found.append(os.readlink(_NAMESPACE))
    return "/".join(found)


def _is_free(content: bytes) -> bool:
    """Whether a holder has released its lease."""
    return bool(_read(content).get("released"))


def _lives_here(content: bytes) -> bool:
    """Whether a lease is held by a process of this machine that lives."""
    return _is_here(_read(content)) and not _dead_here(content)


def _dead_here(content: bytes) -> bool:
    """Whether a lease is held by a process of this machine that has ended."""
    found = _read(content)
    if not _is_here(found):
        return False
    try:
        return not process_lives(int(found["pid"]), float(found["started"]))
    except (ValueError, KeyError, TypeError):
        return False


def _is_here(found: dict[str, Any]) -> bool:
    """Whether a holder is a process of this machine."""
    return found.get("machine") == _machine()


def _read(content: bytes) -> dict[str, Any]:
    """What a lease says; nothing where it is somebody else's object."""
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(content: dict[str, Any]) -> bytes:
    """A lease as an object."""
    return json.dumps(content).encode()


def _place_of(address: Address) -> Address:
    """The output that a lease is for."""
    return address.parent.parent.with_name(address.parent.name)
