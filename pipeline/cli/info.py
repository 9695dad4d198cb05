"""The command ``info``: what is in a result, and how it was made."""

from __future__ import annotations

import json
from typing import Any

import click

from ..stores.address import Place
from .reading import Location
from .warned import said


@click.command("info")
@click.argument("result", type=Location(), metavar="OUT.zarr")
@click.option("--verify", is_flag=True, help="Read every chunk of every array, and check its checksum.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
def info_command(result: Place, verify: bool, as_json: bool) -> None:
    r"""Say what is in a result and how it was made.

    OUT.zarr is what run, or a part of what continue, wrote. Without --verify no array of frames is read. Exits with 1
    where a file of the result is missing or was changed, and names it.

    \b
    Example:
      manifold-observer info emg.zarr --verify
    """
    from ..graph.compute import in_threads  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it
    from ..jobs.info import info_of  # noqa: PLC0415

    with in_threads():
        found = info_of(result, verify=verify)
    click.echo(json.dumps(found | {"warnings": said()}) if as_json else _text(found))


def _text(found: dict[str, Any]) -> str:
    """The same for people."""
    rows = [("frames", f"{found['n_frames']:,} of {found['n_features']} features, {found['n_segments']} segments")]
    rows += [("recordings", source) for source in found["sources"]]
    rows += [("time", found["time"])] if found["time"] else []
    if found["eigenvalues"]:
        rows.append(("modes", ", ".join(f"{value:.4f}" for value in found["eigenvalues"])))
        rows.append(("residual", f"{max(found['residuals']):.1e} at most"))
    rows += [(name.replace("_", " "), str(value)) for name, value in found["chosen"].items()]
    rows += [("opened", note) for note in found["opened"]]
    rows += [(f"/{name}", f"{', '.join(arrays)}") for name, arrays in found["groups"].items()]
    rows.append(("bytes", f"{found['bytes']:,} in {found['files']:,} files"))
    rows.append(("checked", found["checked"]))
    wide = max(len(label) for label, _ in rows)
    lines = [f"{found['out']}: a result of manifold-observer {found['version']}", ""]
    lines += [f"  {label:<{wide}}  {text}" for label, text in rows]
    if found["command"]:
        lines += ["", "Made again by:", f"  {found['command']}"]
    return "\n".join(lines)
