"""Formulas as MathML, which browsers draw themselves: no script, no fonts, no network."""

import re
from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml, pick_math_environment
from docutils.utils.math.mathml_elements import MathElement
from sphinx.application import Sphinx

# Of \frac12 TeX makes a half; docutils would take 12 for the numerator, and what follows for the denominator.
_DIGITS = re.compile(r"(\\[td]?frac)\s*(\d)(\d|[A-Za-z])")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer with Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def _inline(writer: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    writer.body.append(_mathml(node.astext(), block=False))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    """Write a formula of its own, with its number where it has one."""
    number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    anchor = f' id="{escape(node["ids"][0])}"' if node.get("ids") else ""
    writer.body.append(f'<div class="math"{anchor}>{number}{_mathml(node.astext(), block=True)}</div>\n')
    raise nodes.SkipNode


def _mathml(text: str, *, block: bool) -> str:
    """A formula as MathML; what is no formula raises, which ends the build."""
    if not block or pick_math_environment(text) == "equation*":
        parsed = text
    else:
        parsed = rf"\begin{{{pick_math_environment(text)}}}{text}\end{{{pick_math_environment(text)}}}"
    parsed = _DIGITS.sub(r"\1{\2}{\3}", parsed)
    mathml: MathElement | str = latex2mathml.tex2mathml(parsed, as_block=block)
    return str(mathml)
