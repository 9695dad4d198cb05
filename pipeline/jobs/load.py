"""Stored results opened again: one result, a stream of parts, or a folder of results, each as one lazy tree."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ..frames.dates import AS_RECORDED, in_times
from ..frames.units import UNKNOWN
from ..stores.address import Address, Given, Place, place
from ..stores.objects import names_in
from .manifest import MARK, attributes, check_whole, groups_of
from .parts import checked_part, parts_of
from .store import is_complete, open_group

CONVENTIONS = "CF-1.11"
"""What the attributes of a result follow; see https://cfconventions.org."""
TIMES = ("recorded", "datetime", "seconds")
"""How :func:`load` gives time."""


def load(out: Given, *, times: str = AS_RECORDED, start: str | np.datetime64 | None = None) -> xr.DataTree:
    """Open what was stored, checked and lazily: a result, all parts of a stream, or a folder of results.

    Parameters
    ----------
    out
        What :func:`run` or ``manifold-observer run`` wrote; the folder of :func:`continue_run`; the output folder of a
        corpus, or any other folder of results. Or the address of one, such as ``s3://bucket/out.zarr``.
    times
        ``"recorded"``: date-times where the recordings had some, else seconds. ``"datetime"`` and ``"seconds"`` ask for
        one of them.
    start
        Date-time of second 0, for recordings that had none.

    Returns
    -------
    Of a result the groups ``/frames``, ``/embedding``, ``/state``, and ``/smoothed`` if it was asked for. Of a stream
    ``/frames`` and ``/state`` of all parts, one after the other; its ``carry`` is that of the last. Of a folder one
    such tree a result, by its name; unfinished ones are left out, and counted in the attribute ``unfinished``. Nothing
    is read but metadata, which follows the CF conventions (attribute ``Conventions``); every result is compared with
    the list of its files first, some 20 ms each.

    Raises
    ------
    FileNotFoundError
        There is nothing at ``out``, or nothing that was stored by this project.
    ValueError
        A result is not complete, or damaged; date-times are asked for where nobody knows when the recording began.

    Examples
    --------
    >>> import tempfile
    >>> import manifold_observer.pipeline as mo
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "walk.npy", np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=0))
    >>> config = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
    >>> _ = mo.run([folder / "walk.npy"], folder / "walk.zarr", config)
    >>> list(load(folder / "walk.zarr").children)
    ['embedding', 'frames', 'state']
    >>> load(folder / "walk.zarr", start="2020-03-09T12:00")["state"].time[0].values
    np.datetime64('2020-03-09T12:00:00.000000000')
    """
    if times not in TIMES:
        raise ValueError(f"load: times must be one of {', '.join(map(repr, TIMES))}; got {times!r}.")
    where = place(out)
    found = _found(where)
    wanted = "datetime" if start is not None and times == AS_RECORDED else times
    return found.map_over_datasets(lambda group: by_convention(in_times(group, wanted, start, f"load: {where}")))


def by_convention(group: xr.Dataset) -> xr.Dataset:
    """Attributes by the CF conventions, and the one that says so.

    A unit that nobody knows is left out. CF has no array of several units: a group that holds one does not claim to
    follow them.

    Examples
    --------
    >>> by_convention(xr.Dataset({"x": ("t", [1.0], {"units": "unknown"})}))
    <xarray.Dataset> Size: 8B
    Dimensions:  (t: 1)
    Dimensions without coordinates: t
    Data variables:
        x        (t) float64 8B 1.0
    Attributes:
        Conventions:  CF-1.11
    """
    plain = group.copy()
    for variable in plain.variables.values():
        if variable.attrs.get("units") in UNKNOWN:
            variable.attrs = {name: value for name, value in variable.attrs.items() if name != "units"}
    mixed = any(variable.attrs.get("units") == "mixed" for variable in plain.variables.values())
    return plain if mixed else plain.assign_attrs(Conventions=CONVENTIONS)


