"""One look at a file: what is in it, what opening it asks, and the command that comes next."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..files.ordinary import check_ordinary
from ..stores.address import Address, Place, place
from ..stores.objects import look as look_at_object
from .asking import Opened, Question, ask
from .glance import Glance, glance
from .head import head_of
from .suggest import Suggestion, doubts, suggest

# Bytes of an object that are copied for a look; Zarr is looked at where it is.
_MOST_COPIED = 2**26


@dataclass(frozen=True)
class Look:
    """What one look at a file finds.

    ``glance`` is None where no way was found to open it; the last of the ``questions`` then says why.
    """

    place: str
    n_bytes: int | None
    glance: Glance | None
    suggestion: Suggestion | None
    questions: list[Question]
    options: dict[str, Any]
    """Options of opening that answer the questions, beside those that were given."""
    warnings: list[str]


def look(given: str | Path | Address, options: dict[str, Any] | None = None) -> Look:
    """Look at a file: its header and a bounded part of it are read.

    Parameters
    ----------
    given
        A file, a Zarr folder, or an address.
    options
        Of :func:`open_recording`, as far as they are known.

    Raises
    ------
    FileNotFoundError, ValueError, OSError
        There is nothing, or nothing that may be opened.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "walk.npy"), np.random.default_rng(0).normal(size=(300, 2)))
    ...     found = look(Path(folder, "walk.npy"))
    >>> found.glance.samples, found.suggestion.features
    (300, 'identity')
    """
    where, options = place(given), dict(options or {})
    if isinstance(where, Path):
        check_ordinary(where, "look")
        with head_of(where, options.get("engine")) as head:
            return _looked(where, head.path, head.share, options)
    _check_small(where)
    return _looked(where, where, 1.0, options)


def _check_small(where: Address) -> None:
    """An object that is not Zarr is copied to be opened, which a look must not do with a large one."""
    found = look_at_object(where)
    if found is not None and found.size > _MOST_COPIED:
        raise ValueError(
            f"look: {where} must have at most {_MOST_COPIED >> 20} MiB, for it is copied to be opened; got "
            f"{found.size / 2**20:.0f} MiB. Copy it to this machine, and look there."
        )


def _looked(where: Place, path: Place, share: float, given: dict[str, Any]) -> Look:
    """Open, and open again with what only the values tell."""

    def renamed(sentence: str) -> str:
        return sentence.replace(str(path), str(where)) if path != where else sentence

    opened = ask(path, given, renamed)
    found = _glance_of(opened, where, share)
    if found is None:
        return Look(str(where), _bytes(where), None, None, opened.questions, opened.answers, opened.warnings)
    first = doubts(found, suggest(found).features, given | opened.answers)
    answers, questions = opened.answers, [*opened.questions]
    if any(one.keyword == "time_unit" for one in first):
        again = ask(path, given | answers | {"time_unit": "ms"}, renamed)
        found = _glance_of(again, where, share) or found
        questions += [*(one for one in first if one.keyword == "time_unit"), *again.questions]
        answers = answers | {"time_unit": "ms"} | again.answers
    suggestion = suggest(found)
    for question in doubts(found, suggestion.features, given | answers):
        questions.append(question)
        answers = answers | {str(question.keyword): _with(answers.get(str(question.keyword)), question.value)}
    return Look(str(where), _bytes(where), found, suggestion, questions, answers, opened.warnings)


def _with(before: Any, value: Any) -> Any:
    """Names beside those that are named already."""
    return [*before, *value] if isinstance(before, list) else value


def _glance_of(opened: Opened, where: Place, share: float) -> Glance | None:
    """What is in what was opened."""
    if opened.recording is None or opened.clock is None:
        return None
    return glance(opened.recording, opened.clock, share, where.suffix)


def _bytes(where: Place) -> int | None:
    """Size of a file; None for a folder or an address."""
    return where.stat().st_size if isinstance(where, Path) and where.is_file() else None
