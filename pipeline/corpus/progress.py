"""How far a corpus run is, in a file for whoever asks while it lasts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from manifold_observer.tasks import atomic

from ..jobs.events import Event

_PLACE = "progress.json"
_SECONDS = 1.0


class Progress:
    """Writes now and then what is being computed, and how far."""

    def __init__(self, folder: Path, token: str) -> None:
        self._place, self._token = folder / _PLACE, token
        self._stages: dict[str, dict[str, Any]] = {}
        self._begun: dict[str, float] = {}
        self._next = 0.0

    def hear(self, event: Event) -> None:
        """Take note of a stage."""
        if event.kind == "stage" and event.recording:
            self._stages[event.recording] = {"stage": event.stage, "done": event.done, "total": event.total}

    def write(self, running: Iterable[str], done: int, total: int) -> None:
        """Write, unless that was done less than a second ago."""
        now, names = time.monotonic(), list(running)
        self._begun = {name: self._begun.get(name, now) for name in names}
        if now < self._next:
            return
        self._next = now + _SECONDS
        computing = {
            name: {"seconds": round(now - self._begun[name], 1), **self._stages.get(name, {})} for name in names
        }
        told = {"token": self._token, "done": done, "total": total, "computing": computing}
        with suppress(OSError), atomic.replacing(self._place, durable=False) as file:  # news are no reason to fail
            file.write(json.dumps(told).encode())


def read_progress(folder: Path, token: str) -> dict[str, Any]:
    """What the run of that token has written last."""
    try:
        told = json.loads((folder / _PLACE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: told[name] for name in ("done", "total", "computing")} if told.get("token") == token else {}
