"""What LabChart and AcqKnowledge (Biopac) write above the rows of their text exports."""

import re
from collections.abc import Sequence

from .clock_names import unit_of
from .table_top import Top

_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}


def exported_top(lines: Sequence[str]) -> Top | None:
    r"""The top of a table, where LabChart or AcqKnowledge wrote it.

    Examples
    --------
    >>> exported_top(["Interval=\t0.01 s\n", "ChannelTitle=\tECG\n", "Range=\t10 mV\n", "0\t0.5\n"]).names
    ('Time', 'ECG')
    """
    return _labchart(lines) or _acqknowledge(lines)


def _labchart(lines: Sequence[str]) -> Top | None:
    """LabChart: lines of a name with an equals sign and a cell for every channel."""
    if not lines or not lines[0].lstrip("\ufeff").startswith("Interval="):
        return None
    count = next((n for n, line in enumerate(lines) if not re.match(r"\w+=", line)), len(lines))
    told = {(cells := line.rstrip("\r\n").split("\t"))[0]: cells[1:] for line in lines[:count]}
    every = re.match(r"\s*([\d.eE+-]+)\s*(\w+)", (told["Interval="] or [""])[0])
    names, units = told.get("ChannelTitle=", []), told.get("UnitName=", [])
    if count == len(lines) or not names or every is None:
        return None
    first, width = lines[count].count("\t") + 1 - len(names), len(names)
    period = float(every[1]) * _SECONDS.get(unit_of(every[2]) or "s", 1.0)
    clock = ("Time",) if first == 1 else ()
    return Top(
        skip=count,
        names=(*clock, *(name.strip() for name in names)),
        units=(*("s" for _ in clock), *units) if len(units) == width else ("s",) if clock else (),
        sampling_rate=1 / period if period > 0 else None,
        logger="LabChart",
    )


def _acqknowledge(lines: Sequence[str]) -> Top | None:
    """AcqKnowledge: interval, count of channels, a name and a unit for each, then a header and a row of counts."""
    every = re.fullmatch(r"([\d.]+) (\w+)/sample", lines[1].strip()) if len(lines) > 3 else None
    number = re.fullmatch(r"(\d+) channels?", lines[2].strip()) if every else None
    if every is None or number is None or len(lines) < 6 + 2 * int(number[1]):
        return None
    skip = 3 + 2 * int(number[1])
    own = [line.strip() for line in lines[3:skip]]
    delimiter = "\t" if "\t" in lines[skip] else ","
    header = [cell.strip() for cell in lines[skip].rstrip("\r\n").rstrip(delimiter).split(delimiter)]
    clock = unit_of(header[0]) if len(header) == 1 + int(number[1]) else None
    counts = [cell.strip() for cell in lines[skip + 1].split(delimiter) if cell.strip()]
    counted = len(counts) == int(number[1]) and len(set(counts)) == 1 and counts[0].isdigit()
    seconds = float(every[1]) * _SECONDS.get(unit_of(every[2]) or "", 0.0)
    return Top(
        skip=skip + (2 if counted else 1),
        names=(*(("time",) if clock else ()), *own[::2]),
        units=(*((clock,) if clock else ()), *own[1::2]),
        sampling_rate=1 / seconds if seconds > 0 else None,
        logger="AcqKnowledge (Biopac)",
    )
