"""Whether `tune` picks well: its choice on every recording of the yardstick, against all that it tried.

Settings are chosen on a sample without any truth, as a user does it; then each is judged on all frames. Kinds on which
nothing was tuned come last, and apart.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import dask
import numpy as np
from threadpoolctl import threadpool_limits
from yardstick import judge, loaders
from yardstick.case import Case

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.embedding.tune import CANDIDATES

CLOSE = 0.02
Row = dict[str, Any]


def scan(case: Case) -> Row:
    """What tune picks, and every candidate's score of every truth."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        picked = mo.tune(case.frames).name
        states = {name: _state(case, options) for name, options in CANDIDATES.items()}
    scores = {name: [judge.score(state, truth) for truth in case.truths.values()] for name, state in states.items()}
    return {"case": case.name, "apart": case.apart, "picked": picked, "truths": [*case.truths], "scores": scores}


def _state(case: Case, options: dict[str, Any]) -> Any:
    """State of all frames by some settings."""
    return mo.observe(mo.embed(case.frames, **options), case.frames)["state"].values


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """How often what is picked, and what any one setting gives, is close to the best that was tried."""
    if not rows:
        return
    best = [np.max([*row["scores"].values()], axis=0) for row in rows]
    for name in ("picked", *CANDIDATES):
        scored = [np.array(row["scores"][row["picked"] if name == "picked" else name]) for row in rows]
        behind = [most - scores for most, scores in zip(best, scored, strict=True)]
        truths, recordings = np.concatenate(behind) <= CLOSE, np.array([own.mean() for own in behind]) <= CLOSE
        yield (
            f"{name}: mean {np.concatenate(scored).mean():.3f} (best of all {np.concatenate(best).mean():.3f}); within "
            f".02 of the best on {truths.sum()} of {len(truths)} truths, {100 * truths.mean():.0f} %, and on "
            f"{recordings.sum()} of {len(recordings)} recordings, {100 * recordings.mean():.0f} %"
        )


def run(cases: Iterable[Case]) -> list[Row]:
    """Scan every case, a line each, in one thread."""
    rows = []
    with threadpool_limits(1), dask.config.set(scheduler="synchronous"):
        for case in cases:
            rows.append(scan(case))
            each = {name: np.round(scores, 3).tolist() for name, scores in rows[-1]["scores"].items()}
            print(case.name, f"> {rows[-1]['picked']}", each, flush=True)
    return rows


def main() -> None:
    """Run, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], choices=loaders.names(), metavar="NAME", help="recordings")
    cases = loaders.load(parser.parse_args().only)
    rows = run(case for case in cases if not any(truth.control for truth in case.truths.values()))
    for what, some in (("", False), ("kinds on which nothing was tuned, ", True)):
        chosen = [row for row in rows if row["apart"] == some]
        print(*(f"{what}{said}" for said in summary(chosen)), sep="\n")


if __name__ == "__main__":
    main()
