"""What a look found, for people: a card of a dozen lines that ends with the command to type."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from typing import Any

from ..graph.durations import duration, size

_INDENT = "  "
_LABEL = 10
_PREFIX = re.compile(r"^(?:open_recording|csv|edf|npy|mat|nwb|audio|wfdb|spikes|arrow|recording|look): ")


def text_of(found: dict[str, Any]) -> str:
    """The card of one file.

    Parameters
    ----------
    found
        As the command's ``--json`` has it.
    """
    length = "" if found["bytes"] is None else f", {size(found['bytes'])}"
    lines = [f"{found['file']}: {found['kind']}{length}", ""]
    for label, text in _rows(found):
        lines += _row(label, text)
    if found["questions"]:
        lines += ["", "Opening it asks:" if len(found["questions"]) > 1 else "Opening it asks one thing:"]
        for number, one in enumerate(found["questions"], 1):
            lines += _question(number, one, found["file"])
    lines += ["", "Next:", f"{_INDENT}{found['next']}"]
    return "\n".join([*lines, "or, to have settings chosen on a sample of it first:", f"{_INDENT}{found['tune']}"])


def _rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Labels and texts of what is in the file."""
    about = "about " if found["seen"] < 1 else ""
    names = found["channels"]
    shown = ", ".join(names[:6]) + (f", ... {names[-1]}" if len(names) > 6 else "")
    noun = "channel" if len(names) == 1 else "channels"
    rows = [("samples", f"{about}{found['samples']:,} of {len(names)} {noun} ({found['dtype']}): {shown}")]
    rows.append(("clock", _clock(found, about)))
    rows += [("labels", f"{name}: {_counts(counts)}") for name, counts in found["labels"].items()]
    rows.append(("values", _values(found)))
    if found["opened"]:
        rows.append(("opened", found["opened"]))
    rows += [("warning", sentence) for sentence in found["warnings"]]
    if found["seen"] < 1:
        rows.append(("looked at", f"the first {found['seen']:.1%} of the table; numbers of all of it are estimates"))
    rows.append(("features", found["why"]))
    return rows


def _clock(found: dict[str, Any], about: str) -> str:
    """Rate, length and gaps."""
    if found["rate"] is None:
        gaps = f"; {found['gaps']} gaps" if found["gaps"] else ""
        return f"none: give --sampling-rate if you know it, else samples are numbered{gaps}"
    where = f" (column {found['clock_name']!r}, unit assumed)" if found["clock_name"] else ""
    start = f", from {found['start']}" if found["start"] else ""
    gaps = "no gap"
    if found["gaps"]:
        count = f"{found['gaps']} gap{'s' if found['gaps'] > 1 else ''}"
        gaps = f"{count}, the longest {duration(found['longest_gap'])}"
    return f"{found['rate']:g} Hz{where}, {about}{duration(found['seconds'])}{start}, {gaps}"


def _values(found: dict[str, Any]) -> str:
    """Range, NaN and constant channels."""
    if not found["looked_at"]:
        return "not looked at"
    parts = []
    if found["least"] is not None:
        parts.append(f"{found['least']:.4g} to {found['largest']:.4g}")
    missing, constant = found["missing"], found["constant"]
    parts.append("no NaN" if not missing else "NaN in " + _some([f"{n} ({v:.2%})" for n, v in missing.items()]))
    if constant:
        parts.append("constant: " + _some([f"{name} ({value:g})" for name, value in constant.items()]))
    return f"{', '.join(parts)} (in {found['looked_at']:,} samples)"


def _counts(counts: dict[str, int]) -> str:
    """How often each label was seen."""
    return _some([f"{name or '(empty)'} {number:,}" for name, number in counts.items()]) + "; set aside, never fed in"


def _some(texts: list[str]) -> str:
    """The first of some texts."""
    return ", ".join(texts[:6]) + (f" and {len(texts) - 6} more" if len(texts) > 6 else "")


def _question(number: int, one: dict[str, Any], file: str) -> list[str]:
    """A question, its likely answer and the others."""
    sentence = _about_it(_PREFIX.sub("", one["question"]), file)
    taken = f"Taken below: {one['taken']}" if one["taken"] else "Answer it with one of these options."
    head = f"{_INDENT}{number}. "
    return [*wrapped(head, sentence), *wrapped(" " * len(head), taken)]


def _about_it(sentence: str, file: str) -> str:
    """A sentence about a file that the card names already."""
    for name in (os.path.abspath(file), file):
        if sentence.startswith(f"{name} "):
            sentence = f"it{sentence.removeprefix(name)}"
        sentence = sentence.removeprefix(f"{name}: ").replace(name, "it")
    return sentence[:1].upper() + sentence[1:]


def _row(label: str, text: str) -> list[str]:
    """One row of the card."""
    return wrapped(f"{_INDENT}{label:<{_LABEL}}", text)


def wrapped(head: str, text: str) -> list[str]:
    """Text that begins after a head, and stays below its beginning, as wide as the terminal.

    Examples
    --------
    >>> wrapped("  clock  ", "128 Hz")
    ['  clock  128 Hz']
    """
    wide = min(shutil.get_terminal_size((80, 24)).columns, 120)
    indent = " " * len(head)
    return textwrap.wrap(text, wide, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False) or [head]
