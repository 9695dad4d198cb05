"""One name for one thing."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# A word, the rooms in which it is looked for, and the files there that may use it.
WORDS = {
    "forecast": (("embedding", "jobs", "cli"), ()),  # it is a Plan
    "piece": (("jobs", "paper", "cli"), ("music",)),  # a Stretch of a stream, a Work of the paper
}


def names(path):
    """Every name that a file gives to something: modules, functions, classes, arguments, variables, fields."""
    yield path.stem
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


@pytest.mark.parametrize("word", WORDS)
def test_names__a_word_means_one_thing(word):
    rooms, allowed = WORDS[word]
    files = [path for room in rooms for path in (ROOT / "pipeline" / room).glob("*.py")]
    assert files
    files = [path for path in files if not any(part in path.name for part in allowed)]
    assert not {f"{path.relative_to(ROOT)}: {name}" for path in files for name in names(path) if word in name.lower()}
