"""Options of the command line are the fields of the dataclasses, and nothing is written twice."""

import dataclasses
import inspect

import click
import pytest

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.cli.advice import in_options
from manifold_observer.pipeline.cli.commands import cli
from manifold_observer.pipeline.cli.options import documented, settings_of, taken
from manifold_observer.pipeline.frames.features import FEATURES
from manifold_observer.pipeline.frames.settings import option_name, setting
from manifold_observer.pipeline.paper import demo
from manifold_observer.pipeline.paper.settings import SIMULATIONS

COMMANDS = {
    ("run",): [mo.FeatureConfig, mo.OpenConfig, mo.EmbedConfig, mo.ObserverConfig],
    ("plan",): [mo.FeatureConfig, mo.OpenConfig, mo.EmbedConfig],
    **{("demo", name): [kind] for name, kind in SIMULATIONS.items()},
}


def command(words):
    found = cli
    for word in words:
        found = found.commands[word]
    return found


def settings():
    for words, kinds in COMMANDS.items():
        for kind in kinds:
            for own in dataclasses.fields(kind):
                yield pytest.param(words, kind, own, id=f"{' '.join(words)} {kind.__name__}.{own.name}")


@pytest.mark.parametrize(("words", "kind", "own"), list(settings()))
def test_settings__every_field_has_an_option_with_its_default_and_its_text(words, kind, own):
    (option,) = [option for option in command(words).params if option.name == option_name(own)]
    assert isinstance(option, click.Option)
    assert option.get_default(click.Context(command(words))) == own.default
    texts = [documented(base)[own.name] for base in kind.__mro__ if own.name in documented(base)]
    assert option.help == texts[0]
    assert option.help.endswith(".")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_settings__no_two_share_a_spelling(words):
    spelled = [name for option in command(words).params for name in (*option.opts, *option.secondary_opts)]
    assert len(spelled) == len(set(spelled))


def test_settings__the_defaults_of_the_command_are_those_of_the_api():
    context = cli.commands["run"].make_context("run", ["a.npy", "out.zarr"])
    assert taken(mo.RunConfig, dict(context.params)) == mo.RunConfig()


def test_settings__a_field_and_its_text_are_all_that_an_option_needs():
    @dataclasses.dataclass(frozen=True)
    class Walk:
        """How to walk: in steps."""

        steps: int = setting(10, least=1)
        """Number of steps."""
        gait: str = setting("trot", choices=("trot", "canter"))
        """How the feet
        follow each other."""
        pace: float | None = None
        """Metres per second."""
        stops: float | str = setting("none", choices=("none", "often"))
        """Metres between stops."""
        back: bool = False
        """Walk back as well."""

    @settings_of(Walk)
    @click.command("walk")
    def walk(**options):
        return taken(Walk, options)

    assert walk.main([], standalone_mode=False) == Walk()
    words = ["--steps", "3", "--gait", "canter", "--pace", "1.5", "--stops", "2", "--back"]
    assert walk.main(words, standalone_mode=False) == Walk(3, "canter", 1.5, 2.0, True)
    assert walk.params[1].help == "How the feet follow each other."
    assert walk.params[1].section == "How to walk"
    for wrong in (["--steps", "0"], ["--gait", "amble"], ["--pace", "fast"], ["--stops", "never"]):
        with pytest.raises(click.BadParameter):
            walk.main(wrong, standalone_mode=False)


def test_features__are_those_that_can_be_made():
    (name, *_) = dataclasses.fields(mo.FeatureConfig)
    assert name.metadata["choices"] == tuple(FEATURES)


def test_demo__the_defaults_are_options_of_the_simulators():
    for name, kind in SIMULATIONS.items():
        known = inspect.signature(demo.DEMOS[name].simulate).parameters
        assert {own.name for own in dataclasses.fields(kind)} <= set(known)


def test_advice__is_that_of_the_function_that_speaks():
    command = click.Command("run", params=[_keyword("--stft-window", "window"), _keyword("--window", "window")])
    assert in_options("embed: x. Give window=9.", command) == "embed: x. Give --window 9."
    assert in_options("stft: x. Give window='hann'.", command) == "stft: x. Give --stft-window hann."


def _keyword(spelt, keyword):
    option = click.Option([spelt])
    option.keyword = keyword
    return option
