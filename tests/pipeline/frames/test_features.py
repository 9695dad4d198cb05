"""Frames equal the slow reference for any chunking, never cross a gap, and nothing computes early."""

import functools

import dask
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.edges import shared_edges
from reference import loops
from strategies import chunkings, examples

pytestmark = pytest.mark.usefixtures("in_this_thread")


N = 157
LENGTHS = (60, 3, 94)  # the second is shorter than a frame
EDGES = np.linspace(-4, 4, 8)
COUNTS = np.random.default_rng(0).integers(0, 4, (N, 2))
VOLTS = np.random.default_rng(1).normal(size=(N, 2)).clip(-4, 4)

# Name, what the pipeline makes of a recording, and the reference of one stretch of samples.
FEATURES = {
    "histogram": (
        functools.partial(mo.histogram, frame=10, edges=EDGES),
        functools.partial(loops.histogram, frame=10, edges=EDGES),
    ),
    "stft": (functools.partial(mo.stft, frame=10), functools.partial(loops.stft, frame=10)),
    "stft hop": (
        functools.partial(mo.stft, frame=10, hop=4),
        functools.partial(loops.stft, frame=10, hop=4),
    ),
    "stft sparse": (
        functools.partial(mo.stft, frame=7, hop=12),
        functools.partial(loops.stft, frame=7, hop=12),
    ),
    "log_rms": (functools.partial(mo.log_rms, frame=10), functools.partial(loops.log_rms, frame=10)),
    "identity": (mo.identity, lambda samples: samples),
}
each_feature = pytest.mark.parametrize("name", FEATURES)


def recording(samples=VOLTS, lengths=(N,), rate=100.0, chunks=None):
    """Samples at a rate, with a pause of 5 s after each stretch."""
    stretch = np.repeat(np.arange(len(lengths)), lengths)
    made = xr.DataArray(
        samples,
        dims=("time", "channel"),
        coords={"time": np.arange(len(samples)) / rate + 5.0 * stretch, "channel": ["left", "right"]},
        attrs={"units": "mV"},
    )
    return made.chunk(time=chunks or -1, channel=-1)


def stretches(samples, lengths):
    stops = np.cumsum(lengths)
    return [samples[stop - length : stop] for stop, length in zip(stops, lengths, strict=True)]


@each_feature
@examples(10)
@given(data=st.data())
def test_features__equal_the_reference_for_any_chunking(name, data):
    make, reference = FEATURES[name]
    frames = make(recording(chunks=data.draw(chunkings(N))))
    np.testing.assert_allclose(frames.values, reference(VOLTS), rtol=1e-12, atol=1e-12)


@each_feature
def test_features__channel_chunks_make_no_difference(name):
    make, reference = FEATURES[name]
    np.testing.assert_allclose(make(recording().chunk(channel=1)).values, reference(VOLTS), rtol=1e-12, atol=1e-12)


@each_feature
def test_features__any_task_size_gives_the_same(name, monkeypatch):
    make, reference = FEATURES[name]
    monkeypatch.setattr("manifold_observer.pipeline.frames.segments.FEATURE_TASK_BYTES", 500)
    frames = make(recording())
    assert len(frames.chunks[0]) > 1
    np.testing.assert_allclose(frames.values, reference(VOLTS), rtol=1e-12, atol=1e-12)


@each_feature
@examples(5)
@given(data=st.data())
def test_features__no_frame_crosses_a_gap(name, data):
    make, reference = FEATURES[name]
    frames = make(recording(lengths=LENGTHS, chunks=data.draw(chunkings(N))))
    parts = [reference(part) for part in stretches(VOLTS, LENGTHS) if name == "identity" or len(part) >= 10]
    np.testing.assert_allclose(frames.values, np.concatenate(parts), rtol=1e-12, atol=1e-12)
    expected = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    np.testing.assert_array_equal(frames["segment"], expected)


