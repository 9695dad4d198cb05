"""The music experiment of the paper (section V-C): notes and instruments in the coordinates of a piece of music.

A solo with a rapid run over a quiet accompaniment, and a duet, each in several realisations. Where the environment
variable MANIFOLD_OBSERVER_RECORDINGS names a folder, every ``X.wav`` in it that has its notes beside it, in
``X_notes.csv``, is a piece too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from manifold_observer.datasets.simulators.melody import sounding_note
from manifold_observer.datasets.simulators.music import duet, has_sampler, read_notes, solo
from manifold_observer.tasks.comparison import scores as tasks

from ..comparison.baselines import baselines
from ..comparison.scores import class_scores
from ..embedding.embed import embed
from ..frames.features import stft
from ..frames.recording import open_recording
from ..observers.observe import observe
from .experiment import Claim, Experiment, Work
from .music_claims import judge_piece
from .music_pictures import draw
from .verdict import settle

FRAME, GAMMA, N_MODES = "23ms", 0.1, 4
RECORDINGS = "MANIFOLD_OBSERVER_RECORDINGS"
_ESTIMATES = ["observer", "diffusion_maps", "smoothed_pca", "pca"]
_LABELS, _PACES = ["note", "instrument"], ["slow", "rapid"]
_SCORES = ["accuracy", "silhouette", "silhouette_null", "pace_accuracy", "threshold_area", "many_accuracy"]
_SHARED = {"estimate", "label", "pace", "mode", "pair"}
_PAIR = ["observer", "diffusion_maps"]
_MANY = 6
# Shorter notes are rapid, s: no ordinary melody has them.
_RAPID_BELOW = 0.1
_N_REALISATIONS = 10
# What the spectrogram of the picture shows: up to so many Hz, down to so many dB, in so many columns at most.
_HIGHEST, _FLOOR, _COLUMNS = 6_000.0, -80.0, 700


def works(quick: bool) -> list[Work]:
    """Realisations of the solo and of the duet, sampled where that is possible, and recordings where there are any."""
    sound = "sampled" if has_sampler() else "additive"
    size = {"n_phrases": 4, "n_rapid": 16} if quick else {"n_phrases": 8, "n_rapid": 32}
    n_phrases = 6 if quick else 12
    seeds = range(3 if quick else _N_REALISATIONS)
    solos = [Work(f"solo-{seed}", solo_piece, {"seed": seed, "sound": sound, **size}) for seed in seeds]
    duets = [Work(f"duet-{seed}", duet_piece, {"seed": seed, "sound": sound, "n_phrases": n_phrases}) for seed in seeds]
    return [*solos, *duets, *_recorded_works(os.environ.get(RECORDINGS))]


def solo_piece(seed: int, n_phrases: int, n_rapid: int, sound: str) -> xr.Dataset:
    """Compose and analyse a solo; see :func:`analyse_music`."""
    return analyse_music(solo(seed=seed, n_phrases=n_phrases, n_rapid=n_rapid, sound=sound))


def duet_piece(seed: int, n_phrases: int, sound: str) -> xr.Dataset:
    """Compose and analyse a duet; see :func:`analyse_music`."""
    return analyse_music(duet(seed=seed, n_phrases=n_phrases, sound=sound))


def recorded_piece(path: str) -> xr.Dataset:
    """Analyse a WAV file whose notes lie beside it; see :func:`analyse_music`."""
    place = Path(path)
    notes = read_notes(_notes_beside(place))
    music = notes.assign(recording=open_recording(place).load())
    return analyse_music(music.assign_attrs(piece=re.sub(r"\W+", "_", place.stem), sound=f"recording {place.name}"))


def analyse_music(music: xr.Dataset) -> xr.Dataset:
    """Coordinates of the frames of a piece, and how well its notes and instruments can be told from them.

    Parameters
    ----------
    music
        As the composers of ``datasets/pieces.py`` return it.

    Returns
    -------
    ``observer(frame, mode)`` and ``diffusion_maps(frame, mode)``; ``time(frame)`` in s; ``frame_note(frame)`` (MIDI
    number), ``frame_instrument(frame)``, -1 where there is none, and ``frame_rapid(frame)``; the score; the waveform
    and the spectrogram, reduced for pictures; the scores of every estimate.
    """
    frames = stft(music["recording"].chunk(), frame=FRAME).compute()
    embedding = embed(frames, n_modes=N_MODES, preset="paper")
    others = baselines(embedding, frames, GAMMA, widths=())
    estimates = {"observer": observe(embedding, frames, GAMMA)["state"].transpose("frame", "mode"), **others}
    labels = frame_labels(music, frames["time"].values)
    result = xr.Dataset(
        {name: (("frame", "mode"), estimates[name].values) for name in ("observer", "diffusion_maps")},
        coords={"time": ("frame", frames["time"].values, {"units": "s", "long_name": "centre of the frame"})},
    )
    result = result.assign(eigenvalue=("mode", embedding["eigenvalue"].values)).assign(labels.data_vars)
    result = result.merge(_score(music)).merge(_waveform(music["recording"])).merge(_spectrogram(frames))
    result = result.merge(_scores({name: estimates[name] for name in _ESTIMATES}, labels))
    result = result.merge(_with_more_modes(frames, labels))
    names = ", ".join(music.attrs["instruments"])
    return result.assign_attrs(piece=music.attrs["piece"], sound=music.attrs["sound"], instruments=names)


def frame_labels(music: xr.Dataset, times: Any) -> xr.Dataset:
    """Note, instrument and pace at given times.

    Parameters
    ----------
    music
        A table of notes, and the accompaniment's where there is one: it is the instrument while the solo rests.
    times
        In s, shape (n,).

    Returns
    -------
    ``frame_note``, ``frame_instrument`` (-1 for none) and ``frame_rapid``, dim ``frame``.

    Examples
    --------
    >>> music = duet(n_phrases=2, sampling_rate=8_000, sound="additive")
    >>> frame_labels(music, [0.1, 1e3])["frame_instrument"].values
    array([ 0, -1], dtype=int8)
    """
    number = sounding_note(music, times)
    note, instrument = (np.where(number >= 0, music[name].values[number], -1) for name in ("pitch", "instrument"))
    if music.sizes.get("chord_note", 0):
        chords = music[["chord_onset", "chord_offset"]].rename(chord_onset="onset", chord_offset="offset")
        chord = sounding_note(chords, times)
        instrument = np.where((number < 0) & (chord >= 0), music["chord_instrument"].values[chord], instrument)
    length = (music["offset"] - music["onset"]).values
    rapid = (number >= 0) & (length[number] < _RAPID_BELOW)
    return xr.Dataset(
        {
            "frame_note": ("frame", note.astype(np.int16), {"long_name": "MIDI number, -1 where no note sounds"}),
            "frame_instrument": ("frame", instrument.astype(np.int8), {"long_name": "instrument, -1 in silence"}),
            "frame_rapid": ("frame", rapid, {"long_name": "whether the note is of a rapid run"}),
        }
    )


def join(parts: dict[str, xr.Dataset]) -> xr.Dataset:
    """All kinds of pieces beside each other, ``KIND_VARIABLE``: all realisations' scores, the first one's pictures."""
    kinds: dict[str, list[xr.Dataset]] = {}
    for part in parts.values():
        kinds.setdefault(part.attrs["piece"], []).append(part)
    joined = xr.Dataset()
    for kind, own in kinds.items():
        scores = xr.concat([part[_SCORES] for part in own], "realisation")
        whole = own[0].drop_vars(_SCORES).merge(scores)
        names = {str(name): f"{kind}_{name}" for name in {*whole.variables, *whole.dims} - _SHARED}
        joined = joined.merge(whole.rename(names))
        joined.attrs |= {f"{kind}_{name}": own[0].attrs[name] for name in ("sound", "instruments")}
    return joined.assign_attrs(kinds=" ".join(kinds))


def judge(joined: xr.Dataset) -> list[Claim]:
    """What the paper says of music, piece by piece, and what was measured here."""
    statements = []
    for kind in joined.attrs["kinds"].split():
        scores = joined[[f"{kind}_{name}" for name in _SCORES]]
        scores = scores.rename({name: str(name).removeprefix(f"{kind}_") for name in {*scores.variables, *scores.dims}})
        statements += judge_piece(f"{kind} ({joined.attrs[f'{kind}_sound']})", scores)
    return settle(statements)


MUSIC = Experiment(works, join, draw, judge)


def _recorded_works(folder: str | None) -> list[Work]:
    """The recordings in a folder that have their notes beside them."""
    found = sorted(Path(folder).rglob("*.wav")) if folder else []
    return [Work(path.stem, recorded_piece, {"path": str(path)}) for path in found if _notes_beside(path).is_file()]


def _notes_beside(path: Path) -> Path:
    """Where the notes of a recording are looked for."""
    return path.with_name(f"{path.stem}_notes.csv")


def _score(music: xr.Dataset) -> xr.Dataset:
    """The notes, for the picture."""
    return music.drop_dims(["time", "channel"])


def _waveform(recording: xr.DataArray) -> xr.Dataset:
    """Lowest and highest sample of stretches of the first channel, as many as a picture can show."""
    sound = recording.isel(channel=0)
    stretches = sound.coarsen(time=max(1, len(sound) // _COLUMNS), boundary="trim")
    low, high = stretches.min(), stretches.max()
    times = {"wave_time": ("stretch", low["time"].values, {"units": "s"})}
    return xr.Dataset({"wave_low": ("stretch", low.values), "wave_high": ("stretch", high.values)}, coords=times)


def _spectrogram(frames: xr.DataArray) -> xr.Dataset:
    """Spectrum over time in dB below its peak, up to what a picture can show."""
    few = frames.isel(feature=frames["frequency"].values <= _HIGHEST)
    few = few.coarsen(frame=max(1, few.sizes["frame"] // _COLUMNS), boundary="trim", coord_func="mean").max()
    with np.errstate(divide="ignore"):
        level = np.maximum(20 * np.log10(few.values / few.values.max()), _FLOOR).astype(np.float32)
    return xr.Dataset(
        {"spectrogram": (("column", "frequency"), level, {"units": "dB", "long_name": "level below the peak"})},
        coords={
            "column_time": ("column", few["time"].values, {"units": "s"}),
            "frequency": ("frequency", few["frequency"].values, {"units": "Hz"}),
        },
    )


def _scores(estimates: Mapping[str, xr.DataArray], labels: xr.Dataset) -> xr.Dataset:
    """How well notes and instruments are told; NaN where there is only one, or no rapid run."""
    known = {label: labels[f"frame_{label}"] for label in _LABELS}
    accuracy = [class_scores(estimates, values)["balanced_accuracy"].values for values in known.values()]
    silhouettes = [[_silhouette(values, own) for own in known.values()] for values in estimates.values()]
    nulls = [[_silhouette(values, own, 1 / 3) for own in known.values()] for values in estimates.values()]
    paces = [_pace_accuracies(values, labels) for values in estimates.values()]
    areas = [_threshold_area(values, known["instrument"]) for values in estimates.values()]
    return xr.Dataset(
        {
            "accuracy": (("label", "estimate"), np.array(accuracy), {"long_name": "balanced accuracy, held out"}),
            "silhouette": (("estimate", "label"), np.array(silhouettes), {"long_name": "mean silhouette"}),
            "silhouette_null": (("estimate", "label"), np.array(nulls), {"long_name": "silhouette of late labels"}),
            "pace_accuracy": (("estimate", "pace"), np.array(paces), {"long_name": "balanced accuracy of notes"}),
            "threshold_area": ("estimate", np.array(areas), {"long_name": "instruments by coordinate 1, ROC area"}),
        },
        coords={"estimate": list(estimates), "label": _LABELS, "pace": _PACES},
    )


def _with_more_modes(frames: xr.DataArray, labels: xr.Dataset) -> xr.Dataset:
    """Accuracies of the same labels from six coordinates in place of four."""
    embedding = embed(frames, n_modes=_MANY, preset="paper")
    state = observe(embedding, frames, GAMMA)["state"].transpose("frame", "mode")
    pair = dict(zip(_PAIR, (state, embedding["coordinate"].transpose("frame", "mode")), strict=True))
    found = [class_scores(pair, labels[f"frame_{label}"])["balanced_accuracy"].values for label in _LABELS]
    return xr.Dataset({"many_accuracy": (("label", "pair"), np.array(found))}, coords={"pair": _PAIR, "label": _LABELS})


def _silhouette(estimate: xr.DataArray, labels: xr.DataArray, late: float = 0.0) -> float:
    """Mean silhouette of the frames with a label; of labels that come late by a share of the piece, as a null."""
    there = labels.values >= 0
    classes = labels.values[there].astype(np.int64)
    classes = np.roll(classes, round(late * len(classes)))
    if len(np.unique(classes)) < 2:
        return float("nan")
    return float(tasks.silhouette(estimate.values[there], classes).mean())


def _pace_accuracies(estimate: xr.DataArray, labels: xr.Dataset) -> list[float]:
    """Of slow and of rapid notes, read by their neighbours in the other folds as in the accuracy of all."""
    there = labels["frame_note"].values >= 0
    note, rapid = labels["frame_note"].values[there].astype(np.int64), labels["frame_rapid"].values[there]
    reading = tasks.neighbour_readout(estimate.values[there], note)
    return [tasks.balanced_accuracy(reading[own], note[own]) if own.any() else float("nan") for own in (~rapid, rapid)]


def _threshold_area(estimate: xr.DataArray, instrument: xr.DataArray) -> float:
    """How well the first coordinate alone tells two instruments."""
    there = instrument.values >= 0
    second = instrument.values[there] == 1
    both = second.any() and not second.all()
    return tasks.threshold_area(estimate.values[there, 0], second) if both else float("nan")
