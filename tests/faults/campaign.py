"""One scenario under faults, and the promises that are broken; runs with the injector loaded."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from . import folders, scenarios
from .folders import Content
from .forks import Ended, in_child
from .injector import KINDS, Call, Fault
from .plans import Case
from .scenarios import SCENARIOS

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
        self._needed(self.child(lambda: scenario.prepare(place.parent)), "preparing")
        scenarios.add_user_files(place.parent, scenario.out)
        shutil.copytree(place.parent, place.template, symlinks=True)
        out = place.parent / scenario.out
        before, before_read = folders.content(out), None
        if scenario.earlier:
            before_read = self._needed(self.child(lambda: scenario.read(out)), "reading the earlier result")
        user = {path: what for path, what in folders.content(place.parent).items() if not self._in_out(path)}
        ended = self.child(self.command(again=False))
        self._needed(ended, "the undisturbed run")
        read = self._needed(self.child(lambda: scenario.read(out)), "reading the undisturbed result")
        known = Known(user, before, before_read, folders.content(out), read, ended.calls)
        for sentence in manners(ended) + self.user_files(known) + self._leftovers(known, clean=True):
            self.violations.append(f"{self.name}, undisturbed: {sentence}")
        return known

    def _in_out(self, path: str) -> bool:
        return path == self.scenario.out or path.startswith(self.scenario.out + "/")

    def _needed(self, ended: Ended, what: str) -> Any:
        """What a child gave that must not fail."""
        if ended.how != "done":
            raise AssertionError(f"{self.name}: {what} failed ({ended.how}): {ended.said}")
        return ended.value

    def child(self, job: Callable[[], Any], fault: Fault | None = None) -> Ended:
        return in_child(job, self.place.watched, fault)

    def command(self, *, again: bool, read: bool = False, seed: int = 0) -> Callable[[], Any]:
        """The command as a job, and OUT read after it."""

        def job() -> Any:
            scenarios.settle(seed)
            scenarios.use_temporary(self.place.temporary)
            scenarios.by_command_line(lambda: self.scenario.command(self.place.parent, again))
            found: list[Any] = [None]
            if read:  # what is damaged is said in a sentence here too
                out = self.place.parent / self.scenario.out
                scenarios.by_command_line(lambda: found.append(self.scenario.read(out)))
            return found[-1]

        return job

    # -- one case -------------------------------------------------------------------------------

    def run(self, case: Case) -> None:
        """Run under the faults, look at what is there, run again, and look again."""
        self.restore()
        kept: list[str] = []
        for seed, fault in enumerate(case.faults):
            ended = self.child(self.command(again=self.is_new(), seed=seed), fault)
            self.ends[ended.how] += 1
            hit = f"{ended.calls[fault.number - 1]}" if ended.hit else "not reached"
            at = f"{self.name}, call {fault.number} of {len(self.known.calls)} ({hit}), {fault.kind}"
            broken = manners(ended, fault if ended.hit else None) + self.user_files(self.known) + self._whole(ended)
            broken += [] if KINDS[fault.kind].kills else self._temporary(fault)
            kept += self._kept(ended.said)
            self.violations += [f"{at}: {sentence}" for sentence in broken]
        if self._untouched():
            return  # the run to come is the undisturbed one
        new = self.is_new()
        # Every other time without --overwrite; what a killed run with it left is that of the next one with it.
        refused = new and not self.scenario.earlier and len(case.faults) == 1 and fault.number // 2 % 2 == 0
        again = self.child(self.command(again=new and not refused, read=True, seed=len(case.faults)))
        broken = self._refused(again) if refused else self._repaired(again)
        broken += self.user_files(self.known)
        broken += self._leftovers(self.known, kept, clean=not self.scenario.scratch)
        self.violations += [f"{at}; run again ({case}): {sentence}" for sentence in broken]

    def look_between(self, number: int) -> None:
        """Nothing changes between a call and the next one: whatever changes a file is traced."""
        seen = []
        for fault in (Fault("kill-after", number), Fault("kill-before", number + 1)):
            self.restore()
            ended = self.child(self.command(again=False), fault)
            self.ends[ended.how] += 1
            seen.append(folders.outline(self.place.watched))
        if seen[0] != seen[1]:
            what = sorted(seen[0] ^ seen[1])[0]
            self.violations.append(f"{self.name}, after call {number}: a call that is not traced changed {what}")

    def restore(self) -> None:
        folders.restored(self.place.template, self.place.parent)
        shutil.rmtree(self.place.temporary)
        self.place.temporary.mkdir()

    def _untouched(self) -> bool:
        """Whether everything is as it was before."""
        before = folders.content(self.place.template)
        return folders.content(self.place.parent) == before and not any(self.place.temporary.iterdir())

    def is_new(self) -> bool:
        """Whether the new result is at OUT, so that only --overwrite makes it again."""
        return not self.scenario.parts and self._state_of_out()[0] == "new"

    # -- promises -------------------------------------------------------------------------------

    def user_files(self, known: Known) -> list[str]:
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
        ended = self.child(lambda: self.scenario.read(out))
        if ended.how == "done" and self.scenario.earlier and ended.value == self.known.before_read:
            return "earlier", ""
        if ended.how == "done" and ended.value == self.known.after_read:
            return "new", ""
        wrong = folders.differences(self.known.after, found)
        return "damaged", f"OUT is damaged: {', '.join(wrong[:3])}; {short(ended.said)}"

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
            return [f"{ended.how}: {short(ended.said)}"]
        wrong = (
            []
            if ended.value == self.known.after_read
            else [f"other numbers or attributes in {other(ended.value, self.known.after_read)}"]
        )
        return wrong + manners(ended)

    def _refused(self, ended: Ended) -> list[str]:
        """The new result was there already: it stays, and the command says so."""
        if ended.how != "failed" or "already exists" not in ended.said:
            return [f"did not say that OUT exists, but {ended.how}: {short(ended.said)}"]
        state, what = self._state_of_out()
        return manners(ended) + ([] if state == "new" else [what])

    def _temporary(self, fault: Fault) -> list[str]:
        """No temporary files, unless they cannot be removed."""
        stuck = fault.kind in ("broken", "broken-once", "read-only")
        left = [] if stuck else sorted(folders.content(self.place.temporary))
        return [f"left in the temporary folder: {left[0]}"] if left else []

    def _kept(self, said: str) -> list[str]:
        """Work folder of a finished result of which the user was told that it is kept; it must be whole."""
        told = re.search(r"kept at (\S+)/result\b", said)
        if told is None:
            return []
        ended = self.child(lambda: scenarios.read_result(Path(told[1]) / "result"))
        if ended.how != "done":
            self.violations.append(f"{self.name}: {told[1]} is kept, but cannot be read: {short(ended.said)}")
        return [str(Path(told[1]).relative_to(self.place.parent))]

    def _leftovers(self, known: Known, kept: Sequence[str] = (), *, clean: bool) -> list[str]:
        """Nothing in the folder beside the user's files and OUT, nothing in OUT that does not belong there."""
        expected = {*known.user, self.scenario.out, *(f"{self.scenario.out}/{path}" for path in known.after)}
        found = folders.content(self.place.parent)
        left = [path for path in sorted(set(found) - expected) if not path.startswith((*kept, "//"))]
        left += [f"temporary/{path}" for path in folders.content(self.place.temporary)] if clean else []
        return [f"left behind: {left[0]}" + (f" (and {len(left) - 1} more)" if left[1:] else "")] if left else []


def manners(ended: Ended, fault: Fault | None = None) -> list[str]:
    """Killed where that was asked for; otherwise a success, or one sentence."""
    if fault is not None and KINDS[fault.kind].kills:
        return [] if ended.how == "killed" else [f"was to be killed, but {ended.how}"]
    if ended.how in ("hung", "killed"):
        return [f"{ended.how}: {short(ended.said)}"]
    if "Traceback" in ended.said:
        return [f"printed a traceback: {short(ended.said)}"]
    if ended.how == "failed" and len(_SENTENCE.findall(ended.said)) != 1:
        return [f"ended without one sentence: {short(ended.said)}"]
    return []


def short(said: str) -> str:
    """The end of what was said, on one line."""
    lines = [line for line in said.splitlines() if line.strip()]
    return " | ".join(lines[-3:])[-400:]


def other(found: Any, expected: Any, path: str = "") -> str:
    """Where two readings differ first."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for name in sorted({*found, *expected}, key=str):
            if found.get(name) != expected.get(name):
                return other(found.get(name), expected.get(name), f"{path}/{name}")
    return f"{path or '/'}: {str(found)[:200]} instead of {str(expected)[:200]}"
