"""The list of files that every result carries: what is missing, cut short or foreign is found before it is read.

It lists names and sizes, and digests of the metadata; what is in the chunks is checked by their own
checksums (Zarr's codec crc32c) as they are read.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import zarr
import zarr.errors

from manifold_observer.tasks import atomic

from ..files.zarr_listed import check_harmless
from ..graph.warn import warn
from ..stores import objects
from ..stores.address import Address, Place
from ..stores.refusals import StoreError
from ..stores.zarrs import zarr_target

MARK = "manifold_observer"
ROOT = "zarr.json"
"""Name of the metadata of a group or an array; that of the root is written last."""
# An attribute, since Zarr warns of files that it does not know. xarray hides those that begin with _nc.
_MANIFEST = "_nc_manifest"
_COPY_AGAIN = "Copy it again, or make it anew."


def attributes(out: Place) -> dict[str, Any]:
    """Attributes of the root of a result; none where there is no Zarr group."""
    found = root_of(out).get("attributes", {})
    return {name: value for name, value in found.items() if name != _MANIFEST}


def root_digest(out: Place) -> str:
    """Digest of the root of a result, which is another one for other recordings or settings; empty where none is."""
    return str((root_of(out).get("attributes", {}).get(_MANIFEST) or {}).get("root", ""))


def names_of(root: dict[str, Any]) -> dict[str, int]:
    """Files that the root of a result lists, with their sizes; none where it lists nothing."""
    manifest = (root.get("attributes") or {}).get(_MANIFEST) or {}
    return dict(manifest.get("sizes", {}))


def groups_of(out: Place) -> list[str]:
    """Names of the groups of a result, in order."""
    if isinstance(out, Path):
        return sorted(path.parent.name for path in out.glob(f"*/{ROOT}"))
    metadata = (root_of(out).get("consolidated_metadata") or {}).get("metadata") or {}
    return sorted(name for name, found in metadata.items() if "/" not in name and found.get("node_type") == "group")


def seal(folder: Place) -> None:
    """Mark a result as complete, with all metadata in one place and the list of its files.

    One file says all three, so that none can be there without the others.
    """
    with warnings.catch_warnings():
        # Zarr says that other programs may not know consolidated metadata: they read the plain one beside it.
        warnings.simplefilter("ignore", zarr.errors.ZarrUserWarning)
        zarr.consolidate_metadata(zarr_target(folder))
    _check_filled(folder)
    root = root_of(folder)
    root["attributes"]["complete"] = True
    sizes = dict(_sizes(folder))
    del sizes[ROOT]
    digests = _digests(folder, [name for name in sizes if _is_metadata(name)])
    root["attributes"][_MANIFEST] = {"sizes": sizes, "digests": digests, "root": _digest_of_root(root)}
    content = json.dumps(root, indent=2).encode()
    if isinstance(folder, Address):
        objects.write(folder / ROOT, content)
    else:
        atomic.write(folder / ROOT, content)


def _check_filled(folder: Place) -> None:
    """Every chunk of every array must have been written: one that is missing would read as NaN."""
    # A bucket is listed once, and not for each array.
    there = list(objects.sizes(folder)) if isinstance(folder, Address) else None
    for name, array in zarr.open_group(zarr_target(folder), mode="r").members(max_depth=None):
        if isinstance(array, zarr.Array):
            n_written = array.nchunks_initialized if there is None else _n_chunks(there, name)
            if n_written < array.nchunks:
                raise AssertionError(f"{name}: {n_written} of {array.nchunks} chunks were written")


def _n_chunks(names: list[str], array: str) -> int:
    """How many of some names are those of chunks of an array."""
    return sum(name == f"{array}/c" or name.startswith(f"{array}/c/") for name in names)


def check_whole(who: str, out: Place, groups: Sequence[str] | None = None) -> dict[str, Any]:
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
    if not _exists(out):
        raise FileNotFoundError(f"{who}: {out} does not exist. Check the path.")
    if isinstance(out, Path) and out.is_file():
        raise ValueError(f"{who}: {out} must be a folder that manifold-observer wrote; got a file. Check the path.")
    root = root_of(out)
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


def first_foreign(out: Place) -> str | None:
    """What there is at a place that this project did not write; None for a result that is ours through and through.

    Files of a result that are missing do not matter here: nothing is lost with what is left.
    """
    if (isinstance(out, Path) and (out.is_symlink() or not out.is_dir())) or MARK not in attributes(out):
        return "is not a result of manifold-observer"
    root = root_of(out)
    manifest = root["attributes"].get(_MANIFEST)
    if manifest is None:
        return "was written by an earlier version or by hand, without a list of its files,"
    if _root_damage(root, manifest) is not None:
        return f"holds {ROOT}, which has been changed since it was written,"
    known = {**manifest["sizes"], ROOT: _size(out / ROOT)}
    folders = {parent.as_posix() for name in known for parent in Path(name).parents}
    for name, size in _everything(out):
        if name not in (folders if size is None else known):
            return f"holds {name}, which is not part of the result,"
        if size != known.get(name):
            return f"holds {name}, which has been changed since it was written,"
    changed = next(_changed(out, manifest, ""), None)
    return None if changed is None else f"holds {changed}, which has been changed since it was written,"


def _damages(out: Place, manifest: dict[str, Any], groups: Sequence[str] | None) -> Iterator[str]:
    """What is wrong with the files of some groups, in the words of an error."""
    for group in [""] if groups is None else [f"{name}/" for name in groups]:
        listed = {name: size for name, size in manifest["sizes"].items() if name.startswith(group)}
        there = _sizes_of(out, listed) if isinstance(out, Address) and out.is_web else dict(_sizes(out, group))
        if group and not listed:
            yield f"it has no group {group.rstrip('/')}"
        for name, size in listed.items():
            if name not in there:
                yield f"{name} is missing"
            elif there[name] != size:
                yield f"{name} has {there[name]} bytes instead of {size}"
        # Others' files in a result are read by nobody, Zarr's are.
        strange = (name for name in there if name not in listed and name != ROOT and _is_read(name))
        yield from (f"{name} is one too many" for name in strange)
        yield from (f"{name} has been changed" for name in _changed(out, manifest, group))


def _changed(out: Place, manifest: dict[str, Any], group: str) -> Iterator[str]:
    """Metadata files that are not as they were written."""
    wanted = {name: digest for name, digest in manifest["digests"].items() if name.startswith(group)}
    there = _digests(out, wanted)
    yield from (name for name, digest in wanted.items() if there.get(name, digest) != digest)


def _digests(folder: Place, names: Iterable[str]) -> dict[str, str]:
    """Digests of those of some files that are there."""
    if isinstance(folder, Address):
        listed = list(names)
        found = zip(listed, objects.read_all(folder / name for name in listed), strict=True)
        return {name: _digest(content) for name, content in found if content is not None}
    paths = {name: os.path.join(folder, name) for name in names}
    return {name: _digest(Path(path).read_bytes()) for name, path in paths.items() if os.path.exists(path)}


def _root_damage(root: dict[str, Any], manifest: dict[str, Any]) -> str | None:
    """What is wrong with the root itself."""
    return None if manifest["root"] == _digest_of_root(root) else f"{ROOT} has been changed"


def _is_metadata(name: str) -> bool:
    """Whether a file is metadata of a group or an array."""
    return name.rpartition("/")[2] == ROOT


def _is_read(name: str) -> bool:
    """Whether Zarr would read a file: metadata, or a chunk."""
    return _is_metadata(name) or "/c/" in name or name.endswith("/c")


def _sizes_of(out: Address, names: Iterable[str]) -> dict[str, int]:
    """Sizes of those of some files that a web server has, which cannot list them."""
    listed = list(names)
    found = zip(listed, objects.look_all(out / name for name in listed), strict=True)
    return {name: one.size for name, one in found if one is not None}


def _size(path: Place) -> int:
    """Bytes of a file."""
    if isinstance(path, Path):
        return path.stat().st_size
    found = objects.look(path)
    return -1 if found is None else found.size


def _exists(out: Place) -> bool:
    """Whether there is anything at a place."""
    if isinstance(out, Path):
        return out.exists()
    return objects.look(out / ROOT) is not None or (not out.is_web and next(objects.found_in(out), None) is not None)


def _sizes(folder: Place, group: str = "") -> Iterator[tuple[str, int]]:
    """All files below a folder, or a group in it, with their sizes, through links as a reader sees them."""
    return ((name, size) for name, size in _everything(folder, group, links=True) if size is not None)


def _everything(folder: Place, group: str = "", *, links: bool = False) -> Iterator[tuple[str, int | None]]:
    """Names of all files below a folder with their sizes, and of folders with None.

    With ``links`` these are followed, and those to nothing left out; else they count as files.
    """
    if isinstance(folder, Address):
        yield from objects.sizes(folder, group.rstrip("/")).items()
        return
    waiting = [group]
    while waiting:
        prefix = waiting.pop()
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(os.path.join(folder, prefix)) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                name = prefix + entry.name
                if entry.is_dir(follow_symlinks=links):
                    waiting.append(f"{name}/")
                    yield name, None
                elif not links or os.path.exists(entry.path):
                    yield name, entry.stat(follow_symlinks=links).st_size


def root_of(out: Place) -> dict[str, Any]:
    """Metadata of the root of a Zarr folder; nothing where there is none."""
    try:
        content = objects.read(out / ROOT) if isinstance(out, Address) else (out / ROOT).read_bytes()
        root = json.loads(content.decode("utf-8"))
    except StoreError:
        raise
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
