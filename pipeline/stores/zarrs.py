"""Zarr stores at an address: opened by whoever reads them, with credentials of their own."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable
from functools import cache
from pathlib import Path
from typing import Any

from .address import Address, Place
from .connection import client_of
from .refusals import told


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

        async def get(self, key: str, *more: Any, **options: Any) -> Any:
            with told(self.address / key):
                return await super().get(key, *more, **options)

        async def exists(self, key: str) -> bool:
            with told(self.address / key):
                return bool(await super().exists(key))

        async def set(self, key: str, value: Any) -> None:
            with told(self.address / key, "written"):
                await super().set(key, value)

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
