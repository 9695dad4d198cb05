"""What opening a recording would ask, found by opening it: each question is answered by the first way that it offers.

Throughout: a *question* is an error of opening that says with which options it can be answered.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr

from ..frames.clock import Clock, clock
from ..frames.opening import OPTIONS
from ..frames.recording import open_recording
from ..stores.address import Address

_MOST = 9
# Samples of a clock that are read.
_MOST_TIMES = 2**21
_VALUE = re.compile(
    rf"(?<![\w.-])({'|'.join(OPTIONS)})=('[^']*'|\"[^\"]*\"|\[(?:'[^']*'|\"[^\"]*\"|[^\]'\"])*\]|\d[\w.+-]*(?<![.])|True|False)"
)
# Which way is the likely one, where it is not the first that a question offers.
_LIKELY = ((re.compile(r"\brepeats\b"), "duplicates"),)


class Question(NamedTuple):
    """What opening asks."""

    sentence: str
    """As the error has it."""
    keyword: str | None = None
    """Of the option that answers it; None where nothing is offered that can be taken as it stands."""
    value: Any = None
    """What it is answered with here."""
    ways: tuple[tuple[str, Any], ...] = ()
    """All ways to answer it, by the keyword of each."""


class Opened(NamedTuple):
    """A recording as it opens with all questions answered."""

    recording: xr.DataArray | None
    """None where a question has no answer."""
    clock: Clock | None
    questions: list[Question]
    answers: dict[str, Any]
    """Options of opening that were added."""
    warnings: list[str]
    """What was warned of."""


def ask(path: Path | Address, given: dict[str, Any], renamed: Callable[[str], str] = str) -> Opened:
    r"""Open a recording, and answer what is asked until it opens.

    Parameters
    ----------
    path
        The recording, or the beginning of one.
    given
        Options of opening that the user gives.
    renamed
        Puts the names that users know into sentences.

    Returns
    -------
    The recording, what was asked, and the answers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "bench.csv")
    ...     _ = table.write_text("time,x,class\n" + "".join(f"{k},{k % 7}.5,{k // 20}\n" for k in range(60)))
    ...     opened = ask(table, {})
    >>> opened.recording.sizes, opened.answers
    (Frozen({'time': 60, 'channel': 1}), {'labels': ['class']})
    """
    questions: list[Question] = []
    answers: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        recording, ticks = None, None
        while recording is None and len(questions) < _MOST:
            try:
                opened = open_recording(path, **given, **answers)
                ticks = clock(_short(opened))
                recording = opened
            except ValueError as error:
                found = _question(renamed(" ".join(str(error).split())), {**given, **answers})
                questions.append(found)
                if found.keyword is None:
                    break
                answers[found.keyword] = _joined(answers.get(found.keyword), found.value)
    told = [renamed(" ".join(str(one.message).split())) for one in heard if issubclass(one.category, UserWarning)]
    return Opened(recording, ticks, questions, answers, list(dict.fromkeys(told)))


def _short(recording: xr.DataArray) -> xr.DataArray:
    """A recording whose clock costs no more than some megabytes to read."""
    stored = "time" in recording.coords and recording["time"].chunks
    return recording.isel(time=slice(0, _MOST_TIMES)) if stored else recording


def _question(sentence: str, taken: dict[str, Any]) -> Question:
    """An error as a question."""
    advice = sentence.rpartition("; got ")[2]
    ways = tuple((found[1], _value(found[2])) for found in _VALUE.finditer(advice))
    for pattern, keyword in _LIKELY:
        if pattern.search(sentence):
            ways = tuple(sorted(ways, key=lambda way: way[0] != keyword))
    free = [way for way in ways if way[0] not in taken or isinstance(way[1], list)]
    if not free or taken.get(free[0][0]) == free[0][1]:  # nothing is offered, or that was no answer
        return Question(sentence, ways=ways)
    return Question(sentence, *free[0], ways)


def _value(text: str) -> Any:
    """A value as an error has it."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _joined(before: Any, value: Any) -> Any:
    """Names that were asked about one after the other."""
    return [*before, *value] if isinstance(before, list) and isinstance(value, list) else value
