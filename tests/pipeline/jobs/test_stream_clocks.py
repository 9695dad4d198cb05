"""Clocks that pause, start over or overlap, and recordings that grow."""

import itertools

import numpy as np
import pytest
import xarray as xr
import zarr
from streams import (
    ALL,
    EMBED,
    KINDS,
    LEARNT,
    NEW,
    assert_same,
    frames_of,
    grow,
    learn,
    one_run,
    samples,
    write_npy,
    write_zarr,
)

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames import features as feature_graphs
from manifold_observer.pipeline.jobs.config import RunConfig
from manifold_observer.pipeline.jobs.run import read_embedding, run
from manifold_observer.pipeline.jobs.stream import continue_run, stream_dataset
from strategies import share

pytestmark = pytest.mark.usefixtures("in_this_thread")


def write_csv(folder, name, values, times, label="time"):
    path = folder / f"{name}.csv"
    rows = [",".join([str(t), *map(repr, map(float, row))]) for t, row in zip(times, values, strict=True)]
    path.write_text("\n".join([f"{label},x,y", *rows]) + "\n")
    return path


def csv_pieces(folder, times, cuts):
    values, times = np.split(ALL[LEARNT : LEARNT + len(times)], cuts), np.split(np.asarray(times), cuts)
    return [write_csv(folder, f"{k}", v, t) for k, (v, t) in enumerate(zip(values, times, strict=True))]


@pytest.fixture(scope="module")
def clocked(tmp_path_factory, in_this_thread):
    """Results of 0.3 s of a recording with a stored clock, by the frame and the hop."""
    made = {}

    def get(frame, hop):
        if (frame, hop) not in made:
            folder = tmp_path_factory.mktemp("clocked")
            source = write_csv(folder, "learnt", ALL[:300], np.arange(300) * 0.001)
            config = RunConfig(mo.FeatureConfig("log_rms", frame=frame, hop=hop), embedding=mo.EmbedConfig(**EMBED))
            run([source], folder / "learnt.zarr", config)
            made[frame, hop] = folder / "learnt.zarr"
        return made[frame, hop]

    return get


PAUSED = itertools.product([0.002, 0.0], [(10, 10), (8, 3), (4, 9)], [[100], [97], [60, 100, 107]])


@pytest.mark.slow
@pytest.mark.parametrize(("pause", "cut", "cuts"), share(PAUSED, 7))
def test_continue__a_pause_of_the_clock_begins_a_segment(clocked, tmp_path, pause, cut, cuts):
    """Wherever files are cut: at the pause, before it, after it, with too little left for a frame."""
    frame, hop = cut
    result = clocked(frame, hop)
    times = 0.3 + np.arange(NEW) * 0.001 + pause * (np.arange(NEW) >= 100)
    pieces = csv_pieces(tmp_path, times, cuts)
    for k in range(1, len(pieces) + 1):
        continue_run(result, pieces[:k], tmp_path / "out")
    stored = xr.open_datatree(result)
    whole = mo.log_rms(mo.open_recording(csv_pieces(tmp_path, times, [])[0]), frame=frame, hop=hop)
    expected = mo.observe(read_embedding(result), whole, carry=stored["state/carry"].load()).compute()
    assert len(np.unique(expected["segment"])) == (1 if pause == 0 else 2)
    wait = expected["time"][0] - stored["state/time"][-1]
    assert_same(tmp_path / "out", expected, segment=int(wait > 1.5 * hop / 1000))


@pytest.mark.slow
def test_continue__a_clock_that_starts_over_goes_on(tmp_path):
    def write(folder, name, values):
        return write_csv(folder, name, values, 5 + np.arange(len(values)) * 0.5)

    result = learn(tmp_path, "identity", write)
    pieces = [write(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [40, 90]))]
    for k in (1, 3):
        continue_run(result, pieces[:k], tmp_path / "out")
    found = stream_dataset(tmp_path / "out")
    np.testing.assert_allclose(found["time"], 5 + 0.5 * (LEARNT + np.arange(NEW)))
    np.testing.assert_array_equal(found["segment"], 0)
    whole = one_run(result, write(tmp_path, "whole", ALL[LEARNT:]))
    assert_same(tmp_path / "out", whole, times=False)


