"""What an object store answers, as one sentence that says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from .address import Address

_CODE = re.compile(r"<Code>(\w+)</Code>")
_STATUS = re.compile(r"status code: (\d{3})")
_BUSY = ("SlowDown", "InternalError", "ServiceUnavailable")
_UNAVAILABLE = ("500", "502", "503", "504", "429")


class StoreError(OSError):
    """An object store could not be used; the message says why, and what to do."""


class UnavailableError(StoreError):
    """A store does not answer, or says that it cannot now: the same may succeed another time."""


class MissingError(FileNotFoundError):
    """There is no such object; the message says which."""


@contextmanager
def told(address: Address, doing: str = "read") -> Iterator[None]:
    """Turn what a client says into a sentence.

    Parameters
    ----------
    address
        What was asked for.
    doing
        What was done: read, written, listed, deleted.

    Raises
    ------
    StoreError, MissingError
        One sentence.
    """
    try:
        yield
    except (StoreError, MissingError):
        raise
    except Exception as error:
        if not _is_clients(error):
            raise
        raise refusal(address, doing, error) from None


def refusal(address: Address, doing: str, error: Exception) -> OSError:
    """What the user can do about an error of a client."""
    said = str(error).partition("Debug source")[0]
    code = (_CODE.search(said) or ["", ""])[1]
    status = (_STATUS.search(said) or ["", ""])[1]
    bucket = f"{address.scheme}://{address.host}"
    if code == "NoSuchBucket":
        return StoreError(f"stores: the bucket {bucket} does not exist. Check its name, or make it first.")
    if _of_region(said, code):
        return StoreError(
            f"stores: {bucket} is in another region than was asked{_region_in(said)}. Set AWS_REGION to its region."
        )
    if isinstance(error, FileNotFoundError) or status == "404":
        return MissingError(f"stores: {address} does not exist. Check the address.")
    if status in ("401", "403") or type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError"):
        return StoreError(_denied(address, doing, code))
    passing = status in _UNAVAILABLE or code in _BUSY or _is_silent(said)
    return (UnavailableError if passing else StoreError)(_failed(address, doing, said, status, code))


def has_no_reason(error: Exception) -> bool:
    """Whether a request was refused without a word why, as those for the headers alone are."""
    said = str(error)
    return _CODE.search(said) is None and re.search(r"status code: (?:400|401|403)|redirect", said) is not None


def _is_clients(error: Exception) -> bool:
    """Whether an error is the client's, and not that of whoever uses it."""
    return type(error).__module__.startswith("obstore") or isinstance(error, OSError)


def _of_region(said: str, code: str) -> bool:
    """Whether the store says that its region is another."""
    return code in ("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException") or (
        "redirect without LOCATION" in said
    )


def _region_in(said: str) -> str:
    """The region that the store names, in brackets."""
    named = re.search(r"expecting '([\w-]+)'|<Region>([\w-]+)</Region>", said)
    return f" (it says {named[1] or named[2]})" if named else ""


def _denied(address: Address, doing: str, code: str) -> str:
    """Why somebody may not do something."""
    if code in ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"):
        return (
            f"stores: {address} could not be {doing}: the credentials are not valid ({code}). Check "
            "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or AWS_PROFILE."
        )
    if address.is_web:
        return f"stores: {address} may not be {doing}. Put user and password, or the signature, into the address."
    what = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
    if address.scheme == "gs":
        what = "set GOOGLE_APPLICATION_CREDENTIALS"
    return (
        f"stores: {address} may not be {doing} with these credentials, or without any. Ask for permission, or {what}."
    )


def _is_silent(said: str) -> bool:
    """Whether there was no answer at all."""
    silent = any(words in said for words in ("error sending request", "HTTP error", "timed out", "timeout"))
    return silent and "builder error" not in said


def _failed(address: Address, doing: str, said: str, status: str, code: str) -> str:
    """Why something failed that is nobody's permission."""
    if "BadScheme" in said or "builder error" in said:
        return (
            f"stores: {address} could not be {doing}: the endpoint is plain http. Give one with https, or set "
            "AWS_ALLOW_HTTP=true."
        )
    if status in _UNAVAILABLE or code in _BUSY:
        return (
            f"stores: {address} could not be {doing}: the server answered {status or code} again and again. Run the "
            "same command again later."
        )
    if _is_silent(said):
        where = "the address" if address.is_web else "AWS_ENDPOINT_URL and the network"
        return f"stores: {address} could not be {doing}: no answer in time. Check {where}, or run it again later."
    why = " ".join(said.split())[:200].rstrip(".")
    return f"stores: {address} could not be {doing}: {why}. Check the address and the settings of the store."
