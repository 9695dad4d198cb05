"""Clients of object stores and web servers, made anew in each process from an address and the environment.

No client travels to a worker: an address does, and whoever reads it has credentials of its own.
"""

from __future__ import annotations

import base64
import importlib
import os
import urllib.parse
from datetime import timedelta
from functools import lru_cache
from typing import Any

from .address import Address
from .credentials import by_program, gs_settings, s3_settings

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_VARIABLES = ("AWS_", "GOOGLE_", "HOME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")


def client_of(address: Address, *, inside: bool = False) -> Any:
    """The client for an address.

    Parameters
    ----------
    address
        A place in a bucket, or on a web server.
    inside
        Whether names are those below the address; else they are keys of the bucket, or paths of the server.

    Raises
    ------
    ImportError
        obstore is missing.
    ValueError
        The settings cannot be used.
    """
    root = address.key if inside else ""
    # A client keeps what the environment said when it was made, and its threads stay behind in a fork.
    variables = {name: text for name, text in os.environ.items() if name.upper().startswith(_VARIABLES)}
    return _client(address.scheme, address.host, root, address.userinfo, patience(), os.getpid(), repr(variables))


def patience() -> tuple[int, float]:
    """Times that a request is repeated, and seconds until it is given up; settings of Dask.

    Examples
    --------
    >>> patience()
    (5, 60.0)
    """
    from dask import config  # noqa: PLC0415 - Dask starts slowly; a corpus on a disk with nothing to do need not wait

    retries = int(config.get("manifold-observer.stores.retries", 5))
    return retries, float(config.get("manifold-observer.stores.timeout", 60))


@lru_cache(maxsize=64)
def _client(
    scheme: str, host: str, root: str, userinfo: str, patient: tuple[int, float], process: int, variables: str
) -> Any:
    """One client for as long as nothing changes."""
    kinds = _kinds()
    how = {"client_options": _options(patient[1]), "retry_config": _retries(*patient)}
    try:
        if scheme == "s3":
            return _of_s3(kinds, host, root, how)
        if scheme == "gs":
            return _of_gs(kinds, host, root, how)
        return _of_web(kinds, f"{scheme}://{host}/{urllib.parse.quote(urllib.parse.unquote(root))}", userinfo, how)
    except kinds_error() as error:
        why = " ".join(str(error).partition("Debug source")[0].split()).rstrip(".")
        raise ValueError(
            f"stores: the settings for {scheme}://{host} must be usable; got: {why}. Check the AWS_ or GOOGLE_ "
            "variables of the environment."
        ) from None


def _kinds() -> Any:
    """The kinds of client that obstore has."""
    try:
        return importlib.import_module("obstore.store")
    except ImportError:
        raise ImportError(
            "stores: addresses such as s3:// need the package obstore, which is missing. Install it with: "
            "pip install obstore."
        ) from None


def kinds_error() -> type[Exception]:
    """What obstore raises."""
    found: type[Exception] = importlib.import_module("obstore.exceptions").BaseError
    return found


def _of_s3(kinds: Any, bucket: str, root: str, how: dict[str, Any]) -> Any:
    """A client of S3, or of what speaks like it."""
    settings = s3_settings()
    endpoint = urllib.parse.urlsplit(settings.get("endpoint", ""))
    # Who names a server on this machine by http has chosen it.
    if endpoint.scheme == "http" and endpoint.hostname in _LOOPBACK:
        how = {**how, "client_options": {**how["client_options"], "allow_http": True}}
    if by_program():
        how = {**how, "credential_provider": _asked_by_boto3()}
    return kinds.S3Store(bucket, prefix=root or None, config=settings, **how)


def _of_gs(kinds: Any, bucket: str, root: str, how: dict[str, Any]) -> Any:
    """A client of Google's storage."""
    if os.environ.get("GOOGLE_ALLOW_HTTP", "").lower() == "true":  # of a server that stands in for it
        how = {**how, "client_options": {**how["client_options"], "allow_http": True}}
    return kinds.GCSStore(bucket, prefix=root or None, config=gs_settings(), **how)


def _asked_by_boto3() -> Any:
    """Credentials as Amazon's own package finds them."""
    try:
        return importlib.import_module("obstore.auth.boto3").Boto3CredentialProvider()
    except ImportError:
        raise ImportError(
            "stores: the AWS profile takes its credentials from a login or a role, which needs the package boto3. "
            "Install it with: pip install boto3, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        ) from None


def _of_web(kinds: Any, url: str, userinfo: str, how: dict[str, Any]) -> Any:
    """A client of a web server."""
    options = {**how["client_options"], "allow_http": True}
    if userinfo:
        options["default_headers"] = {"authorization": basic(userinfo)}
    return kinds.HTTPStore.from_url(url, client_options=options, retry_config=how["retry_config"])


def basic(userinfo: str) -> str:
    """User and password as a header.

    Examples
    --------
    >>> basic("me:s%40t")
    'Basic bWU6c0B0'
    """
    return "Basic " + base64.b64encode(urllib.parse.unquote(userinfo).encode()).decode()


def _options(timeout: float) -> dict[str, Any]:
    """How long a request may take."""
    return {"timeout": timedelta(seconds=timeout), "connect_timeout": timedelta(seconds=min(5.0, timeout))}


def _retries(number: int, timeout: float) -> dict[str, Any]:
    """How often a request is repeated."""
    backoff = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2}
    return {"max_retries": number, "retry_timeout": timedelta(seconds=timeout), "backoff": backoff}
