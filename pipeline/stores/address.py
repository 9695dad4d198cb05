"""Addresses such as s3://bucket/key, beside paths: light, for the command line reads them before anything is imported.

Throughout: a *place* is a path or an address; an *address* names an object, or all objects below a key, in a *bucket*
(s3, gs), or behind a web server (http, https). What an address is shown as never holds a password or a signature.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

BUCKETS = ("s3", "gs")
"""Schemes of stores that can be listed and written."""
WEB = ("http", "https")
"""Schemes of servers that are only read."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//?)(.*)", re.DOTALL)


@dataclass(frozen=True)
class Address:
    """A place in an object store, or on a web server.

    Examples
    --------
    >>> night = place("s3://lab/in/night.zarr/")
    >>> str(night), night.name, str(night.parent / "day.npy")
    ('s3://lab/in/night.zarr', 'night.zarr', 's3://lab/in/day.npy')
    >>> str(place("https://me:secret@example.org/a.csv?X-Amz-Signature=0f"))
    'https://example.org/a.csv'
    """

    scheme: str
    host: str
    """Bucket, or name of a server with its port."""
    key: str
    """Names with slashes between, without one at either end."""
    userinfo: str = field(default="", repr=False)
    """User and password, for web servers."""
    query: str = field(default="", repr=False)
    """What follows the question mark, such as a signature, for web servers."""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}/{self.key}"

    def __truediv__(self, name: str) -> Address:
        return replace(self, key=f"{self.key}/{name}".strip("/"))

    @property
    def name(self) -> str:
        """The last name."""
        return self.key.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The last name without its suffix."""
        return Path(self.name).stem

    @property
    def suffix(self) -> str:
        """From the last dot of the name on."""
        return Path(self.name).suffix

    @property
    def parent(self) -> Address:
        """What the last name lies in."""
        return replace(self, key=self.key.rpartition("/")[0])

    @property
    def is_web(self) -> bool:
        """Whether a web server is asked, which cannot list what it has."""
        return self.scheme in WEB

    def with_name(self, name: str) -> Address:
        """Another one beside it."""
        return self.parent / name


Given = str | os.PathLike[str] | Address
"""A path or an address, as callers give it."""


Place = Path | Address
"""Where a recording or a result lies."""


def place(text: str | os.PathLike[str] | Address) -> Place:
    """Read a path or an address.

    Parameters
    ----------
    text
        As the user gives it; a path that was made of an address is understood, too.

    Raises
    ------
    ValueError
        An address of an unknown kind, or one that cannot be used.
    TypeError
        Neither a path nor an address.

    Examples
    --------
    >>> place("day.npy"), place(Path("s3://lab/day.npy"))
    (PosixPath('day.npy'), Address(scheme='s3', host='lab', key='day.npy'))
    """
    if isinstance(text, Address):
        return text
    if not isinstance(text, str | os.PathLike):
        kind = type(text).__name__
        raise TypeError(
            f"place: it must be a path, or an address such as 's3://bucket/night.zarr'; got {kind}. Name the file; "
            "what is in memory already needs no opening."
        )
    plain = os.fspath(text)
    found = _SCHEME.fullmatch(plain)
    if found is None or (found[1].lower() not in (*BUCKETS, *WEB) and (found[2] == "/" or os.path.lexists(plain))):
        return Path(text)
    scheme = found[1].lower()
    if scheme == "file":
        return Path(urllib.parse.unquote(urllib.parse.urlsplit(plain).path))
    if scheme not in (*BUCKETS, *WEB):
        raise ValueError(f"address: the scheme must be s3, gs, http or https; got {scheme}://. Copy the data to one.")
    return _of_web(scheme, found[3]) if scheme in WEB else _of_bucket(scheme, found[3])


def places(given: Given | Sequence[Given]) -> list[Place]:
    """Several places, or a single one.

    Examples
    --------
    >>> places("a.npy") == places(["a.npy"])
    True
    """
    several = [given] if isinstance(given, str | os.PathLike | Address) else given
    return [place(one) for one in several]


def is_address(text: str | os.PathLike[str] | Address) -> bool:
    """Whether a text is an address rather than a path.

    Examples
    --------
    >>> is_address("s3://lab/day.npy"), is_address("day.npy")
    (True, False)
    """
    return isinstance(place(text), Address)


def full_name(where: Place) -> str:
    """What tells a place from all others: an absolute path without links, or an address without secrets.

    Examples
    --------
    >>> full_name(place("s3://lab/day.npy"))
    's3://lab/day.npy'
    """
    return str(where.resolve()) if isinstance(where, Path) else str(where)


def lies_in(inner: Address, outer: Address) -> bool:
    """Whether an address is another, or lies within it.

    Examples
    --------
    >>> lies_in(place("s3://lab/a.zarr/x"), place("s3://lab/a.zarr")), lies_in(place("s3://lab/ab"), place("s3://lab/a"))
    (True, False)
    """
    here, there = ((one.scheme, one.host) for one in (inner, outer))
    return here == there and f"{inner.key}/".startswith(f"{outer.key}/" if outer.key else "")


def _of_bucket(scheme: str, rest: str) -> Address:
    """An address in a bucket: all that follows it is the key."""
    host, _, key = rest.partition("/")
    if "@" in host or ":" in host:
        raise ValueError(
            f"address: {scheme}:// must be followed by the name of a bucket alone; got a user, a password or a port. "
            "Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL instead."
        )
    return Address(scheme, _named(scheme, host), _checked(f"{scheme}://{rest}", key))


def _of_web(scheme: str, rest: str) -> Address:
    """An address on a web server."""
    parts = urllib.parse.urlsplit(f"{scheme}://{rest}")
    userinfo, _, host = parts.netloc.rpartition("@")
    key = _checked(f"{scheme}://{host}{parts.path}", parts.path.lstrip("/"))
    return Address(scheme, _named(scheme, host), key, userinfo, parts.query)


def _named(scheme: str, host: str) -> str:
    """A bucket or server, which must have a name."""
    if not host:
        what = "server" if scheme in WEB else "bucket"
        raise ValueError(f"address: {scheme}:// must be followed by the name of a {what}; got none.")
    return host


def _checked(shown: str, key: str) -> str:
    """A key whose names say where it is, whoever reads them."""
    names = key.rstrip("/").split("/")
    if key and any(name in ("", ".", "..") for name in names):
        raise ValueError(f"address: {shown} must have a name between any two slashes, and no '..'; leave others out.")
    return "/".join(names)
