"""Numbers in a NetCDF file that tells whether it is as it was written."""

from __future__ import annotations

import hashlib
import io
import re
from pathlib import Path

import xarray as xr

from manifold_observer.tasks import atomic

# The attribute takes the same room filled in as blank, so that it can be part of what it is the digest of.
_SEAL = re.compile(rb"sha256:[0-9a-f]{64}")
_BLANK = b"sha256:" + b"0" * 64


class DamagedError(ValueError):
    """The file is not as :func:`write` left it; the message says why."""


def write(dataset: xr.Dataset, place: Path) -> None:
    """Write numbers, replacing what is there in one step.

    Parameters
    ----------
    dataset
        What NetCDF 3 can hold.
    place
        Path of the file.

    Raises
    ------
    OSError
        The file could not be written; the place is as it was before.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(xr.Dataset({"x": 2.0}), Path(folder, "a.nc"))
    ...     float(read(Path(folder, "a.nc")).x)
    2.0
    """
    content = bytes(dataset.assign_attrs(digest=_BLANK.decode()).to_netcdf(engine="scipy"))
    atomic.write(place, content.replace(_BLANK, _seal(content)))


def read(place: Path) -> xr.Dataset:
    """Read numbers back, whole.

    Raises
    ------
    DamagedError
        The file cannot be read, or differs from what was written.
    """
    if not place.is_file():
        raise DamagedError("it is not a file")
    try:
        content = place.read_bytes()
    except OSError as error:
        raise DamagedError(error.strerror or str(error)) from None
    if _SEAL.findall(content) != [_seal(_SEAL.sub(_BLANK, content))]:
        raise DamagedError("it is damaged")
    with xr.open_dataset(io.BytesIO(content), engine="scipy") as dataset:
        loaded = dataset.load()
    del loaded.attrs["digest"]
    return loaded


def _seal(blank: bytes) -> bytes:
    """The digest of a file in which its place is blank."""
    return b"sha256:" + hashlib.sha256(blank).hexdigest().encode()
