"""The hidden folder beside an output that a run works in: marked as ours, locked while the run lives.

Throughout: a *work folder* is ``.NAME.TOKEN.manifold-observer`` beside an output of that name. Its *mark* is
a file in it that repeats the token; a folder whose name and mark do not agree is somebody else's. The lock
is on the mark, so that it ends with the process that holds it, however that ends.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .lock import try_lock
from .mark import MARK_FILE, NAME, folder_name, mark_of, opened_mark, read_mark, write_all

_RUNNING = "running"
_KEPT = "kept"
_FINISHED = "finished"
# The only names in a work folder that are ever removed, the mark last.
_OURS = ("result", "earlier", "passes", _RUNNING, _KEPT, _FINISHED)
# Two runs that start at once see each other for some milliseconds, until one of them has given way.
_PATIENCE = 2.0
# Folders that this process holds: it need not wait for itself when it clears up beside them.
_HELD: set[Path] = set()


class BusyError(ValueError):
    """Another run holds the place."""


@dataclass(frozen=True)
class WorkFolder:
    """A work folder that this process holds."""

    folder: Path
    handle: int
    """Of the mark, which is locked."""

    @property
    def result(self) -> Path:
        """What is being written."""
        return self.folder / "result"

    @property
    def earlier(self) -> Path:
        """The result that is being replaced."""
        return self.folder / "earlier"

    @property
    def passes(self) -> Path:
        """What a later run of the same command can use."""
        return self.folder / "passes"

    @property
    def kept(self) -> bool:
        """Whether a finished result lies here, for which there was no place."""
        return (self.folder / _KEPT).exists() and (is_folder(self.result) or is_folder(self.earlier))

    @property
    def spent(self) -> bool:
        """Whether the result has come to its place, so that nothing here is needed any more."""
        return (self.folder / _FINISHED).exists() and not is_folder(self.result) and not self.kept

    @property
    def bare(self) -> bool:
        """Whether nothing lies here but what a run says of itself."""
        with suppress(OSError):
            return set(os.listdir(self.folder)) <= {MARK_FILE, _RUNNING, _FINISHED}
        return False

    def finish(self) -> None:
        """Say that all that is left to do is to put the result in its place."""
        self._say(_FINISHED)

    def keep(self) -> None:
        """Have no later run clear the finished result that lies here."""
        self._say(_KEPT)

    def _say(self, name: str) -> None:
        with suppress(OSError):  # a full disk must not cost the result that is finished
            (self.folder / name).touch()


@contextmanager
def holding(parent: Path, name: str, busy: str) -> Iterator[WorkFolder]:
    """Hold a place alone, with a work folder of one's own; what nobody needs of it is removed at the end.

    Parameters
    ----------
    parent
        Folder to put the work folder into.
    name
        Name of the output there. Runs that name the same one exclude each other.
    busy
        What to say where another run holds it.

    Yields
    ------
    The work folder. It stays where it holds passes, or a finished result that is to be kept.

    Raises
    ------
    BusyError
        Another run holds the place.

    Examples
    --------
    >>> import tempfile
    >>> parent = Path(tempfile.mkdtemp())
    >>> with holding(parent, "out.zarr", "busy"):
    ...     with holding(parent, "out.zarr", "another run is writing"):
    ...         pass
    Traceback (most recent call last):
    manifold_observer.pipeline.jobs.workfolder.BusyError: another run is writing
    >>> list(parent.iterdir())
    []
    """
    work = _begin(parent, name)
    _HELD.add(work.folder)
    try:
        if not _is_alone(work, parent, name):
            raise BusyError(busy)
        (work.folder / _RUNNING).touch()
        yield work
    finally:
        # A result that is still here is finished, and found no place: that of a failed run is gone.
        needed = is_folder(work.result) or is_folder(work.earlier) or _holds_files(work.passes)
        if work.spent or not needed:
            remove(work)
        os.close(work.handle)
        _HELD.discard(work.folder)


@contextmanager
def left_behind(parent: Path, name: str, own: WorkFolder) -> Iterator[list[WorkFolder]]:
    """Work folders of runs that were killed or failed, newest first, held for the length of a block."""
    found: list[WorkFolder] = []
    try:
        for path in work_folders(parent, name):
            if path != own.folder and (work := _taken(path)) is not None:
                found.append(work)
        yield sorted(found, key=lambda work: work.folder.stat().st_mtime_ns, reverse=True)
    finally:
        for work in found:
            os.close(work.handle)


def sweep(parent: Path, inputs: Sequence[Path] = ()) -> None:
    """Remove what runs left that were killed at their very beginning or end, to whatever name beside.

    Parameters
    ----------
    parent
        Where the work folders lie.
    inputs
        What must not be removed, whatever lies around it.
    """
    for path in _named(parent):
        if is_work_folder(path) and not any(path.resolve() in source.resolve().parents for source in inputs):
            work = _taken(path)
            if work is not None:
                if work.spent or work.bare:
                    remove(work)
                os.close(work.handle)
    for path, name in _unmarked(parent):
        _clear_unmarked(path, name)


def work_folders(parent: Path, name: str | None = None) -> list[Path]:
    """All work folders beside an output, or all in a folder, whether their run lives or not."""
    return [path for path in _named(parent) if is_work_folder(path, name)]


def remove_dead(path: Path, *, dry_run: bool = False) -> bool:
    """Remove what is ours in a work folder whose run is dead; whether it is dead and holds no finished result.

    Parameters
    ----------
    path
        The work folder.
    dry_run
        Only look.
    """
    work = _taken(path)
    if work is None:
        return False
    try:
        # What it holds of an earlier result belongs to the next run to that place, which puts it back.
        if work.kept or is_folder(work.earlier):
            return False
        if not dry_run:
            remove(work)
        return True
    finally:
        os.close(work.handle)


def is_work_folder(path: Path, name: str | None = None) -> bool:
    """Whether a folder is a work folder: a name of ours that its mark repeats.

    Parameters
    ----------
    path
        The folder.
    name
        Name of the output that it must belong to; None for any.
    """
    named = NAME.fullmatch(path.name)
    if named is None or not is_folder(path):
        return False
    mark = read_mark(path)
    agrees = mark.get("token") == named[2] + named[3] and path.name == folder_name(str(mark.get("name")), named[2])
    return agrees and name in (None, mark.get("name"))


def is_folder(path: Path) -> bool:
    """Whether there is a folder itself, not a link to one: we make none."""
    return path.is_dir() and not path.is_symlink()


def remove(work: WorkFolder) -> None:
    """Remove what is ours in a work folder, and the folder where nothing else lies in it."""
    for name in _OURS:
        path = work.folder / name
        with suppress(OSError):
            kind = path.lstat().st_mode
            if stat.S_ISDIR(kind):
                shutil.rmtree(path)
            elif stat.S_ISREG(kind):  # a link is somebody else's
                path.unlink()
    with suppress(OSError):
        if [path.name for path in work.folder.iterdir()] == [MARK_FILE]:
            (work.folder / MARK_FILE).unlink()
            work.folder.rmdir()


def _begin(parent: Path, name: str) -> WorkFolder:
    """Make a work folder that is held from the moment on in which it bears its mark."""
    try:
        for path, its_name in _unmarked(parent, name):
            _clear_unmarked(path, its_name)
        while True:
            folder = parent / folder_name(name, secrets.token_hex(4))
            if (work := _made(folder, name)) is not None:
                return work
    except OSError as error:
        raise type(error)(
            f"store: the folder of {parent / name} must be writable; got: {error.strerror}. "
            "Choose another folder, or change its permissions, or free some space."
        ) from None


def _made(folder: Path, name: str) -> WorkFolder | None:
    """A new work folder; None where the name is taken, or another run has swept it away before it was marked."""
    try:
        folder.mkdir()
    except FileExistsError:
        return None
    handle = None
    try:
        handle = os.open(folder / MARK_FILE, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        if try_lock(handle):
            write_all(handle, mark_of(folder, name))
            if os.path.samestat(os.fstat(handle), os.stat(folder / MARK_FILE)):
                return WorkFolder(folder, handle)
    except FileNotFoundError:
        pass
    except BaseException:
        _unmake(folder)
        raise
    if handle is not None:
        os.close(handle)
    return None


def _unmake(folder: Path) -> None:
    """Remove a folder that could not be marked."""
    with suppress(OSError):
        (folder / MARK_FILE).unlink(missing_ok=True)
        folder.rmdir()


def _is_alone(work: WorkFolder, parent: Path, name: str) -> bool:
    """Whether no other run holds the place; of those that start at once, the one with the smallest name stays.

    Safe, because each looks for others only after its own folder can be seen: of any two, the later one sees
    the earlier.
    """
    until = time.monotonic() + _PATIENCE
    while others := [path for path in work_folders(parent, name) if path != work.folder and _lives(path)]:
        settled = any((path / _RUNNING).exists() for path in others)
        if settled or min(others) < work.folder or time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def _lives(path: Path) -> bool:
    """Whether a process holds a work folder. A shared lock: those who ask do not disturb each other."""
    handle = opened_mark(path)
    if handle is None:
        return False
    try:
        return not try_lock(handle, shared=True)
    finally:
        os.close(handle)


def _taken(path: Path) -> WorkFolder | None:
    """Hold a work folder that nobody holds; None where somebody does, or has just removed it."""
    handle = None if path in _HELD else opened_mark(path)
    if handle is None:
        return None
    for _ in range(10):
        if try_lock(handle):
            if (path / MARK_FILE).exists():
                return WorkFolder(path, handle)
            break
        time.sleep(0.01)  # held for a moment by one who asks whether it lives
    os.close(handle)
    return None


def _clear_unmarked(path: Path, name: str) -> None:
    """Remove a folder of a run that was killed before it had marked it, or when only the mark was left: it is empty."""
    with suppress(OSError):
        if (begun := _taken(path)) is not None:
            whole = mark_of(path, name)
            if os.listdir(path) == [MARK_FILE] and whole.startswith(os.read(begun.handle, len(whole) + 1)):
                (path / MARK_FILE).unlink()
            os.close(begun.handle)
        path.rmdir()  # which refuses a folder that is not empty


def _unmarked(parent: Path, *names: str) -> Iterator[tuple[Path, str]]:
    """Folders named like ours whose mark is missing or was not written to its end, and the name of their output.

    Outputs whose name was shortened there are found only where they are among the given names.
    """
    for path in _named(parent):
        named = NAME.fullmatch(path.name)
        for name in (named[1], *names) if named is not None and not read_mark(path) else ():
            if named is not None and path.name == folder_name(name, named[2]):
                yield path, name
                break


def _named(parent: Path) -> list[Path]:
    """Folders in a folder that are named like work folders."""
    try:
        names = sorted(name for name in os.listdir(parent) if NAME.fullmatch(name))
    except OSError:
        return []
    return [parent / name for name in names if is_folder(parent / name)]


def _holds_files(folder: Path) -> bool:
    """Whether there is any file in a folder."""
    return any(files for _, _, files in os.walk(folder))
