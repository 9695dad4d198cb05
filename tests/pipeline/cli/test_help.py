"""Help teaches: examples first, each of which is parsed by the command, then options and exit codes."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from manifold_observer.pipeline.cli import commands as command
from manifold_observer.pipeline.cli.outcome import CODES
from manifold_observer.pipeline.cli.teaching import Taught, TaughtGroup


def every_command(group=command.cli, words=()):
    yield words, group
    if isinstance(group, click.Group):
        for name, one in group.commands.items():
            yield from every_command(one, (*words, name))


COMMANDS = {" ".join(words): one for words, one in every_command() if not one.hidden}
EXAMPLES = [(name, line) for name, one in COMMANDS.items() for line in one.examples]


def helped(*words):
    result = CliRunner().invoke(command.cli, [*words, "--help"], prog_name="manifold-observer", terminal_width=100)
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("name", COMMANDS)
def test_help__has_examples_before_options_and_then_exit_codes(name):
    assert isinstance(COMMANDS[name], Taught | TaughtGroup)
    text = helped(*name.split())
    assert COMMANDS[name].examples
    assert 0 < text.index("Examples:\n") < text.index("Options:\n")
    assert "\\b" not in text
    assert re.search(r"-q, --quiet +Print only errors", text)
    assert re.search(r"-v, --verbose ", text)
    if isinstance(COMMANDS[name], Taught):
        listed = re.findall(r"^  (\d+)  ", text.partition("Exit codes:\n")[2], re.MULTILINE)
        assert listed == [str(code) for code in COMMANDS[name].codes]
        assert set(COMMANDS[name].codes) <= set(CODES)
    for line in COMMANDS[name].examples:
        assert f"  {line}\n" in text  # not wrapped


@pytest.mark.parametrize(("name", "line"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_help__examples_are_parsed(name, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for made in ("week.toml", "emg.toml"):
        Path(made).write_text("n-modes = 3\n")
    within = re.fullmatch(r'eval "\$\((.*)\)"  #.*', line)
    words = shlex.split(within[1] if within else line, comments=True)
    assert words[0] == "manifold-observer"
    words = words[1 : words.index(">")] if ">" in words else words[1:]
    found, rest = command.cli, words
    while isinstance(found, click.Group):
        found, rest = found.commands[rest[0]], rest[1:]
    found.make_context(words[0], list(rest)).close()
    assert name in ("", *(" ".join(words[:n]) for n in (1, 2))) or line.startswith("manifold-observer run")


def test_help__names_the_command_as_it_was_called():
    result = CliRunner().invoke(command.cli, ["look", "--help"], prog_name="dask manifold-observer")
    assert "\n  dask manifold-observer look song.wav\n" in result.output
    assert "\n  manifold-observer" not in result.output


@pytest.mark.parametrize("before", [True, False])
def test_quiet__stands_before_or_after_the_command(console, tmp_path, monkeypatch, before):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.random.default_rng(0).normal(size=(80, 3)).cumsum(axis=0))
    words = ["look", "a.npy", "--sampling-rate", "10"]
    code, text, err = console(*(["-q", *words] if before else [*words, "-q"]))
    assert (code, err) == (0, "")
    assert text.startswith("manifold-observer run a.npy ")
    assert text.count("\n") == 1
    assert console(*words)[1].count("\n") > 5  # the next one is as loud as ever


@pytest.mark.slow
def test_quiet__warnings_are_not_printed_but_told_to_machines(console, tmp_path, monkeypatch, in_this_process):
    import json  # noqa: PLC0415
    import warnings  # noqa: PLC0415

    monkeypatch.chdir(tmp_path)
    np.save("noise.npy", np.random.default_rng(0).normal(size=(200, 3)))
    words = ("run", "noise.npy", "--features", "identity", "--n-modes", "2", "--cluster", "none")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        loud = console(*words)[2]
        code, text, err = console(*words, "--overwrite", "-q", "--json")
    assert "Warning: embed: the coordinates foretell" in loud
    assert (code, err) == (0, "")
    assert any("the coordinates foretell" in one for one in json.loads(text)["warnings"])


def test_metavars__as_shown_are_accepted_when_typed(tmp_path):
    """Every choice that help shows for an option is one that the option takes."""
    for name, one in COMMANDS.items():
        for option in one.params:
            if not isinstance(option, click.Option) or option.is_flag:
                continue
            context = click.Context(one, info_name=name)
            shown = (option.make_metavar(context) or "").strip("[]")
            for word in shown.split("|"):
                if word and word == word.lower() and word.isalpha():
                    option.type_cast_value(context, (word,) if option.multiple else word)


@pytest.mark.slow
def test_completion__below_dask(tmp_path):
    dask = Path(sys.executable).parent / "dask"
    if not dask.exists():
        pytest.skip("dask has no command here")
    ask = {"PATH": "/usr/bin:/bin", "_DASK_COMPLETE": "bash_complete"}

    def offered(line):
        words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - (not line.endswith(" ")))}
        done = subprocess.run([dask], env=ask | words, capture_output=True, text=True, check=False, cwd=tmp_path)
        return [one.partition(",")[2] for one in done.stdout.split()]

    assert offered("dask manifold-observer lo") == ["look"]
    assert offered("dask manifold-observer run --fea") == ["--features"]
    assert offered("dask manifold-observer corpus ch") == ["check"]


def test_help__imports_nothing_heavy_and_knows_the_forms_all_the_same():
    from manifold_observer.pipeline.engine.config import FORM_NAMES  # noqa: PLC0415
    from manifold_observer.tasks.engine.forms import FORMS  # noqa: PLC0415

    assert ("auto", *FORMS) == FORM_NAMES
    program = """
import sys
from manifold_observer.pipeline.cli.commands import cli, main
for words in (["--help"], *([name, "--help"] for name in cli.commands)):
    try:
        main(words)
    except SystemExit:
        pass
print(sorted({"numpy", "dask", "xarray", "distributed", "zarr", "pandas"} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
