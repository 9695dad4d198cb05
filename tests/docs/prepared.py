"""Files that pages take for granted: one's own recordings, small, with something hidden in them."""

import numpy as np
import pandas as pd
import soundfile
import xarray as xr

from edf_files import Edf


def song(folder):
    """song.wav and song_notes.csv: notes of a fifth of a second, which come back."""
    rng, rate = np.random.default_rng(0), 8_000
    pitches = rng.integers(0, 4, 40)
    seconds = np.arange(int(0.25 * rate)) / rate
    notes = [np.sin(2 * np.pi * 220 * 2 ** (pitch / 4) * seconds) * np.exp(-4 * seconds) for pitch in pitches]
    sound = 0.5 * np.concatenate(notes)
    soundfile.write(folder / "song.wav", sound + 1e-3 * rng.normal(size=len(sound)), rate)
    starts = 0.25 * np.arange(len(pitches))
    table = pd.DataFrame({"start": starts, "stop": starts + 0.25, "note": [f"n{pitch}" for pitch in pitches]})
    table.to_csv(folder / "song_notes.csv", index=False)


def eeg(folder):
    """eeg.edf, four channels of 100 Hz whose level follows two sleep stages, and stages.csv."""
    rng = np.random.default_rng(1)
    stage = np.repeat(rng.integers(0, 2, 12), 10)
    level = 200 + 400 * stage[:, None] * np.array([1.0, 0.8, 0.5, 0.2])
    waves = level[:, :, None] * rng.normal(size=(120, 4, 100))
    signals = [(name, "uV", -3000.0, 3000.0, waves[:, n]) for n, name in enumerate(("Fz", "Cz", "Pz", "Oz"))]
    Edf([(*one[:4], (10 * one[4]).clip(-32768, 32767).astype("<i2")) for one in signals]).write(folder / "eeg.edf")
    onset = 10.0 * np.arange(12)
    stages = np.where(stage[::10], "deep", "light")
    pd.DataFrame({"onset": onset, "duration": 10.0, "stage": stages}).to_csv(folder / "stages.csv", index=False)


def emg(folder):
    """emg.txt as an armband writes it: time in ms, eight channels, a class."""
    rng, n = np.random.default_rng(2), 8_000
    gesture = np.repeat(rng.integers(1, 4, 8), n // 8)
    level = np.array([[1.0, 2, 1, 1, 3, 1, 1, 2], [3.0, 1, 1, 2, 1, 1, 2, 1], [1.0, 1, 3, 1, 1, 2, 1, 1]])
    table = pd.DataFrame(
        1e-5 * level[gesture - 1] * rng.normal(size=(n, 8)), columns=[f"channel{k}" for k in range(1, 9)]
    )
    table.insert(0, "time", np.arange(n))
    table["class"] = gesture
    table.to_csv(folder / "emg.txt", sep="\t", index=False)


def spikes(folder):
    """spikes.csv: unit and time of the spikes of 12 cells with places on a track."""
    rng = np.random.default_rng(3)
    time = np.arange(0, 200, 0.01)
    place = 0.5 - 0.5 * np.cos(2 * np.pi * time / 20)
    rows = []
    for unit in range(12):
        rate = 0.5 + 25 * np.exp(-0.5 * ((place - unit / 11) / 0.08) ** 2)
        rows += [(unit, when) for when in time[rng.random(len(time)) < 0.01 * rate]]
    pd.DataFrame(sorted(rows, key=lambda row: row[1]), columns=["unit", "time"]).to_csv(
        folder / "spikes.csv", index=False
    )


def bench(folder):
    """bench.csv: a test bench with dates, five sensors and flags of anomalies."""
    rng, n = np.random.default_rng(4), 900
    load = np.cumsum(rng.normal(size=n)) / 10
    anomaly = (np.arange(n) > 500) & (np.arange(n) < 620)
    sensors = np.outer(load, [1, 0.5, -1, 2, 0.3]) + np.outer(anomaly, [0, 2, 1, 0, 3]) + 0.1 * rng.normal(size=(n, 5))
    names = ["current", "pressure", "temperature", "vibration", "flow"]
    table = pd.DataFrame(
        sensors, columns=names, index=pd.date_range("2026-03-02 08:00", periods=n, freq="s", name="time")
    )
    table["anomaly"] = anomaly.astype(int)
    table.to_csv(folder / "bench.csv", float_format="%.6g")


def nights(folder, names=("night", "monday", "tuesday", "wednesday")):
    """Counts of three sensors, 150 frames of 60 samples each, as .npy."""
    for number, name in enumerate(names):
        angle = np.cumsum(np.random.default_rng(number).normal(size=9_000)) / 200
        rates = np.exp(np.stack([np.sin(angle), np.cos(angle), np.sin(angle + 2)], axis=1))
        np.save(folder / f"{name}.npy", np.random.default_rng(9).poisson(2 * rates))


def counts(folder):
    """counts.zarr: the same with names, as xarray writes it."""
    nights(folder, ["night"])
    walk = xr.DataArray(np.load(folder / "night.npy"), dims=("time", "channel"), attrs={"sampling_rate": 60.0})
    walk.to_dataset(name="counts").to_zarr(folder / "counts.zarr")


def corpus(folder):
    """in/: two short recordings."""
    (folder / "in").mkdir()
    for number in (1, 2):
        walk = np.random.default_rng(number).normal(size=(80, 3)).cumsum(axis=0)
        np.save(folder / "in" / f"night{number}.npy", walk)


def watched(folder):
    """night.wav, and a corpus of two recordings in nights.toml."""
    noise = np.random.default_rng(5).normal(size=16_000)
    soundfile.write(folder / "night.wav", 0.1 * noise / np.abs(noise).max(), 4_000)
    corpus(folder)
    text = '[corpus]\ninputs = ["in/*.npy"]\noutput = "out"\n\n[run]\nfeatures = "identity"\nn-modes = 2\n'
    (folder / "nights.toml").write_text(text)
