"""Zarr stores at an address: opened by whoever reads them, with credentials of their own."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from .address import Address, Place
from .connection import client_of
from .refusals import told

_KNOWN: dict[tuple[str, str], dict[str, bytes | None]] = {}
_NOTHING: dict[str, bytes | None] = {}


def zarr_target(place: Place) -> Any:
    """What zarr and xarray open for a place: the path itself, or a store.

    Examples
    --------
    >>> zarr_target(Path("day.zarr"))
    'day.zarr'
    """
    return str(place) if isinstance(place, Path) else store_at(place)


def store_at(address: Address) -> Any:
    """The Zarr store below an address. Pickled, it is the address alone."""
    return _kind()(address)


@contextmanager
def written_alone(address: Address) -> Iterator[None]:
    """Remember the metadata below an address for the length of a block, in which this process alone writes there.

    Zarr asks for the same document again and again, and each time a store takes its time to answer.
    """
    _KNOWN[address.host, f"{address.key}/"] = {}
    try:
        yield
    finally:
        del _KNOWN[address.host, f"{address.key}/"]


def _known(address: Address, key: str) -> tuple[dict[str, bytes | None], str]:
    """What is remembered around a key, and the whole key; nothing but for metadata."""
    full = f"{address.key}/{key}"
    if _KNOWN and key.rpartition("/")[2] == "zarr.json":
        for (host, prefix), known in _KNOWN.items():
            if host == address.host and full.startswith(prefix):
                return known, full
    return _NOTHING, full


@cache
def _kind() -> Any:
    """The class of such stores; zarr and obstore are imported when the first one is made."""
    base = importlib.import_module("zarr.storage").ObjectStore

    class AddressStore(base):  # type: ignore[misc, valid-type]
        """An object store whose failures are sentences."""

        def __init__(self, address: Address, *, read_only: bool | None = None) -> None:
            super().__init__(
                client_of(address, inside=True), read_only=address.is_web if read_only is None else read_only
            )
            self.address = address

        def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
            return _again, (self.address, self.read_only)

        def __eq__(self, other: object) -> bool:
            return type(other) is type(self) and (self.address, self.read_only) == (other.address, other.read_only)

        __hash__ = None  # type: ignore[assignment]

        def __str__(self) -> str:
            return str(self.address)

        def __dask_tokenize__(self) -> tuple[str, str]:
            return "manifold-observer", str(self.address)

        def with_read_only(self, read_only: bool = False) -> Any:
            return type(self)(self.address, read_only=read_only)

        @property
        def supports_listing(self) -> bool:
            return not self.address.is_web

        async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
            known, full = _known(self.address, key)
            if full in known and byte_range is None:
                content = known[full]
                return None if content is None else prototype.buffer.from_bytes(content)
            with told(self.address / key):
                found = await super().get(key, prototype, byte_range)
            if known is not _NOTHING and byte_range is None:
                known[full] = None if found is None else found.to_bytes()
            return found

        async def exists(self, key: str) -> bool:
            with told(self.address / key):
                return bool(await super().exists(key))

        async def set(self, key: str, value: Any) -> None:
            known, full = _known(self.address, key)
            known.pop(full, None)
            with told(self.address / key, "written"):
                await super().set(key, value)
            if known is not _NOTHING:
                known[full] = value.to_bytes()

        async def set_if_not_exists(self, key: str, value: Any) -> None:
            known, full = _known(self.address, key)
            if known.get(full) is None:
                known.pop(full, None)
                with told(self.address / key, "written"):
                    await super().set_if_not_exists(key, value)

        async def _told(self, found: Any) -> AsyncIterator[str]:
            with told(self.address, "listed"):
                async for name in found:
                    yield name

        def list(self) -> Any:
            return self._told(super().list())

        def list_prefix(self, prefix: str) -> Any:
            return self._told(super().list_prefix(prefix))

        def list_dir(self, prefix: str) -> Any:
            return self._told(super().list_dir(prefix))

    return AddressStore


def _again(address: Address, read_only: bool) -> Any:
    """A store in another process."""
    return _kind()(address, read_only=read_only)
