"""What is in a stored result and how it was made, from its metadata and small arrays."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dask
import numpy as np
import xarray as xr

from ..frames.labels import segments_of
from ..graph.progress import or_watched
from ..stores.address import Given, Place, place
from .again import run_again
from .config import CHOSEN, RunConfig
from .load import result_tree, results_in, stream_groups
from .manifest import MARK, ROOT, attributes, groups_of, names_of, root_of
from .parts import parts_of
from .records import recalled
from .store import is_complete, open_group

_CHOSEN = (*CHOSEN, "method", "form", "precision", "dynamics")


def info_of(out: Given, *, verify: bool = False) -> dict[str, Any]:
    """What is at a place: a result, a stream of parts, the map of a corpus, or a folder of results.

    Parameters
    ----------
    out
        Folder that :func:`run` or another command wrote, or the address of one.
    verify
        Read all chunks, so that their checksums are compared.

    Returns
    -------
    Plain values, as JSON holds them; ``kind`` says which of these it is.

    Raises
    ------
    FileNotFoundError, ValueError
        There is no result, or it is not complete, or damaged.

    Examples
    --------
    >>> info_of("nowhere.zarr")
    Traceback (most recent call last):
    FileNotFoundError: info: nowhere.zarr does not exist. Check the path.
    """
    where = place(out)
    parts = [] if MARK in attributes(where) else _parts(where)
    if parts:
        return _of_stream(where, parts, verify)
    results = [] if MARK in attributes(where) else [one for one in results_in(where) if not _is_table(one)]
    if results:
        return _of_folder(where, results, verify)
    _check_kind(where)
    return _of_result(where, result_tree(where, "info"), verify)


def _of_result(where: Place, tree: xr.DataTree, verify: bool) -> dict[str, Any]:
    """What is in one result, or in a map, which is one with a table of recordings."""
    _verified(tree, verify)
    embedding = tree["embedding"].to_dataset() if "embedding" in tree.children else xr.Dataset()
    attrs = {str(name): value for name, value in tree.attrs.items()}
    config, record = _config(attrs), recalled(where)
    return {
        **_begun(where, "map" if attrs.get("kind") == "map" else "result", attrs, tree),
        "settings": {} if config is None else config.flat(),
        "command": _command(attrs, where, config),
        "chosen": {name: _plain(embedding.attrs[name]) for name in _CHOSEN if name in embedding.attrs},
        "eigenvalues": _numbers(embedding, "eigenvalue"),
        "residuals": _numbers(embedding, "residual"),
        "seconds": record.get("seconds", {}),
        "warnings": record.get("warnings", []),
        **(_of_map(attrs, tree) if attrs.get("kind") == "map" else {}),
        **_stored([where], verify),
    }


def _of_map(attrs: dict[str, Any], tree: xr.DataTree) -> dict[str, Any]:
    """What a map has besides."""
    table = tree["recordings"].to_dataset()
    return {
        "map_version": int(attrs["map_version"]),
        "recordings": [
            {"name": str(name), "n_frames": int(n), "n_sampled": int(m)}
            for name, n, m in zip(
                table["name"].values, table["n_frames"].values, table["n_sampled"].values, strict=True
            )
        ],
        "refused": json.loads(attrs["refused"]),
    }


def _of_stream(where: Place, parts: Sequence[Place], verify: bool) -> dict[str, Any]:
    """What is in the parts of a stream, all together."""
    tree = xr.DataTree.from_dict(stream_groups("info", where))
    if verify:
        for part in parts:
            _verified(result_tree(part, "info"), True)
    attrs = {str(name): value for name, value in tree.attrs.items()}
    return {
        **_begun(where, "stream", attrs, tree),
        "parts": [{"name": part.name, "n_frames": _frames_of(part)} for part in parts],
        **_stored(parts, verify),
    }


def _of_folder(where: Place, results: Sequence[Place], verify: bool) -> dict[str, Any]:
    """What results lie in a folder, as a corpus has them."""
    rows = []
    for result in results:
        whole = is_complete(result)
        if whole and verify:
            _verified(result_tree(result, "info"), True)
        rows.append({"name": result.name, "complete": whole, "n_frames": _frames_of(result) if whole else None})
    known = [row["n_frames"] or 0 for row in rows]
    return {
        "out": str(where),
        "kind": "folder",
        "corpus": isinstance(where, Path) and (where / ".corpus").is_dir(),
        "n_frames": sum(known),
        "results": rows,
        **_stored([result for result, row in zip(results, rows, strict=True) if row["complete"]], verify),
    }


def _begun(where: Place, kind: str, attrs: dict[str, Any], tree: xr.DataTree) -> dict[str, Any]:
    """What a result and a stream both say."""
    return {
        "out": str(where),
        "kind": kind,
        "version": str(attrs.get(MARK, "unknown")),
        "sources": [str(source) for source in attrs.get("source_paths", [])],
        "opened": [str(note) for note in attrs.get("opened", [])],
        "groups": {str(name): sorted(map(str, group.data_vars)) for name, group in tree.children.items()},
        **_frames(tree),
    }


def _stored(results: Sequence[Place], verify: bool) -> dict[str, Any]:
    """Files and bytes of some results, and what was compared."""
    sizes = [names_of(root_of(result)) for result in results]
    return {
        "files": sum(map(len, sizes)),
        "bytes": sum(sum(one.values()) for one in sizes),
        "checked": "files, sizes and every checksum" if verify else "files and sizes (--verify reads every checksum)",
    }


def _parts(where: Place) -> Sequence[Place]:
    """Parts of a stream; a web server lists nothing."""
    if isinstance(where, Path):
        return parts_of(where) if where.is_dir() else []
    return [] if where.is_web else parts_of(where)


def _check_kind(where: Place) -> None:
    """Refuse what is no result, with the command that knows what it is."""
    if not isinstance(where, Path) or not os.path.lexists(where) or MARK in attributes(where):
        return
    if (where / "state" / ROOT).exists():
        what = "cannot be read" if (where / ROOT).exists() else "is missing"
        raise ValueError(
            f"info: {where} must be complete and unchanged; {ROOT} {what}. Copy it again, or make it anew."
        )
    what = "a file" if where.is_file() else "a folder of something else"
    if where.suffix == ".toml":
        remedy = f"'manifold-observer corpus status {where}' says how the recordings of a corpus stand."
    else:
        remedy = f"'manifold-observer look {where}' says what is in a recording."
    raise ValueError(f"info: {where} must be something that manifold-observer wrote; got {what}. {remedy}")


def _command(attrs: dict[str, Any], where: Place, config: RunConfig | None) -> str | None:
    """The command that makes a result again; maps are made by their corpus."""
    sources = [str(source) for source in attrs.get("source_paths", [])]
    if not sources or attrs.get("kind") == "map":
        return None
    return shlex.join(run_again(sources, str(where), config or RunConfig()))


def _is_table(result: Place) -> bool:
    """Whether it is the table of a corpus, which lies among its results."""
    return is_complete(result) and not {"frames", "state"} & set(groups_of(result))


def _frames_of(result: Place) -> int:
    """Frames of a result, from metadata alone."""
    group = open_group(result, "state" if "state" in groups_of(result) else "frames")
    return int(group.sizes.get("frame", 0))


def _verified(tree: xr.DataTree, verify: bool) -> None:
    """Read all arrays, block by block, so that their checksums are compared."""
    if not verify:
        return
    arrays = [values for group in tree.children.values() for values in group.to_dataset().variables.values()]
    chunked = [values for values in arrays if values.chunks]
    progress = or_watched()
    for done, values in enumerate(chunked):
        progress("verify", done, len(chunked))
        for block in values.data.to_delayed().ravel():
            block.compute(scheduler=dask.get)
    progress("verify", len(chunked), len(chunked))


def _config(attrs: dict[str, Any]) -> RunConfig | None:
    """Settings of the run; None where they cannot be read."""
    try:
        return RunConfig.from_json(attrs["settings"])
    except (KeyError, TypeError, ValueError):
        return None


def _frames(tree: xr.DataTree) -> dict[str, Any]:
    """Number of frames and features, segments and time."""
    name = next((one for one in ("frames", "state") if one in tree.children), None)
    frames = xr.Dataset() if name is None else tree[name].to_dataset()
    time = frames["time"][[0, -1]].values if "time" in frames.variables and frames["time"].size else np.empty(0)
    n = frames.sizes.get("frame", 0)
    segment = segments_of(frames).numbers if "segment" in frames.variables else np.zeros(min(n, 1))
    return {
        "n_frames": n,
        "n_features": frames.sizes.get("feature", 0),
        "n_segments": len(np.unique(segment)),
        "time": f"{_moment(time[0])} to {_moment(time[-1])}" if time.size else None,
    }


def _moment(value: Any) -> str:
    """A time, in seconds or as a date."""
    return str(value)[:23] if np.asarray(value).dtype.kind == "M" else f"{float(value):g} s"


def _numbers(dataset: xr.Dataset, name: str) -> list[float]:
    """A small array as a list."""
    return [float(value) for value in dataset[name].values] if name in dataset else []


def _plain(value: Any) -> Any:
    """An attribute as JSON has it."""
    return value.tolist() if hasattr(value, "tolist") else value
