"""docs/watching.md says what there is: exit codes, fields, metrics."""

import ast
import re
from pathlib import Path

import click
import pytest

from manifold_observer.pipeline.cli.commands import cli
from manifold_observer.pipeline.cli.outcome import CODES, outcome
from manifold_observer.pipeline.clusters.lost import LostClusterError
from manifold_observer.pipeline.graph.ending import Interrupted
from manifold_observer.pipeline.jobs.events import KINDS
from manifold_observer.pipeline.watch.counts import FAMILIES, PREFIX
from manifold_observer.pipeline.watch.logs import FIELDS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "watching.md").read_text(encoding="utf-8")


def rows(heading):
    """Cells of the first table after a heading, below its head."""
    lines = PAGE.partition(f"## {heading}\n")[2].splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("|---"))
    for line in lines[first + 1 :]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


def test_codes__are_those_of_the_page():
    table = {int(row[0].strip("| ")): row[1] for row in rows("Exit codes")}
    assert set(table) == set(CODES)
    for code, meaning in CODES.items():
        assert table[code].startswith(meaning)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("x"), 1),
        (OSError("x"), 1),
        (ZeroDivisionError("x"), 1),
        (click.UsageError("x"), 2),
        (click.BadParameter("x"), 2),
        (LostClusterError("x"), 4),
        (Interrupted(1), 129),
        (Interrupted(2), 130),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
        (Interrupted(15), 143),
    ],
)
def test_codes__are_those_of_the_program(error, code):
    assert outcome(error).code == code
    assert code in CODES


def test_codes__no_other_one_stands_in_the_program():
    """Classes that choose their code, and what is given to exit()."""
    for path in (ROOT / "pipeline").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(target, ast.Name) and target.id == "exit_code" for target in targets):
                    assert node.value.value in CODES, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "exit":
                assert all(arg.value in CODES for arg in node.args if isinstance(arg, ast.Constant)), path


def test_help__names_the_codes():
    for code in CODES:
        assert re.search(rf"\b{code}\b", cli.epilog)


def test_fields__are_those_of_a_line():
    named = {name for row in rows("Logs") for name in re.findall(r"`(\w+)`", row[0])}
    assert named == {"time", "level", "logger", *FIELDS}
    (kinds,) = (row[1] for row in rows("Logs") if "`event`" in row[0])
    assert set(re.findall(r"`(\w+)`", kinds)) == {*KINDS, "log"}


def test_metrics__are_those_of_the_page():
    told = [(row[0].strip("| `"), row[1], row[2].strip("| ")) for row in rows("Metrics")]
    label = {family.name: f"{{{family.label}}}" if family.label else "" for family in FAMILIES}
    assert told == [(f"{PREFIX}_{one.name}{label[one.name]}", one.kind, one.text) for one in FAMILIES]
