"""States over time with their bands, below the labels; and maps of states, coloured by time or label."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.plot import lines

from ..plot.colours import Colouring, colouring, labels_along, shown_classes
from ..plot.series import rows_of, sampled_rows, series, times_of
from ..plot.style import COLOURS
from .panels import Page, Section
from .shown import Shown

_MOST_MODES = 8
_STATE_POINTS = 20_000
_MOST_SPANS = 4_000
_MOST_DOTS = 10_000
# A normal band that holds 95 %.
_BAND = 1.96


def over_time(page: Page, shown: Shown, labels: dict[str, xr.DataArray]) -> Section:
    """The section that shows labels and states over time."""
    panels = [_strip(page, shown, name, values) for name, values in labels.items()]
    state, smoothed = shown.state, shown.group("smoothed")
    drawn = _lines(page, shown, state, "observer", COLOURS[0])
    later = _lines(page, shown, smoothed, "smoothed", COLOURS[1]) if smoothed is not None else []
    for k, one in enumerate(drawn):
        both = [one, *later[k : k + 1]]
        panels.append(page.panel("lines", title=_title(state, k), y=_short_title(state, k), series=both, height=110))
    notes = (
        ["Bands hold 95 % where the errors are as estimated (state ± 1.96 state_std)."] if "state_std" in state else []
    )
    if shown.n_frames > _STATE_POINTS:
        notes.append(
            f"Lines go through the least and the largest value of every {2 * shown.n_frames // _STATE_POINTS:,} frames."
        )
    return Section("States over time", tuple(panels), tuple(notes))


def labels_of(state: xr.Dataset, given: dict[str, xr.DataArray]) -> dict[str, xr.DataArray]:
    """Labels that the frames carry, and those that are given."""
    return {name: state[name] for name in labels_along(state)} | given


def _lines(page: Page, shown: Shown, group: xr.Dataset, name: str, colour: str) -> list[dict[str, Any]]:
    """Every mode of a group as a line with its band."""
    values = group["state"][:, :_MOST_MODES]
    m = values.sizes["mode"]
    parts = [values]
    if "state_std" in group:
        width = _BAND * group["state_std"][:, :m]
        parts += [values - width, values + width]
    plain = [part.reset_coords(drop=True).drop_vars("mode", errors="ignore") for part in parts]
    joined = xr.concat(plain, "mode").assign_coords(_clock(group))
    found = series(joined, _STATE_POINTS)
    t, columns = page.array(shown.time.numbers(found.time), "f8"), found.values.T
    drawn = [{"name": name, "colour": colour, "t": t, "y": page.array(columns[k])} for k in range(m)]
    if len(parts) > 1:
        for k, one in enumerate(drawn):
            one |= {"low": page.array(columns[m + k], "i2"), "high": page.array(columns[2 * m + k], "i2")}
    return drawn


def _clock(group: xr.Dataset) -> dict[str, Any]:
    """Time and segment of some frames."""
    return {name: group.coords[name] for name in ("time", "segment") if name in group.coords}


def _strip(page: Page, shown: Shown, name: str, values: xr.DataArray) -> int:
    """Labels over time: stretches of one class, or a line where they are numbers."""
    found = colouring(shown.state, values.rename(name))
    if found.classes is None:
        line = series(values.astype(np.float64).assign_coords(_clock(shown.state)))
        one = {"name": name, "colour": "#000000", "t": page.array(shown.time.numbers(line.time), "f8")}
        return page.panel("lines", title=name, y=name, series=[one | {"y": page.array(line.values[:, 0])}], height=70)
    begin, end = lines.runs(_shown_codes(found))
    if len(begin) > _MOST_SPANS:  # one of each of many short stretches
        kept = sampled_rows(len(begin), _MOST_SPANS)
        begin, end = begin[kept], end[kept]
    time = shown.time.numbers(times_of(shown.state))
    half = float(np.median(np.diff(time))) / 2 if len(time) > 1 else 0.5
    return page.panel(
        "strip",
        title=name,
        begin=page.array(time[begin] - half, "f8"),
        end=page.array(time[end - 1] + half, "f8"),
        codes=page.array(_shown_codes(found)[begin], "i4"),
        classes=shown_classes(found),
        height=26,
    )


def _shown_codes(found: Colouring) -> NDArray[np.int64]:
    """Codes with those that share the last colour as -1."""
    codes = np.asarray(found.values)
    return np.where(codes < len(COLOURS), codes, -1)


def points(page: Page, shown: Shown, labels: dict[str, xr.DataArray], at: NDArray[np.int64]) -> dict[str, Any]:
    """Times and colours of the frames that maps show."""
    state = shown.state
    by: list[Any] = [None, *(values.rename(name).assign_attrs(long_name=name) for name, values in labels.items())]
    kinds = [_colours(page, shown, colouring(state, one, at)) for one in by]
    time = shown.time.numbers(times_of(state)[at])
    first = int(np.argmax([_evenness(one) for one in kinds]))
    return {"time": page.array(time, "f8"), "frame": page.array(at, "i4"), "colourings": kinds, "first": first}


def _evenness(kind: dict[str, Any]) -> float:
    """Entropy of the classes of a colouring: those that are hardly there do not colour a map; numbers have none."""
    shares = np.array(kind.get("shares", [1.0]))
    return float(-(shares * np.log(shares)).sum())


def _colours(page: Page, shown: Shown, found: Colouring) -> dict[str, Any]:
    """A colouring as the page has it."""
    if found.classes is not None:
        codes = _shown_codes(found)
        shares = np.unique(codes, return_counts=True)[1] / len(codes)
        kept = {"codes": page.array(codes, "i4"), "shares": [round(float(share), 6) for share in shares]}
        return {"name": found.name, "classes": shown_classes(found), **kept}
    values = shown.time.numbers(found.values) if found.name in ("time", "frame") else found.values.astype(np.float64)
    return {"name": found.name, "values": page.array(values, "f8"), "units": found.units}


def map_rows(n: int) -> NDArray[np.int64]:
    """Numbers of the frames that maps show."""
    return sampled_rows(n, _MOST_DOTS)


def state_at(page: Page, shown: Shown, at: NDArray[np.int64]) -> dict[str, Any]:
    """States of some frames, for maps."""
    state = shown.state
    rows = rows_of(state["state"][:, :_MOST_MODES], at)
    return {
        "title": "Observer",
        "names": [_short_title(state, k) for k in range(rows.shape[1])],
        "columns": [page.array(column) for column in rows.T],
    }


def _title(state: xr.Dataset, k: int) -> str:
    """Which state a mode is."""
    reads = f", reads {state['reads'].values[k]}" if "reads" in state.coords else ""
    return f"State {k + 1}{reads}"


def _short_title(state: xr.Dataset, k: int) -> str:
    """The same for an axis."""
    units = str(state["state"].attrs.get("units", "1"))
    return f"state {k + 1}" + (f" ({units})" if units != "1" else "")
