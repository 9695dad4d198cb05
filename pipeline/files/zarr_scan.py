"""A look at a Zarr folder before it is opened: its metadata name the code that decodes it.

Throughout: a *document* is a file of metadata (zarr.json, .zarray, ...); a *codec* is what turns stored bytes into
values, by name. A codec named ``pickle`` runs what the store's author wrote, and any package that is installed
may add codecs: those that are known to do nothing but decode are listed here, and no other is used.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..stores.address import Place
from .ordinary import refusal, special_kind
from .stored import Stored, check_declared

DOCUMENTS = ("zarr.json", ".zgroup", ".zarray", ".zattrs", ".zmetadata")
MOST_BYTES, _MOST_FOLDERS, MOST_FILES, _DEEPEST = 2**22, 10_000, 5_000_000, 32
# Of numcodecs: what decodes bytes, numbers and text alone. Not: pickle, json2, msgpack2, which make objects.
_NUMCODECS = re.compile(
    "blosc|zlib|gzip|bz2|lzma|lz4|zstd|shuffle|delta|fixedscaleoffset|quantize|bitround|packbits|astype|categorize|"
    "crc32|crc32c|adler32|fletcher32|jenkins_lookup3|base64|vlen-utf8|vlen-bytes|zfpy|pcodec"
)
_CODECS = re.compile(
    "bytes|endian|transpose|blosc|gzip|zstd|crc32c|sharding_indexed|vlen-utf8|vlen-bytes|scale_offset|cast_value|"
    rf"numcodecs\.(?:{_NUMCODECS.pattern})"
)
_TYPES = re.compile(
    r"bool|u?int\d+|float\d+|complex\d+|r\d+|string|bytes|variable_length_(?:bytes|utf8)|fixed_length_utf32|"
    r"null_terminated_bytes|raw_bytes|numpy\.(?:datetime64|timedelta64)|struct(?:ured)?"
)
_CHUNK = re.compile(r"c|(?:c[./])?\d+(?:[./]\d+)*")
Count = Callable[[list[int]], tuple[int, int]]
"""Chunks that are there and their bytes, for the numbers of chunks along the dimensions."""
_REWRITE = "Store it again with zstd, blosc, gzip or zlib, on a computer that trusts it"


def scan_zarr(root: Path) -> dict[str, Stored]:
    """Look at all metadata of a Zarr folder, and count what the arrays of its root group store.

    Parameters
    ----------
    root
        The folder.

    Returns
    -------
    Arrays of the root group, by name; an array that is the whole store is called "recording".

    Raises
    ------
    ValueError
        A codec that is not known to be harmless; a link that leads out of the folder; metadata that cannot be
        read, or are beyond all measure.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp(), "a.zarr")
    >>> (folder / "x").mkdir(parents=True)
    >>> _ = (folder / ".zgroup").write_text('{"zarr_format": 2}')
    >>> _ = (folder / "x" / ".zarray").write_text(
    ...     '{"shape": [4], "chunks": [2], "dtype": "|O", "filters": [{"id": "pickle"}], "zarr_format": 2}'
    ... )
    >>> scan_zarr(folder)
    Traceback (most recent call last):
    ValueError: open_recording: ... must be decoded by known codecs; got 'pickle' for array 'x'. ...
    """
    found: dict[str, Stored] = {}
    waiting, seen = [""], 0  # names below the root: every opening comes through here, and paths are slow to make
    while waiting:
        where = waiting.pop()
        folder = os.path.join(root, where)
        arrays = [array for name in DOCUMENTS if (array := _array_of(root, where or ".", folder, name))]
        if arrays and "/" not in where:
            name = where or root.name
            found[where or "recording"] = stored_of(root, name, arrays[0], partial(_count, root, Path(folder)))
        if not arrays:
            waiting += [f"{where}/{name}" if where else name for name in _folders(root, folder)]
        seen += 1
        if seen > _MOST_FOLDERS or where.count("/") >= _DEEPEST:
            got = f"more ({folder})"
            must = f"hold at most {_MOST_FOLDERS} groups, {_DEEPEST} within each other"
            raise refusal(root, must, got, "Name the group that holds the recording")
    return found


def _array_of(root: Path, where: str, folder: str, name: str) -> dict[str, Any]:
    """The array that a document in a folder describes, empty where it describes none; all that it names are checked."""
    path = os.path.join(folder, name)
    try:
        entry = os.lstat(path)
    except FileNotFoundError:
        return {}
    return scanned(root, where, name, _document(root, Path(path), entry))


def scanned(root: Place, where: str, name: str, document: dict[str, Any]) -> dict[str, Any]:
    """The array that a document describes, empty where it describes none; all that it names are checked."""
    table = document if name == ".zmetadata" else document.get("consolidated_metadata")
    entries = table.get("metadata") if isinstance(table, dict) else None
    for key, entry in (entries if isinstance(entries, dict) else {}).items():
        if isinstance(entry, dict):
            _check_codecs(root, str(key), entry)
    if name != ".zarray" and document.get("node_type") != "array":
        return {}
    _check_codecs(root, where, document)
    return document


def _document(root: Path, path: Path, entry: os.stat_result) -> dict[str, Any]:
    """Read one document."""
    size = _checked_entry(root, path, entry)
    if path.name == ".zmetadata" and size > MOST_BYTES:
        return {}  # stores are opened without it
    check_length(root, path, size)
    return parsed(root, path, path.read_bytes())


def check_length(root: Place, path: Place, size: int) -> None:
    """Refuse a document that is longer than any that describes recordings."""
    if size > MOST_BYTES:
        raise refusal(
            root, f"have metadata of at most {MOST_BYTES} bytes", f"{size} in {path}", "Remove its attributes"
        )


def parsed(root: Place, path: Place, content: bytes) -> dict[str, Any]:
    """The metadata in a document."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else f"no JSON ({error})"
        raise refusal(root, "have readable metadata", f"{path}, which is {why}", "Copy it again") from None
    return document if isinstance(document, dict) else {}


