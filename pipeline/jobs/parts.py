"""The parts of a stream: which there are, whether they are whole, and whether a folder may hold some."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..stores.address import Address, Place, lies_in
from ..stores.objects import look, names_in
from .manifest import ROOT, check_whole
from .placement import check_parent, lies_within
from .staging import WORK, check_writable
from .store import is_complete
from .workfolder import is_work_folder, sweep

_PART = re.compile(r"\d{6}\.zarr")


def parts_of(out: Place) -> Sequence[Place]:
    """The parts in a folder, in order."""
    found = _parts_at(out) if isinstance(out, Address) else _parts_in(out)
    for number, part in enumerate(found):
        if int(part.stem) != number:
            raise ValueError(
                f"stream: parts must be numbered without a gap; {out} has no {number:06d}.zarr. Restore it."
            )
    return found


def check_parts(out: Place) -> dict[str, Any]:
    """Refuse to add to a stream that is damaged; the attributes of its last part, none where there is none."""
    attrs: dict[str, Any] = {}
    for part in parts_of(out):
        attrs = checked_part("continue", part)
    return attrs


def checked_part(who: str, part: Place) -> dict[str, Any]:
    """Attributes of a part that is whole."""
    if not is_complete(part):
        raise ValueError(f"{who}: {part} is not complete. Copy it again, or remove it and the parts after it.")
    return check_whole(who, part)


def check_out(out: Place, inputs: Sequence[Place]) -> None:
    """Refuse a folder that is not for parts alone."""
    if isinstance(out, Path):
        check_parent("continue", out)
    for source in inputs:
        if _lies_within(out, source):
            raise ValueError(
                f"continue: OUT must not be the result or a recording, or lie within; got {out} and {source}."
            )
    if isinstance(out, Path):
        sweep(out, [source for source in inputs if isinstance(source, Path)])
        foreign = os.path.lexists(out) and (not out.is_dir() or any(not _ours(path) for path in out.iterdir()))
    else:
        check_writable(out)
        prefixes, there = names_in(out)
        foreign = bool(there) or any(name != WORK and not _PART.fullmatch(name) for name in prefixes)
    if foreign:
        raise ValueError(f"continue: OUT must be a new folder, or hold only parts; got {out}. Choose another name.")


def _parts_in(out: Path) -> Sequence[Place]:
    """The parts in a folder of this machine, or of its network."""
    return sorted(path for path in out.glob("*.zarr") if _PART.fullmatch(path.name)) if out.is_dir() else []


def _parts_at(out: Address) -> Sequence[Place]:
    """The parts at an address: what has no root was being put there by a run that was killed."""
    named = [out / name for name in names_in(out)[0] if _PART.fullmatch(name)]
    return [part for part in named if look(part / ROOT) is not None]


def _lies_within(out: Place, source: Place) -> bool:
    """Whether an output is an input, or lies within it."""
    if isinstance(out, Address):
        return isinstance(source, Address) and lies_in(out, source)
    return isinstance(source, Path) and lies_within(out, source)


def _ours(path: Path) -> bool:
    """Whether a name in OUT is that of a part, or of the folder in which one is being written."""
    return _PART.fullmatch(path.name) is not None or is_work_folder(path)
