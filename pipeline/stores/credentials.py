"""Who asks an object store: the environment, or a profile of AWS's own files; else nobody, that is anonymous access."""

from __future__ import annotations

import configparser
import os
from pathlib import Path

_KEY, _SECRET = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
# With one of these, the client asks Amazon's services on the machine for short-lived credentials.
_ROLES = (
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
)
_VENDOR = Path("/sys/devices/virtual/dmi/id/sys_vendor")
_OF_PROFILE = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "region": "region",
    "endpoint_url": "endpoint",
}
_BY_PROGRAM = ("sso_session", "sso_start_url", "role_arn", "credential_process", "web_identity_token_file")


def s3_settings() -> dict[str, str]:
    """Settings of an S3 client that the environment does not give it by itself.

    Returns
    -------
    Keys, region and endpoint of the profile, where the environment has none; ``skip_signature`` where there are no
    credentials at all.

    Raises
    ------
    ValueError
        ``AWS_PROFILE`` names a profile that does not exist.

    Examples
    --------
    >>> isinstance(s3_settings(), dict)
    True
    """
    profile = _profile()
    found = {ours: profile[theirs] for theirs, ours in _OF_PROFILE.items() if profile.get(theirs)}
    if os.environ.get(_KEY):
        for name in ("access_key_id", "secret_access_key", "session_token"):
            found.pop(name, None)
    if os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        found.pop("region", None)
    if endpoint := os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"):
        found["endpoint"] = endpoint
    if not os.environ.get(_KEY) and "access_key_id" not in found and not _has_role(profile):
        found["skip_signature"] = "true"
    return found


def gs_settings() -> dict[str, str]:
    """Settings of a client of Google's storage that the environment does not give it by itself."""
    named = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH", "GOOGLE_SERVICE_ACCOUNT_KEY")
    own = Path("~/.config/gcloud/application_default_credentials.json").expanduser()
    given = any(os.environ.get(name) for name in (*named, "GOOGLE_APPLICATION_CREDENTIALS")) or own.is_file()
    return {} if given or "Google" in _vendor() else {"skip_signature": "true"}


def by_program() -> bool:
    """Whether credentials of the profile come from a program or a service that only Amazon's own package can ask."""
    profile = _profile()
    return not os.environ.get(_KEY) and "aws_access_key_id" not in profile and any(n in profile for n in _BY_PROGRAM)


def _has_role(profile: dict[str, str]) -> bool:
    """Whether credentials can be had from a service, or a program."""
    given = any(os.environ.get(name) for name in _ROLES) or any(name in profile for name in _BY_PROGRAM)
    asked = os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() != "true"
    return given or (asked and "Amazon" in _vendor())


def _vendor() -> str:
    """Who made this machine, which tells those that have a service for credentials."""
    try:
        return _VENDOR.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _profile() -> dict[str, str]:
    """What AWS's two files say of the profile that is asked for."""
    name = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE")
    found = {
        **_section("AWS_CONFIG_FILE", "config", name),
        **_section("AWS_SHARED_CREDENTIALS_FILE", "credentials", name),
    }
    if name and not found:
        raise ValueError(
            f"stores: AWS_PROFILE must name a profile in ~/.aws/config or ~/.aws/credentials; got {name!r}. "
            "Add the profile, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    return found


def _section(variable: str, file: str, name: str | None) -> dict[str, str]:
    """One profile of one file; nothing where it cannot be read."""
    path = Path(os.environ.get(variable) or f"~/.aws/{file}").expanduser()
    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError):
        return {}
    for section in (f"profile {name}", name) if name else ("default",):
        if section is not None and parser.has_section(section):
            return dict(parser.items(section))
    return {}
