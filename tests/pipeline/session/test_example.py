"""Examples are recordings like any other, and what the pipeline makes of them follows their truth."""

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.session.example import EXAMPLES

SMALL = {
    "ode": ({"verses": 1, "sampling_rate": 4_000}, ["note", "instrument"], lambda x: mo.stft(x, frame="23ms")),
    "place_cells": ({"n_samples": 600}, ["position", "moving"], mo.identity),
    "sleep": ({"hours": 0.3}, ["stage"], lambda x: mo.log_rms(x, frame="2s")),
    "machine": ({"n_samples": 600}, ["regime", "drift"], mo.identity),
    "sphere": ({"n_samples": 12_000}, ["elevation", "azimuth"], lambda x: mo.histogram(x, frame=60)),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example__is_lazy_and_its_frames_carry_the_truth(name):
    options, truths, features = SMALL[name]
    recording = mo.example(name, **options)
    assert recording.dims == ("time", "channel")
    assert recording.chunks
    ticks = recording.time.values
    assert recording.sel(time=slice(ticks[3], ticks[9])).sizes["time"] == 7
    frames = features(recording)
    assert frames.chunks
    for truth in truths:
        assert frames[truth].dims == ("frame",)
        assert truth not in frames.feature.coords
    assert not set(truths) & set(map(str, recording.channel.values))
    xr.testing.assert_identical(recording.compute(), mo.example(name, **options).compute())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_example__the_state_of_the_place_cells_tells_where_the_rat_is():
    frames = mo.identity(mo.example("place_cells"))
    state = mo.observe(mo.embed(frames), frames)
    truth = frames.position.expand_dims(component=["x"]).transpose("frame", "component")
    assert mo.scores({"state": state.state}, truth).correlation_held_out.item() > 0.9


@pytest.mark.filterwarnings("ignore")
def test_example__a_machine_keeps_its_date_times_and_segments():
    frames = mo.identity(mo.example("machine", n_samples=600))
    state = mo.observe(mo.embed(frames), frames)
    assert state.time.dtype.kind == "M"
    holes = int((np.diff(frames.time.values) > np.timedelta64(2, "s")).sum())
    assert len(np.unique(state.segment)) == holes + 1 > 1


def test_example__refuses_in_a_sentence():
    with pytest.raises(ValueError, match=r"name must be one of 'ode', .*; got 'beethoven'"):
        mo.example("beethoven")
    with pytest.raises(TypeError, match="example: 'ode' has no option hours; it has seed, verses, beat, sampling_rate"):
        mo.example("ode", hours=3)
