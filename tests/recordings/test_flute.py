"""A real recording with known truth."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import xarray as xr

import manifold_observer.pipeline as mo


def test_flute_and_harmonica__notes_and_instruments_are_read_from_the_observer_state(tmp_path, recordings):
    flute = recordings / "flute_harmonica_render"
    out = tmp_path / "out.zarr"
    command = [Path(sys.executable).parent / "manifold-observer", "run", flute / "ode_flute_harmonica.wav", out]
    options = ["--features", "stft", "--frame", "23ms", "--n-modes", "4", "--gamma", "0.1", "--workers", "2", "--json"]
    done = subprocess.run([*map(str, command), *options], capture_output=True, text=True, check=True, timeout=300)
    assert json.loads(done.stdout)["n_frames"] == 913
    state = xr.open_datatree(out)["state"].to_dataset()
    note, instrument = note_labels(flute, state["time"].values)
    reading = {name: mo.class_scores({"observer": state}, labels) for name, labels in (("n", note), ("i", instrument))}
    assert float(reading["n"].balanced_accuracy.item()) >= 0.90
    assert float(reading["i"].balanced_accuracy.item()) >= 0.90


def note_labels(flute, times):
    """MIDI pitch and instrument at each time, -1 in silence; where notes overlap, the later one."""
    note, instrument = np.full(len(times), -1), np.full(len(times), -1)
    with (flute / "ode_flute_harmonica_notes.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            sounding = (times >= float(row["onset_s"])) & (times < float(row["offset_s"]))
            note[sounding] = int(row["midi_pitch"])
            instrument[sounding] = row["instrument"] == "flute"
    return xr.DataArray(note, dims="frame"), xr.DataArray(instrument, dims="frame")