def _check_codecs(root: Place, name: str, document: dict[str, Any]) -> None:
    """Refuse codecs and dtypes that are not known."""
    try:
        unknown = [*_unknown_codecs(document), *_unknown_types(document)]
    except (TypeError, AttributeError) as error:
        raise refusal(root, "have readable metadata", f"{error} in those of {name!r}", "Copy it again") from None
    if unknown:
        raise refusal(root, "be decoded by known codecs", f"{unknown[0]} for array {name!r}", _REWRITE)


def _unknown_codecs(document: dict[str, Any]) -> Iterator[str]:
    """Codecs of one array that are not known, in the words of an error."""
    old = [document.get("compressor"), *(document.get("filters") or [])]
    for codec in old:
        if codec is not None and not _NUMCODECS.fullmatch(_name(codec, "id")):
            yield repr(_name(codec, "id"))
    waiting = [(codec, 0) for codec in document.get("codecs") or []]
    while waiting:
        codec, depth = waiting.pop()
        name = _name(codec, "name")
        if not _CODECS.fullmatch(name) or depth > 4:
            yield repr(name)
        inner = codec.get("configuration") if isinstance(codec, dict) else None
        for key in ("codecs", "index_codecs"):
            waiting += [(part, depth + 1) for part in (inner.get(key) or [] if isinstance(inner, dict) else [])]


def _unknown_types(document: dict[str, Any]) -> Iterator[str]:
    """What else of an array names code: its dtype, and where its chunks lie."""
    dtype = document.get("data_type", "bool")
    if not _TYPES.fullmatch(_name(dtype, "name")):
        yield f"the data type {_name(dtype, 'name')!r}"
    old = document.get("dtype")
    ids = {_name(codec, "id") for codec in document.get("filters") or []}
    if isinstance(old, str) and "O" in old and not ids & {"vlen-utf8", "vlen-bytes"}:
        yield f"Python objects (dtype {old!r})"
    for key, known in (("chunk_key_encoding", ("default", "v2")), ("chunk_grid", ("regular",))):
        if key in document and _name(document[key], "name") not in known:
            yield f"the {key} {_name(document[key], 'name')!r}"
    if document.get("storage_transformers"):
        yield "storage transformers"


def _name(codec: Any, key: str) -> str:
    """Name of a codec, which stands alone or in a table."""
    return str(codec.get(key)) if isinstance(codec, dict) else str(codec)


