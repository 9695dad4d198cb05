"""Examples run, and whatever a user can touch is described."""

import ast
import doctest
import importlib
import inspect
import re
from pathlib import Path

import click
import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.cli.commands import cli

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
FOLDERS = ("tasks", "pipeline", "datasets")
# What a user calls besides the public names: simulators and their reading.
SIMULATORS = (
    "sphere.write_sphere",
    "circle.write_circle",
    "melody.write_melody",
    "melody.label_frames",
    "music.solo",
    "music.duet",
)


def modules():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(["manifold_observer", *(part for part in parts if part != "__init__")])


def examples(module):
    return [found for found in doctest.DocTestFinder(exclude_empty=True).find(module) if found.examples]


@pytest.mark.parametrize("name", list(modules()))
def test_examples__run_under_the_installed_name(name, capsys):
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    for found in finder.find(module, extraglobs={"np": np, "xr": xr, "Path": Path}):
        runner.run(found)
    assert runner.failures == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", mo.__all__)
def test_public_names__have_an_example_and_a_line_in_the_reference(name):
    function = getattr(mo, name)
    assert ">>>" in inspect.getdoc(function)
    if inspect.ismodule(function):  # its functions have their own examples
        return
    if inspect.isclass(function):  # of a result: its attributes are described where they stand
        return
    assert f"`{name}`" in API
    parameters = inspect.signature(function).parameters
    for parameter in parameters:
        assert re.search(rf"^(.+, )?\**{parameter}(, .+)?$", inspect.getdoc(function), re.MULTILINE), parameter


@pytest.mark.parametrize("name", SIMULATORS)
def test_simulators__have_an_example(name):
    module, function = name.split(".")
    documented = getattr(importlib.import_module(f"manifold_observer.datasets.simulators.{module}"), function)
    assert ">>>" in inspect.getdoc(documented)


@pytest.mark.parametrize("name", [name for name in modules() if ".tasks." in name])
def test_tasks__every_module_that_computes_has_an_example(name):
    module = importlib.import_module(name)
    functions = [x for x in vars(module).values() if inspect.isfunction(x) and x.__module__ == name]
    assert examples(module) or not functions


@pytest.mark.parametrize("name", list(modules()))
def test_modules__and_their_functions_say_what_they_are(name):
    module = importlib.import_module(name)
    assert inspect.getdoc(module)
    for label, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == name and not label.startswith("_"):
            assert inspect.getdoc(value), f"{name}.{label}"


def test_readme__leads_with_a_picture_and_the_two_commands_and_stays_short():
    lines = README.splitlines()
    assert len(lines) <= 100
    first = [number for number, line in enumerate(lines) if line.startswith(("![", "python3 -m venv"))]
    assert [lines[number][:2] for number in first] == ["![", "py", "py"]
    assert first[-1] < 25


def readme_blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_readme__python_calls_what_exists_with_options_that_exist():
    (block,) = readme_blocks("python")
    calls = [
        node
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "mo"
    ]
    assert {call.func.attr for call in calls} >= {"open_recording", "histogram", "embed", "observe"}
    for call in calls:
        assert call.func.attr in mo.__all__
        parameters = inspect.signature(getattr(mo, call.func.attr)).parameters
        assert {keyword.arg for keyword in call.keywords} <= set(parameters)


def test_readme__commands_and_options_exist():
    lines = [
        line.partition("#")[0].split()
        for block in readme_blocks("bash")
        for line in re.split(r"\n|&&", block)
        if "manifold-observer" in line and "pip install" not in line
    ]
    assert lines
    for words in lines:
        command = cli
        rest = words[1:]
        while isinstance(command, click.Group):
            command, rest = command.commands[rest[0]], rest[1:]
        known = {spelling for parameter in command.params for spelling in parameter.opts} | {"--help"}
        assert {word for word in rest if word.startswith("--")} <= known, words


def every_command(group=cli, name="manifold-observer"):
    yield name, group
    if isinstance(group, click.Group):
        for label, inner in group.commands.items():
            yield from every_command(inner, f"{name} {label}")


@pytest.mark.parametrize(
    ("name", "command"), list(every_command()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_commands__and_their_options_have_help(name, command):
    assert command.help, name
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts[0]}"
