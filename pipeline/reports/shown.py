"""What a report is made of: a result, whatever it was given, and its time axis."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from .data import TimeAxis


@dataclass(frozen=True)
class Shown:
    """A result to be shown."""

    tree: xr.DataTree
    name: str
    """What the user called it."""
    time: TimeAxis
    recordings: tuple[str, ...] = ()
    """Where its recordings are now."""
    record: dict[str, Any] = field(default_factory=dict)
    """What the run left: seconds, warnings, command."""

    def group(self, name: str) -> xr.Dataset | None:
        """A group of the result, if it is there."""
        return self.tree[name].to_dataset() if name in self.tree.children else None

    @property
    def state(self) -> xr.Dataset:
        """The observer's states; where there are none, the coordinates under their name."""
        found = self.group("state")
        if found is not None:
            return found
        embedding = self.tree["embedding"].to_dataset()
        return embedding[["coordinate"]].rename(coordinate="state")

    @property
    def n_frames(self) -> int:
        """Frames of the result."""
        return int(self.state.sizes["frame"])
