"""Single files of a store, copied once to this machine: most formats are read by libraries that want a file.

Throughout: the *cache* is ``$MANIFOLD_OBSERVER_CACHE``, else ``~/.cache/manifold-observer``. A copy lies there under
what changes when the object does (its ETag) and its size, and is looked at before it is used. All processes of this
machine use the same copy; on a folder that all machines share, so do all workers of a cluster.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from .address import Address
from .objects import Found, download, found_beside, look
from .refusals import MissingError, StoreError
from .web import asked, fetch

# Files that belong to one of another name, by its suffix.
_COMPANIONS = {
    ".hea": (".dat", ".d16", ".sig"),
    ".vhdr": (".eeg", ".dat", ".vmrk"),
    ".set": (".fdt",),
    ".cbin": (".ch",),
}
# A disk that is full to the last byte stops everything else.
_SPARE = 1.05


def cache_folder() -> Path:
    """Folder of this machine for what is kept of stores.

    Examples
    --------
    >>> cache_folder().is_absolute()
    True
    """
    given = os.environ.get("MANIFOLD_OBSERVER_CACHE")
    if given:
        return Path(given).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "manifold-observer"


def local_copy(address: Address) -> Path:
    """The copy of a single file on this machine, fetched where there is none; with what belongs to it beside.

    Parameters
    ----------
    address
        Of the file.

    Raises
    ------
    MissingError
        There is no such file.
    StoreError
        It could not be fetched, or there is no room for it.
    """
    return _of_web(address) if address.is_web else _of_bucket(address)


def beside(address: Address) -> list[Address]:
    """Objects of the same stem beside an object, and itself."""
    return [address.with_name(one.name) for one in found_beside(address.parent, f"{address.stem}.")]


def _of_bucket(address: Address) -> Path:
    """The copy of an object."""
    main = look(address)
    if main is None:
        raise MissingError(f"stores: {address} does not exist. Check the address.")
    several = address.suffix.lower() in _COMPANIONS
    companions = found_beside(address.parent, f"{address.stem}.") if several else ()
    found = [*(one for one in companions if one.name != address.name), main]
    folder = _folder(address, found)
    for one in found:
        _kept(folder / one.name, one.size, partial(download, address.with_name(one.name)))
    return folder / address.name


def _of_web(address: Address) -> Path:
    """The copy of a file of a web server."""
    with asked(address) as (about, answer):
        tag = about.tag or secrets.token_hex(8)  # nothing tells whether it has changed
        folder = _folder(address, [Found(address.name, about.size or 0, tag)])
        _kept(folder / address.name, about.size, partial(fetch, address, answer, about))
    for suffix in _COMPANIONS.get(address.suffix.lower(), ()):
        one = address.with_name(address.stem + suffix)
        with suppress(MissingError), asked(one) as (about, answer):
            _kept(folder / one.name, about.size, partial(fetch, one, answer, about))
    return folder / address.name


def _folder(address: Address, found: Sequence[Found]) -> Path:
    """Where copies lie: by the address, and by what changes with the objects."""
    place = hashlib.sha256(str(address).encode()).hexdigest()[:16]
    version = hashlib.sha256(repr(sorted(found)).encode()).hexdigest()[:16]
    return cache_folder() / "objects" / place / version


def _kept(path: Path, size: int | None, get: Callable[[BinaryIO], None]) -> None:
    """Have a file in the cache, whole: it gets its name when it has all its bytes."""
    if path.is_file() and size in (None, path.stat().st_size):
        return
    begun = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _check_room(path, size)
        with begun.open("wb") as file:
            get(file)
        if size is not None and begun.stat().st_size != size:
            raise StoreError(f"stores: {path.name} came with {begun.stat().st_size} of {size} bytes. Run it again.")
        begun.replace(path)
    except (StoreError, MissingError):
        raise
    except OSError as error:
        raise StoreError(
            f"stores: {path.name} could not be copied to {path.parent}: {error.strerror}. Free some space, or set "
            "MANIFOLD_OBSERVER_CACHE to another folder."
        ) from None
    finally:
        begun.unlink(missing_ok=True)


def _check_room(path: Path, size: int | None) -> None:
    """Refuse a copy for which there is no room."""
    free = shutil.disk_usage(path.parent).free
    if size is not None and size * _SPARE > free:
        raise StoreError(
            f"stores: {path.name} must fit into {cache_folder()}; it has {size} bytes, and {free} are free. Free some "
            "space there, or set MANIFOLD_OBSERVER_CACHE to another folder."
        )