def stored_of(root: Place, name: str, document: dict[str, Any], count: Count) -> Stored:
    """What an array declares and stores."""
    try:
        shape = tuple(int(n) for n in document["shape"])
        grid, itemsize = _grid(document), _itemsize(document)
        counts = [-(-n // max(1, c)) for n, c in zip(shape, grid, strict=True)]
        chunk = _inner_chunk(document) or grid
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        got = f"{type(error).__name__} ({error}) in those of {name!r}"
        raise refusal(root, "have readable metadata", got, "Copy it again") from None
    n_stored, n_bytes = count(counts)
    array = Stored(shape, itemsize, chunk, math.prod(counts), n_stored, n_bytes, str(document.get("fill_value")))
    check_declared(root, name, array)
    return array


def _grid(document: dict[str, Any]) -> tuple[int, ...]:
    """Shape of what one file holds."""
    grid = document["chunks"] if "chunks" in document else document["chunk_grid"]["configuration"]["chunk_shape"]
    return tuple(int(n) for n in grid)


def _inner_chunk(document: dict[str, Any]) -> tuple[int, ...] | None:
    """Shape of what is decoded at once, where a file holds several such."""
    for codec in document.get("codecs") or []:
        if isinstance(codec, dict) and codec.get("name") == "sharding_indexed":
            return tuple(int(n) for n in codec["configuration"]["chunk_shape"])
    return None


def _itemsize(document: dict[str, Any]) -> int:
    """Bytes of one value."""
    if "dtype" in document:
        dtype = document["dtype"]
        fields = [tuple(field) for field in dtype] if isinstance(dtype, list) else dtype
        return int(np.dtype(fields).itemsize)
    dtype = document["data_type"]
    if isinstance(dtype, dict):
        inner = dtype.get("configuration") or {}
        return int(inner.get("length_bytes", 8))
    bits = re.search(r"\d+$", dtype)
    return max(1, int(bits[0]) // 8) if bits else 8


def _count(root: Path, folder: Path, counts: list[int]) -> tuple[int, int]:
    """Chunks that are there, and their bytes."""
    n_stored = n_bytes = n_files = 0
    waiting = [(str(folder), "")]
    while waiting:
        place, prefix = waiting.pop()
        with os.scandir(place) as entries:
            for entry in entries:
                if not prefix and entry.name in DOCUMENTS:
                    continue
                key = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if key.count("/") < len(counts) + 1 and _CHUNK.fullmatch(key):
                        waiting.append((entry.path, key + "/"))
                    continue
                found = entry.stat(follow_symlinks=False)
                plain = stat.S_ISREG(found.st_mode)
                size = found.st_size if plain else _checked_entry(root, Path(entry.path), found)
                n_files += 1
                if is_chunk(key, counts):
                    n_stored, n_bytes = n_stored + 1, n_bytes + size
                if n_files > MOST_FILES:
                    must = f"have at most {MOST_FILES} chunks"
                    raise refusal(root, must, f"more in {folder.name!r}", "Store it in larger chunks")
    return n_stored, n_bytes


def is_chunk(key: str, counts: list[int]) -> bool:
    """Whether a file name is that of a chunk of the array."""
    parts = key.removeprefix("c").replace("/", ".").strip(".").split(".")
    if not counts:
        return key in ("c", "0")
    if len(parts) != len(counts) or not all(map(str.isdecimal, parts)):
        return False
    return all(int(part) < count for part, count in zip(parts, counts, strict=True))


def _folders(root: Path, folder: str) -> list[str]:
    """Names of the folders in a group."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                _checked_entry(root, Path(entry.path), entry.stat(follow_symlinks=False))
            elif entry.is_dir(follow_symlinks=False):
                found.append(entry.name)
    return found


def _checked_entry(root: Path, path: Path, entry: os.stat_result) -> int:
    """Bytes of a file in the store; what is not a file, or leads out of the store, is refused."""
    kind = special_kind(entry.st_mode)
    if stat.S_ISLNK(entry.st_mode):
        target = os.path.realpath(path)
        if not target.startswith(os.path.realpath(root) + os.sep):
            kind = f"a symbolic link to {target}, which lies outside"
        elif os.path.isdir(target):
            kind = "a symbolic link to a folder"
        elif not os.path.exists(target):
            kind = "a symbolic link to nothing"
        else:
            return _checked_entry(root, Path(target), os.stat(target))
    if kind is not None:
        remedy = f"Copy the store with its contents: cp -rL {root} NEW.zarr"
        raise refusal(root, "hold ordinary files", f"{path}, {kind}", remedy)
    return entry.st_size
