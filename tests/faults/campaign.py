"""Goes through the faults of a scenario, and says which promises were broken; runs with the injector loaded."""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import folders, scenarios
from .folders import Content
from .forks import Ended, in_child
from .injector import KINDS, Call, Fault, applies
from .scenarios import SCENARIOS

_ROTATION = tuple(KINDS)
_SURVIVED = tuple(name for name, kind in KINDS.items() if not kind.kills)
# Ended like this, a command has said what is wrong in a sentence of its own.
_SENTENCE = re.compile(r"^Error: (?!interrupted)(?!\w*(Error|Exception|Warning): )\S.*\S", re.MULTILINE)


class Place(NamedTuple):
    """Folders of one scenario: all that is watched, the user's, that of temporary files, what both begin as."""

    watched: Path
    parent: Path
    temporary: Path
    template: Path


class Known(NamedTuple):
    """What is right: the user's files, OUT before and after as it lies on disk and as it reads, the calls of a run."""

    user: Content
    before: Content
    before_read: Any
    after: Content
    after_read: Any
    calls: list[Call]


class Case(NamedTuple):
    """Faults of the runs one after the other, each of which fails; then follows one without."""

    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        return ", then ".join(f"{fault.kind} at {fault.number}" for fault in self.faults)


class Campaign:
    """One scenario in one folder."""

    def __init__(self, name: str, root: Path) -> None:
        self.name, self.scenario = name, SCENARIOS[name]
        watched = (root / name / "watched").resolve()
        self.place = Place(watched, watched / "parent", watched / "temporary", root / name / "template")
        self.ends: Counter[str] = Counter()
        self.violations: list[str] = []
        self.known = self._undisturbed()

    # -- preparing ------------------------------------------------------------------------------

    def _undisturbed(self) -> Known:
        """Prepare the folder, and run once without a fault."""
        place, scenario = self.place, self.scenario
        place.temporary.mkdir(parents=True)
        place.parent.mkdir()
        self._needed(self._child(lambda: scenario.prepare(place.parent)), "preparing")
        scenarios.add_user_files(place.parent, scenario.out)
        shutil.copytree(place.parent, place.template, symlinks=True)
        out = place.parent / scenario.out
        before, before_read = folders.content(out), None
        if scenario.earlier:
            before_read = self._needed(self._child(lambda: scenario.read(out)), "reading the earlier result")
        user = {path: what for path, what in folders.content(place.parent).items() if not self._in_out(path)}
        ended = self._child(self._command(again=False))
        read = self._needed(self._child(lambda: scenario.read(out)), "reading the undisturbed result")
        known = Known(user, before, before_read, folders.content(out), read, ended.calls)
        for sentence in self._manners(ended, None) + self._user_files(known) + self._leftovers(known, clean=True):
            self.violations.append(f"{self.name}, undisturbed: {sentence}")
        return known

    def _in_out(self, path: str) -> bool:
        return path == self.scenario.out or path.startswith(self.scenario.out + "/")

    def _needed(self, ended: Ended, what: str) -> Any:
        """What a child gave that must not fail."""
        if ended.how != "done":
            raise AssertionError(f"{self.name}: {what} failed ({ended.how}): {ended.said}")
        return ended.value

    def _child(self, job: Callable[[], Any], fault: Fault | None = None) -> Ended:
        return in_child(job, self.place.watched, fault)

    def _command(self, *, again: bool, read: bool = False) -> Callable[[], Any]:
        """The command as a job, and OUT read after it."""

        def job() -> Any:
            scenarios.settle()
            scenarios.use_temporary(self.place.temporary)
            scenarios.by_command_line(lambda: self.scenario.command(self.place.parent, again))
            return self.scenario.read(self.place.parent / self.scenario.out) if read else None

        return job

    # -- one case -------------------------------------------------------------------------------

    def run(self, case: Case) -> None:
        """Run under the faults, look at what is there, run again, and look again."""
        self._restore()
        for fault in case.faults:
            ended = self._child(self._command(again=self._is_new()), fault)
            self.ends[ended.how] += 1
            hit = f"{ended.calls[fault.number - 1]}" if ended.hit else "not reached"
            at = f"{self.name}, call {fault.number} of {len(self.known.calls)} ({hit}), {fault.kind}"
            broken = self._manners(ended, fault if ended.hit else None) + self._user_files(self.known) + self._whole(ended)
            broken += [] if KINDS[fault.kind].kills else self._temporary(fault)
            self.violations += [f"{at}: {sentence}" for sentence in broken]
        if self._untouched():
            return  # the run to come is the undisturbed one
        again = self._child(self._command(again=self._is_new(), read=True))
        broken = self._repaired(again) + self._user_files(self.known)
        broken += self._leftovers(self.known, clean=not self.scenario.scratch)
        self.violations += [f"{at}; run again ({case}): {sentence}" for sentence in broken]

    def _restore(self) -> None:
        folders.restored(self.place.template, self.place.parent)
        shutil.rmtree(self.place.temporary)
        self.place.temporary.mkdir()

    def _untouched(self) -> bool:
        """Whether everything is as it was before."""
        before = folders.content(self.place.template)
        return folders.content(self.place.parent) == before and not any(self.place.temporary.iterdir())

    def _is_new(self) -> bool:
        """Whether the new result is at OUT, so that only --overwrite makes it again."""
        return not self.scenario.parts and self._state_of_out()[0] == "new"

    # -- promises -------------------------------------------------------------------------------

    def _manners(self, ended: Ended, fault: Fault | None) -> list[str]:
        """Killed where that was asked for; otherwise a success, or one sentence."""
        if fault is not None and KINDS[fault.kind].kills:
            return [] if ended.how == "killed" else [f"was to be killed, but {ended.how}"]
        if ended.how in ("hung", "killed"):
            return [f"{ended.how}: {_short(ended.said)}"]
        if "Traceback" in ended.said:
            return [f"printed a traceback: {_short(ended.said)}"]
        if ended.how == "failed" and fault is None:
            return [f"failed without a fault: {_short(ended.said)}"]
        if ended.how == "failed" and len(_SENTENCE.findall(ended.said)) != 1:
            return [f"ended without one sentence: {_short(ended.said)}"]
        return []

    def _user_files(self, known: Known) -> list[str]:
        """Every file of the user as it was."""
        lost = folders.differences(known.user, folders.content(self.place.parent))
        return [f"the user's {lost[0]}" + (f" (and {len(lost) - 1} more)" if lost[1:] else "")] if lost else []

    def _state_of_out(self) -> tuple[str, str]:
        """Whether OUT is absent, earlier, new, or else damaged, and how."""
        out = self.place.parent / self.scenario.out
        if not os.path.lexists(out):
            return "absent", "OUT is gone, and with it the earlier result"
        found = folders.content(out)
        if self.scenario.earlier and found == self.known.before:
            return "earlier", ""
        if found == self.known.after:
            return "new", ""
        ended = self._child(lambda: self.scenario.read(out))
        if ended.how == "done" and self.scenario.earlier and ended.value == self.known.before_read:
            return "earlier", ""
        if ended.how == "done" and ended.value == self.known.after_read:
            return "new", ""
        wrong = folders.differences(self.known.after, found)
        return "damaged", f"OUT is damaged: {', '.join(wrong[:3])}; {_short(ended.said)}"

    def _whole(self, ended: Ended) -> list[str]:
        """OUT absent, or the earlier result, or the new one; after a success the new one."""
        if self.scenario.parts and ended.how != "done":
            return self._parts_whole()
        state, what = self._state_of_out()
        if ended.how == "done":
            return [] if state == "new" else [f"succeeded, but OUT is {state}. {what}"]
        allowed = ("earlier", "new") if self.scenario.earlier else ("absent", "new")
        return [] if state in allowed else [what]

    def _parts_whole(self) -> list[str]:
        """What has appeared in a folder of parts is whole, each part by itself."""
        found, after = folders.content(self.place.parent / self.scenario.out), self.known.after
        broken = [path for path in after if path in found and found[path] != after[path]]
        started = {path.split("/")[0] for path in found if path.endswith(".zarr") and "/" not in path and path in after}
        broken += [path for path in after if path.split("/")[0] in started and path not in found]
        return [f"{self.scenario.out}/{broken[0]} has appeared, but is not whole"] if broken else []

    def _repaired(self, ended: Ended) -> list[str]:
        """The run without a fault gave the bits of one that nothing disturbed."""
        if ended.how != "done":
            return [f"{ended.how}: {_short(ended.said)}"]
        wrong = [] if ended.value == self.known.after_read else [f"other numbers or attributes in {_other(ended.value, self.known.after_read)}"]
        return wrong + self._manners(ended, None)

    def _temporary(self, fault: Fault) -> list[str]:
        """No temporary files, unless they cannot be removed."""
        stuck = fault.kind in ("broken", "broken-once", "read-only")
        left = [] if stuck else sorted(folders.content(self.place.temporary))
        return [f"left in the temporary folder: {left[0]}"] if left else []

    def _leftovers(self, known: Known, *, clean: bool) -> list[str]:
        """Nothing in the folder beside the user's files and OUT, nothing in OUT that does not belong there."""
        expected = {*known.user, self.scenario.out, *(f"{self.scenario.out}/{path}" for path in known.after)}
        found = folders.content(self.place.parent)
        left = sorted(set(found) - expected)
        left += [f"temporary/{path}" for path in folders.content(self.place.temporary)] if clean else []
        return [f"left behind: {left[0]}" + (f" (and {len(left) - 1} more)" if left[1:] else "")] if left else []


