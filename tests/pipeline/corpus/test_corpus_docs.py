"""The page about corpora says what there is; tests/docs runs its blocks."""

import re
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest

from manifold_observer.pipeline.cli.corpus_file import read_corpus

PAGE = (Path(__file__).parents[3] / "docs" / "corpus.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two short recordings in the working folder."""
    (tmp_path / "in").mkdir()
    for number in (1, 2):
        walk = np.random.default_rng(number).normal(size=(80, 3)).cumsum(axis=0)
        np.save(tmp_path / "in" / f"night{number}.npy", walk)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_page__shows_every_command():
    assert len([line for block in blocks("bash") for line in block.splitlines() if line]) == 9


def test_page__its_least_file_says_what_init_writes(folder, console):
    (text,) = blocks("toml")
    Path("least.toml").write_text(text)
    console(*shlex.split(blocks("bash")[0])[1:])
    assert read_corpus(Path("least.toml")).config == read_corpus(Path("nightly.toml")).config
    assert tomllib.loads(text)["run"] == tomllib.loads(Path("nightly.toml").read_text())["run"]


def test_page__names_every_setting():
    from dataclasses import fields  # noqa: PLC0415

    import manifold_observer.pipeline as mo  # noqa: PLC0415

    for member in fields(mo.CorpusConfig):
        if member.name not in ("run", "folder", "shared"):  # sections and the place of the file
            assert f"`{member.name.replace('_', '-')}`" in PAGE, member.name
