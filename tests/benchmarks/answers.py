"""The yardstick: what the defaults read out of recordings whose truth is known, beside what anybody would try first.

Every real recording with a truth (in ../shared/recordings beside the checkout, or in the folder that
MANIFOLD_OBSERVER_RECORDINGS names; absent ones are skipped), and simulated ones. Estimates see no truth; read-outs are
fitted on four fifths of the frames and judged on the others, five times. Diffusion maps, ours and theirs, are made from
all frames at once and each sees half a window ahead; the columns ``streamed`` and ``whole`` show the second half of the
frames, read with what was fitted on the first, where it was streamed through the embedding of the first half and where
it was embedded too.

A way is a name and a function in ``yardstick/ways.py``; ``--settings n_modes=8 gamma=0.5`` adds one for this run.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dask
from threadpoolctl import threadpool_limits
from yardstick import compare, loaders, report, rivals
from yardstick.case import Case
from yardstick.ways import WAYS, Way, engine


def run(
    cases: Sequence[Case] | Any,
    ways: Mapping[str, Way],
    wanted: Sequence[str] = tuple(rivals.BASES),
    modes: int = compare.MODES,
    cache: Path | None = None,
) -> list[dict[str, Any]]:
    """Scores of all cases, in one thread: the same numbers in every run on a machine."""
    results = []
    with threadpool_limits(1), dask.config.set(scheduler="synchronous"):
        for case in cases:
            began = time.perf_counter()
            results.append(compare.compare(case, ways, wanted, modes, cache))
            print(f"{case.name}: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
    return results


def chosen_ways(names: Sequence[str], settings: Sequence[Sequence[str]]) -> dict[str, Way]:
    """Ways by name, and one for every list of settings."""
    ways = {name: WAYS[name] for name in names}
    for words in settings:
        pairs = dict(word.split("=", 1) for word in words)
        ways[" ".join(words)] = engine(**{key: _value(text) for key, text in pairs.items()})
    return ways


def _value(text: str) -> Any:
    """A number where it is one, else the word."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def rounded(thing: Any) -> Any:
    """Four digits everywhere, and no NaN, which JSON has not."""
    if isinstance(thing, dict):
        return {key: rounded(value) for key, value in thing.items()}
    if isinstance(thing, list):
        return [rounded(value) for value in thing]
    if isinstance(thing, float):
        return None if math.isnan(thing) else round(thing, 4)
    return thing


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], choices=loaders.names(), metavar="NAME", help="recordings")
    parser.add_argument("--ways", nargs="+", default=[*WAYS], choices=[*WAYS], help="the first fills the table")
    parser.add_argument("--settings", nargs="+", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--rivals", nargs="+", default=[*rivals.BASES], choices=[*rivals.BASES])
    parser.add_argument("--modes", type=int, default=compare.MODES, help="coordinates of the second set of rivals")
    parser.add_argument("--cache", type=Path, help="folder for what rivals say, which does not change")
    parser.add_argument("--other", type=int, default=0, help="added to the seeds of the kinds that count in no mean")
    parser.add_argument("--json", type=Path, help="file for everything")
    options = parser.parse_args()
    began = time.perf_counter()
    ways = chosen_ways(options.ways, options.settings)
    cases = loaders.load(options.only, lambda name, why: print(f"{name} is skipped: {why}", flush=True), options.other)
    results = run(cases, ways, options.rivals, options.modes, options.cache)
    print(report.table(results, [*ways], options.modes), end="\n\n")
    print(*report.recordings(results), "", sep="\n")
    summary = [*report.summary(results, [*ways], options.modes)]
    print(*summary, sep="\n")
    print(f"{time.perf_counter() - began:.0f} s in all, load {os.getloadavg()[0]:.1f}")
    if options.json:
        options.json.write_text(json.dumps(rounded({"summary": summary, "recordings": results}), indent=1))


if __name__ == "__main__":
    main()
