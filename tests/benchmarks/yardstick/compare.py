"""One case through all ways and rivals: scores, as plain dictionaries."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import halves, intervals, judge, report, rivals
from .case import Case, Truth, segments
from .kept import kept
from .ways import Answer, Way

Array = NDArray[Any]
Row = dict[str, Any]

MODES = 8
"""Coordinates of the rivals beside those with as many as a way has."""
_SOURCES = [Path(module.__file__ or "").read_text(encoding="utf-8") for module in (rivals, judge, halves)]


def compare(
    case: Case,
    ways: Mapping[str, Way],
    wanted: Sequence[str] = tuple(rivals.BASES),
    modes: int = MODES,
    cache: Path | None = None,
) -> Row:
    """Scores of every truth of a case.

    ``ways``: number of coordinates, seconds, warnings, the refusal if any. ``truths``: by name ``chance``, every way's
    scores (``state``, ``own dm``, ``alike``, the second half), and ``rivals`` by the number of their coordinates.
    """
    if case.draw > 1:
        return _drawn(case, ways)
    answers = {name: _ask(way, case) for name, way in ways.items()}
    counts = sorted({modes} | {whole.state.shape[1] for whole, _, _ in answers.values() if whole})
    spans = segments(case.frames)
    found = kept(
        cache,
        [_SOURCES[0], case.plain, case.kind, spans, max(counts), wanted],
        lambda: rivals.bases(case, max(counts), wanted),
    )
    made = [*_SOURCES, case.plain, case.kind, spans, modes]
    learnt = kept(cache, made, lambda: halves.streamed(case, len(case.plain) // 2, modes))
    rows: Row = {}
    for key, truth in case.truths.items():
        own = {name: _way_scores(answer, truth, found, spans, counts, modes) for name, answer in answers.items()}
        others = {str(m): _rival_scores(case, truth, found, spans, m, cache) for m in counts}
        rows[key] = {
            "kind": "class" if truth.is_class else "number",
            "control": truth.control,
            "apart": case.apart,
            "chance": _chance(answers, truth),
            "ways": own,
            "rivals": others,
            "halves": _rival_halves(learnt, found, spans, truth, modes),
        }
        for name, answer in answers.items():
            own[name] |= _intervals(answer, report.Line(case.name, key, rows[key]), name, truth, (found, spans))
    return {
        "case": case.name,
        "features": case.why,
        "kind": case.kind,
        "n_frames": len(case.plain),
        "n_features": case.plain.shape[1],
        "n_segments": len(spans),
        "draw": case.draw,
        "apart": case.apart,
        "ways": {name: _told(answer) for name, answer in answers.items()},
        "truths": rows,
    }


def _drawn(case: Case, ways: Mapping[str, Way]) -> Row:
    """Scores of a further draw of a control, by the ways alone."""
    answers = {name: way(case, len(case.plain)).state for name, way in ways.items()}
    truths = {
        key: {name: judge.score(state, truth) for name, state in answers.items()} for key, truth in case.truths.items()
    }
    return {"case": case.name, "draw": case.draw, "truths": truths}


Asked = tuple[Answer | None, Answer | None, Row]


def _ask(way: Way, case: Case) -> Asked:
    """A way with all frames embedded, and with the first half embedded and the second one streamed."""
    n = len(case.plain)
    answers, told = [], {}
    for n_embedded, part in ((n, "whole"), (n // 2, "streamed")):
        before = time.perf_counter()
        try:
            answers.append(way(case, n_embedded))
        except (ValueError, RuntimeError, np.linalg.LinAlgError) as error:
            answers.append(None)
            told[f"refused {part}"] = str(error)
        told[f"seconds {part}"] = time.perf_counter() - before
    return answers[0], answers[1], told


def _told(asked: Asked) -> Row:
    """What is said of a way beside its scores."""
    whole, _, told = asked
    if whole is None:
        return {"n_modes": None, **told}
    poles = None if whole.poles is None else whole.poles.tolist()
    return {"n_modes": whole.state.shape[1], "poles": poles, "warnings": whole.warnings, **told}


def _chance(asked: Mapping[str, Asked], truth: Truth) -> Row:
    """Of the first way that answered; without any, what a guess has."""
    for whole, _, _ in asked.values():
        if whole is not None:
            mean, most = judge.chance(whole.state, truth)
            return {"mean": mean, "most": most}
    guess = 1 / len(np.unique(truth.values[truth.values >= 0])) if truth.is_class else 0.0
    return {"mean": guess, "most": guess}


def _way_scores(
    asked: Asked, truth: Truth, found: Mapping[str, Array], spans: list[slice], counts: list[int], modes: int
) -> Row:
    """State, the coordinates that it started from, rivals smoothed alike, and the streamed half."""
    whole, streamed, _ = asked
    if whole is None:
        return {}
    n, m = whole.state.shape
    scores: Row = {"state": judge.score(whole.state, truth)}
    if whole.coordinates is not None:
        scores["own dm"] = judge.score(whole.coordinates, truth)
    if whole.poles is not None:
        scores["alike"] = {
            str(count): {
                name: judge.score(rivals.alike(estimate[:, :count], spans, whole.poles), truth)
                for name, estimate in found.items()
            }
            for count in sorted({m, modes})
        }
    scores["whole, second half"] = judge.streamed_score(whole.state, truth, n // 2)
    if streamed is not None:
        scores["streamed, second half"] = judge.streamed_score(streamed.state, truth, n // 2)
    return scores


def _intervals(asked: Asked, line: report.Line, way: str, truth: Truth, rival: tuple[Mapping[str, Array], Any]) -> Row:
    """By how much a way is behind the best of diffusion maps and PCA alike, behind the best of all, and streamed."""
    whole, streamed, _ = asked
    if whole is None:
        return {}
    n, m = whole.state.shape
    every, folds = report.rivals_of(line, way, str(m)), judge.held_out(truth)
    told: Row = {}
    for key, names in (("behind alike", (*report.MAPS, *report.PCA_ALIKE)), ("behind all", None)):
        name, _ = report.best(every, names)
        other = whole.coordinates if name == "own dm" else _formed(name, whole, *rival)
        if other is not None:
            told[key] = [name, *intervals.behind(whole.state, other, truth, folds)]
    late = judge.halves(truth, n // 2)
    if streamed is not None and late:
        told["lost"] = [*intervals.behind(streamed.state, whole.state, truth, late)]
    return told


def _formed(name: str, whole: Answer, found: Mapping[str, Array], spans: list[slice]) -> Array | None:
    """A rival by the name of its form."""
    m = whole.state.shape[1]
    base = next((base for base in found if name.startswith(base)), None)
    if base is None:
        return None
    if name.endswith("alike"):
        return None if whole.poles is None else rivals.alike(found[base][:, :m], spans, whole.poles)
    return dict(rivals.smoothings(base, found[base][:, :m], spans)).get(name)


def _rival_halves(
    learnt: Mapping[str, Array], found: Mapping[str, Array], spans: list[slice], truth: Truth, modes: int
) -> dict[str, list[float]]:
    """Of some rivals the second half: learnt from all frames, and from the first half alone."""
    n, told = len(truth.values), {}
    for name, estimate in learnt.items():
        base, pole = name.rsplit(" pole ", 1)
        if base in found:
            whole = rivals.smoothed(found[base][:, :modes], spans, float(pole))
            told[name] = [judge.streamed_score(values, truth, n // 2) for values in (whole, estimate)]
    return told


def _rival_scores(
    case: Case, truth: Truth, found: Mapping[str, Array], spans: list[slice], m: int, cache: Path | None
) -> dict[str, float]:
    """Every rival of so many coordinates in every form that needs no observer."""

    def make() -> dict[str, Array]:
        forms = (form for name, values in found.items() for form in rivals.smoothings(name, values[:, :m], spans))
        return {name: np.array(judge.score(values, truth)) for name, values in forms}

    what = [*_SOURCES[:2], case.plain, case.kind, spans, truth.values, m, sorted(found)]
    return {name: float(score) for name, score in kept(cache, what, make).items()}
