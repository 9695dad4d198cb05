"""A corpus under faults: a full or broken disk, kills; runs with the injector loaded, and prints JSON."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manifold_observer.pipeline.cli import commands as cli

from . import folders, scenarios
from .forks import Ended, in_child
from .injector import KINDS, Call, Fault, applies

NAMES = ("a", "b")


def prepare(folder: Path) -> None:
    """A corpus of two recordings."""
    (folder / "in").mkdir(parents=True)
    for number, name in enumerate(NAMES):
        np.save(folder / "in" / f"{name}.npy", np.random.default_rng(number).normal(size=(40, 3)).cumsum(axis=0))
    (folder / "corpus.toml").write_text(
        '[corpus]\ninputs = ["in/*.npy"]\noutput = "out"\ncluster = "none"\nbackoff = 0.0\n'
        '[run]\nfeatures = "identity"\nn-modes = 2\n'
    )


def command(folder: Path, seed: int = 0) -> None:
    """Run the corpus as the command line does."""
    scenarios.settle(seed)
    cli.main(["corpus", "run", str(folder / "corpus.toml")])


def results(folder: Path) -> dict[str, Any]:
    """All that lies in results of recordings."""
    return {name: folders.content(folder / "out" / f"{name}.zarr") for name in NAMES if place(folder, name).exists()}


def place(folder: Path, name: str) -> Path:
    """Where a result goes."""
    return folder / "out" / f"{name}.zarr"


def manners(ended: Ended, kills: bool) -> list[str]:
    """Killed where that was asked for; otherwise sentences, and a code that is documented."""
    if kills or ended.how == "killed":
        return [] if (ended.how == "killed") == kills or ended.how == "done" else [f"{ended.how}: {ended.said}"]
    if ended.how == "hung" or "Traceback" in ended.said:
        return [f"{ended.how}: {ended.said[-1500:]}"]
    told = sum(line.startswith("Error: ") or " failed: " in line for line in ended.said.splitlines())
    return [] if ended.how == "done" or told else [f"failed without a sentence: {ended.said[-500:]}"]


def tried(folder: Path, expected: dict[str, Any], fault: Fault) -> list[str]:
    """What is wrong after a fault, and after the same command without one."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    ended = in_child(lambda: command(folder), folder, fault)
    broken = manners(ended, ended.hit and KINDS[fault.kind].kills)
    broken += [f"{name} is not whole" for name, content in results(folder).items() if content != expected[name]]
    again = in_child(lambda: command(folder, seed=1), folder)
    if again.how != "done" or results(folder) != expected:
        broken.append(f"again: {again.how}: {again.said[-500:]}")
    left = [path.name for path in (folder / "out").iterdir() if path.suffix != ".zarr" and path.name != ".corpus"]
    broken += [f"left behind: {left}"] if left else []
    called = ended.calls[fault.number - 1] if ended.hit else "not reached"
    return [f"call {fault.number} ({called}), {fault.kind}: {sentence}" for sentence in broken]


def main() -> None:
    """Print how many faults there were, and what was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=10)
    parser.add_argument("--kinds", default="full,full-once,broken-once,read-only,kill-after")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="faults-")).resolve()
    try:
        prepare(root / "scout")
        # Imports are paid once, in a process without threads: a child brings what it imported.
        for name in in_child(lambda: imported_by(root / "scout"), root / "scout").value:
            import_quietly(name)
        prepare(root / "corpus")
        whole = in_child(lambda: command(root / "corpus"), root / "corpus")
        expected = results(root / "corpus")
        cases = list(chosen(whole.calls, options.kinds.split(","), options.sample))
        broken = [sentence for fault in cases for sentence in tried(root / "corpus", expected, fault)]
        print(json.dumps({"calls": len(whole.calls), "faults": len(cases), "broken": broken}))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def imported_by(folder: Path) -> list[str]:
    """Run once; which modules that takes."""
    try:
        command(folder)
    except SystemExit as left:
        if left.code:
            raise
    return sorted(sys.modules)


def chosen(calls: Sequence[Call], kinds: Sequence[str], number: int) -> Iterator[Fault]:
    """So many faults, spread over all calls, and kinds in turn among those that a call can meet."""
    for turn in range(number):
        place = 1 + turn * (len(calls) - 1) // max(1, number - 1)
        in_turn = [*kinds[turn % len(kinds) :], *kinds[: turn % len(kinds)]]
        kind = next((kind for kind in in_turn if applies(kind, calls[place - 1])), None)
        if kind is not None:
            yield Fault(kind, place)


def import_quietly(name: str) -> None:
    """Import a module, if it can be."""
    try:
        __import__(name)
    except Exception:
        return


if __name__ == "__main__":
    main()
