"""The command that repeats a result is parsed back to the settings that it was made with, whatever names hold."""

import shlex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.cli.options import taken
from manifold_observer.pipeline.cli.run import run_command
from manifold_observer.pipeline.frames.name_lists import joined_names, split_names
from manifold_observer.pipeline.jobs.again import run_again

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NAME = TEXT.filter(bool)
HOSTILE = ("a,b", 'say "x"', " padded ", "line\nbreak", "--frame", "'", "\\", "$(touch x)", "µV", "😀", "all,", '"')


def parsed(words):
    """Settings that the command takes from its words."""
    values = run_command.make_context("run", list(words), resilient_parsing=False).params
    return taken(mo.RunConfig, dict(values))


@given(st.lists(TEXT, max_size=5))
@example(list(HOSTILE))
def test_names__are_the_same_again(names):
    assert split_names(joined_names(names)) == tuple(names)


@pytest.mark.parametrize(
    ("text", "names"),
    [("a,b", "a b"), (" a , b ,, ", "a b"), ('"a,b",c', "a,b c"), ('5" pipe,x', '5"_pipe x'), ('"a" b,c', '"a"_b c')],
)
def test_names__as_people_type_them(text, names):
    assert split_names(text) == tuple(name.replace("_", " ") for name in names.split())


@given(st.lists(NAME, min_size=1, max_size=4), st.lists(NAME, min_size=1, max_size=2), TEXT, st.floats(0, 0.99))
@example(list(HOSTILE), ["x"], "\t", 0.5)
def test_again__is_parsed_to_the_same_settings(channels, labels, mark, gamma):
    config = mo.RunConfig(
        mo.FeatureConfig("log_rms", frame="100ms", floor=1e-6),
        mo.OpenConfig(channels=channels, labels=labels, delimiter=mark or None, channels_first=False),
        mo.EmbedConfig(n_modes=3, causal=False, epsilon=2.5),
        mo.ObserverConfig(gamma=gamma, rates=(0.1, 0.25)),
        smooth=True,
    )
    command = shlex.join(run_again(["/data/a, b.wav", "/data/-c.wav"], "out.zarr", config))
    again = parsed(shlex.split(command)[2:])
    assert again == config


@given(st.lists(NAME, min_size=1, max_size=4), NAME)
@example(list(HOSTILE), "\x7f😀")
def test_toml__is_parsed_to_the_same_settings(tmp_path_factory, channels, mark):
    config = mo.RunConfig(opening=mo.OpenConfig(channels=channels, missing=[mark]))
    path = tmp_path_factory.mktemp("toml") / "run.toml"
    path.write_text(config.to_toml(), encoding="utf-8")
    assert parsed(["a.wav", "--config", str(path)]) == config
