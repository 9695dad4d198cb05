"""Recordings in stores: Zarr is read where it lies, other formats through a copy on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..graph.shared import warnings_heard
from ..graph.warn import warn
from ..stores.address import Address, Place
from ..stores.copies import local_copy
from ..stores.objects import found_in, look
from ..stores.refusals import MissingError

ZARR_DOCUMENTS = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")
_ZARR = ".zarr"


@contextmanager
def at_hand(given: Place, engine: str | None = None) -> Iterator[Place]:
    """What can be opened for a place: a path as it is, the address of a Zarr store, or the copy of a file.

    Errors and warnings of the block that name the copy name the address instead.

    Parameters
    ----------
    given
        Path or address.
    engine
        Of xarray, where the user has named it.

    Raises
    ------
    MissingError, StoreError
        There is nothing, or it may not be read.
    """
    if isinstance(given, Path):
        yield given
        return
    found = _found(given, zarr=engine == "zarr")
    if isinstance(found, Address):
        yield found
        return
    with _in_the_name_of(given, found):
        yield found


def _found(address: Address, *, zarr: bool) -> Place:
    """A Zarr store, or the copy of a file."""
    first = zarr or address.suffix.lower() == _ZARR or (address.is_web and not address.suffix)
    if first and _is_zarr(address):
        return address
    try:
        return local_copy(address)
    except MissingError:
        if not first and _is_zarr(address):
            return address
        if not address.is_web and next(found_in(address), None) is not None:
            raise MissingError(
                f"open_recording: {address} must name an object, or a Zarr store; got names that begin so, but no "
                "zarr.json or .zgroup. Name one of them."
            ) from None
        raise


def _is_zarr(address: Address) -> bool:
    """Whether Zarr metadata lie below an address."""
    return any(look(address / name) is not None for name in ZARR_DOCUMENTS)


@contextmanager
def _in_the_name_of(address: Address, copy: Path) -> Iterator[None]:
    """Have errors and warnings name the address, which the user knows, and not the copy."""
    with warnings_heard() as heard:
        try:
            yield
        except (ValueError, OSError, ImportError, TypeError) as error:
            if str(copy) not in str(error):
                raise
            raise type(error)(str(error).replace(str(copy), str(address))) from None
    for sentence in heard:
        warn(sentence.replace(str(copy), str(address)))