@pytest.mark.slow
def test_continue__date_times_go_on_to_the_bit(tmp_path):
    moments = np.datetime64("2026-03-09T23:59:50.1", "ns") + np.arange(900) * np.timedelta64(100_000_000, "ns")
    moments[700:] += np.timedelta64(1, "h")

    def write(name, a, b):
        return write_csv(tmp_path, name, samples(900)[a:b], moments[a:b])

    result = tmp_path / "learnt.zarr"
    run([write("learnt", 0, 400)], result, RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(**EMBED)))
    pieces = [write(f"{a}", a, b) for a, b in [(400, 401), (401, 650), (650, 777), (777, 900)]]
    for k in (1, 2, 4):
        continue_run(result, pieces[:k], tmp_path / "out")
    whole = feature_graphs.FEATURES["identity"](mo.open_recording(write("whole", 0, 900)))[400:]
    carry = xr.open_datatree(result)["state/carry"].load()
    found = assert_same(tmp_path / "out", mo.observe(read_embedding(result), whole, carry=carry).compute())
    np.testing.assert_array_equal(found["time"], moments[400:])
    assert sorted(set(found["segment"].values.tolist())) == [0, 1]


def test_continue__overlapping_clocks_are_refused(tmp_path):
    times = np.arange(LEARNT) * 0.5
    result = learn(tmp_path, "identity", lambda folder, name, values: write_csv(folder, name, values, times))
    within = write_csv(tmp_path, "within", ALL[:50], 290 + times[:50])
    with pytest.raises(ValueError, match=r"follow each other in time; got .*within\.csv, which begins at 290 s, but"):
        continue_run(result, [within], tmp_path / "out")
    pieces = [write_csv(tmp_path, f"{t}", ALL[:50], t + times[:50]) for t in (300, 320)]
    with pytest.raises(ValueError, match=r"got .*320\.csv, which begins at 320 s, but the one before ends at 324\.5 s"):
        continue_run(result, pieces, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("step", "rate"), [(0.00098, "1020.41"), (0.002, "500")])
def test_continue__a_clock_of_another_rate_is_refused(clocked, tmp_path, step, rate):
    new = write_csv(tmp_path, "new", ALL[:60], np.round(0.3 + np.arange(60) * step, 5))
    with pytest.raises(ValueError, match=f"sampling rate of the result, 1000 Hz; got {rate} Hz"):
        continue_run(clocked(10, 10), [new], tmp_path / "out")


def test_continue__a_few_samples_between_gaps_tell_no_rate(clocked, tmp_path):
    pieces = csv_pieces(tmp_path, 0.3 + np.array([0, 1, 3, 4, 9, 12, 13]) * 0.001, [3, 5])
    assert continue_run(clocked(4, 9), pieces, tmp_path / "out") == (None, 0, 0)


@pytest.mark.slow
def test_continue__after_several_recordings(tmp_path):
    sources = [write_npy(tmp_path, f"s{k}", samples(300, seed=k)) for k in (1, 2)]
    result = tmp_path / "learnt.zarr"
    run(sources, result, RunConfig(mo.FeatureConfig("stft", frame=10), embedding=mo.EmbedConfig(**EMBED)))
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    continue_run(result, [new], tmp_path / "out")
    found = assert_same(tmp_path / "out", one_run(result, new), segment=1, times=False)
    last = xr.open_datatree(result)["state/time"].values[-1]
    np.testing.assert_allclose(found["time"], last + 10 * np.arange(1, 22))


@pytest.mark.slow
@pytest.mark.parametrize("kind", share(KINDS, 3))
def test_continue__the_recording_of_the_result_may_have_grown(tmp_path, kind):
    """What comes is what one run over the grown recording would have given, across the end of the result too."""
    recording, result = write_zarr(tmp_path, "recording", ALL[:503]), tmp_path / "result.zarr"
    features, options = KINDS[kind]
    if features == "histogram":
        options = {"frame": 10, "edges": np.linspace(-1, 1, 6)}
    run([recording], result, RunConfig(mo.FeatureConfig(features, **options), embedding=mo.EmbedConfig(**EMBED)))
    first = xr.open_datatree(result)["frames"].sizes["frame"]
    assert continue_run(result, [recording], tmp_path / "out").added == 0
    assert not (tmp_path / "out").exists()
    for a, b in [(503, 504), (504, 551), (551, 790), (790, len(ALL))]:
        grow(recording, ALL[a:b])
        continue_run(result, [recording], tmp_path / "out")
    assert_same(tmp_path / "out", one_run(result, recording, first=first))
    np.testing.assert_array_equal(stream_dataset(tmp_path / "out")["frames"], frames_of(result, recording)[first:])


