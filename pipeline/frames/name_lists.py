r"""Several names in one text, with commas between, as options, files of settings and repeated commands have them.

A name that holds a comma or a quote, or begins or ends with a space, stands in double quotes, doubled within.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# One name and the comma after it; a quote that is not closed before a comma, or the end, is a part of the name.
_ITEM = re.compile(r'\s*"((?:[^"]|"")*)"\s*(?:,|\Z)|([^,]*)(?:,|\Z)')


def split_names(text: str) -> tuple[str, ...]:
    """The names in a text; those without quotes lose the spaces around them, and empty ones are left out.

    Examples
    --------
    >>> split_names('left, "arm, right",')
    ('left', 'arm, right')
    """
    names, place = [], 0
    while place < len(text):
        found = _ITEM.match(text, place)
        assert found is not None  # the second form matches anything
        quoted, plain = found.groups()
        if quoted is not None:
            names.append(quoted.replace('""', '"'))
        elif plain.strip():
            names.append(plain.strip())
        place = found.end()
    return tuple(names)


def joined_names(names: Iterable[object]) -> str:
    """The text of several names, from which :func:`split_names` makes the same.

    Examples
    --------
    >>> joined_names(["left", "arm, right"])
    'left,"arm, right"'
    """
    return ",".join(_spelt(str(name)) for name in names)


def _spelt(name: str) -> str:
    """A name, in quotes where it needs them."""
    if name and name == name.strip() and "," not in name and '"' not in name:
        return name
    return '"' + name.replace('"', '""') + '"'