def _short(said: str) -> str:
    """The end of what was said, on one line."""
    lines = [line for line in said.splitlines() if line.strip()]
    return " | ".join(lines[-3:])[-400:]


def _other(found: Any, expected: Any, path: str = "") -> str:
    """Where two readings differ first."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for name in sorted({*found, *expected}, key=str):
            if found.get(name) != expected.get(name):
                return _other(found.get(name), expected.get(name), f"{path}/{name}")
    return f"{path or '/'}: {str(found)[:200]} instead of {str(expected)[:200]}"


# -- which faults ---------------------------------------------------------------------------------


def every(calls: Sequence[Call], step: int = 1) -> Iterator[Case]:
    """Every kind of fault at every step-th call. A kill after a call is the kill before the next one."""
    for number in range(1, len(calls) + 1, step):
        for kind in KINDS:
            if applies(kind, calls[number - 1]) and (kind != "kill-after" or number == len(calls)):
                yield Case((Fault(kind, number),))


def sample(calls: Sequence[Call], n_spread: int, n_last: int) -> Iterator[Case]:
    """All kinds in turn over calls that are evenly spread; the last ones with a kill each, and two failures."""
    n = len(calls)
    spread = sorted({1 + k * max(0, n - n_last - 1) // max(1, n_spread) for k in range(n_spread)})
    for turn, number in enumerate(spread):
        yield from (Case((Fault(kind, number),)) for kind in _in_turn(calls[number - 1], _ROTATION, 2 * turn))
    for turn, number in enumerate(range(max(1, n - n_last + 1), n + 1)):
        yield Case((Fault("kill-before", number),))
        yield from (Case((Fault(kind, number),)) for kind in _in_turn(calls[number - 1], _SURVIVED, 2 * turn))
    yield Case((Fault("kill-after", n),))


def twice(calls: Sequence[Call], n_pairs: int) -> Iterator[Case]:
    """Two runs that are killed at different places, one after the other."""
    n = len(calls)
    for k in range(n_pairs):
        late, early = n - 1 - (k * n) // (2 * n_pairs + 1), 1 + (k + 1) * n // (n_pairs + 2)
        pair = (late, early) if k % 2 == 0 else (early, late)
        yield Case(tuple(Fault("kill-before", max(1, number)) for number in pair))


def _in_turn(call: Call, kinds: Sequence[str], turn: int) -> list[str]:
    """Two kinds that the call can suffer, others every turn."""
    able = [kind for kind in kinds if applies(kind, call)]
    return list(dict.fromkeys(able[(turn + k) % len(able)] for k in range(2)))


# -- the program ----------------------------------------------------------------------------------


def warm_up(root: Path) -> None:
    """Import here whatever a run imports, so that no child has to."""

    def scout() -> list[str]:
        importlib.import_module("distributed")
        for name, scenario in SCENARIOS.items():
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
    except Exception:  # noqa: BLE001 - some names in sys.modules were never meant to be imported
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
    made.add_argument("--number", type=int, help="fault this call alone")
    made.add_argument("--kind", choices=list(KINDS), help="with this kind of fault alone")
    made.add_argument("--keep", type=Path, help="folder to work in, which is kept")
    made.add_argument("--trace", action="store_true", help="print the calls, and fault none")
    return made


def main(words: Sequence[str] | None = None) -> None:
    """Print one JSON object a scenario."""
    options = parser().parse_args(words)
    root = options.keep or Path(tempfile.mkdtemp(prefix="faults-"))
    root.mkdir(parents=True, exist_ok=True)
    try:
        warm_up(root)
        for name in options.scenarios.split(","):
            shutil.rmtree(root / name, ignore_errors=True)
            campaign = Campaign(name, root)
            if options.trace:
                print("\n".join(f"{n:5d} {call}" for n, call in enumerate(campaign.known.calls, 1)), flush=True)
                continue
            cases = chosen(options, campaign.known.calls)
            for case in cases:
                campaign.run(case)
            print(json.dumps(report(campaign, len(cases))), flush=True)
            if options.keep is None:
                shutil.rmtree(root / name, ignore_errors=True)
    finally:
        if options.keep is None:
            shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