@pytest.mark.slow
@pytest.mark.parametrize(("at", "pause"), share(itertools.product([400, 497, 503, 507], [0.0, 3.0]), 3))
def test_continue__a_grown_recording_with_a_clock(tmp_path, at, pause):
    times = np.arange(700) * 0.5 + pause * (np.arange(700) >= at)
    recording, result = tmp_path / "r.zarr", tmp_path / "result.zarr"
    write_zarr(tmp_path, "r", ALL[:503], time=times[:503])
    run([recording], result, RunConfig(mo.FeatureConfig("stft", frame=12, hop=5), embedding=mo.EmbedConfig(**EMBED)))
    first = xr.open_datatree(result)["frames"].sizes["frame"]
    for a, b in [(503, 506), (506, 700)]:
        grow(recording, ALL[a:b], time=times[a:b])
        continue_run(result, [recording], tmp_path / "out")
    whole = mo.stft(mo.open_recording(recording), frame=12, hop=5)
    expected = mo.observe(read_embedding(result), whole)
    found = stream_dataset(tmp_path / "out")
    for name in ("state", "time", "segment"):
        np.testing.assert_array_equal(found[name], expected[name][first:], err_msg=name)


@pytest.mark.slow
def test_continue__holds_back_what_may_not_be_written_yet(tmp_path):
    """A writer that makes room first, and then writes: nothing of the room is taken for data."""
    recording, result = write_zarr(tmp_path, "new", ALL[LEARNT : LEARNT + 60]), learn(tmp_path, "stft", write_zarr)
    array = zarr.open_array(recording / "recording")
    cuts = [60, 100, 140, 180, NEW]
    for a, b in itertools.pairwise(cuts):
        array.resize((b, 2))
        continue_run(result, [recording], tmp_path / "out", hold_back=40)
        array[a:b] = ALL[LEARNT + a : LEARNT + b]
    assert stream_dataset(tmp_path / "out").sizes["frame"] == (NEW - 40) // 10
    continue_run(result, [recording], tmp_path / "out")
    whole = write_zarr(tmp_path, "whole", ALL[LEARNT:])
    assert_same(tmp_path / "out", one_run(result, whole), times=False)


@pytest.mark.slow
def test_continue__a_recording_that_shrank_is_refused(learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    continue_run(learnt("stft"), [new], tmp_path / "out")
    write_npy(tmp_path, "new", ALL[LEARNT:-1])
    with pytest.raises(ValueError, match=r"must not shrink; got 216 samples in .*new\.npy, which had 217"):
        continue_run(learnt("stft"), [new], tmp_path / "out")
    result = learn(tmp_path, "stft")
    source = write_npy(tmp_path, "source", ALL[:500])
    with pytest.raises(ValueError, match=r"must not shrink; got 500 samples in .*source\.npy, which had 600"):
        continue_run(result, [source], tmp_path / "other")


@pytest.mark.slow
def test_continue__only_the_last_recording_grows(learnt, tmp_path):
    pieces = [write_npy(tmp_path, f"{k}", ALL[: 15 + k]) for k in range(3)]
    assert continue_run(learnt("stft"), pieces[:2], tmp_path / "out").added == 3
    write_npy(tmp_path, "1", ALL[:17])
    assert continue_run(learnt("stft"), pieces, tmp_path / "out").added == 1
    write_npy(tmp_path, "1", ALL[:30])
    assert continue_run(learnt("stft"), pieces, tmp_path / "out").added == 0  # used up, and not looked at again
    write_npy(tmp_path, "2", ALL[:19])
    assert continue_run(learnt("stft"), [*pieces, write_npy(tmp_path, "3", ALL[:8])], tmp_path / "out").added == 1
    write_npy(tmp_path, "2", ALL[:20])
    with pytest.raises(ValueError, match=r"only the last recording may grow; got 20 samples in .*2\.npy, which had 19"):
        continue_run(learnt("stft"), [*pieces, tmp_path / "3.npy"], tmp_path / "out")
