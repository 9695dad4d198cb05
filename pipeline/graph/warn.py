"""Warnings that point at the line of the user's code, however deep they are raised."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

_OURS = tuple(str(Path(__file__).parents[2] / folder / "_").removesuffix("_") for folder in ("pipeline", "tasks"))


def warn(sentence: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside this package that led here.

    Parameters
    ----------
    sentence
        What was found, and what the user can do.
    category
        Class of the warning.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     warn("embed: the dynamics look frozen. Try epsilon='local'.")
    >>> seen[0].category.__name__
    'UserWarning'
    """
    warnings.warn(sentence, category, stacklevel=_levels())


def _levels() -> int:
    """Stack levels from :func:`warn` to the user's code. Python 3.12 has ``skip_file_prefixes`` for it."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame, level = frame.f_back, level + 1
    return level
