"""The option ``--config``: defaults from a TOML file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from ..frames.name_lists import joined_names

# Where a context keeps the keywords of a cluster's class, which are no options.
CLUSTER_OPTIONS = "manifold_observer.cluster_options"


def config_file(command: click.Command) -> click.Command:
    """Give a command the option ``--config``, a file with defaults of all its others."""
    command.params.append(
        click.Option(
            ["--config"],
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            callback=_load,
            is_eager=True,
            expose_value=False,
            help="TOML file with any of these options; the command line takes precedence.",
        )
    )
    return command


def _load(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Take defaults from a TOML file."""
    if path is None:
        return
    texts = texts_of(path, context.command.params, _flat(context, path, read_toml(path, "--config")))
    context.default_map = {**(context.default_map or {}), **texts}


def _flat(context: click.Context, path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with those of the table ``[cluster]`` among the others, by the names of their options."""
    table = settings.get("cluster")
    if not isinstance(table, dict) or "cluster" not in {option.name for option in context.command.params}:
        return settings
    from dataclasses import fields  # noqa: PLC0415

    from ..clusters.config import ClusterConfig  # noqa: PLC0415
    from ..frames.settings import option_name  # noqa: PLC0415

    try:
        ClusterConfig.of_table(table)
    except ValueError as error:
        raise click.BadParameter(f"{path}: {error}") from None
    if "options" in table:
        context.meta[CLUSTER_OPTIONS] = table["options"]
    spelt = {own.name: option_name(own) for own in fields(ClusterConfig)}
    own = {spelt[name.replace("-", "_")]: value for name, value in table.items() if name != "options"}
    return {name: value for name, value in settings.items() if name != "cluster"} | own


def texts_of(path: Path, params: Iterable[click.Parameter], values: dict[str, Any], where: str = "") -> dict[str, Any]:
    """Settings of a file as texts of options, by the names of their parameters; others are refused.

    Parameters
    ----------
    path
        The file, for the message.
    params
        Parameters of the command.
    values
        What stands in the file.
    where
        A section of it, for the message.
    """
    known = {
        spelling.removeprefix("--"): parameter.name
        for parameter in params
        if parameter.expose_value and isinstance(parameter, click.Option)
        for spelling in parameter.opts
    }
    given = {name.replace("_", "-"): value for name, value in values.items()}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise click.BadParameter(f"{path} has unknown settings{where}: {', '.join(unknown)}.")
    return {str(known[name]): _as_text(value) for name, value in given.items()}


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The content of a TOML file; ``what`` names it in errors."""
    import tomllib  # noqa: PLC0415 - for those who ask for it

    from ..files.ordinary import check_ordinary  # noqa: PLC0415

    try:
        check_ordinary(path, what)
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise click.BadParameter(f"{path} is not valid TOML: {error}.") from None


def _as_text(value: Any) -> Any:
    """A value as it would stand on the command line: 2.5 is then no number of modes, either."""
    if isinstance(value, bool):
        return value
    return joined_names(value) if isinstance(value, list) else str(value)
