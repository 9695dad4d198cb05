"""The list of files that every result carries: what is missing, cut short or foreign is found before it is read.

It lists names and sizes, and digests of the metadata; what is in the chunks is checked by their own
checksums (Zarr's codec crc32c) as they are read.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import zarr
import zarr.errors

from manifold_observer.tasks import atomic

from ..files.zarr_scan import check_harmless
from ..graph.warn import warn

MARK = "manifold_observer"
_METADATA = "zarr.json"
# An attribute, since Zarr warns of files that it does not know. xarray hides those that begin with _nc.
_MANIFEST = "_nc_manifest"
_COPY_AGAIN = "Copy it again, or make it anew."


def attributes(out: Path) -> dict[str, Any]:
    """Attributes of the root of a result; none where there is no Zarr group."""
    found = _root(out).get("attributes", {})
    return {name: value for name, value in found.items() if name != _MANIFEST}


def seal(folder: Path) -> None:
    """Mark a result as complete, with all metadata in one place and the list of its files.

    One file says all three, so that none can be there without the others.
    """
    with warnings.catch_warnings():
        # Zarr says that other programs may not know consolidated metadata: they read the plain one beside it.
        warnings.simplefilter("ignore", zarr.errors.ZarrUserWarning)
        zarr.consolidate_metadata(folder)
    _check_filled(folder)
    root = _root(folder)
    root["attributes"]["complete"] = True
    sizes = dict(_sizes(folder))
    del sizes[_METADATA]
    digests = {name: _digest((folder / name).read_bytes()) for name in sizes if _is_metadata(name)}
    root["attributes"][_MANIFEST] = {"sizes": sizes, "digests": digests, "root": _digest_of_root(root)}
    atomic.write(folder / _METADATA, json.dumps(root, indent=2).encode())


def _check_filled(folder: Path) -> None:
    """Every chunk of every array must have been written: one that is missing would read as NaN."""
    for name, array in zarr.open_group(folder, mode="r").members(max_depth=None):
        if isinstance(array, zarr.Array) and array.nchunks_initialized < array.nchunks:
            raise AssertionError(f"{name}: {array.nchunks_initialized} of {array.nchunks} chunks were written")


def check_whole(who: str, out: Path, groups: Sequence[str] | None = None) -> dict[str, Any]:
    """Refuse a place where there is no complete result, or one whose files are not those that were written.

    Parameters
    ----------
    who
        Beginning of the error.
    out
        The result.
    groups
        Names of the groups that are going to be read; all by default.

    Returns
    -------
    The attributes of its root.

    Raises
    ------
    FileNotFoundError
        There is nothing at ``out``.
    ValueError
        The result is not complete, or a file is missing, of another size, changed, or one too many.
    """
    if not out.exists():
        raise FileNotFoundError(f"{who}: {out} does not exist. Check the path.")
    root = _root(out)
    attrs = attributes(out)
    if not attrs.get("complete"):
        raise ValueError(
            f"{who}: {out} is not a result, or was not finished. Run the same command again, or copy it again."
        )
    manifest = root["attributes"].get(_MANIFEST)
    if manifest is None:
        warn(f"{who}: {out} was written by an earlier version, so damage cannot be detected.")
    else:
        damage = _root_damage(root, manifest) or next(_damages(out, manifest, groups), None)
        if damage is not None:
            raise ValueError(f"{who}: {out} must be complete and unchanged; {damage}. {_COPY_AGAIN}")
    check_harmless(out)  # whoever made a list of its files may have made them to do harm
    return attrs


def first_foreign(out: Path) -> str | None:
    """What there is at a place that this project did not write; None for a result that is ours through and through.

    Files of a result that are missing do not matter here: nothing is lost with what is left.
    """
    if out.is_symlink() or not out.is_dir() or MARK not in attributes(out):
        return "is not a result of manifold-observer"
    root = _root(out)
    manifest = root["attributes"].get(_MANIFEST)
    if manifest is None:
        return "was written by an earlier version or by hand, without a list of its files,"
    if _root_damage(root, manifest) is not None:
        return f"holds {_METADATA}, which has been changed since it was written,"
    known = {**manifest["sizes"], _METADATA: (out / _METADATA).stat().st_size}
    folders = {parent.as_posix() for name in known for parent in Path(name).parents}
    for name, size in _everything(out):
        if name not in (folders if size is None else known):
            return f"holds {name}, which is not part of the result,"
        if size != known.get(name):
            return f"holds {name}, which has been changed since it was written,"
    changed = next(_changed(out, manifest, ""), None)
    return None if changed is None else f"holds {changed}, which has been changed since it was written,"


def _damages(out: Path, manifest: dict[str, Any], groups: Sequence[str] | None) -> Iterator[str]:
    """What is wrong with the files of some groups, in the words of an error."""
    for group in [""] if groups is None else [f"{name}/" for name in groups]:
        there = dict(_sizes(out, group))
        listed = {name: size for name, size in manifest["sizes"].items() if name.startswith(group)}
        if group and not listed:
            yield f"it has no group {group.rstrip('/')}"
        for name, size in listed.items():
            if name not in there:
                yield f"{name} is missing"
            elif there[name] != size:
                yield f"{name} has {there[name]} bytes instead of {size}"
        # Others' files in a result are read by nobody, Zarr's are.
        strange = (name for name in there if name not in listed and name != _METADATA and _is_read(name))
        yield from (f"{name} is one too many" for name in strange)
        yield from (f"{name} has been changed" for name in _changed(out, manifest, group))


def _changed(out: Path, manifest: dict[str, Any], group: str) -> Iterator[str]:
    """Metadata files that are not as they were written."""
    for name, digest in manifest["digests"].items():
        path = out / name
        if name.startswith(group) and path.exists() and _digest(path.read_bytes()) != digest:
            yield name


def _root_damage(root: dict[str, Any], manifest: dict[str, Any]) -> str | None:
    """What is wrong with the root itself."""
    return None if manifest["root"] == _digest_of_root(root) else f"{_METADATA} has been changed"


def _is_metadata(name: str) -> bool:
    """Whether a file is metadata of a group or an array."""
    return name.rpartition("/")[2] == _METADATA


def _is_read(name: str) -> bool:
    """Whether Zarr would read a file: metadata, or a chunk."""
    return _is_metadata(name) or "/c/" in name or name.endswith("/c")


def _sizes(folder: Path, group: str = "") -> Iterator[tuple[str, int]]:
    """All files below a folder, or a group in it, with their sizes, through links as a reader sees them."""
    return ((name, size) for name, size in _everything(folder, group, links=True) if size is not None)


def _everything(folder: Path, group: str = "", *, links: bool = False) -> Iterator[tuple[str, int | None]]:
    """Names of all files below a folder with their sizes, and of folders with None.

    With ``links`` these are followed, and those to nothing left out; else they count as files.
    """
    waiting = [os.path.join(folder, group)]
    while waiting:
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(waiting.pop()) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                name = os.path.relpath(entry.path, folder).replace(os.sep, "/")
                if entry.is_dir(follow_symlinks=links):
                    waiting.append(entry.path)
                    yield name, None
                elif not links or os.path.exists(entry.path):
                    yield name, entry.stat(follow_symlinks=links).st_size


def _root(out: Path) -> dict[str, Any]:
    """Metadata of the root of a Zarr folder; nothing where there is none."""
    try:
        root = json.loads((out / _METADATA).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return root if isinstance(root, dict) and isinstance(root.get("attributes"), dict) else {}


def _digest_of_root(root: dict[str, Any]) -> str:
    """Digest of the root's metadata without the manifest."""
    plain = {name: value for name, value in root["attributes"].items() if name != _MANIFEST}
    return _digest(json.dumps({**root, "attributes": plain}, sort_keys=True).encode())


def _digest(content: bytes) -> str:
    """Digest of a file."""
    return hashlib.sha256(content).hexdigest()
