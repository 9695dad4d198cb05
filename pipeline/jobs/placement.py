"""Where a result may go, and how it gets there: whole, in one step, over nothing that is not ours."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from manifold_observer.tasks.atomic import sync

from .manifest import first_foreign
from .workfolder import work_folders

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_WAITING_AT_ONCE = 16
# File systems that cannot rename without replacing say one of these.
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


def placed(out: Path) -> Path:
    """The absolute place of an output, whose last name may be a link that is not followed.

    Examples
    --------
    >>> placed(Path("/tmp/../tmp/out.zarr/"))
    PosixPath('/tmp/out.zarr')
    """
    if out.name in ("", ".."):
        return out.resolve()
    return out.parent.resolve() / out.name


def check_place(out: Path, inputs: Sequence[Path], overwrite: bool) -> None:
    """Refuse a place where something could be lost."""
    for source in inputs:
        if lies_within(out, source) or lies_within(source, out):
            raise ValueError(f"store: the output must not be the recording or lie within it; got {out} and {source}.")
    check_parent("store", out)
    check_links(out)
    place = placed(out)
    check_sources(place.parent, place.name, inputs)
    if not os.path.lexists(place):
        return
    if not overwrite and place.is_file():  # which --overwrite would not replace either
        raise ValueError(f"store: {out} already exists, and is a file. Name the result last, as a folder that is new.")
    if not overwrite:
        raise ValueError(f"store: {out} already exists. Choose another name, or give --overwrite.")
    check_replaceable(place, out)


def lies_within(inner: Path, outer: Path) -> bool:
    """Whether a path is another, or lies within it, by any name.

    Examples
    --------
    >>> lies_within(Path("/tmp/night.zarr/x"), Path("/tmp/../tmp/night.zarr"))
    True
    >>> lies_within(Path("/tmp"), Path("/tmp/night.zarr"))
    False
    """
    here, there = inner.resolve(), outer.resolve()
    # Names may differ for one folder: mounts, and file systems that ignore case.
    return any(path == there or _same(path, there) for path in (here, *here.parents))


def check_parent(who: str, out: Path) -> None:
    """Refuse a place whose folder does not exist."""
    if not out.parent.is_dir():
        raise ValueError(f"{who}: the folder of {out} must exist. Make it with: mkdir -p {out.parent}.")


def check_links(out: Path) -> None:
    """Refuse a link: neither it nor what it points to may be replaced."""
    if out.is_symlink():
        raise ValueError(
            f"store: the output must not be a symbolic link; got {out}, which points to {os.readlink(out)}. "
            "Name the place itself, or remove the link."
        )


def check_sources(parent: Path, name: str, inputs: Sequence[Path]) -> None:
    """Refuse inputs that lie in a work folder, which is going to be cleared."""
    for folder in work_folders(parent, name):
        for source in inputs:
            if lies_within(source, folder):
                raise ValueError(
                    f"store: the recording must not lie in the work folder of an earlier run; got {source}. "
                    "Move it elsewhere."
                )


def check_replaceable(place: Path, out: Path) -> None:
    """Refuse to replace what is not a result of this project through and through."""
    foreign = first_foreign(place)
    if foreign is not None:
        raise ValueError(f"store: {out} {foreign} and is not replaced. Choose another name, or move it away.")


def check_removable(place: Path, out: Path) -> None:
    """Refuse to remove what is not a result of this project through and through."""
    foreign = first_foreign(place)
    if foreign is not None:
        raise ValueError(f"store: {out} {foreign} and is not removed.")


def rename_new(source: Path, target: Path) -> None:
    """Rename a folder; whatever is at the target already, even a link to nothing, stays.

    Raises
    ------
    FileExistsError
        There is something at the target.
    """
    if not _renamed_by_system(source, target):
        # Renaming a folder replaces nothing but an empty folder: not a file, nor a link, nor a full one.
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        source.rename(target)


def _renamed_by_system(source: Path, target: Path) -> bool:
    """Rename by the call that replaces nothing; false where there is none."""
    if not sys.platform.startswith("linux"):
        return False
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    names = os.fsencode(source), os.fsencode(target)
    if call(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(_RENAME_NOREPLACE)) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(target))


def sync_tree(folder: Path) -> None:
    """Have every file and folder below a folder, and the folder itself, on disk."""
    paths = [Path(path, name) for path, _, names in os.walk(folder) for name in [*names, ""]]
    # Those that wait at once share one commit of the file system's journal: a tenth of the time.
    with ThreadPoolExecutor(_WAITING_AT_ONCE) as pool:
        list(pool.map(sync, paths))


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are one file or folder."""
    with suppress(OSError):
        return one.samefile(other)
    return False
