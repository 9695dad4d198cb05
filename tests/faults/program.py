"""The program that goes through faults and damages; runs with the injector loaded, and prints JSON."""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import shutil
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import damage, scenarios
from .campaign import Campaign
from .forks import in_child
from .injector import KINDS, Call, Fault, applies
from .plans import Case, every, sample, twice
from .scenarios import SCENARIOS


def warm_up(root: Path, names: Sequence[str]) -> None:
    """Import here whatever the scenarios import, so that no child has to."""

    def scout() -> list[str]:
        importlib.import_module("distributed")
        for name in names:
            scenario = SCENARIOS[name]
            parent = root / "scout" / name
            parent.mkdir(parents=True)
            scenarios.settle()
            scenario.prepare(parent)
            scenario.command(parent, False)
            scenario.read(parent / scenario.out)
        return sorted(sys.modules)

    ended = in_child(scout, root)
    shutil.rmtree(root / "scout", ignore_errors=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ended.value or ["distributed"]:
            if not name.startswith("__"):
                _imported(name)
    gc.collect()
    gc.freeze()  # a child that collects would copy every page of memory


def _imported(name: str) -> None:
    try:
        importlib.import_module(name)
    except Exception:
        return


def report(campaign: Campaign, n_cases: int) -> dict[str, Any]:
    """What came of a scenario."""
    return {
        "scenario": campaign.name,
        "calls": len(campaign.known.calls),
        "faults": n_cases,
        "ended": dict(sorted(campaign.ends.items())),
        "violations": campaign.violations,
    }


def chosen(options: argparse.Namespace, calls: Sequence[Call]) -> list[Case]:
    """The cases that the options name."""
    if options.number:
        kinds = [options.kind] if options.kind else [k for k in KINDS if applies(k, calls[options.number - 1])]
        return [Case((Fault(kind, options.number),)) for kind in kinds]
    if options.sample:
        return [*sample(calls, options.sample, options.last), *twice(calls, options.twice)]
    cases = [*every(calls, options.every), *twice(calls, options.twice)]
    return [case for case in cases if options.kind in (None, case.faults[0].kind)]


def parser() -> argparse.ArgumentParser:
    """Options, here and of the long form."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--scenarios", default=",".join(SCENARIOS), help="names, with commas between")
    made.add_argument("--every", type=int, default=1, help="fault every so many calls")
    made.add_argument("--sample", type=int, default=0, help="instead: so many calls, evenly spread, and the last ones")
    made.add_argument("--last", type=int, default=10, help="how many last calls belong to a sample")
    made.add_argument("--twice", type=int, default=2, help="pairs of kills one after the other")
    made.add_argument("--damage", type=int, default=1, help="damage every so many-th file and way; 0 none")
    made.add_argument("--between", type=int, default=3, help="look so many times whether the trace is complete")
    made.add_argument("--number", type=int, help="fault this call alone")
    made.add_argument("--kind", choices=list(KINDS), help="with this kind of fault alone")
    made.add_argument("--keep", type=Path, help="folder to work in, which is kept")
    made.add_argument("--trace", action="store_true", help="print the calls, and fault none")
    return made


def main(words: Sequence[str] | None = None) -> None:
    """Print one JSON object a scenario, and one for the damages of its files."""
    options = parser().parse_args(words)
    root = options.keep or Path(tempfile.mkdtemp(prefix="faults-"))
    root.mkdir(parents=True, exist_ok=True)
    names = options.scenarios.split(",")
    try:
        warm_up(root, names)
        for name in names:
            _faulted(name, root, options)
            if name in damage.SCENARIOS and options.damage and not (options.number or options.trace):
                print(json.dumps(damage.through(name, root / "damaged", options.damage)), flush=True)
    finally:
        if options.keep is None:
            shutil.rmtree(root, ignore_errors=True)


def _faulted(name: str, root: Path, options: argparse.Namespace) -> None:
    """Faults of one scenario, or its trace."""
    shutil.rmtree(root / name, ignore_errors=True)
    campaign = Campaign(name, root)
    if options.trace:
        print("\n".join(f"{n:5d} {call}" for n, call in enumerate(campaign.known.calls, 1)), flush=True)
        return
    cases = chosen(options, campaign.known.calls)
    for case in cases:
        campaign.run(case)
    if not options.number and not campaign.scenario.scratch:  # names of temporary folders are random
        n = len(campaign.known.calls)
        for k in range(options.between):
            campaign.look_between(1 + (k + 1) * (n - 2) // (options.between + 1))
    print(json.dumps(report(campaign, len(cases))), flush=True)


if __name__ == "__main__":
    main()
