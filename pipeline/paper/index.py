"""The page that shows all pictures of a reproduction, with what was claimed and what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .experiment import Claim
    from .pictures import Rendered

_STYLE = """
:root { color-scheme: light dark; --ink: #222; --quiet: #666; --ground: #fff; --rule: #ddd; --no: #b03a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #ddd; --quiet: #999; --ground: #181a1b; --rule: #444; --no: #ff9c66; } }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem 1rem; font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); }
h1 { font-size: 1.6rem; } h2 { margin-top: 3rem; font-size: 1.3rem; border-bottom: 1px solid var(--rule); }
nav a { margin-right: 1rem; white-space: nowrap; } a { color: inherit; }
figure { margin: 1.5rem 0; } figure img { width: 100%; height: auto; background: #fff; border-radius: 4px; }
figcaption { color: var(--quiet); font-size: .9rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .85rem; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0; border-top: 1px solid var(--rule); }
.no { color: var(--no); font-weight: 600; white-space: nowrap; } .yes { white-space: nowrap; }
"""  # noqa: E501 - a style is read as it stands


def index_html(pictures: Mapping[str, Mapping[str, Rendered]], claims: Mapping[str, Sequence[Claim]]) -> str:
    r"""The page; it loads nothing but the pictures that lie beside it.

    Examples
    --------
    >>> '<h2 id="toy">toy</h2>' in index_html({"toy": {}}, {"toy": []})
    True
    """
    held = sum(claim.holds for own in claims.values() for claim in own)
    n = sum(len(own) for own in claims.values())
    links = "".join(f'<a href="#{escape(name)}">{escape(name)}</a>' for name in pictures)
    body = "".join(_experiment(name, own, claims.get(name, ())) for name, own in pictures.items())
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>The paper, reproduced</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>The paper, reproduced</h1>\n<p>{held} of {n} claims hold. Numbers are in <code>NAME.nc</code>, all "
        f'claims in <a href="claims.md">claims.md</a>.</p>\n<nav>{links}</nav>\n{body}</body>\n</html>\n'
    )


def _experiment(name: str, pictures: Mapping[str, Rendered], claims: Sequence[Claim]) -> str:
    """Pictures, then claims, of one experiment."""
    figures = "".join(_figure(stem, picture) for stem, picture in pictures.items())
    rows = "".join(_row(claim) for claim in claims)
    head = "<tr><th>claim</th><th>measured</th><th>difference [95 % interval], p</th><th>holds</th></tr>"
    table = f'<div class="wide"><table>{head}{rows}</table></div>\n' if rows else ""
    return f'<h2 id="{escape(name)}">{escape(name)}</h2>\n{figures}{table}'


def _figure(stem: str, picture: Rendered) -> str:
    """One picture, its caption, and the files of it for slides and for print."""
    file = escape(stem)
    kinds = " ".join(f'<a href="{file}.{ending}">{ending}</a>' for ending in picture.content)
    return (
        f'<figure id="{file}"><img src="{file}.png" alt="{escape(picture.headline)}" loading="lazy">\n'
        f"<figcaption>{escape(picture.caption)} {kinds}</figcaption></figure>\n"
    )


def _row(claim: Claim) -> str:
    """One claim as a row."""
    verdict = '<td class="yes">yes</td>' if claim.holds else '<td class="no">no</td>'
    cells = "".join(f"<td>{escape(text)}</td>" for text in (claim.claim, claim.measured, claim.test))
    return f"<tr>{cells}{verdict}</tr>"
