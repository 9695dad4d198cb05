"""The command that makes a result again, from the settings that it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from ..engine.config import EmbedConfig
from ..frames.name_lists import joined_names
from ..frames.opening import OpenConfig
from ..frames.settings import option_name
from ..observers.config import ObserverConfig
from .config import FeatureConfig, RunConfig


def run_again(sources: Sequence[str], out: str, config: RunConfig) -> list[str]:
    """Words of the command ``run`` over some recordings, with the settings that differ from the defaults.

    Examples
    --------
    >>> run_again(["a.npy"], "a.zarr", RunConfig(FeatureConfig("stft", frame="23ms"), smooth=True))
    ['manifold-observer', 'run', 'a.npy', 'a.zarr', '--smooth', '--frame', '23ms']
    """
    given = [word for name, value in differing(config) for word in _option(name, value)]
    return ["manifold-observer", "run", *sources, out, *given]


def differing(config: RunConfig) -> list[tuple[str, Any]]:
    """Settings that differ from the defaults, by their names on the command line with underscores."""
    usual = RunConfig().flat()
    return [(name, value) for name, value in config.flat().items() if name not in usual or usual[name] != value]


def _option(name: str, value: Any) -> list[str]:
    """A setting as a command takes it."""
    if isinstance(value, bool):
        return [_flag(name, value)]
    text = joined_names(value) if isinstance(value, list | tuple) else str(value)
    return [f"--{name.replace('_', '-')}", text]


def _flag(name: str, value: bool) -> str:
    """The option of a setting that is true or false."""
    for kind in (FeatureConfig, OpenConfig, EmbedConfig, ObserverConfig):
        for own in fields(kind):
            spelled = str(own.metadata.get("option", ""))
            if option_name(own) == name and "/" in spelled:
                return spelled.split(maxsplit=1)[0].split("/")[0 if value else 1]
    return f"--{name.replace('_', '-')}"
