"""The table of truths and estimates, and the sentences that the project must be able to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

Row = dict[str, Any]

_SETS = ("raw", "conditioned")


class Line(NamedTuple):
    """One truth that is to be read: which case, its name, and the row of scores."""

    case: str
    truth: str
    row: Row


def lines(results: Sequence[Row], controls: bool = False, apart: bool = False) -> list[Line]:
    """All truths, or all controls; or those of the kinds on which nothing was tuned."""
    return [
        Line(result["case"], truth, row)
        for result in first_draws(results)
        for truth, row in result["truths"].items()
        if row["control"] == controls and result.get("apart", False) == apart
    ]


def state(line: Line, way: str) -> float:
    """What a way reads; where it refused, no more than chance."""
    return float(line.row["ways"][way].get("state", line.row["chance"]["mean"]))


def rivals_of(line: Line, way: str, count: str) -> dict[str, float]:
    """Every rival of a way that has so many coordinates, those smoothed alike included.

    A way that refused smooths nothing, and the diffusion maps that it should have made are the raw ones.
    """
    found, own = dict(line.row["rivals"][count]), line.row["ways"][way]
    plain = {name.removesuffix(" pole 0.0"): score for name, score in found.items() if name.endswith(" pole 0.0")}
    found |= {f"{name} alike": score for name, score in own.get("alike", {}).get(count, plain).items()}
    own_map = own.get("own dm", plain.get("dm raw"))
    return found if own_map is None else found | {"own dm": own_map}


def best(scores: dict[str, float], names: Sequence[str] | None = None) -> tuple[str, float]:
    """The best of some rivals, and its score."""
    chosen = {name: score for name, score in scores.items() if names is None or name in names}
    if not chosen:
        return "none", float("nan")
    name = max(chosen, key=lambda key: chosen[key])
    return name, chosen[name]


MAPS = ("own dm", *(f"dm {label} pole 0.0" for label in _SETS))
PCA_ALIKE = tuple(f"pca {label} alike" for label in _SETS)
TICA_ALIKE = tuple(f"tica {label} alike" for label in _SETS)
_COLUMNS = ("own dm", "dm raw", "dm cond.", "pca alike raw", "cond.", "tica alike raw", "cond.", "best rival")
_COLUMNS += ("above dm and pca alike", "above best", "streamed", "whole", "streamed above whole")


def counts_of(results: Sequence[Row], way: str, modes: int) -> dict[str, Callable[[str], str]]:
    """How many coordinates rivals have: as many as the way, or always so many."""
    own = {result["case"]: result["ways"][way]["n_modes"] or modes for result in first_draws(results)}
    return {"as many coordinates": lambda case: str(own[case]), f"{modes} coordinates": lambda case: str(modes)}


def table(results: Sequence[Row], ways: Sequence[str], modes: int) -> str:
    """Markdown, a row a truth; rivals have as many coordinates as the first way, intervals 95 %."""
    count = counts_of(results, ways[0], modes)["as many coordinates"]
    head = ["recording", "truth", "chance", f"**{ways[0]}**", *ways[1:], *_COLUMNS]
    known = lines(results) + lines(results, controls=True) + lines(results, apart=True)
    rows = [head, ["---"] * len(head), *(_row(line, ways, count(line.case)) for line in known)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)


def _row(line: Line, ways: Sequence[str], count: str) -> list[str]:
    """Cells of one truth."""
    own, scores = line.row["ways"][ways[0]], rivals_of(line, ways[0], count)
    states = [_short(line.row["ways"][way].get("state")) for way in ways]
    name, score = best(scores)
    return [
        line.case,
        line.truth + (" (control)" if line.row["control"] else " (apart)" if line.row.get("apart") else ""),
        _short(line.row["chance"]["mean"]),
        f"**{states[0] if own else 'refused'}**",
        *states[1:],
        *(_short(scores.get(key)) for key in (*MAPS, *PCA_ALIKE, *TICA_ALIKE)),
        f"{_short(score)} {name}",
        *(_above(interval(line, ways[0], key)) for key in ("behind alike", "behind all")),
        *(_short(own.get(f"{key}, second half")) for key in ("streamed", "whole")),
        _above(interval(line, ways[0], "lost")),
    ]


def first_draws(results: Sequence[Row]) -> list[Row]:
    """All but the further draws of controls."""
    return [row for row in results if row.get("draw", 1) == 1]


def recordings(results: Sequence[Row]) -> Iterator[str]:
    """What was taken of every recording."""
    for row in first_draws(results):
        size = f"{row['n_frames']} frames of {row['n_features']} in {row['n_segments']} segments"
        yield f"{row['case']}: {row['features']} ({row['kind']}); {size}"


def summary(results: Sequence[Row], ways: Sequence[str], modes: int) -> Iterator[str]:
    """Sentences about every way."""
    for way in ways:
        known, seen = lines(results), set()
        for what, count in counts_of(results, way, modes).items():
            numbers = tuple(count(line.case) for line in known)
            if numbers not in seen:
                yield from _against(known, way, what, count)
            seen.add(numbers)
        yield from _luck(lines(results), way)
        yield from _streaming(lines(results), way)
        yield from _untuned(lines(results, apart=True), way, modes)
        yield from _controls(lines(results, controls=True), way, results)
        yield from _told(results, way)
    yield from _rivals_streamed(lines(results))
    if len(ways) > 1:
        yield from _left_out(lines(results), ways)


def _against(known: list[Line], way: str, what: str, count: Callable[[str], str]) -> Iterator[str]:
    """Shares and means of one way against rivals of so many coordinates."""
    if not known:
        return
    own = np.array([state(line, way) for line in known])
    every = [rivals_of(line, way, count(line.case)) for line in known]
    chance = np.mean([line.row["chance"]["mean"] for line in known])
    cases = {line.case: own[[other.case == line.case for other in known]].mean() for line in known}
    yield (
        f"{way}, rivals with {what}: mean {own.mean():.3f} over {len(known)} truths (chance {chance:.3f}), "
        f"{np.mean([*cases.values()]):.3f} over {len(cases)} recordings"
    )
    groups = {"own dm": MAPS[:1], "dm raw": MAPS[1:2], "dm conditioned": MAPS[2:], "best dm": MAPS}
    groups |= {"pca alike, raw": PCA_ALIKE[:1], "pca alike, conditioned": PCA_ALIKE[1:], "best pca alike": PCA_ALIKE}
    groups |= {"best tica alike": TICA_ALIKE}
    short = {name: _behind(own, every, names) for name, names in groups.items() if names[0] in every[0]}
    for name, behind in short.items():
        yield f"  within .02 of {name}: {_share(behind <= 0.02)}; mean {(own + behind).mean():.3f}"
    if {"best dm", "best pca alike"} <= {*short}:
        both = np.maximum(short["best dm"], short["best pca alike"])
        yield f"  within .02 of the best dm and of the best pca alike: {_share(both <= 0.02)} (wanted 90 %)"
    behind = _behind(own, every, None)
    lost = [f"{line.case} {line.truth} ({-b:+.2f})" for line, b in zip(known, behind, strict=True) if b > 0.1]
    yield f"  within .03 of the best of all rivals: {_share(behind <= 0.03)} (wanted 75 %)"
    yield f"  lost by more than .10 to the best of all: {len(lost)} (wanted 0){': ' if lost else ''}{'; '.join(lost)}"
    yield f"  highest mean of a rival: {_highest(every, [line.row['chance']['mean'] for line in known])}"


def _untuned(known: list[Line], way: str, modes: int) -> Iterator[str]:
    """Shares and means on the kinds on which nothing was tuned."""
    if known:
        yield f"  {way} on {len({line.case for line in known})} kinds on which nothing was tuned:"
        for part in (_against(known, way, f"{modes} coordinates", lambda case: str(modes)), _luck(known, way)):
            yield from (f"  {said}" for said in part)


_ALLOWED = {
    "behind alike": (0.02, "the best dm and PCA alike"),
    "behind all": (0.03, "the best of all rivals"),
    "lost": (0.05, "the embedded half, streamed"),
}


def interval(line: Line, way: str, key: str) -> list[float] | None:
    """By how much a way is behind, and between what with 95 %."""
    found = line.row["ways"][way].get(key)
    return None if found is None else [float(number) for number in found if not isinstance(number, str)]


def _luck(known: list[Line], way: str) -> Iterator[str]:
    """Every truth that is behind by more than is allowed, with its interval, and how many are so beyond it."""
    for key, (allowed, what) in _ALLOWED.items():
        every = {f"{line.case} {line.truth}": interval(line, way, key) for line in known}
        late = {name: found for name, found in every.items() if found is not None and found[0] > allowed}
        each = "; ".join(f"{name} {by:.2f} [{low:.2f}, {high:.2f}]" for name, (by, low, high) in late.items())
        sure = sum(low > allowed for _, low, _ in late.values())
        yield f"  {way} behind {what} by more than {allowed}: {len(late)}, surely {sure}{': ' if late else ''}{each}"


def _rivals_streamed(known: list[Line]) -> Iterator[str]:
    """What rivals lose that are learnt from the first half alone."""
    names = dict.fromkeys(name for line in known for name in line.row.get("halves", {}))
    for name in names:
        pairs = np.array([line.row["halves"][name] for line in known if name in line.row.get("halves", {})], float)
        pairs = pairs[np.isfinite(pairs).all(axis=1)]
        if len(pairs):
            loss = pairs[:, 0] - pairs[:, 1]
            said = f"mean {pairs[:, 1].mean():.3f}, loss {loss.mean():.3f}, at most .05 for {_share(loss <= 0.05)}"
            yield f"{name}, learnt from the first half alone, reads the second: {said}"


def _behind(own: np.ndarray, every: list[dict[str, float]], names: Sequence[str] | None) -> np.ndarray:
    """By how much a way is behind the best of some rivals."""
    return np.array([best(scores, names)[1] for scores in every]) - own


def _highest(every: list[dict[str, float]], chance: list[float]) -> str:
    """The three rivals with the highest means, each one setting for all truths."""
    names = dict.fromkeys(name for scores in every for name in scores)
    means = {name: np.mean([s.get(name, c) for s, c in zip(every, chance, strict=True)]) for name in names}
    top = sorted(means, key=lambda name: -means[name])[:3]
    return ", ".join(f"{name} {means[name]:.3f}" for name in top)


def _streaming(known: list[Line], way: str) -> Iterator[str]:
    """What is lost where the second half was streamed instead of embedded."""
    if not known:
        return
    keys = ("whole, second half", "streamed, second half")
    pairs = np.array([[line.row["ways"][way].get(key, np.nan) for key in keys] for line in known])
    loss = pairs[:, 0] - pairs[:, 1]
    loss = loss[np.isfinite(loss)]
    if len(loss):
        yield (
            f"  {way} streamed through the embedding of the first half: mean loss {loss.mean():.3f}, at most .05 for "
            f"{_share(loss <= 0.05)}; it reads {np.nanmean(pairs[:, 1]):.3f}"
        )


def _controls(known: list[Line], way: str, results: Sequence[Row]) -> Iterator[str]:
    """Negative controls against the same state with a shuffled truth; of several draws their mean and spread."""
    for line in known:
        score, chance = state(line, way), line.row["chance"]
        drawn = [score, *(row["truths"][line.truth][way] for row in results if _again(row, line.case))]
        if len(drawn) > 1:
            mean, spread = float(np.mean(drawn)), float(np.std(drawn, ddof=1))
            verdict = "at chance" if mean <= 2 * spread / len(drawn) ** 0.5 else "ABOVE CHANCE"
            each = f"{len(drawn)} draws {min(drawn):.2f} to {max(drawn):.2f}, deviation {spread:.2f}"
            yield f"  {way}, control {line.case} {line.truth}: mean {mean:.2f} of {each}: {verdict}"
            continue
        verdict = "at chance" if score <= chance["most"] + 0.05 else "ABOVE CHANCE"
        shuffled = f"shuffled truths {chance['mean']:.2f}, at most {chance['most']:.2f}"
        yield f"  {way}, control {line.case} {line.truth}: {score:.2f}, {shuffled}: {verdict}"


def _again(row: Row, case: str) -> bool:
    """Whether a row is a further draw of a case."""
    return row.get("draw", 1) > 1 and str(row["case"]).rsplit("_", 1)[0] == case


def _told(results: Sequence[Row], way: str) -> Iterator[str]:
    """Refusals, and time."""
    results = first_draws(results)
    for result in results:
        refused = [part for part in ("whole", "streamed") if f"refused {part}" in result["ways"][way]]
        if refused:
            said = result["ways"][way][f"refused {refused[0]}"]
            yield f"  {way} refused {result['case']} ({' and '.join(refused)}): {said}"
    seconds = sum(result["ways"][way]["seconds whole"] for result in results)
    yield f"  {way}: {seconds:.0f} s for all recordings"


def _left_out(known: list[Line], ways: Sequence[str]) -> Iterator[str]:
    """The way that is best on the other recordings, judged on the one that was left out."""
    scores = np.array([[state(line, way) for way in ways] for line in known])
    cases = np.array([line.case for line in known])
    if len(np.unique(cases)) < 2:
        return
    judged = [row[scores[cases != name].mean(axis=0).argmax()] for row, name in zip(scores, cases, strict=True)]
    most = scores.max(axis=1).mean()
    yield f"way chosen on the other recordings: mean {np.mean(judged):.3f}; best of all ways each: {most:.3f}"


def _share(holds: np.ndarray) -> str:
    """How many of how many."""
    return f"{holds.sum()} of {len(holds)}, {100 * holds.mean():.0f} %" if len(holds) else "none"


def _above(found: list[float] | None) -> str:
    """A difference the other way round, with its interval, or a dash."""
    if found is None:
        return "-"
    by, low, high = (f"{-number:+.2f}".replace("0.", ".", 1) for number in (found[0], found[2], found[1]))
    return f"{by} [{low}, {high}]"


def _short(score: float | None) -> str:
    """Two digits, or a dash."""
    return "-" if score is None or np.isnan(score) else f"{score:.2f}".replace("0.", ".", 1)
