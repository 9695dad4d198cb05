"""Panels of the page as data, and the arrays that they share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .data import packed

Floats = NDArray[np.float64]


@dataclass
class Page:
    """What goes to the page: arrays, panels that draw them, and sections of panels with words."""

    arrays: list[dict[str, Any]] = field(default_factory=list)
    panels: list[dict[str, Any]] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    _known: dict[str, int] = field(default_factory=dict)

    def array(self, values: Any, kind: str = "f4") -> int:
        """The number of an array on the page; equal ones are there once.

        Examples
        --------
        >>> page = Page()
        >>> page.array([1.0]), page.array([2.0]), page.array([1.0])
        (0, 1, 0)
        """
        cell = packed(values, kind)
        text = str(sorted(cell.items()))
        if text not in self._known:
            self._known[text] = len(self.arrays)
            self.arrays.append(cell)
        return self._known[text]

    def panel(self, kind: str, **content: Any) -> int:
        """Add a panel; gives its number."""
        self.panels.append({"kind": kind, **content})
        return len(self.panels) - 1


@dataclass(frozen=True)
class Section:
    """A part of the page: a heading, some panels side by side or below each other, words."""

    title: str
    panels: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    side_by_side: bool = False
    table: tuple[tuple[str, ...], ...] = ()
    """Rows of text; the first is the head."""
    code: str = ""
    """A command that can be copied."""
