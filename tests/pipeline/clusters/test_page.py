"""docs/clusters.md: its files are read, its commands exist, its table has every setting of every kind."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from manifold_observer.pipeline.cli.commands import cli
from manifold_observer.pipeline.clusters import config as settings
from manifold_observer.pipeline.clusters.config import APPLIES, ClusterConfig

PAGE = (Path(__file__).parents[3] / "docs" / "clusters.md").read_text(encoding="utf-8")
FAMILIES = {"slurm": "queue", "pbs": "queue"}


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def table(heading):
    section = PAGE.partition(heading)[2]
    rows = re.search(r"\|---.*?\n((?:\|.*\n)+)", section)[1].splitlines()
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


@pytest.mark.parametrize("text", blocks("toml"))
def test_page__its_tables_are_settings_of_their_kind(text):
    made = ClusterConfig.of_table(tomllib.loads(text)["cluster"])
    made.check_applies()
    assert made.kind in text


@pytest.mark.parametrize("line", [line for block in blocks("bash") for line in block.splitlines()])
def test_page__its_commands_have_settings_of_their_kind(line):
    name, command, *words = line.split()
    assert (name, command) == ("manifold-observer", "run")
    with cli.commands[command].make_context(command, words) as context:
        given = {word.removeprefix("--").replace("-", "_") for word in words if word.startswith("--")}
    known = {settings.option_name(own): own.name for own in fields(ClusterConfig)}
    assert given <= set(known)
    ClusterConfig(**{known[name]: context.params[name] for name in given}).check_applies()


def test_page__lists_every_setting_with_its_kinds():
    listed = {}
    for names, kinds, *_ in table("## Settings"):
        for name in re.findall(r"`([^`]+)`", names):
            found = {FAMILIES.get(kind, kind) for kind in kinds.split(", ") if kind}
            listed["keywords" if name == "[cluster.options]" else name] = found
    assert set(listed) == {own.name for own in fields(ClusterConfig)} | {"keywords"}
    for name, kinds in listed.items():
        assert kinds == {family for family, names in APPLIES.items() if name in names}, name


def test_page__lists_every_kind():
    (names, *_), *_ = zip(*table("# Clusters"), strict=False), None
    text = " ".join(names)
    for name in settings.NAMES:
        assert f"`{name}`" in text
