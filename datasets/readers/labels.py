"""Labels beside recordings, in any format: the xarray engine ``manifold-labels``."""

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendEntrypoint

from .brainvision import marked
from .brainvision_header import read_header as read_vhdr
from .contract import local_file, refusal
from .edf_header import read_header
from .edf_notes import notes_of
from .label_table import READER, Labels, read_arrow_labels, read_label_table
from .libraries import library
from .mat5_scan import scan_mat5
from .mne_raw import noted
from .sniff import BDF, BRAINVISION, EDF, FEATHER, FIF, MATLAB_5, MIDI, PARQUET, TEXT, UNKNOWN, XDF, describe
from .wfdb_notes import read_notes
from .xdf import markers

_NOTES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
_WAVEFORM = "Name the file of its annotations, such as 100.atr"


class LabelsBackend(BackendEntrypoint):
    r"""Opens labels as a dataset along time with ``xr.open_dataset``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "night.csv").write_text("onset,duration,stage\n0,30,W\n30,60,N1\n")
    ...     labels = xr.open_dataset(Path(folder, "night.csv"), engine="manifold-labels")
    >>> labels["time"].values, labels["stop"].values, labels["label"].values.tolist()
    (array([ 0., 30.]), array([30., 90.]), ['W', 'N1'])
    """

    description = "Open labels beside recordings: tables, Audacity, EDF+, WFDB, MIDI"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "label_column", "recording", "sampling_rate")

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Claim nothing: most such files may be recordings."""
        return False

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        label_column: str | None = None,
        recording: str | None = None,
        sampling_rate: float | None = None,
    ) -> xr.Dataset:
        """Read all labels of a file.

        Parameters
        ----------
        filename_or_obj
            Path of the file.
        drop_variables
            Names to leave out.
        label_column
            Column of a table that holds the labels, where there are several.
        recording
            Name of the recording, where a table has labels of several.
        sampling_rate
            In Hz, for WFDB annotations that count samples and have no header beside them.

        Returns
        -------
        Dataset with the variable ``label`` along ``time``, when each starts, with ``stop`` beside it; both in s.
        """
        path = local_file(READER, filename_or_obj)
        labels = _read(path, label_column, recording, sampling_rate)
        if not len(labels.start):
            raise refusal(READER, path, "hold labels", "none", "Name the file that does")
        note = {"units": "s", "long_name": "start of the label"}
        if labels.start_time is not None:
            note["start_time"] = labels.start_time
        dataset = xr.Dataset(
            {"label": ("time", np.array(labels.text, dtype=str), {"long_name": "label"})},
            coords={
                "time": ("time", labels.start, note),
                "stop": ("time", labels.stop, {"units": "s", "long_name": "end of the label"}),
            },
            attrs={"source": os.path.basename(path), "dated": int(labels.dated)},
        )
        return dataset.drop_vars([] if drop_variables is None else drop_variables, errors="ignore")


def _read(path: str, column: str | None, recording: str | None, sampling_rate: float | None) -> Labels:
    """Read a file by what it holds."""
    words, suffix = describe(path), os.path.splitext(path)[1].lower()
    readers = {XDF: _xdf, EDF: _edf, BDF: _edf, MIDI: _midi, BRAINVISION: _brainvision, FIF: _mne, MATLAB_5: _syllables}
    if words in readers or suffix == ".set":
        return (_mne if suffix == ".set" else readers[words])(path)
    if suffix in (".hea", ".dat"):
        raise refusal(READER, path, "hold labels", "a WFDB recording", _WAVEFORM)
    if words in (PARQUET, FEATHER):
        return read_arrow_labels(path, column, recording, parquet=words == PARQUET)
    if words == TEXT:
        return read_label_table(path, column, recording)
    if suffix and (words == UNKNOWN or os.path.isfile(os.path.splitext(path)[0] + ".hea")):
        return _wfdb(path, sampling_rate)
    remedy = "Give a table, a label track of Audacity, EDF+, annotations of WFDB or MIDI"
    raise refusal(READER, path, "hold labels", words, remedy)


def _edf(path: str) -> Labels:
    """Annotations of EDF+; their seconds count from the start of the recording."""
    header = read_header(path)
    notes = [note for note in notes_of(header) if note.text]
    start = np.array([note.onset for note in notes], np.float64)
    stop = start + np.array([note.duration for note in notes], np.float64)
    return Labels(start, stop, [note.text for note in notes], header.start_time)


def _wfdb(path: str, sampling_rate: float | None) -> Labels:
    """Annotations of WFDB: instants, by their symbols; a note beside a symbol is what was meant."""
    notes = read_notes(path, sampling_rate)
    pairs = [_with_duration(text) for _, text in notes]
    start = np.array([time for time, _ in notes])
    return Labels(start, start + np.array([lasting for _, lasting in pairs]), [text for text, _ in pairs])


def _with_duration(text: str) -> tuple[str, float]:
    """A note and its length: PhysioNet writes "T1 duration: 4.2" for annotations that came from EDF+."""
    name, found, lasting = text.rpartition(" duration: ")
    try:
        return (name, float(lasting)) if found else (text, 0.0)
    except ValueError:
        return text, 0.0


def _midi(path: str) -> Labels:
    """Notes of all tracks, by their names, such as C4 for middle C."""
    mido = library(READER, path, "mido")
    sounding: dict[tuple[int, int], list[float]] = {}
    notes: list[tuple[float, float, str]] = []
    now = 0.0
    try:
        for message in mido.MidiFile(path, clip=True):
            now += message.time
            if message.type not in ("note_on", "note_off"):
                continue
            key = (message.channel, message.note)
            if message.type == "note_on" and message.velocity:
                sounding.setdefault(key, []).append(now)
            elif sounding.get(key):
                notes.append((sounding[key].pop(0), now, _note(message.note)))
    except Exception as error:
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise refusal(READER, path, "be MIDI", f"{said!r} from mido", "Export it again") from None
    notes += [(start, now, _note(note)) for (_, note), starts in sounding.items() for start in starts]
    notes.sort()
    return Labels(np.array([n[0] for n in notes]), np.array([n[1] for n in notes]), [n[2] for n in notes])


def _brainvision(path: str) -> Labels:
    """Markers of BrainVision, by either of its texts."""
    found = marked(read_vhdr(os.path.splitext(path)[0] + ".vhdr" if path.lower().endswith(".vmrk") else path))
    start, stop = (np.array([each[k] for each in found], np.float64) for k in (0, 1))
    return Labels(start, stop, [text for *_, text in found])


def _xdf(path: str) -> Labels:
    """Markers of XDF, in the time of its streams."""
    found = markers(path)
    start = np.array([time for time, _ in found], np.float64)
    return Labels(start, start, [text for _, text in found])


def _mne(path: str) -> Labels:
    """Annotations of FIF and events of EEGLAB."""
    notes, start_time = noted(path)
    start, stop = (np.array([note[k] for note in notes], np.float64) for k in (0, 1))
    return Labels(start, stop, [text for *_, text in notes], start_time)


def _note(number: int) -> str:
    """The name of a note."""
    return f"{_NOTES[number % 12]}{number // 12 - 1}"


def _syllables(path: str) -> Labels:
    """Syllables of birdsong as evsonganaly writes them: a letter each, onsets and offsets in ms."""
    import scipy.io  # noqa: PLC0415 - slow

    scan_mat5(READER, path)
    try:
        found = scipy.io.loadmat(path, variable_names=["onsets", "offsets", "labels"], squeeze_me=True)
        start, stop = (np.atleast_1d(found[name]).astype(np.float64) / 1000 for name in ("onsets", "offsets"))
        texts = list(str(found["labels"]))
    except Exception as error:
        said = " ".join(str(error).split())[:200] or type(error).__name__
        got = f"a MATLAB file without them ({said})"
        raise refusal(READER, path, "hold variables onsets, offsets and labels", got, "Export a table") from None
    if not len(start) == len(stop) == len(texts):
        got = f"{len(start)}, {len(stop)} and {len(texts)}"
        raise refusal(READER, path, "hold as many onsets as offsets and labels", got, "Correct it")
    return Labels(start, stop, texts)
