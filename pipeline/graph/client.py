"""Which distributed Client this session has, if any."""

from __future__ import annotations

import sys
from typing import Any

from .shared import is_in_this_thread


def on_cluster() -> bool:
    """Whether a distributed Client is this session's default (without importing distributed)."""
    return session_client() is not None


def session_client() -> Any:
    """The distributed Client that is this session's default, None without one; distributed is not imported for it."""
    if "distributed" not in sys.modules or is_in_this_thread():
        return None
    from distributed import default_client  # noqa: PLC0415

    try:
        return default_client()
    except ValueError:
        return None
