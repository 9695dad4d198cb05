"""The page as HTML: all text escaped, no script but its own, and no network."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from pathlib import Path
from typing import Any

from .data import as_json
from .panels import Page, Section

_HERE = Path(__file__).parent
_SCRIPTS = ("numbers.js", "panel.js", "time.js", "maps.js", "page.js")
MARK = "<!-- A report of manifold-observer. -->"
"""Ends every report, so that only such a file is ever replaced."""


def page_html(title: str, facts: list[tuple[str, str]], page: Page, content: dict[str, Any]) -> str:
    """The whole page.

    Parameters
    ----------
    title
        Its heading.
    facts
        What is said first, each with what it is.
    page
        Panels and sections.
    content
        What else the script is given.
    """
    script, style = _script(), (_HERE / "page.css").read_text(encoding="utf-8")
    data = as_json({**content, "arrays": page.arrays, "panels": page.panels})
    listed = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    body = "".join(_section(page, one) for one in page.sections)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script, style)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(title)}</h1><dl>{listed}</dl></header>\n"
        '<nav id="tools" aria-label="View"></nav>\n'
        f"<main>\n{body}</main>\n"
        f'<script type="application/json" id="data">{data}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n{MARK}\n"
    )


def _script() -> str:
    """The page's own program."""
    parts = "".join((_HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}}})();\n'


def _policy(script: str, style: str) -> str:
    """Nothing is loaded from anywhere, and no program runs but this one."""
    return (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    """What a policy calls a text by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _section(page: Page, one: Section) -> str:
    """A section with the places of its panels."""
    places = "".join(
        f'<figure class="panel {escape(page.panels[number]["kind"])}" data-panel="{number}"></figure>'
        for number in one.panels
    )
    grid = f'<div class="{"beside" if one.side_by_side else "below"}">{places}</div>' if places else ""
    notes = "".join(f"<p>{escape(note)}</p>" for note in one.notes)
    code = f"<pre><code>{escape(one.code)}</code></pre>" if one.code else ""
    return f"<section>\n<h2>{escape(one.title)}</h2>\n{grid}{notes}{_table(one.table)}{code}\n</section>\n"


def _table(rows: tuple[tuple[str, ...], ...]) -> str:
    """Rows as a table; the first is its head."""
    if not rows:
        return ""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[1:])
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
