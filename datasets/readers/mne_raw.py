"""Reader of EEGLAB (.set, .fdt), FIF and CNT files: the xarray engine ``manifold-mne``, by MNE, lazily.

Values are in SI units. Where MNE marks a boundary in the recording, a segment begins.
"""

import functools
import os
import re
import threading
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendEntrypoint

from .contract import check_channels, has_suffix, local_file, refusal
from .libraries import library
from .mat5_scan import scan_mat5
from .mixed_rates import chosen_channels, listed
from .sampled import Samples, Source, Stretch, distinct_labels, sampled_dataset, segment_numbers, stretch_time, told
from .sniff import FIF, HDF5, MATLAB_5, MATLAB_7, describe, holds

READER = "mne"
# What MNE says of where recordings were cut.
_CUTS = ("boundary", "edge boundary", "bad boundary", "bad_acq_skip")
_UNITS = {
    "eeg": "V", "ecog": "V", "seeg": "V", "dbs": "V", "eog": "V", "ecg": "V", "emg": "V", "bio": "V", "mag": "T",
    "grad": "T/m", "ref_meg": "T", "temperature": "°C", "gsr": "S",
}  # fmt: skip
# Triggers and states of the system: no measurements.
_TRIGGERS = ("stim", "syst")
_LOCK = threading.Lock()


@dataclass(frozen=True)
class MneSource(Source):
    """Some channels of a file."""

    path: str
    """The file."""
    picks: tuple[int, ...]
    """Numbers of the channels."""
    n_samples: int
    """Of each."""

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and channels."""
        return self.n_samples, len(self.picks)

    def read(self, start: int, stop: int) -> Samples:
        """Physical values, by MNE."""
        if start >= stop:
            return np.empty((0, len(self.picks)))
        try:
            with _LOCK:
                raw = opened(self.path, os.stat(self.path).st_mtime_ns)
                return np.asarray(raw.get_data(picks=list(self.picks), start=start, stop=stop, verbose="ERROR").T)
        except Exception as error:
            raise _unreadable(self.path, error) from None


class MneBackend(BackendEntrypoint):
    """Opens EEGLAB, FIF and CNT files as lazy recordings with ``xr.open_dataset``."""

    description = "Open EEGLAB (.set), FIF and Neuroscan (.cnt) files as recordings, lazily, by MNE"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "channels", "drop_channels", "labels")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Claim files by their name or their signature."""
        return has_suffix(filename_or_obj, {".set", ".fif", ".cnt"}) or self.recognises(filename_or_obj)

    def recognises(self, filename_or_obj: Any) -> bool:
        """Claim FIF by its signature, and EEGLAB by that of MATLAB and its name."""
        if has_suffix(filename_or_obj, {".set"}):
            return holds(filename_or_obj, MATLAB_5, MATLAB_7, HDF5)
        return holds(filename_or_obj, FIF)

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        channels: Sequence[str] | None = None,
        drop_channels: Sequence[str] = (),
        labels: Sequence[str] = (),
    ) -> xr.Dataset:
        """Open one file; its samples are read when they are used.

        Parameters
        ----------
        filename_or_obj
            Path of the file.
        drop_variables
            Names to leave out.
        channels
            Labels of the channels to take, in this order. By default all but triggers.
        labels
            Labels of channels that are wanted even if they hold triggers.
        drop_channels
            Labels of the channels to leave out.

        Returns
        -------
        Dataset with the variable ``recording``, dims (time, channel), in float64.
        """
        path = local_file(READER, filename_or_obj)
        try:
            raw = opened(path, os.stat(path).st_mtime_ns)
        except (ImportError, ValueError) as error:
            if path in str(error):
                raise
            raise _unreadable(path, error) from None
        except Exception as error:
            raise _unreadable(path, error) from None
        check_channels(READER, path, len(raw.ch_names))
        names, kinds = distinct_labels(raw.ch_names), raw.get_channel_types()
        kinds = ["wanted" if name in labels else kind for name, kind in zip(names, kinds, strict=True)]
        picks = _picked(path, names, kinds, channels, drop_channels)
        source = MneSource(path, tuple(picks), int(raw.n_times))
        if not source.n_samples:
            raise refusal(READER, path, "hold samples", "none", "Export it again")
        rate = float(raw.info["sfreq"])
        dataset = sampled_dataset(
            source,
            path=path,
            channels=[names[number] for number in picks],
            units=[_UNITS.get(kinds[number], "unknown") for number in picks],
            time=None,
            sampling_rate=rate,
            drop_variables=drop_variables,
        )
        return dataset.assign_coords(_time(raw, rate))


