"""What the page draws, as JSON within HTML: numbers in base64, and no character that HTML could take for its own."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# As JSON strings hold them; none of these means anything to JSON itself outside of strings.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
_STEPS = 65_534
_KINDS = {"f4": "<f4", "f8": "<f8", "u1": "|u1", "i4": "<i4"}


class TimeAxis(NamedTuple):
    """How the times of a result are told: numbers from a start, which is a date-time or nothing."""

    origin: Any
    start: str | None
    label: str

    def numbers(self, time: NDArray[Any]) -> NDArray[np.float64]:
        """Times as seconds from the origin, or as they are."""
        if self.start is None:
            return np.asarray(time, np.float64)
        return np.asarray((time - self.origin) / np.timedelta64(1, "ns"), np.float64) / 1e9


def time_axis(time: NDArray[Any], units: str = "s") -> TimeAxis:
    """The axis that suits some times.

    Examples
    --------
    >>> days = np.array(["2020-03-09", "2020-03-10"], "datetime64[ns]")
    >>> axis = time_axis(days)
    >>> axis.start, axis.numbers(days)
    ('2020-03-09T00:00:00.000', array([    0., 86400.]))
    """
    if time.dtype.kind == "M":
        origin = time[0].astype("datetime64[ms]")
        return TimeAxis(origin.astype("datetime64[ns]"), str(origin), "time (UTC or as recorded)")
    return TimeAxis(0.0, None, "frame" if time.dtype.kind in "iu" else f"time ({units})")


def packed(values: Any, kind: str = "f4") -> dict[str, Any]:
    """An array for the page: f4, f8, i4 and u1 as they are, i2 in steps of a 65,000th of their range.

    Examples
    --------
    >>> packed(np.array([1.0]))
    {'f4': 'AACAPw=='}
    """
    if kind == "i2":
        return _stepped(np.asarray(values, np.float64))
    return {kind: _text(np.ascontiguousarray(values, _KINDS[kind]))}


def _stepped(values: NDArray[np.float64]) -> dict[str, Any]:
    """Numbers as 65,534 steps between their bounds, finer than any screen; NaN as the lowest one."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    step = (high - low) / _STEPS or 1.0
    whole = np.where(np.isfinite(values), np.rint((np.nan_to_num(values) - low) / step) - _STEPS / 2, -_STEPS / 2 - 1)
    return {"i2": _text(np.clip(whole, -_STEPS / 2 - 1, _STEPS / 2).astype("<i2")), "low": low, "step": step}


def _text(values: NDArray[Any]) -> str:
    """Bytes in base64."""
    return base64.b64encode(values.tobytes()).decode()


def as_json(values: Mapping[str, Any]) -> str:
    r"""JSON that can stand within a ``script`` element, whatever the texts in it are.

    Examples
    --------
    >>> as_json({"name": "</script><b>"})
    '{"name":"\\u003c/script\\u003e\\u003cb\\u003e"}'
    """
    return json.dumps(values, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)
