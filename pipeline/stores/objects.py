"""Objects of a bucket: read, written, listed and removed, each request bounded, each failure one sentence."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from .address import Address, Place
from .connection import client_of
from .refusals import MissingError, StoreError, has_no_reason, told

AT_ONCE = 16
"""Requests under way at a time."""
_DELETED_AT_ONCE = 1000
_BETWEEN = "|"


class Found(NamedTuple):
    """One object of a list: its name below what was listed, its bytes, and what changes when it does."""

    name: str
    size: int
    tag: str


class TakenError(StoreError):
    """There is an object already, or another one than was expected."""


def read(address: Address) -> bytes:
    """All of an object.

    Raises
    ------
    MissingError
        There is none.
    StoreError
        It could not be read.
    """
    return read_tagged(address)[0]


def read_tagged(address: Address) -> tuple[bytes, str]:
    """All of an object, and what changes when it does."""
    with told(address):
        found = _obstore().get(client_of(address), address.key)
        return bytes(found.bytes()), _tag(found.meta)


def read_all(addresses: Iterable[Address]) -> list[bytes | None]:
    """Many objects, some at a time; None for those that are missing."""
    return _each(_read_or_none, addresses)


def look(address: Address) -> Found | None:
    """Size and tag of an object; None where there is none."""
    try:
        with told(address):
            try:
                meta = _obstore().head(client_of(address), address.key)
            except Exception as error:
                if not has_no_reason(error):
                    raise
                meta = _obstore().get(client_of(address), address.key, options={"range": (0, 1)}).meta
    except MissingError:
        return None
    return Found(address.name, int(meta["size"]), _tag(meta))


def exists(where: Place) -> bool:
    """Whether there is a file, a folder or an object at a place, or anything below it.

    Examples
    --------
    >>> exists(Path("no such file"))
    False
    """
    if isinstance(where, Path):
        return os.path.lexists(where)
    return look(where) is not None or (not where.is_web and next(found_in(where), None) is not None)


def bytes_of(where: Place) -> list[int]:
    """Sizes of all files below a folder, or of all objects below an address.

    Examples
    --------
    >>> bytes_of(Path("no such folder"))
    []
    """
    if isinstance(where, Path):
        return [path.lstat().st_size for path in where.rglob("*") if not path.is_dir()]
    return list(sizes(where).values())


def look_all(addresses: Iterable[Address]) -> list[Found | None]:
    """Size and tag of many objects, some at a time; None for those that are missing."""
    return _each(look, addresses)


def write(address: Address, content: bytes) -> None:
    """Put an object, whatever is there."""
    with told(address, "written"):
        _obstore().put(client_of(address), address.key, content, use_multipart=False)


def write_new(address: Address, content: bytes) -> str:
    """Put an object where there is none; its tag.

    Raises
    ------
    TakenError
        There is one already, with other content.
    """
    return _put(address, content, "create")


def write_over(address: Address, content: bytes, tag: str) -> str:
    """Put an object in the place of the one with a tag; the new tag.

    Raises
    ------
    TakenError
        Another one is there meanwhile, or none.
    """
    e_tag, _, version = tag.partition(_BETWEEN)
    known = {"e_tag": e_tag, "version": version}
    return _put(address, content, {name: value for name, value in known.items() if value})


def upload(path: Path, address: Address) -> None:
    """Put a file as an object, in parts where it is large."""
    with told(address, "written"):
        _obstore().put(client_of(address), address.key, path)


def download(address: Address, file: BinaryIO) -> None:
    """Write an object to an open file, a part at a time."""
    with told(address):
        for part in _obstore().get(client_of(address), address.key).stream():
            file.write(part)


def copy(source: Address, target: Address) -> None:
    """Copy an object within its store, without fetching it."""
    with told(target, "written"):
        _obstore().copy(client_of(source), source.key, target.key)


def copy_all(pairs: Iterable[tuple[Address, Address]]) -> None:
    """Copy many objects, some at a time."""
    _each(lambda pair: copy(*pair), pairs)


def found_in(address: Address, below: str = "") -> Iterator[Found]:
    """All objects below an address, or below a name in it, in the order of their names.

    Raises
    ------
    StoreError
        They could not be listed.
    """
    prefix = f"{address.key}/{below}".strip("/") + "/" if address.key or below else None
    start = len(address.key) + 1 if address.key else 0
    with told(address, "listed"):
        for batch in _obstore().list(client_of(address), prefix, chunk_size=1000):
            for meta in batch:
                yield Found(str(meta["path"])[start:], int(meta["size"]), _tag(meta))


def sizes(address: Address, below: str = "") -> dict[str, int]:
    """Bytes of all objects below an address, or below a name in it, by their names below the address."""
    return {one.name: one.size for one in found_in(address, below)}


def names_in(address: Address) -> tuple[list[str], list[str]]:
    """Names directly below an address: of prefixes, and of objects."""
    with told(address, "listed"):
        found = _obstore().list_with_delimiter(client_of(address), f"{address.key}/" if address.key else None)
    last = (sorted(str(path).rpartition("/")[2] for path in paths) for paths in _paths(found))
    prefixes, objects = last
    return prefixes, objects


def found_beside(address: Address, begins: str) -> Iterator[Found]:
    """Objects directly below an address whose names begin so."""
    with told(address, "listed"):
        found = _obstore().list_with_delimiter(client_of(address), f"{address.key}/" if address.key else None)
    for meta in found["objects"]:
        name = str(meta["path"]).rpartition("/")[2]
        if name.startswith(begins):
            yield Found(name, int(meta["size"]), _tag(meta))


def remove(addresses: Iterable[Address]) -> None:
    """Remove objects; those that are gone already do not matter."""
    waiting = list(addresses)
    for start in range(0, len(waiting), _DELETED_AT_ONCE):
        some = waiting[start : start + _DELETED_AT_ONCE]
        try:
            with told(some[0], "deleted"):
                _obstore().delete(client_of(some[0]), [one.key for one in some])
        except MissingError:
            continue


def _paths(found: Any) -> tuple[list[str], list[str]]:
    """Prefixes and paths of a list."""
    return list(found["common_prefixes"]), [meta["path"] for meta in found["objects"]]


def _tag(meta: Any) -> str:
    """What changes when an object does: its ETag, and its generation, by which Google's conditions go."""
    return f"{meta.get('e_tag') or ''}{_BETWEEN}{meta.get('version') or ''}"


def _put(address: Address, content: bytes, mode: Any) -> str:
    """Put an object on a condition. A request that was repeated may find what its first try has written."""
    try:
        with told(address, "written"):
            done = _obstore().put(client_of(address), address.key, content, mode=mode, use_multipart=False)
            return _tag(done)
    except StoreError as error:
        if not isinstance(error.__context__, _conditions()):
            raise
    except MissingError as error:
        raise TakenError(str(error)) from None
    there, tag = read_tagged(address)
    if there != content:
        raise TakenError(f"stores: {address} exists already, or has been changed by somebody else. Look at it first.")
    return tag


def _read_or_none(address: Address) -> bytes | None:
    """All of an object; None where there is none."""
    try:
        return read(address)
    except MissingError:
        return None


def _each(call: Any, items: Iterable[Any]) -> list[Any]:
    """Call a function for all items, some at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(call, items))


def _conditions() -> tuple[type[Exception], ...]:
    """What says that a condition was not met."""
    errors = importlib.import_module("obstore.exceptions")
    return errors.AlreadyExistsError, errors.PreconditionError


def _obstore() -> Any:
    """The package, which is an extra."""
    return importlib.import_module("obstore")