@each_feature
def test_features__numpy_recordings_work_too(name):
    make, reference = FEATURES[name]
    frames = make(recording().compute())
    assert frames.chunks is not None
    np.testing.assert_allclose(frames.values, reference(VOLTS), rtol=1e-12, atol=1e-12)


@each_feature
def test_features__transposed_recordings_are_turned(name):
    make, reference = FEATURES[name]
    np.testing.assert_allclose(make(recording().T).values, reference(VOLTS), rtol=1e-12, atol=1e-12)


@each_feature
@pytest.mark.usefixtures("no_compute")
def test_features__nothing_computes(name):
    make, _ = FEATURES[name]
    frames = make(recording(lengths=LENGTHS, chunks=20))
    assert frames.dims == ("frame", "feature")
    assert frames.dtype == np.float64


@pytest.mark.parametrize(("frame", "hop"), [(10, None), (10, 4), (7, 12), (1, 1)])
def test_features__times_are_the_centres_of_their_samples(frame, hop):
    made = recording(lengths=LENGTHS)
    frames = mo.log_rms(made, frame=frame, hop=hop)
    times = made["time"].values
    centres, segments, number = [], [], 0
    for part in stretches(times, LENGTHS):
        starts = range(0, len(part) - frame + 1, hop or frame)
        centres += [(part[start] + part[start + frame - 1]) / 2 for start in starts]
        segments += [number] * len(starts)
        number += len(starts) > 0
    np.testing.assert_allclose(frames["time"], centres, rtol=1e-12)
    np.testing.assert_array_equal(frames["segment"], segments)
    assert frames["time"].attrs["units"] == "s"
    assert frames.attrs["frame_period"] == pytest.approx((hop or frame) / 100)


def test_features__without_a_clock_sample_numbers_stand_for_seconds():
    frames = mo.log_rms(recording().drop_vars("time"), frame=10)
    np.testing.assert_array_equal(frames["time"], 4.5 + 10 * np.arange(15))
    assert "no clock" in frames["time"].attrs["comment"]


def test_features__date_times_keep_their_start():
    first = np.datetime64("2020-03-09T12:00:00.5", "ns")
    made = recording().assign_coords(time=first + np.arange(N) * np.timedelta64(10, "ms"))
    frames = mo.log_rms(made, frame=10)
    expected = first + np.array([45, 145]) * np.timedelta64(1, "ms")
    np.testing.assert_array_equal(frames["time"][:2], expected)
    seconds = mo.log_rms.__wrapped__(made, frame=10)["time"]
    np.testing.assert_allclose(seconds[:2], [0.045, 0.145])
    assert np.datetime64(seconds.attrs["start_time"]) == first


@pytest.mark.parametrize(
    ("frame", "samples"),
    [
        (10, 10),
        (np.int64(10), 10),
        ("100ms", 10),
        ("0.1s", 10),
        (".1 s", 10),
        ("1e5us", 10),
        ("104ms", 10),
        ("106ms", 11),
        ("0.01min", 60),
        ("0.0001h", 36),
    ],
)
def test_features__frames_are_samples_or_durations(frame, samples):
    attrs = mo.log_rms(recording(), frame=frame, hop=frame).attrs
    assert attrs["frame_samples"] == attrs["hop_samples"] == samples
    assert attrs["unused_samples"] == N - N // samples * samples