def _found(where: Place) -> xr.DataTree:
    """The tree of whatever is at a place, time in seconds."""
    if MARK in attributes(where) or (isinstance(where, Address) and where.is_web):
        return result_tree(where)
    if isinstance(where, Path) and where.is_file():
        raise ValueError(
            f"load: {where} must be a folder that manifold-observer wrote; got a file. Open recordings with "
            "mo.open_recording; 'manifold-observer look' says what is in one."
        )
    if parts_of(where):
        return xr.DataTree.from_dict(stream_groups("load", where))
    results = list(results_in(where))
    if not results:
        check_whole("load", where)  # which says what is wrong
    done = [one for one in results if is_complete(one)]
    tree = xr.DataTree(children={one.stem: result_tree(one) for one in done})
    return tree.assign_attrs(unfinished=len(results) - len(done)) if len(done) < len(results) else tree


def result_tree(out: Place, who: str = "load") -> xr.DataTree:
    """One result, after a comparison with the list of its files; time in seconds.

    Raises
    ------
    FileNotFoundError, ValueError
        There is no whole result at ``out``.
    """
    attrs = _portable(check_whole(who, out))
    groups = {name: open_group(out, name) for name in groups_of(out)}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), **groups})


def stream_groups(who: str, out: Place) -> dict[str, xr.Dataset]:
    """Root, frames and states of all parts of a stream, each one after the other; time in seconds.

    Raises
    ------
    FileNotFoundError
        There are no parts.
    ValueError
        A part is missing, or is not complete.
    """
    parts = parts_of(out)
    if not parts:
        raise FileNotFoundError(f"{who}: {out} holds no parts. Give the OUT of manifold-observer continue.")
    attrs = _portable([checked_part(who, part) for part in parts][-1])
    frames, states = ([open_group(part, group) for part in parts] for group in ("frames", "state"))
    last = states[-1]
    whole = {str(name): values for name, values in last.data_vars.items() if "frame" not in values.dims}
    along = {str(name): _along(states, str(name)) for name in last.data_vars if name not in whole}
    return {
        "/": xr.Dataset(attrs=attrs),
        "frames": xr.Dataset({"frames": _along(frames, "frames")}, attrs=frames[-1].attrs),
        "state": xr.Dataset({**along, **whole}, attrs=last.attrs),
    }


def _portable(attrs: dict[str, Any]) -> dict[str, Any]:
    """Attributes as every format can hold them: NetCDF has neither truth values nor nested ones."""
    nested = {name: json.dumps(value) for name, value in attrs.items() if isinstance(value, dict) or _is_nested(value)}
    truths = {name: int(value) for name, value in attrs.items() if isinstance(value, bool)}
    return {name: "none" if value is None else value for name, value in {**attrs, **nested, **truths}.items()}


def _is_nested(value: Any) -> bool:
    """Whether a list holds more than numbers, or more than words, or nothing."""
    if not isinstance(value, list):
        return False
    words = [isinstance(one, str) for one in value]
    numbers = [isinstance(one, int | float) and not isinstance(one, bool) for one in value]
    return not value or not (all(words) or all(numbers))


def _along(parts: Sequence[xr.Dataset], name: str) -> xr.DataArray:
    """One variable of all parts, one after the other."""
    # Parts of an earlier version may lack what states are said to be off by.
    arrays = [part[name] if name in part else xr.full_like(part["state"], np.nan).rename(name) for part in parts]
    return xr.concat(arrays, "frame", coords="minimal", compat="override", combine_attrs="override")


def results_in(folder: Place) -> Iterator[Any]:
    """Results that lie directly in a folder, finished or not, by name."""
    if isinstance(folder, Address):
        names = [] if folder.is_web else names_in(folder)[0]
    else:
        names = [path.name for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    for name in sorted(names):
        with suppress(OSError):
            if name.endswith(".zarr") and MARK in attributes(folder / name):
                yield folder / name
