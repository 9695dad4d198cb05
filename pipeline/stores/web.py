"""Files of web servers, fetched whole: signatures, redirects and passwords as the address gives them."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

from .address import Address
from .connection import basic, patience
from .refusals import MissingError, StoreError, UnavailableError

_PART = 2**20
_AGAIN = (429, 500, 502, 503, 504)
_BROKEN = (http.client.HTTPException, ConnectionError, TimeoutError)
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0


class Answer(NamedTuple):
    """What a server says of a file: its bytes where it tells, and what changes when the file does."""

    size: int | None
    tag: str


@contextmanager
def asked(address: Address) -> Iterator[tuple[Answer, Any]]:
    """Ask for a file; its content is there to be read.

    Raises
    ------
    MissingError
        There is none.
    StoreError
        It could not be had.
    """
    with _answering(address, {}) as answer:
        yield _about(answer), answer


def fetch(address: Address, answer: Any, about: Answer, file: BinaryIO) -> None:
    """Write all of a file, from an answer that was begun; where it breaks off, the rest is asked for.

    Raises
    ------
    StoreError
        It broke off too often, or the file has changed meanwhile.
    """
    done, attempt = _copied(answer, file), 0
    while about.size is not None and done < about.size:
        attempt += 1
        if attempt > patience()[0]:
            raise StoreError(
                f"stores: {address} could not be read: it broke off after {done} of {about.size} bytes. Run it again."
            )
        time.sleep(_wait(attempt))
        with _answering(address, {"Range": f"bytes={done}-"}) as rest:
            if _about(rest).tag != about.tag:
                raise StoreError(f"stores: {address} must not change while it is read; it did. Run the command again.")
            if rest.status != http.client.PARTIAL_CONTENT:
                file.seek(0)
                file.truncate()
                done = 0
            done += _copied(rest, file)


def _copied(answer: Any, file: BinaryIO) -> int:
    """Copy an answer for as long as it comes; its bytes."""
    done = 0
    try:
        while part := answer.read(_PART):
            file.write(part)
            done += len(part)
    except http.client.IncompleteRead as broken:
        file.write(broken.partial)
        done += len(broken.partial)
    except _BROKEN:
        pass
    return done


def _answering(address: Address, headers: dict[str, str]) -> Any:
    """The answer to a request, which is repeated a few times."""
    if address.userinfo:
        headers = {**headers, "Authorization": basic(address.userinfo)}
    query = f"?{address.query}" if address.query else ""
    url = urllib.request.quote(f"{address}{query}", safe="%/:=&?~#+!$,;'@()*[]")  # type: ignore[attr-defined]
    retries, timeout = patience()
    why = ""
    for attempt in range(retries + 1):
        if attempt:
            time.sleep(_wait(attempt))
        try:
            return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=min(timeout, 30))
        except urllib.error.HTTPError as error:
            error.close()
            if error.code not in _AGAIN:
                raise _refused(address, error) from None
            why = f"the server answered {error.code} again and again"
        except (urllib.error.URLError, *_BROKEN) as error:
            reason = getattr(error, "reason", error)
            why = f"no answer ({getattr(reason, 'strerror', None) or reason})"
    raise UnavailableError(f"stores: {address} could not be read: {why}. Check the address, or run it again later.")


def _refused(address: Address, error: urllib.error.HTTPError) -> OSError:
    """Why a server does not give a file."""
    if error.code in (404, 410):
        return MissingError(f"stores: {address} does not exist. Check the address.")
    if error.code in (401, 403):
        return StoreError(
            f"stores: {address} may not be read (the server answered {error.code}). Put user and password, or a "
            "signature that is still valid, into the address."
        )
    return StoreError(f"stores: {address} could not be read: the server answered {error.code}. Check the address.")


def _about(answer: Any) -> Answer:
    """What the headers say of the whole file."""
    headers = answer.headers
    total = (headers.get("Content-Range") or "").rpartition("/")[2] or headers.get("Content-Length") or ""
    packed = headers.get("Content-Encoding", "identity") != "identity"
    size = int(total) if total.isdigit() and not packed else None
    return Answer(size, headers.get("ETag") or headers.get("Last-Modified") or "")


def _wait(attempt: int) -> float:
    """Seconds before a request is repeated."""
    return float(min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT))