def test_stft__twenty_three_milliseconds_of_sound():
    samples = np.random.default_rng(0).normal(size=(4096, 1))
    sound = xr.DataArray(samples, dims=("time", "channel"), attrs={"sampling_rate": 22_050.0})
    frames = mo.stft(sound, frame="23ms")
    assert frames.attrs["frame_samples"] == 507
    np.testing.assert_allclose(frames.values, loops.stft(samples, 507), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(frames["frequency"], np.fft.rfftfreq(507, 1 / 22_050))


def test_features__labels_and_units():
    made = recording()
    spectra = mo.stft(made, frame=10)
    assert spectra.attrs["units"] == "mV"
    assert spectra["channel"].values.tolist() == ["left"] * 6 + ["right"] * 6
    np.testing.assert_allclose(spectra["frequency"], [0, 10, 20, 30, 40, 50] * 2)
    assert spectra["frequency"].attrs["units"] == "Hz"
    shares = mo.histogram(made, frame=10, edges=EDGES)
    assert shares.attrs["units"] == "1"
    np.testing.assert_array_equal(shares["bin"], np.tile(EDGES[:-1], 2))
    assert shares["bin"].attrs["units"] == "mV"
    np.testing.assert_allclose(shares.groupby("channel").sum(), 1.0)
    assert mo.identity(made).attrs["units"] == "mV"
    assert mo.log_rms(made, frame=10)["channel"].values.tolist() == ["left", "right"]
    for frames in (spectra, shares):
        assert frames["segment"].dtype.kind == "i"
        assert frames.attrs["long_name"] == "feature vectors"


def test_histogram__counts_get_one_bin_each_in_one_documented_pass():
    made = recording(COUNTS, chunks=50)
    frames = mo.histogram(made, frame=10)
    np.testing.assert_allclose(frames.values, loops.histogram(COUNTS, 10, np.arange(5)))
    with dask.config.set(scheduler=lambda *_, **__: pytest.fail("computed")), pytest.raises(pytest.fail.Exception):
        mo.histogram(made, frame=10)


def test_histogram__equal_bins_span_the_data():
    frames = mo.histogram(recording(), frame=10, bins=6)
    edges = np.linspace(VOLTS.min(), VOLTS.max(), 7)
    np.testing.assert_array_equal(frames.attrs["edges"], edges)
    np.testing.assert_allclose(frames.values, loops.histogram(VOLTS, 10, edges))


def test_histogram__samples_outside_are_refused_or_clipped():
    made = recording()
    frames = mo.histogram(made, frame=10, edges=[-1.0, 0.0, 1.0])
    with pytest.raises(ValueError, match=r"lies outside the edges -1\.0 \.\. 1\.0.*outside='clip'"):
        frames.compute()
    clipped = mo.histogram(made, frame=10, edges=[-1.0, 0.0, 1.0], outside="clip")
    np.testing.assert_allclose(clipped.values, loops.histogram(VOLTS.clip(-1, 1), 10, [-1, 0, 1]))


def test_shared_edges__hold_every_sample_of_all():
    parts = [recording(COUNTS), recording(COUNTS + 3)]
    np.testing.assert_array_equal(shared_edges(parts), np.arange(8))
    np.testing.assert_array_equal(shared_edges([recording(COUNTS - 2)]), np.arange(-2, 3))
    np.testing.assert_allclose(shared_edges(parts, bins=3), [0, 2, 4, 6])


def test_log_rms__silence_is_refused_where_it_is_or_floored():
    quiet = VOLTS.copy()
    quiet[40:50, 1] = 0
    with pytest.raises(ValueError, match=r"log_rms: channel 1 is exactly zero .*floor="):
        mo.log_rms(recording(quiet), frame=10).compute()
    frames = mo.log_rms(recording(quiet), frame=10, floor=0.25)
    levels = np.sqrt(np.mean(np.square(quiet[:150].reshape(15, 10, 2)), axis=1))
    np.testing.assert_allclose(frames.values, np.log(np.maximum(levels, 0.25)))


def with_nan():
    values = VOLTS.copy()
    values[70, 0] = np.nan
    return recording(values)


def test_nan__reaches_frames_only_where_it_stands():
    for frames in (mo.log_rms(with_nan(), frame=10), mo.stft(with_nan(), frame=10)):
        assert np.flatnonzero(np.isnan(frames.values).any(axis=1)).tolist() == [7]


REFUSALS = {
    "frame too long": (lambda: mo.stft(recording(), frame=158), "got 158 samples where the longest holds 157"),
    "frame longer than every stretch": (lambda: mo.log_rms(recording(lengths=LENGTHS), frame=95), "longest holds 94"),
    "frame of nothing": (lambda: mo.log_rms(recording(), frame=0), "frame must hold at least 1 sample"),
    "frame of less than a sample": (
        lambda: mo.log_rms(recording(), frame="1ms"),
        "at least 1 sample; got '1ms' at 100",
    ),
    "hop of nothing": (lambda: mo.log_rms(recording(), frame=2, hop=0), "hop must hold at least 1 sample"),
    "frame without unit": (lambda: mo.log_rms(recording(), frame="5"), r"duration with unit \(us, ms, s, min, h\)"),
    "frame that is no number": (lambda: mo.log_rms(recording(), frame="es"), "duration with unit"),
    "frame without end": (lambda: mo.log_rms(recording(), frame="1e400s"), "duration with unit"),
    "float samples without bins": (lambda: mo.histogram(recording(), frame=9), "dtype float64 need explicit bins"),
    "no bins": (lambda: mo.histogram(recording(), frame=9, bins=0), "bins must be at least 1; got 0"),
    "one edge": (lambda: mo.histogram(recording(), frame=9, edges=[1.0]), "edges must be at least 2 increasing"),
    "falling edges": (lambda: mo.histogram(recording(), frame=9, edges=[1.0, 0.0]), "at least 2 increasing numbers"),
    "too many counts": (lambda: mo.histogram(recording(COUNTS * 100), frame=9), "one bin per count would be 301 bins"),
    "outside": (lambda: mo.histogram(recording(), frame=9, edges=EDGES, outside="drop"), "'raise' or 'clip'"),
    "NaN in the range": (lambda: mo.histogram(with_nan(), frame=9, bins=3), "holds NaN or infinity"),
    "NaN in a cell": (
        lambda: mo.histogram(with_nan(), frame=9, edges=EDGES).compute(),
        "a sample is nan, not a number",
    ),
    "floor": (lambda: mo.log_rms(recording(), frame=9, floor=0.0), "floor must be above 0"),
    "window": (lambda: mo.stft(recording(), frame=9, window="brick").compute(), "'brick'"),
    "dims": (lambda: mo.identity(recording().rename(time="when")), r"must have dims \(time, channel\)"),
    "no channels": (lambda: mo.identity(recording()[:, :0]), "at least 1 channel"),
    "no samples": (lambda: mo.identity(recording()[:0]), "must fit into a segment"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_features__refuse_in_one_sentence(name):
    make, message = REFUSALS[name]
    with pytest.raises(ValueError, match=message):
        make()


def test_features__refuse_complex_samples():
    with pytest.raises(TypeError, match="must hold real numbers; got dtype complex128"):
        mo.log_rms(recording(VOLTS.astype(complex)), frame=10)


@pytest.mark.parametrize("make", [lambda r: mo.log_rms(r, frame=5), lambda r: mo.stft(r, frame=6, hop=3), mo.identity])
def test_features__of_a_recording_with_gaps_are_stored_as_they_are(tmp_path, monkeypatch, make):
    """Zarr takes blocks of one length only, and tasks end at gaps."""
    monkeypatch.setattr("manifold_observer.pipeline.frames.segments.FEATURE_TASK_BYTES", 8 * 40 * 2)
    gaps = 3.0 * (np.arange(N) >= 130) + 5.0 * (np.arange(N) >= 211)
    gapped = recording().assign_coords(time=np.arange(N) * 0.01 + gaps)
    frames = make(gapped)
    assert len(frames.chunks[0]) > 2
    frames.to_dataset(name="frames").to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    stored = xr.open_dataset(tmp_path / "a.zarr", engine="zarr", consolidated=False)["frames"]
    np.testing.assert_array_equal(stored, frames)
    expected = make(gapped.load())
    np.testing.assert_array_equal(stored, expected)
