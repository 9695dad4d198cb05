"""What a function returns, written here as sentences, in the form that numpydoc reads: a type with text below."""

import inspect
import re
from itertools import pairwise
from typing import Any

from sphinx.application import Sphinx

_UNDERLINE = re.compile(r"-{3,}$")
# What numpydoc calls a reference, so that no two pages have one of the same name.
_LABEL = re.compile(r"\bR[0-9a-f]{8,}-(\w+)(?=[\]<])")


def setup(app: Sphinx) -> dict[str, Any]:
    """Come before numpydoc, which has the priority 500."""
    app.connect("autodoc-process-docstring", _sentences_of_returns, priority=400)
    app.connect("html-page-context", _short_labels)
    return {"version": "1", "parallel_read_safe": True}


def _sentences_of_returns(_app: Sphinx, _what: str, _name: str, obj: Any, _options: Any, lines: list[str]) -> None:
    """Indent the text of "Returns" below the annotated type; numpydoc would take each of its lines for a type."""
    heads = [number for number in range(len(lines) - 1) if _UNDERLINE.match(lines[number + 1]) and lines[number]]
    for number, following in pairwise([*heads, len(lines)]):
        text = lines[number + 2 : following]
        if lines[number] in ("Returns", "Yields") and not any(line.startswith(" ") for line in text):
            lines[number + 2 : following] = [_returned(obj), *(f"    {line}".rstrip() for line in text)]
            return


def _returned(obj: Any) -> str:
    """What a function is annotated to return."""
    found = inspect.get_annotations(obj).get("return", "") if callable(obj) else ""
    return found if isinstance(found, str) else getattr(found, "__name__", str(found))


def _short_labels(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Show references as the docstrings number them."""
    if "body" in context:
        context["body"] = _LABEL.sub(r"\1", context["body"])
