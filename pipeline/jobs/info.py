"""What is in a stored result and how it was made, from its metadata and small arrays."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np
import xarray as xr

from ..frames.labels import segments_of
from ..stores.address import place
from .again import run_again
from .config import CHOSEN, RunConfig
from .load import load
from .manifest import MARK, names_of, root_of
from .run import Given

_CHOSEN = (*CHOSEN, "method", "form", "precision", "dynamics")


def info_of(out: Given, *, verify: bool = False) -> dict[str, Any]:
    """What is in a result.

    Parameters
    ----------
    out
        Folder that :func:`run` wrote, or the address of one.
    verify
        Read all chunks, so that their checksums are compared.

    Returns
    -------
    Plain values, as JSON holds them.

    Raises
    ------
    FileNotFoundError, ValueError
        There is no result, or it is not complete, or damaged.

    Examples
    --------
    >>> info_of("nowhere.zarr")
    Traceback (most recent call last):
    FileNotFoundError: load: nowhere.zarr does not exist. Check the path.
    """
    tree = load(out)
    if verify:
        for group in tree.children.values():
            _read(group.to_dataset())
    sizes = names_of(root_of(place(out)))
    embedding = tree["embedding"].to_dataset() if "embedding" in tree.children else xr.Dataset()
    attrs = {str(name): value for name, value in tree.attrs.items()}
    sources, config = [str(source) for source in attrs.get("source_paths", [])], _config(attrs)
    return {
        "out": str(out),
        "version": str(attrs.get(MARK, "unknown")),
        "sources": sources,
        "opened": [str(note) for note in attrs.get("opened", [])],
        "settings": {} if config is None else config.flat(),
        "command": shlex.join(run_again(sources, str(out), config or RunConfig())) if sources else None,
        "chosen": {name: _plain(embedding.attrs[name]) for name in _CHOSEN if name in embedding.attrs},
        "eigenvalues": _numbers(embedding, "eigenvalue"),
        "residuals": _numbers(embedding, "residual"),
        "groups": {name: sorted(map(str, group.data_vars)) for name, group in tree.children.items()},
        "files": len(sizes),
        "bytes": sum(sizes.values()),
        "checked": "files, sizes and every checksum" if verify else "files and sizes (--verify reads every checksum)",
        **_frames(tree),
    }


def _read(dataset: xr.Dataset) -> None:
    """Read all arrays, block by block."""
    for values in dataset.variables.values():
        if values.chunks:
            for block in values.data.to_delayed().ravel():
                block.compute(scheduler="synchronous")


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
