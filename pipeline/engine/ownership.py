"""Folders that belong to this project: told by the name of a file in them, so that damage cannot undo the mark."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from manifold_observer.tasks.atomic import final_name, sync


def check_folder(what: str, folder: Path, mark: str) -> None:
    """Refuse a place that holds anything but a folder of ours.

    Parameters
    ----------
    what
        Function and name of its argument, for the error.
    folder
        Place that shall be written to.
    mark
        Name of the file that marks a folder as ours.

    Raises
    ------
    ValueError
        There is a file or a symbolic link, or a folder that is not empty and has no mark.
    """
    if folder.is_symlink():
        raise ValueError(
            f"{what} must be a folder itself; got the symbolic link {folder}. Give the folder that it shall point to."
        )
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ValueError(f"{what} must be a folder; got the file {folder}. Choose another name.")
    if not is_marked(folder, mark) and any(folder.iterdir()):
        raise ValueError(
            f"{what} must be a new or empty folder, or one that an earlier run made; got {folder}, which holds other "
            "files. Choose another name."
        )


def claim(what: str, folder: Path, mark: str) -> None:
    """Make a folder ours, with all above it.

    Raises
    ------
    ValueError
        As :func:`check_folder` says.
    OSError
        The folder could not be made or marked.
    """
    check_folder(what, folder, mark)
    folder.mkdir(parents=True, exist_ok=True)
    # In one step, not by renaming: a kill in between would leave a folder that is neither empty nor marked.
    with suppress(FileExistsError):
        (folder / mark).touch(exist_ok=False)
        sync(folder)


def is_marked(folder: Path, mark: str) -> bool:
    """Whether a folder bears the mark."""
    return (folder / mark).is_file() and not folder.is_symlink()


def remove_files(folder: Path, ours: Callable[[str], bool]) -> None:
    """Remove the files of a folder whose names are ours, the last name first.

    Folders and links by such names stay, and so does what cannot be removed: it is looked at again the next time.
    """
    with suppress(OSError):
        for path in sorted(folder.iterdir(), reverse=True):
            if ours(path.name) and path.is_file() and not path.is_symlink():
                with suppress(OSError):
                    path.unlink()


def is_partial(name: str, ours: Callable[[str], bool]) -> bool:
    """Whether a name is that of a file of ours which a killed run had begun."""
    final = final_name(name)
    return final is not None and ours(final)
