"""Damages files that runs leave behind, and reads or runs over them; runs with the injector loaded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import folders, scenarios
from .campaign import Campaign, manners, other, short
from .forks import Ended
from .injector import Fault

SCENARIOS = ("run", "disk", "continue", "reproduce")


def emptied(path: Path) -> None:
    """As after a crash before anything was on the disk."""
    path.write_bytes(b"")


def halved(path: Path) -> None:
    """As after a copy that was interrupted."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def turned(path: Path) -> None:
    """As by a bad disk: one byte, not far behind the middle, is another."""
    content = bytearray(path.read_bytes())
    if content:
        content[len(content) // 2] ^= 0x20
    path.write_bytes(content)


DAMAGES = {"emptied": emptied, "halved": halved, "turned": turned}


class Damaged:
    """Files of one scenario, damaged one after the other."""

    def __init__(self, name: str, root: Path) -> None:
        self.campaign = Campaign(name, root)
        self.finished, self.killed = root / name / "finished", root / name / "killed"
        self.violations = list(self.campaign.violations)
        self.number = 0

    def prepare(self, fault: Fault) -> None:
        """Keep the folder as a finished run leaves it, and as a killed one does."""
        campaign = self.campaign
        campaign.restore()
        campaign.child(campaign.command(again=False))
        shutil.copytree(campaign.place.parent, self.finished, symlinks=True)
        campaign.restore()
        campaign.child(campaign.command(again=False), fault)
        shutil.copytree(campaign.place.parent, self.killed, symlinks=True)

    def files(self, state: Path) -> list[str]:
        """Files that the run made, by their path."""
        before = folders.content(self.campaign.place.template)
        found = folders.content(state)
        return [path for path, what in found.items() if what != before.get(path) and what.startswith("file")]

    def each(self, state: Path, every: int) -> Iterator[tuple[str, str]]:
        """Damage files one by one in a fresh copy; what was done to which."""
        paths = self.files(state)
        pairs = [(path, how) for path in paths for how in DAMAGES]
        step = max(1, min(every, len(pairs) // 6))
        for number in range(0, len(pairs), step):
            path, how = pairs[(number + number // step) % len(pairs)]
            folders.restored(state, self.campaign.place.parent)
            place = self.campaign.place.parent / path
            before = place.read_bytes()
            DAMAGES[how](place)
            if place.read_bytes() != before:
                self.number += 1
                yield path, how

    def read(self, every: int) -> None:
        """Read a finished result with one file damaged: the right numbers, or one sentence."""
        campaign = self.campaign
        out = campaign.place.parent / campaign.scenario.out

        def job() -> Any:
            scenarios.settle()
            found: list[Any] = []
            scenarios.by_command_line(lambda: found.append(campaign.scenario.read(out)))
            return found[0]

        for path, how in self.each(self.finished, every):
            self._judge(f"reads with {path} {how}", campaign.child(job))

    def run(self, state: Path, every: int, what: str) -> None:
        """Run again over what a run left behind, with one file damaged: the right numbers."""
        campaign = self.campaign
        for path, how in self.each(state, every):
            ended = campaign.child(campaign.command(again=campaign.is_new(), read=True, seed=1))
            optional = path.endswith((".npz", ".npy", ".nc"))  # what a run makes anew
            self._judge(f"runs again over {what}, {path} {how}", ended, anew=optional and state == self.killed)

    def _judge(self, what: str, ended: Ended, *, anew: bool = False) -> None:
        """Right numbers, or one sentence; the right numbers where the run can make them anew."""
        campaign = self.campaign
        campaign.ends[ended.how] += 1
        broken = manners(ended)
        if ended.how == "done" and ended.value != campaign.known.after_read:
            broken.append(f"other numbers or attributes in {other(ended.value, campaign.known.after_read)}")
        if anew and ended.how == "failed":
            broken.append(f"failed: {short(ended.said)}")
        broken += campaign.user_files(campaign.known)
        self.violations += [f"{campaign.name} {what}: {sentence}" for sentence in broken]


def amid(damaged: Damaged) -> Fault:
    """A kill when the last pass, the last tile or the last work is written."""
    calls = damaged.campaign.known.calls
    at = [
        n
        for n, call in enumerate(calls, 1)
        if call.operation == "rename" and call.path.endswith((".npz", ".npy", ".nc"))
    ]
    return Fault("kill-after", at[-1] if at else len(calls) // 2)


def through(name: str, root: Path, every: int) -> dict[str, Any]:
    """Every so many-th damage of a scenario; what came of them."""
    damaged = Damaged(name, root)
    damaged.prepare(amid(damaged))
    if name != "reproduce":  # which nothing reads but its own next run
        damaged.read(every)
    if damaged.campaign.scenario.parts:
        damaged.run(damaged.finished, every, "a finished run")
    damaged.run(damaged.killed, max(1, every // 4), "a killed run")
    return {
        "scenario": f"{name}, damaged",
        "calls": len(damaged.files(damaged.finished)) + len(damaged.files(damaged.killed)),
        "faults": damaged.number,
        "ended": dict(sorted(damaged.campaign.ends.items())),
        "violations": damaged.violations,
    }
