"""Certificates: those of the settings, else of Dask's configuration; refused in one sentence where they cannot do."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any

import dask
from distributed import Security

from .config import ClusterConfig
from .lost import LostClusterError

_SETTINGS = {"tls_ca_file": "ca-file", "tls_cert": "client.cert", "tls_key": "client.key"}
_OPTIONS = "--tls-ca-file, --tls-cert and --tls-key"
_IN_DASK = (
    "DASK_DISTRIBUTED__COMM__TLS__CA_FILE, DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and "
    "DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY (or distributed.comm.tls.ca-file, .client.cert and .client.key in "
    "~/.config/dask/distributed.yaml)"
)


def client_security(config: ClusterConfig, address: str) -> Security:
    """What a client shows to the scheduler at an address, and by what it knows it.

    Raises
    ------
    LostClusterError
        The address asks for certificates and there are none, or they are no certificates.
    ValueError
        Certificates are given for an address that is not encrypted.
    """
    given = {name: getattr(config, name) for name in _SETTINGS if getattr(config, name) is not None}
    if not address.startswith(("tls://", "wss://")):
        if given:
            name = next(iter(given))
            raise ValueError(
                f"cluster: {name} must be left out with an address that is not encrypted; got {given[name]!r} for "
                f"{address}. Take tls://{address.partition('://')[2] or address}."
            )
        return Security()
    found = {name: given.get(name) or _of_dask(name) for name in _SETTINGS}
    _check_all(found, address)
    security = _security(found, "client")
    _check_readable(security, address)
    return security


def cluster_security(config: ClusterConfig) -> Security | None:
    """Certificates for scheduler, workers and client alike, where all three files are named; None for none.

    Raises
    ------
    ValueError
        Only some are named.
    """
    given = {name: getattr(config, name) for name in _SETTINGS}
    if not any(given.values()):
        return None
    missing = [f"--{name.replace('_', '-')}" for name, value in given.items() if value is None]
    if missing:
        raise ValueError(f"cluster: certificates must be given by {_OPTIONS}; got no {', '.join(missing)}. Add it.")
    security = _security(given, "client", "scheduler", "worker")
    _check_readable(security, config.kind)
    return security


def temporary_security(folder: Path) -> Security:
    """Certificates that are made for one cluster, as files that scheduler, workers and client read.

    Examples
    --------
    >>> import tempfile
    >>> temporary_security(Path(tempfile.mkdtemp())).require_encryption
    True
    """
    made = Security.temporary().get_tls_config_for_role("worker")
    files = {}
    for name in ("ca_file", "cert", "key"):
        path = folder / f"{name}.pem"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(made[name])
        files[f"tls_{name}"] = str(path)
    return _security(files, "client", "scheduler", "worker")


def _of_dask(name: str) -> str | None:
    """A certificate of Dask's configuration."""
    value: str | None = dask.config.get(f"distributed.comm.tls.{_SETTINGS[name]}", None)
    return value


def _security(files: dict[str, Any], *roles: str) -> Security:
    """Dask's object for some roles."""
    own = {f"tls_{role}_{part}": files[f"tls_{part}"] for role in roles for part in ("cert", "key")}
    return Security(tls_ca_file=files["tls_ca_file"], require_encryption=True, **own)


def _check_all(found: dict[str, str | None], address: str) -> None:
    """Refuse an encrypted address where some certificate is not known."""
    missing = [_SETTINGS[name] for name, value in found.items() if not value]
    if missing:
        raise LostClusterError(
            f"cluster: {address} must be opened with certificates; got none in distributed.comm.tls."
            f"{', '.join(missing)}. Give {_OPTIONS}, or name the files in {_IN_DASK}; see docs/clusters.md."
        )


def _check_readable(security: Security, where: str) -> None:
    """Refuse files that are not there, are no certificates, or do not belong together."""
    try:
        security.get_connection_args("client")
    except (OSError, ssl.SSLError, ValueError) as error:
        names = [getattr(security, name) for name in ("tls_ca_file", "tls_client_cert", "tls_client_key")]
        files = ", ".join("(in memory)" if "\n" in name else name for name in names)
        text = " ".join(str(error).split())
        raise LostClusterError(
            f"cluster: {where} must be opened with certificates in PEM files; got {files} ({text}). Check {_OPTIONS}."
        ) from None
