"""The command ``doctor``: whether this machine and installation can do what will be asked of them."""

from __future__ import annotations

from typing import Any

import click

from .saying import AS_JSON, answer, is_quiet
from .teaching import Taught

EXAMPLES = (
    "manifold-observer doctor",
    "manifold-observer doctor --quiet  # only what needs something done",
)
_MARKS = {"ok": "ok     ", "warning": "warning", "problem": "problem"}


@click.command("doctor", cls=Taught, examples=EXAMPLES, params=[AS_JSON])
@click.pass_context
def doctor_command(context: click.Context, /, as_json: bool) -> None:
    """Examine this installation and machine: versions, memory, cores, disk, clusters, the terminal, extras.

    Every line is ok, a warning or a problem, with what to do about it. Exits with 1 where something is broken.
    """
    from .examination import examined  # noqa: PLC0415 - slow to import; --help need not wait for it

    found = examined()
    rows = [one._asdict() for one in found]
    shown = [one for one in rows if not is_quiet() or one["state"] != "ok"]
    answer(as_json, {"findings": rows}, lambda: _text(shown), lambda: _text(shown))
    context.exit(1 if any(one.state == "problem" for one in found) else 0)


def _text(rows: list[dict[str, Any]]) -> str:
    """A line for each finding."""
    wide = max((len(one["name"]) for one in rows), default=0)
    lines = []
    for one in rows:
        remedy = f" {one['remedy']}" if one["remedy"] else ""
        lines.append(f"{_MARKS[one['state']]}  {one['name']:<{wide}}  {one['text']}{remedy}")
    return "\n".join(lines)
