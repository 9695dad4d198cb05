"""What a result that is no table of numbers looks like in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable


def card(title: str, rows: Iterable[tuple[str, str]], note: str = "") -> str:
    """A small table in HTML, in the colours of the page; everything is escaped.

    Parameters
    ----------
    title
        Stands above the rows.
    rows
        Name and value of each.
    note
        Stands below them.

    Examples
    --------
    >>> "<td>a &lt; b</td>" in card("Plan", [("why", "a < b")])
    True
    """
    lines = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
        for name, value in rows
    )
    below = f"<div style='margin-top:.5em'>{html.escape(note)}</div>" if note else ""
    return (
        "<div style='border:1px solid currentColor;border-radius:.5em;padding:.5em 1em;display:inline-block'>"
        f"<strong>{html.escape(title)}</strong><table>{lines}</table>{below}</div>"
    )
