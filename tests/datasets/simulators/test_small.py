"""Small simulators: same seed same numbers, and truths with the statistics that they state."""

import math

import numpy as np
import pytest
import xarray as xr

from manifold_observer.datasets.simulators import cells, machine, ode, sleep

MAKERS = {
    "ode": lambda **options: ode.ode(sampling_rate=4_000, **options),
    "place_cells": cells.place_cells,
    "night": lambda **options: sleep.night(hours=0.4, **options),
    "machine": machine.machine,
}


@pytest.mark.parametrize("name", MAKERS)
def test_simulators__same_seed_same_numbers(name):
    xr.testing.assert_identical(MAKERS[name](seed=3), MAKERS[name](seed=3))
    assert not np.array_equal(MAKERS[name](seed=3).values, MAKERS[name](seed=4).values)
    with pytest.raises(ValueError, match="seed must be a whole number, at least 0; got -1"):
        MAKERS[name](seed=-1)


def test_ode__every_note_sounds_at_its_pitch():
    music = ode.ode(verses=1, sampling_rate=8_000)
    samples, notes = music.values[:, 0].astype(float), music.note.values
    cuts = np.flatnonzero(notes[1:] != notes[:-1]) + 1
    checked = 0
    for start, stop in zip([0, *cuts], [*cuts, len(notes)], strict=True):
        if notes[start] == "rest":
            assert np.abs(samples[start:stop]).max() < 0.02
            continue
        spectrum = np.abs(np.fft.rfft(samples[start:stop] * np.hanning(stop - start)))
        frequency = np.fft.rfftfreq(stop - start, 1 / 8_000)
        wanted = 440 * 2 ** ((ode.PITCHES[notes[start]] - 69) / 12)
        near = (frequency > wanted / 1.04) & (frequency < wanted * 1.04)
        below = frequency < wanted / 1.1
        assert spectrum[near].max() > 20 * spectrum[below].max()  # the lowest partial is the note
        checked += 1
    assert checked == 62


def test_place_cells__rates_are_those_of_the_formula():
    rng = np.random.default_rng(0)
    position, centres, widths, peaks = rng.uniform(size=7), rng.uniform(size=3), rng.uniform(0.05, 0.2, 3), np.ones(3)
    slow = [
        [0.1 + g * math.exp(-((x - c) ** 2) / (2 * w**2)) for c, w, g in zip(centres, widths, peaks, strict=True)]
        for x in position
    ]
    np.testing.assert_allclose(cells.spike_rates(position, centres, widths, peaks), slow, rtol=1e-12)


def test_place_cells__fire_where_their_field_is():
    counts = cells.place_cells(n_samples=6_000)
    place = counts.position.values
    assert place.min() == 0
    assert place.max() == 1
    steps = np.abs(np.diff(place))
    assert (steps[~counts.moving.values[1:]] == 0).all()
    assert steps.max() < 1 / 11 + 1e-9
    # Each cell's mean position of spikes is where it fires most, and it hardly fires far from there.
    ratios = []
    for spikes in counts.values.T:
        peak = max(np.linspace(0, 1, 21), key=lambda x: spikes[np.abs(place - x) < 0.05].mean())
        ratios.append(spikes[np.abs(place - peak) < 0.05].mean() / max(spikes[np.abs(place - peak) > 0.4].mean(), 0.05))
    assert np.median(ratios) > 5


def test_night__each_stage_has_its_rhythms():
    recording = sleep.night(hours=1.5, seed=2)
    rate, stage = 64, recording.stage.values
    second = recording.values[: len(recording) // (4 * rate) * 4 * rate].reshape(-1, 4 * rate, 3)
    calm = [k for k in range(1, len(second)) if len(set(stage[(k - 1) * 4 * rate : (k + 1) * 4 * rate])) == 1]
    taper = np.hanning(4 * rate)[:, None]
    power = 2 * np.abs(np.fft.rfft(second * taper, axis=1)) ** 2 / (4 * rate) ** 2 / (taper**2).mean()
    frequency = np.fft.rfftfreq(4 * rate, 1 / rate)
    gains = np.array([*sleep._CHANNELS.values()])[1]  # central
    for name in set(stage):
        own = [k for k in calm if stage[k * 4 * rate] == name]
        for number, (low, high) in enumerate(sleep.BANDS.values()):
            # Bins next to a bound see the rhythm beside it, too.
            inside = (frequency >= low + 0.5) & (frequency < high - 0.5)
            found = np.sqrt(power[own][:, inside, 1].mean() * 4 * (high - low))
            assert found == pytest.approx(sleep.LEVELS[sleep.STAGES.index(name), number] * gains[number], rel=0.12)


@pytest.mark.slow
def test_night__stages_follow_as_they_may():
    stage = sleep.night(hours=3.0, seed=1).stage.values
    cuts = np.flatnonzero(stage[1:] != stage[:-1]) + 1
    lengths = np.diff([0, *cuts]) / 64
    assert stage[0] == "W"
    assert lengths.min() >= 119
    assert lengths.max() <= 481
    pairs = {(stage[k - 1], stage[k]) for k in cuts}
    assert all(sleep._NEXT[sleep.STAGES.index(a), sleep.STAGES.index(b)] > 0 for a, b in pairs)
    with pytest.raises(ValueError, match="must be above 60 Hz; got 50"):
        sleep.night(sampling_rate=50)


def test_machine__has_units_holes_and_a_drift():
    values = machine.machine(n_samples=20_000)
    steps = np.diff(values.time.values) / np.timedelta64(1, "s")
    holes = np.flatnonzero(steps > 1)
    assert set(steps[steps <= 1]) == {1.0}
    assert steps[holes].min() >= 11
    assert steps[holes].max() <= 60
    assert 150 <= np.diff(holes).min() <= np.diff(holes).max() < 500
    assert values.drift.values.std() == pytest.approx(1, abs=0.25)
    spread = values.std("time").values / 10.0 ** np.array([power for _, power in machine.SENSORS.values()])
    assert spread.min() > 0.3
    assert spread.max() < 5
    assert list(values.channel_units.values) == [unit for unit, _ in machine.SENSORS.values()]
    assert set(np.diff(machine.machine(n_samples=200, holes=False).time.values)) == {np.timedelta64(1, "s")}