@functools.lru_cache(maxsize=4)
def opened(path: str, changed: int) -> Any:
    """The file as MNE sees it, without its samples.

    Parameters
    ----------
    path
        The file.
    changed
        When it was changed last: another file is read anew.
    """
    mne = library(READER, path, "mne")
    words, suffix = describe(path), os.path.splitext(path)[1].lower()
    if words in (MATLAB_5, MATLAB_7, HDF5):
        _check_data_file(path)
        if words == MATLAB_5:
            scan_mat5(READER, path)
        read = mne.io.read_raw_eeglab
    elif words == FIF:
        read = functools.partial(mne.io.read_raw_fif, on_split_missing="raise", allow_maxshield="yes")
    elif suffix == ".cnt":
        read = mne.io.read_raw_cnt
    else:
        raise refusal(READER, path, "be an EEGLAB, FIF or CNT file", words, "Replace it with the recording")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read(path, preload=False, verbose="ERROR")


def noted(path: str) -> tuple[list[tuple[float, float, str]], str | None]:
    """Annotations of a file, as (start, stop, text), and the date-time of its start.

    Parameters
    ----------
    path
        The file.
    """
    try:
        raw = opened(path, os.stat(path).st_mtime_ns)
    except ImportError:
        raise
    except Exception as error:
        raise error if path in str(error) else _unreadable(path, error) from None
    first = raw.first_time  # MNE counts from where its clock began, before the first sample
    found = zip(raw.annotations.onset, raw.annotations.duration, raw.annotations.description, strict=True)
    notes = [(float(a - first), float(a - first + b), str(text)) for a, b, text in found if text.lower() not in _CUTS]
    return notes, _start_time(raw)


def _check_data_file(path: str) -> None:
    """A .set may keep its samples in a .fdt file, which must lie in its folder."""
    beside = os.path.splitext(path)[0] + ".fdt"
    folders = {os.path.dirname(os.path.realpath(each)) for each in (path, beside)}
    if os.path.lexists(beside) and len(folders) > 1:
        raise refusal(READER, path, "have its data file in its own folder", "a link to another", "Copy it there")


def _picked(
    path: str, labels: Sequence[str], kinds: Sequence[str], channels: Sequence[str] | None, dropped: Sequence[str]
) -> list[int]:
    """Numbers of the wanted channels, without those of triggers."""
    numbers = chosen_channels(READER, path, labels, channels, dropped)
    triggers = [number for number in numbers if kinds[number] in _TRIGGERS]
    if channels is None and triggers and len(triggers) < len(numbers):
        names = listed([labels[number] for number in triggers])
        told(READER, path, f"{names} holds triggers and is left out. Take it with channels=.")
        numbers = [number for number in numbers if number not in triggers]
    return numbers


def _time(raw: Any, rate: float) -> xr.Coordinates:
    """The clock, and where segments begin."""
    notes = zip(raw.annotations.onset, raw.annotations.description, strict=True)
    first = raw.first_time  # MNE counts from where its clock began, before the first sample
    cuts = {round((onset - first) * rate) for onset, text in notes if str(text).lower() in _CUTS}
    time = stretch_time(int(raw.n_times), rate, [Stretch(0, 0.0)], _start_time(raw))
    firsts = [0, *sorted(cut for cut in cuts if 0 < cut < raw.n_times)]
    if len(firsts) == 1:
        return time
    return time.merge(segment_numbers(int(raw.n_times), [Stretch(at, at / rate) for at in firsts])).coords


def _start_time(raw: Any) -> str | None:
    """The date-time of the first sample, in UTC."""
    begun = raw.info["meas_date"]
    if begun is None:
        return None
    start = np.datetime64(begun.replace(tzinfo=None), "us") + np.timedelta64(round(raw.first_time * 1e6), "us")
    return f"{start}Z"


def _unreadable(path: str, error: Exception) -> ValueError:
    """Build the error of a file that MNE cannot read."""
    # MNE puts tracebacks into some of its messages.
    said = " ".join(re.split(r"\w+Error:", str(error))[-1].split())[:200] or type(error).__name__
    return refusal(READER, path, "be a recording that MNE can read", f"{said!r}", "Export it again")
