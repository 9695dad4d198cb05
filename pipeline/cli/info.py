"""The command ``info``: what is in a result, and how it was made."""

from __future__ import annotations

from typing import Any

import click

from ..graph.durations import duration, size
from ..stores.address import Place
from .computing import timed
from .look_text import wrapped
from .outcome import SIGNALS
from .reading import Location
from .saying import AS_JSON, answer
from .teaching import Taught
from .warned import said

EXAMPLES = (
    "manifold-observer info emg.zarr",
    "manifold-observer info emg.zarr --verify",
    "manifold-observer info out --json  # a folder of results, as of a corpus",
)
_KINDS = {
    "result": "a result of manifold-observer {version}",
    "map": "map {map_version} of a corpus, by manifold-observer {version}",
    "stream": "a result that continues in parts, of manifold-observer {version}",
    "folder": "a folder of results",
}
_MOST = 12


@click.command("info", cls=Taught, examples=EXAMPLES, codes=SIGNALS, params=[AS_JSON])
@click.argument("result", type=Location(), metavar="OUT.zarr")
@click.option("--verify", is_flag=True, help="Read every chunk of every array, and check its checksum.")
def info_command(result: Place, verify: bool, as_json: bool) -> None:
    """Say what is in a result and how it was made.

    OUT.zarr is what run wrote, the folder of parts that continue wrote, a map of a corpus, or a folder of results.
    Without --verify no array of frames is read. Exits with 1 where a file of the result is missing or was changed, and
    names it.
    """
    from ..graph.client import in_threads  # noqa: PLC0415 - Dask starts slowly; --help need not wait for it
    from ..jobs.info import info_of  # noqa: PLC0415

    with timed(), in_threads():
        found = info_of(result, verify=verify)
    found |= {"warnings": [*found.get("warnings", []), *said()]}
    answer(as_json, found, lambda: _text(found), lambda: _title(found))


def _title(found: dict[str, Any]) -> str:
    """What it is, in a line."""
    what = _KINDS[found["kind"]].format(**found)
    return f"{found['out']}: {what}, {found['n_frames']:,} frames, {size(found['bytes'])}, {found['checked']}"


def _text(found: dict[str, Any]) -> str:
    """The same for people."""
    rows = [*_frames(found), *_made(found), *_several(found)]
    rows += [(f"/{name}", ", ".join(arrays)) for name, arrays in found.get("groups", {}).items()]
    rows += [("warning", sentence) for sentence in found["warnings"]]
    rows += [("size", f"{size(found['bytes'])} in {found['files']:,} files"), ("checked", found["checked"])]
    wide = max(len(label) for label, _ in rows)
    lines = [f"{found['out']}: {_KINDS[found['kind']].format(**found)}", ""]
    for label, text in rows:
        head = f"  {label:<{wide}}  "
        lines += wrapped(head, text) if label.startswith("/") else [f"{head}{text}"]  # what may be copied stays whole
    if found.get("command"):
        lines += ["", "Made again by:", f"  {found['command']}"]
    return "\n".join(lines)


def _frames(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Frames, recordings, time."""
    if found["kind"] == "folder":
        return [("frames", f"{found['n_frames']:,} in {_results(len(found['results']))}")]
    segments = "1 segment" if found["n_segments"] == 1 else f"{found['n_segments']} segments"
    rows = [("frames", f"{found['n_frames']:,} of {found['n_features']} features, {segments}")]
    rows += [("recordings", source) for source in _some(found["sources"])]
    rows += [("time", found["time"])] if found["time"] else []
    return rows + [("opened", note) for note in _some(found["opened"])]


def _made(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Eigenvalues, what was chosen, and what it cost."""
    rows = []
    if found.get("eigenvalues"):
        rows.append(("modes", ", ".join(f"{value:.4f}" for value in found["eigenvalues"])))
        rows.append(("residual", f"{max(found['residuals'], default=0):.1e} at most"))
    rows += [(name.replace("_", " "), _short(value)) for name, value in found.get("chosen", {}).items()]
    cost = {name: value for name, value in found.get("seconds", {}).items() if name != "total" and value >= 0.001}
    if cost:
        each = ", ".join(f"{name} {duration(value)}" for name, value in cost.items())
        rows.append(("cost", f"{duration(found['seconds'].get('total', sum(cost.values())))} ({each})"))
    return rows


def _results(number: int) -> str:
    """A number of results."""
    return "1 result" if number == 1 else f"{number} results"


def _short(value: object) -> str:
    """A value that was chosen, to four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _several(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Parts, results, or recordings of a map."""
    rows = [("part", f"{one['name']}: {one['n_frames']:,} frames") for one in found.get("parts", [])]
    for one in found.get("results", []):
        rows.append(
            ("result", f"{one['name']}: " + (f"{one['n_frames']:,} frames" if one["complete"] else "unfinished"))
        )
    for one in found.get("recordings", []):
        rows.append(("fitted on", f"{one['name']}: {one['n_sampled']:,} of {one['n_frames']:,} frames"))
    hidden = len(rows) - _MOST
    rows = rows if hidden <= 1 else [*rows[:_MOST], (rows[0][0], f"... and {hidden} more; --json lists all")]
    return rows + [("refused", f"{path}: {why}") for path, why in found.get("refused", {}).items()]


def _some(texts: list[str]) -> list[str]:
    """The first of some texts."""
    return texts if len(texts) <= _MOST else [*texts[:_MOST], f"... and {len(texts) - _MOST} more; --json lists all"]
