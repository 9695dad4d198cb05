"""Reader of EvTAF recordings (.cbin): the xarray engine ``manifold-cbin``.

The samples are bare big-endian integers of 16 bits; the .rec file beside them tells their rate and channels.
"""

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendEntrypoint

from .contract import check_channels, has_suffix, local_file, refusal
from .sampled import Samples, Stretch, sampled_dataset, stretch_time, told
from .sniff import TEXT, describe, read_head

READER = "cbin"
_COPY = "Copy both files again"


@dataclass(frozen=True)
class CbinSource:
    """The samples of a file."""

    path: str
    """The file."""
    n_samples: int
    """Of each channel."""
    n_channels: int
    """Side by side."""

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and channels."""
        return self.n_samples, self.n_channels

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of what is stored, in native byte order."""
        return np.dtype(np.int16)

    def read(self, start: int, stop: int) -> Samples:
        """Some samples."""
        row = 2 * self.n_channels
        with open(self.path, "rb") as file:
            file.seek(start * row)
            raw = file.read((stop - start) * row)
        if len(raw) < (stop - start) * row:
            got = f"{len(raw)} bytes of {(stop - start) * row}"
            raise refusal(READER, self.path, "keep its length while it is read", got, _COPY)
        return np.frombuffer(raw, ">i2").reshape(-1, self.n_channels).astype(np.int16)


class CbinBackend(BackendEntrypoint):
    """Opens EvTAF recordings lazily with ``xr.open_dataset``."""

    description = "Open EvTAF recordings (.cbin with .rec beside), lazily"
    open_dataset_parameters = ("filename_or_obj", "drop_variables")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Claim files by their name: they have no signature."""
        return has_suffix(filename_or_obj, {".cbin"})

    def open_dataset(self, filename_or_obj: Any, *, drop_variables: str | Iterable[str] | None = None) -> xr.Dataset:
        """Open one file; its samples are read when they are used.

        Parameters
        ----------
        filename_or_obj
            Path of the file.
        drop_variables
            Names to leave out.

        Returns
        -------
        Dataset with the variable ``recording``, dims (time, channel), in counts.
        """
        path = local_file(READER, filename_or_obj)
        rate, n_channels, claimed = _settings(path)
        check_channels(READER, path, n_channels)
        held, rest = divmod(os.path.getsize(path), 2 * n_channels)
        if not held:
            raise refusal(READER, path, "hold samples", f"{os.path.getsize(path)} bytes", _COPY)
        if rest or (claimed is not None and claimed != held):
            told(
                READER,
                path,
                f"its .rec file claims {claimed} samples of each channel, and {held} whole ones are there.",
            )
        source = CbinSource(path, held, n_channels)
        return sampled_dataset(
            source,
            path=path,
            channels=[f"ch{number}" for number in range(1, n_channels + 1)],
            units=["1"] * n_channels,
            time=stretch_time(held, rate, [Stretch(0, 0.0)]),
            sampling_rate=rate,
            drop_variables=drop_variables,
        )


def _settings(path: str) -> tuple[float, int, int | None]:
    """Rate in Hz, channels, and samples of each channel, from the file beside."""
    beside = os.path.splitext(path)[0] + ".rec"
    if not os.path.isfile(beside) or os.path.dirname(os.path.realpath(beside)) != os.path.dirname(
        os.path.realpath(path)
    ):
        got = f"no {os.path.basename(beside)}"
        raise refusal(READER, path, "have its .rec file beside it, which tells rate and channels", got, "Copy it there")
    if describe(beside) != TEXT:
        raise refusal(READER, beside, "be text", describe(beside), _COPY)
    text = read_head(beside).decode("latin-1")
    found = dict(re.findall(r"^(ADFREQ|Chans|Samples)\s*=\s*(\S+)\s*$", text, re.MULTILINE))
    try:
        rate, n_channels = float(found["ADFREQ"]), int(found["Chans"])
        claimed = int(found["Samples"]) if "Samples" in found else None
    except (KeyError, ValueError):
        got = f"{found or 'none of these'}"
        raise refusal(READER, beside, "tell ADFREQ, Chans and Samples as numbers", got, _COPY) from None
    if not (math.isfinite(rate) and rate > 0 and n_channels > 0):
        raise refusal(READER, beside, "tell a rate and at least 1 channel", f"{rate} Hz, {n_channels}", _COPY)
    return rate, n_channels, claimed
