"""Many modules loaded at once, of which nothing is garbage: Python need not look for any among them.

The standard library's lightest parts only: this is imported before anything else.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Modules from which on it pays.
_MANY = 50


@contextmanager
def loading() -> Iterator[None]:
    """Load modules within the block without collections of garbage; what was loaded is left out of later ones, too.

    A hundred thousand objects live as long as the process. Python would walk through them a dozen times while they are
    made, whenever the process has made a quarter as many others, and three times as it ends: a third of what
    importing takes.

    Examples
    --------
    >>> with loading():
    ...     import json
    >>> gc.isenabled()
    True
    """
    before, enabled = len(sys.modules), gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) - before > _MANY:  # what is garbage already would be kept as well
            gc.freeze()
        if enabled:
            gc.enable()


def leave_at_once() -> None:
    """Have this process end without a last look for garbage; call it before anything else is to happen at its end."""
    atexit.register(gc.freeze)
