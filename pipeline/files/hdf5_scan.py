"""A look at an HDF5 (NetCDF 4) file before it is opened: it can name other files, and code that decodes it.

Throughout: a *filter* is what turns stored bytes into values, by number; those that HDF5 does not bring itself are
libraries that it loads.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from .ordinary import refusal
from .stored import Stored, check_declared

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
# deflate, shuffle, fletcher32, szip, nbit, scale-offset, and h5py's own lzf.
_FILTERS = frozenset((1, 2, 3, 4, 5, 6, 32000))
_MOST_OBJECTS, _DEEPEST, _MOST_ATTRIBUTES, _MOST_BYTES = 100_000, 32, 10_000, 2**22
# Text of any length lies beside the arrays, and that of attributes is read, some times over, as the file is opened.
_MOST_BESIDE = 2**26
_UNFOLD = "Copy the data into one file: h5repack, or h5py's Group.copy(..., expand_external=True)"


def is_hdf5(path: Path) -> bool:
    r"""Whether a file is HDF5, whose signature may lie behind a block of the user's.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.nc")
    >>> _ = path.write_bytes(bytes(512) + b"\x89HDF\r\n\x1a\n")
    >>> is_hdf5(path)
    True
    """
    with path.open("rb") as file:
        for at in (0, *(512 << k for k in range(20))):
            file.seek(at)
            found = file.read(len(_SIGNATURE))
            if found == _SIGNATURE or not found:
                return bool(found)
    return False


def scan_hdf5(path: Path) -> dict[str, Stored]:
    """Look at all objects of an HDF5 file, and at what the arrays of its root group store.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Arrays of the root group, by name; none where HDF5 cannot open the file, or is not installed.

    Raises
    ------
    ValueError
        It names another file, or a filter that HDF5 does not bring itself; it has too many objects.
    """
    try:
        import h5py  # noqa: PLC0415 - the extra 'formats'
    except ImportError:
        return {}
    try:
        file = h5py.File(path, "r")
    except OSError:
        return {}  # who opens it next says why
    with file:
        try:
            return _walk(path, file, h5py)
        except (RuntimeError, KeyError, OSError, TypeError, UnicodeDecodeError) as error:
            said = " ".join(str(error).split())
            raise refusal(path, "be valid HDF5", f'"{said}"', "Copy it again") from None


def _walk(path: Path, file: Any, h5py: Any) -> dict[str, Stored]:
    """Visit every object once, without following what leads out of the file."""
    found: dict[str, Stored] = {}
    waiting, seen, held = [(file, 0)], set(), 0
    _check_attributes(path, "/", file, h5py)
    while waiting:
        group, depth = waiting.pop()
        for name in group:
            link = group.get(name, getlink=True)
            whole = f"{group.name.rstrip('/')}/{name}"
            if isinstance(link, h5py.SoftLink):
                continue
            if not isinstance(link, h5py.HardLink):
                raise _leads_out(path, whole, getattr(link, "filename", "an object of unknown kind"))
            item = group[name]
            address = h5py.h5o.get_info(item.id).addr
            if address in seen:
                continue
            seen.add(address)
            if len(seen) > _MOST_OBJECTS or depth > _DEEPEST:
                must = f"hold at most {_MOST_OBJECTS} objects, in {_DEEPEST} groups within each other"
                raise refusal(path, must, f"more at {whole[:80]}", "Copy the recording into a separate file")
            _check_attributes(path, whole, item, h5py)
            if isinstance(item, h5py.Group):
                waiting.append((item, depth + 1))
            elif isinstance(item, h5py.Dataset):
                array = _stored(path, whole, item)
                held += item.id.get_storage_size()
                if depth == 0:
                    found[name] = array
    if path.stat().st_size - held > _MOST_BESIDE:
        must = f"hold at most {_MOST_BESIDE} bytes beside the values of its arrays"
        remedy = "Remove long attributes and texts, or copy the recording into a separate file"
        raise refusal(path, must, str(path.stat().st_size - held), remedy)
    return found


def _leads_out(path: Path, name: str, other: str) -> ValueError:
    """Build the error of a file that would read another."""
    return refusal(path, "hold its data itself", f"{name!r}, which reads them from {other!r}", _UNFOLD)


def _check_attributes(path: Path, name: str, item: Any, h5py: Any) -> None:
    """Refuse attributes beyond all measure; all of them are read as the file is opened."""
    count = h5py.h5a.get_num_attrs(item.id)
    attributes = (h5py.h5a.open(item.id, index=k) for k in range(min(count, _MOST_ATTRIBUTES)))
    largest = max((attribute.get_storage_size() for attribute in attributes), default=0)
    if count > _MOST_ATTRIBUTES or largest > _MOST_BYTES:
        must = f"have at most {_MOST_ATTRIBUTES} attributes of {_MOST_BYTES} bytes each"
        raise refusal(path, must, f"{count}, of up to {largest} bytes, at {name!r}", "Remove them")


def _stored(path: Path, name: str, dataset: Any) -> Stored:
    """What a dataset declares and stores; one that reads other files is refused."""
    if dataset.external:
        raise _leads_out(path, name, str(dataset.external[0][0]))
    if dataset.is_virtual:
        others = [source.file_name for source in dataset.virtual_sources() if source.file_name != "."]
        if others:
            raise _leads_out(path, name, others[0])
    plist = dataset.id.get_create_plist()
    filters = [plist.get_filter(k)[0] for k in range(plist.get_nfilters())]
    unknown = [number for number in filters if number not in _FILTERS]
    if unknown:
        got = f"filter {unknown[0]} for {name!r}, which needs a separate library"
        raise refusal(path, "be decoded by HDF5 itself", got, "Store it again with: h5repack -f GZIP=4 OLD NEW")
    array = _sizes(dataset)
    check_declared(path, name, array)
    return array._replace(fill=_fill(dataset))


def _sizes(dataset: Any) -> Stored:
    """Declared and stored sizes."""
    shape = tuple(dataset.shape or ())
    n_bytes, itemsize = int(dataset.id.get_storage_size()), int(dataset.id.get_type().get_size())
    if dataset.chunks is None:
        whole = bool(n_bytes) or dataset.is_virtual
        return Stored(shape, itemsize, None, 1, int(whole), max(n_bytes, math.prod(shape) * itemsize * whole), "")
    n_chunks = math.prod(-(-n // c) for n, c in zip(shape, dataset.chunks, strict=True))
    return Stored(shape, itemsize, tuple(dataset.chunks), n_chunks, dataset.id.get_num_chunks(), n_bytes, "")


def _fill(dataset: Any) -> str:
    """What is not stored reads as."""
    try:
        return str(dataset.fillvalue)
    except (RuntimeError, TypeError, ValueError):
        return "of the file"
