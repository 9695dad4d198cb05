"""Durations and sizes for people, in one form wherever they are printed."""

from __future__ import annotations

from itertools import pairwise

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def duration(seconds: float) -> str:
    """Seconds in words, with the two leading units.

    Examples
    --------
    >>> duration(0.254), duration(7.31), duration(75), duration(9000), duration(200_000)
    ('0.25 s', '7 s', '1 min 15 s', '2 h 30 min', '2 d 7 h')
    """
    if 0 < seconds < 0.001:
        return "under 1 ms"
    if seconds < 4.95:
        return f"{seconds:.2g} s" if seconds < 0.95 else f"{seconds:.1f} s"
    whole = round(seconds)
    for (large, name), (small, small_name) in pairwise(_UNITS):
        if whole >= large:
            rest = whole % large // small
            return f"{whole // large} {name}" + (f" {rest} {small_name}" if rest else "")
    return f"{whole} s"


def size(number: float) -> str:
    """Bytes in words.

    Examples
    --------
    >>> size(512), size(130_970), size(3 * 2**40)
    ('512 B', '127.9 KiB', '3.0 TiB')
    """
    unit = "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024 or unit == "TiB":
            break
        number /= 1024
    return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
