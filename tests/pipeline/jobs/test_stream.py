"""A result goes on over new data, wherever they are cut, to the bit as if all had been one long run."""

import contextlib
import functools
import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import soundfile
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames import features as feature_graphs
from manifold_observer.pipeline.frames.dates import in_dates
from manifold_observer.pipeline.graph.ending import Ending, unheard
from manifold_observer.pipeline.jobs import load as loading
from manifold_observer.pipeline.jobs import manifest, stream
from manifold_observer.pipeline.jobs.config import RunConfig
from manifold_observer.pipeline.jobs.parts import parts_of
from manifold_observer.pipeline.jobs.run import read_embedding, run
from manifold_observer.pipeline.jobs.store import alone, open_group, start, writing
from manifold_observer.pipeline.jobs.stream import continue_run, follow, stream_dataset
from manifold_observer.pipeline.jobs.workfolder import is_work_folder
from manifold_observer.pipeline.observers.config import ObserverConfig
from manifold_observer.pipeline.observers.observe import scan
from strategies import chunkings, examples, seeds, share

pytestmark = pytest.mark.usefixtures("in_this_thread")

LEARNT, NEW = 600, 217
RATE = 1000
EMBED = {"n_modes": 2, "form": "factor", "window": 9}
KINDS = {
    "stft": ("stft", {"frame": 10}),
    "stft, overlapping": ("stft", {"frame": 12, "hop": 5}),
    "stft, apart": ("stft", {"frame": 6, "hop": 11}),
    "histogram": ("histogram", {"frame": 10, "bins": 4}),
    "log_rms": ("log_rms", {"frame": 7, "hop": 7}),
    "identity": ("identity", {}),
}
each_kind = pytest.mark.parametrize("kind", share(KINDS, 2))


def samples(n=LEARNT + NEW, seed=0):
    """Two channels within -1 .. 1, whole numbers of 2**-15 so that sound files hold them exactly."""
    rng = np.random.default_rng(seed)
    slow = np.sin(np.arange(n)[:, None] / [37, 53])
    return np.round((0.6 * slow + 0.3 * rng.uniform(-1, 1, (n, 2))) * 2**14) / 2**15


ALL = samples()


def write_npy(folder, name, values):
    np.save(folder / f"{name}.npy", values)
    return folder / f"{name}.npy"


def write_wav(folder, name, values):
    soundfile.write(folder / f"{name}.wav", values, RATE, subtype="PCM_16")
    return folder / f"{name}.wav"


def write_csv(folder, name, values, times, label="time"):
    path = folder / f"{name}.csv"
    rows = [",".join([str(t), *map(repr, map(float, row))]) for t, row in zip(times, values, strict=True)]
    path.write_text("\n".join([f"{label},x,y", *rows]) + "\n")
    return path


def write_zarr(folder, name, values, **coords):
    path = folder / f"{name}.zarr"
    recording = xr.DataArray(values, dims=("time", "channel"), coords=coords, name="recording")
    recording.to_zarr(path, zarr_format=3, consolidated=False, mode="w", encoding={"recording": {"chunks": (50, 2)}})
    return path


WRITERS = {"npy": write_npy, "wav": write_wav}


def learn(folder, kind, write=write_npy, values=ALL[:LEARNT], **observe):
    features, options = KINDS[kind]
    config = RunConfig(
        mo.FeatureConfig(features, **options), embedding=mo.EmbedConfig(**EMBED), observer=mo.ObserverConfig(**observe)
    )
    run([write(folder, "source", values)], folder / "learnt.zarr", config)
    return folder / "learnt.zarr"


@pytest.fixture(scope="module")
def learnt(tmp_path_factory, in_this_thread):
    """Results by kind and format, made once."""
    made = {}

    def get(kind, suffix="npy"):
        if (kind, suffix) not in made:
            made[kind, suffix] = learn(tmp_path_factory.mktemp("learnt"), kind, WRITERS[suffix])
        return made[kind, suffix]

    return get


def frames_of(result, path):
    """Frames of a recording, made as those of a result."""
    stored = xr.open_datatree(result)["frames/frames"]
    features, options = KINDS[next(kind for kind in KINDS if KINDS[kind][0] == stored.attrs["features"])]
    options = {"frame": stored.attrs["frame_samples"], "hop": stored.attrs["hop_samples"]} if options else {}
    if features == "histogram":
        options["edges"] = stored.attrs["edges"]
    return feature_graphs.FEATURES[features](mo.open_recording(path), **options).load()


def one_run(result, path, first=0, **options):
    """Features and observer over one long recording at once, from its ``first`` frame on."""
    stored = xr.open_datatree(result)
    frames = frames_of(result, path)[first:]
    return mo.observe(read_embedding(result), frames, carry=stored["state/carry"].load(), **options)


def assert_same(out, expected, *, segment=0, times=True):
    """All parts together are the expected state to the bit."""
    found = stream_dataset(out).load()
    np.testing.assert_array_equal(found["state"], expected["state"])
    np.testing.assert_array_equal(found["carry"], expected["carry"])
    np.testing.assert_array_equal(found["segment"], expected["segment"] + segment)
    if times:
        stored = [open_group(part, "state")["time"] for part in parts_of(out)]
        np.testing.assert_array_equal(np.concatenate(stored), expected["time"])
        dated = in_dates(expected) if "start_time" in stored[0].attrs else expected
        np.testing.assert_array_equal(found["time"], dated["time"])
    return found


def everything(folder):
    return sorted(path.name for path in folder.iterdir())


# ------------------------------------------------------------------------------------- cut anywhere, go on anywhere


@examples(6)
@given(kind=st.sampled_from(list(KINDS)), suffix=st.sampled_from(list(WRITERS)), cuts=chunkings(NEW), together=seeds)
def test_continue__pieces_give_the_bits_of_one_run(learnt, tmp_path_factory, kind, suffix, cuts, together):
    """Files end anywhere, within frames too; calls take one or several of them."""
    folder = tmp_path_factory.mktemp("pieces")
    result, write = learnt(kind, suffix), WRITERS[suffix]
    pieces = [write(folder, f"{k:03d}", part) for k, part in enumerate(np.split(ALL[LEARNT:], np.cumsum(cuts)[:-1]))]
    added, rng = 0, np.random.default_rng(together)
    for k in range(1, len(pieces) + 1):
        if k == len(pieces) or rng.uniform() < 0.5:
            step = continue_run(result, pieces[:k], folder / "out")
            added += step.added
            assert step.total == added
    expected = one_run(result, write(folder, "whole", ALL[LEARNT:]))
    found = assert_same(folder / "out", expected, times=False)
    np.testing.assert_array_equal(found["frames"], frames_of(result, folder / f"whole.{suffix}"))
    assert continue_run(result, pieces, folder / "out") == (None, 0, added)


@pytest.mark.parametrize("suffix", WRITERS)
def test_continue__times_are_the_bits_of_the_recording_before_the_cut(learnt, tmp_path, suffix):
    """600 samples are 60 whole frames: the frames that follow are those of the uncut recording."""
    result, write = learnt("stft", suffix), WRITERS[suffix]
    pieces = [write(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [1, 50, 133]))]
    for k in (2, 3, 4):
        continue_run(result, pieces[:k], tmp_path / "out")
    assert_same(tmp_path / "out", one_run(result, write(tmp_path, "whole", ALL), first=LEARNT // 10))


@pytest.mark.filterwarnings("ignore:calibrate")
@pytest.mark.parametrize(
    "options",
    share(
        [
            {"gamma": 0.3, "gain": "unit"},
            {"step": "euler"},
            {"rates": np.array([0.2, 0.7])},
            {"rates": "calibrated"},
            {"gain": "kalman"},
            {"gain": "dmk"},
        ],
        3,
    ),
    ids=str,
)
def test_continue__observes_with_the_options_of_the_result(tmp_path, options):
    result = learn(tmp_path, "stft", **options)
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [33, 134]))]
    for k in (1, 3):
        continue_run(result, pieces[:k], tmp_path / "out")
    found = assert_same(tmp_path / "out", one_run(result, new, **options), times=False)
    assert found.attrs["gain"] == options.get("gain", "paper")


def test_continue__follows_with_the_transitions_that_were_learnt(tmp_path):
    """Ten samples a frame leave 60 frames, too few: every sample is a frame."""
    result = learn(tmp_path, "identity", dynamics="transitions")
    assert xr.open_datatree(result)["embedding/bank_transition"].sizes == {"bank": 4, "bank_1": 4}
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [33, 134]))]
    for k in (1, 3):
        continue_run(result, pieces[:k], tmp_path / "out")
    found = assert_same(tmp_path / "out", one_run(result, new, dynamics="transitions"), times=False)
    assert found.attrs["dynamics"] == "transitions"
    assert found.attrs["contraction_factor"] < 1


def test_continue__of_a_result_that_began_with_its_coordinates(tmp_path):
    """New frames have none, and need none while the recursion goes on."""
    result = learn(tmp_path, "stft", initial="paper")
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    continue_run(result, [new], tmp_path / "out")
    assert_same(tmp_path / "out", one_run(result, new, reading="lift"), times=False)


def test_continue__a_part_is_an_ordinary_result_with_labels(learnt, tmp_path):
    result, new = learnt("stft"), write_npy(tmp_path, "new", ALL[LEARNT:])
    step = continue_run(result, [new], tmp_path / "out")
    assert step == (tmp_path / "out" / "000000.zarr", 21, 21)
    tree = xr.open_datatree(step.part)
    assert set(tree.children) == {"frames", "state"}
    assert tree.attrs["complete"] is True
    assert tree.attrs["sources"] == [str(new)]
    assert tree.attrs["extends"] == str(result)
    assert (tree.attrs["n_frames"], tree.attrs["next_sample"]) == (21, 210)
    assert RunConfig.from_json(tree.attrs["settings"]).features.name == "stft"
    before = xr.open_datatree(result)
    for name in ("channel", "frequency"):
        xr.testing.assert_identical(tree[f"frames/{name}"].variable, before[f"frames/{name}"].variable)
    assert tree["frames/frames"].attrs["frame_period"] == before["frames/frames"].attrs["frame_period"]
    for name in ("frames/frames", "state/state", "state/carry", "state/time"):
        assert tree[name].attrs["units"], name
        assert tree[name].attrs["long_name"], name
    stream_of = stream_dataset(tmp_path / "out")
    assert stream_of["state"].chunks is not None
    assert stream_of["frames"].sizes == {"frame": 21, "feature": 12}


def test_continue__the_carry_reaches_the_scan_as_it_is_stored(tmp_path, monkeypatch):
    """Where a segment begins is told by restarts, not by a time that is written over the carry's own."""
    result, seen, scan = learn(tmp_path, "stft", gamma=0.5), [], stream.scan

    def spy(embedding, frames, config, starts, carry):
        seen.append((starts, carry))
        return scan(embedding, frames, config, starts, carry)

    monkeypatch.setattr(stream, "scan", spy)
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [83]))]
    for k in (1, 2):
        continue_run(result, pieces[:k], tmp_path / "out")
    stored = [result, tmp_path / "out/000000.zarr"]
    for (starts, carry), before in zip(seen, stored, strict=True):
        xr.testing.assert_identical(carry, xr.open_datatree(before)["state/carry"].load())
        assert not starts.any()


def test_continue__a_scan_starts_anew_where_it_is_told_whatever_the_clock_says(tmp_path):
    path = learn(tmp_path, "stft", gamma=0.5)
    result = xr.open_datatree(path).load()
    embedding, frames = read_embedding(path), result["frames/frames"]
    carry, config = result["state/carry"], ObserverConfig(gamma=0.5, gain="paper")
    starts = np.zeros(frames.sizes["frame"], bool)
    later = frames.assign_coords(time=frames["time"] + 1e6)
    goes_on = scan(embedding, later, config, starts, carry)
    np.testing.assert_array_equal(goes_on["state"], mo.observe(embedding, frames, 0.5, carry=carry)["state"])
    starts[0] = True
    anew = scan(embedding, frames, config, starts, carry)
    np.testing.assert_array_equal(anew["state"], mo.observe(embedding, frames, 0.5)["state"])
    assert not np.array_equal(anew["state"], goes_on["state"])


def test_extend_result__is_the_old_name(learnt, tmp_path):
    new, result = write_npy(tmp_path, "new", ALL[LEARNT:]), learnt("stft")
    with pytest.warns(DeprecationWarning, match="extend_result is now called continue_run") as warned:
        assert mo.extend_result(result, [new], tmp_path / "out").added == 21
    assert [warning.filename for warning in warned] == [__file__]
    assert mo.continue_run(learnt("stft"), [new], tmp_path / "out").added == 0


def test_continue__histogram_edges_are_those_of_the_result(learnt, tmp_path):
    """New data of a smaller range would have other bins by themselves."""
    new = write_npy(tmp_path, "new", ALL[LEARNT:] / 4)
    continue_run(learnt("histogram"), [new], tmp_path / "out")
    edges = xr.open_datatree(learnt("histogram"))["frames/frames"].attrs["edges"]
    assert xr.open_datatree(tmp_path / "out/000000.zarr")["frames/frames"].attrs["edges"] == edges


def test_continue__samples_outside_the_edges_are_refused_or_clipped(learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:] + np.eye(NEW, 2, -30) * 9)
    with pytest.raises(ValueError, match=r"lies outside the edges.*count from sample 0 of .*new\.npy"):
        continue_run(learnt("histogram"), [new], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert continue_run(learnt("histogram"), [new], tmp_path / "out", clip=True).added == 21
    with pytest.raises(ValueError, match="clip only applies to histogram features; got stft"):
        continue_run(learnt("stft"), [new], tmp_path / "other", clip=True)


# ------------------------------------------------------------------------------------------------------ clocks


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


def test_continue__after_several_recordings(tmp_path):
    sources = [write_npy(tmp_path, f"s{k}", samples(300, seed=k)) for k in (1, 2)]
    result = tmp_path / "learnt.zarr"
    run(sources, result, RunConfig(mo.FeatureConfig("stft", frame=10), embedding=mo.EmbedConfig(**EMBED)))
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    continue_run(result, [new], tmp_path / "out")
    found = assert_same(tmp_path / "out", one_run(result, new), segment=1, times=False)
    last = xr.open_datatree(result)["state/time"].values[-1]
    np.testing.assert_allclose(found["time"], last + 10 * np.arange(1, 22))


# --------------------------------------------------------------------------------------------- growing recordings


def grow(path, values, **coords):
    """Add rows as xarray's append does."""
    recording = xr.DataArray(values, dims=("time", "channel"), coords=coords, name="recording")
    recording.to_zarr(path, zarr_format=3, consolidated=False, append_dim="time")


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


# ------------------------------------------------------------------------------------------- refusals and kills


def test_continue__recordings_of_earlier_calls_come_first(learnt, tmp_path):
    pieces = [write_npy(tmp_path, name, ALL[LEARNT:]) for name in "abc"]
    continue_run(learnt("stft"), pieces[:2], tmp_path / "out")
    for others in (pieces[2:], pieces[:1], pieces[::-1]):
        with pytest.raises(ValueError, match="must begin with the 2 recordings of earlier calls"):
            continue_run(learnt("stft"), others, tmp_path / "out")
    assert everything(tmp_path / "out") == ["000000.zarr"]


def test_continue__used_pieces_are_not_read_again(learnt, tmp_path):
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [100]))]
    continue_run(learnt("stft"), pieces[:1], tmp_path / "out")
    continue_run(learnt("stft"), pieces, tmp_path / "out")
    pieces[0].unlink()
    more = write_npy(tmp_path, "more", ALL[:50])
    assert continue_run(learnt("stft"), [*pieces, more], tmp_path / "out").added == 5


def test_continue__parts_of_another_result_are_refused(learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    continue_run(learnt("stft"), [new], tmp_path / "out")
    other = learn(tmp_path, "stft", gamma=0.5)
    with pytest.raises(
        ValueError, match=r"must hold parts that continue .*learnt\.zarr; got .*000000\.zarr, which continues"
    ):
        continue_run(other, [new], tmp_path / "out")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda folder: write_npy(folder, "new", np.zeros((50, 3))),
            "must have the channels of the result, 'ch1', 'ch2'",
        ),
        (
            lambda folder: write_wav(folder, "new", ALL[:50]),
            "must have the sampling rate of the result, 1 Hz; got 1000 Hz",
        ),
        (lambda folder: folder / "new.npy", "does not exist"),
        (lambda folder: folder / "*.npy", r"\*\.npy must match a recording; got none"),
    ],
)
def test_continue__other_recordings_are_refused(learnt, tmp_path, make, message):
    new = make(tmp_path)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        continue_run(learnt("stft"), [new], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_continue__bad_samples_are_named(learnt, tmp_path):
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [50]))]
    continue_run(learnt("identity"), pieces[:1], tmp_path / "out")
    values = ALL[LEARNT + 50 :].copy()
    values[7, 1] = np.nan
    write_npy(tmp_path, "1", values)
    with pytest.raises(ValueError, match=r"frame 7 holds NaN.* Samples and frames count from sample 0 of .*1\.npy"):
        continue_run(learnt("identity"), pieces, tmp_path / "out")
    assert everything(tmp_path / "out") == ["000000.zarr"]


def test_continue__what_is_no_result_of_run_is_refused(tmp_path, learnt):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    with pytest.raises(FileNotFoundError, match="does not exist"):
        continue_run(tmp_path / "no.zarr", [new], tmp_path / "out")
    continue_run(learnt("stft"), [new], tmp_path / "out")
    with writing(tmp_path / "demo.zarr") as folder:
        start(folder, {"demo": "sphere"})
    with pytest.raises(ValueError, match="must hold its settings"):
        continue_run(tmp_path / "demo.zarr", [new], tmp_path / "other")


def test_continue__every_store_is_checked_once_a_call(learnt, tmp_path, monkeypatch):
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [50, 100]))]
    for k in (1, 2):
        continue_run(learnt("identity"), pieces[:k], tmp_path / "out")
    checked, check = [], manifest.check_harmless
    monkeypatch.setattr(manifest, "check_harmless", lambda place: (checked.append(place), check(place)))
    continue_run(learnt("identity"), pieces, tmp_path / "out")
    assert checked == [learnt("identity"), tmp_path / "out/000000.zarr", tmp_path / "out/000001.zarr"]


def test_continue__a_part_is_no_result_to_continue(learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    part = continue_run(learnt("stft"), [new], tmp_path / "out").part
    with pytest.raises(ValueError, match=r"000000\.zarr must hold an embedding; got a part of a stream"):
        continue_run(part, [new], tmp_path / "other")


def test_continue__the_place_is_for_parts_alone(learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    with pytest.raises(ValueError, match="OUT must not be the result or a recording"):
        continue_run(learnt("stft"), [new], learnt("stft"))
    with pytest.raises(ValueError, match="hold only parts"):
        continue_run(learnt("stft"), [new], tmp_path)
    with pytest.raises(ValueError, match="must exist"):
        continue_run(learnt("stft"), [new], tmp_path / "no" / "out")


@pytest.mark.parametrize(
    "name", ["000001.zarr.partial", ".000001.zarr.0123456789abcdef.manifold-observer", "notes.txt"]
)
def test_continue__nothing_of_the_users_in_the_place_is_touched(learnt, tmp_path, name):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    continue_run(learnt("stft"), [new], tmp_path / "out")
    (tmp_path / "out" / name).mkdir()
    (tmp_path / "out" / name / "thesis.tex").write_text("years of work")
    more = write_npy(tmp_path, "more", ALL[:100])
    with pytest.raises(ValueError, match="hold only parts"):
        continue_run(learnt("stft"), [new, more], tmp_path / "out")
    assert (tmp_path / "out" / name / "thesis.tex").read_text() == "years of work"


def test_continue__an_empty_folder_of_the_user_stays_and_a_new_one_goes(learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[:3])
    (tmp_path / "mine").mkdir()
    for name in ("mine", "out"):
        assert continue_run(learnt("stft"), [new], tmp_path / name).added == 0
    assert everything(tmp_path) == ["mine", "new.npy"]


def test_continue__a_link_to_nothing_is_refused(learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    (tmp_path / "out").symlink_to("nothing")
    with pytest.raises(ValueError, match="OUT must be a new folder"):
        continue_run(learnt("stft"), [new], tmp_path / "out")
    assert everything(tmp_path) == ["new.npy", "out"]


def test_continue__what_a_kill_at_the_very_end_leaves_goes_with_the_next_part(learnt, tmp_path):
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [83]))]
    script = f"""
        import os, signal
        from pathlib import Path
        from manifold_observer.pipeline.jobs import store, stream
        store.sync = lambda *_args: os.kill(os.getpid(), signal.SIGKILL)
        stream.continue_run(Path({str(learnt("stft"))!r}), [Path({str(pieces[0])!r})], Path("out"))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(everything(tmp_path / "out")) == 3
    assert continue_run(learnt("stft"), pieces, tmp_path / "out").part == tmp_path / "out" / "000001.zarr"
    assert everything(tmp_path / "out") == ["000000.zarr", "000001.zarr"]


def test_continue__two_at_once(learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    with alone(tmp_path / "out"), pytest.raises(ValueError, match=r"another run is writing to .*out"):
        continue_run(learnt("stft"), [new], tmp_path / "out")
    assert continue_run(learnt("stft"), [new], tmp_path / "out").added == 21


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_continue__what_fails_in_the_middle_leaves_nothing_and_the_same_call_goes_on(
    learnt, tmp_path, monkeypatch, error
):
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [83]))]
    continue_run(learnt("stft"), pieces[:1], tmp_path / "out")

    def fail(*_args, **_options):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(stream, "observe_coordinates", fail)
        with pytest.raises(error):
            continue_run(learnt("stft"), pieces, tmp_path / "out")
    assert everything(tmp_path / "out") == ["000000.zarr"]
    continue_run(learnt("stft"), pieces, tmp_path / "out")
    assert_same(tmp_path / "out", one_run(learnt("stft"), write_npy(tmp_path, "w", ALL[LEARNT:])), times=False)


def test_continue__killed_in_the_middle_the_same_call_goes_on(learnt, tmp_path):
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [83]))]
    continue_run(learnt("stft"), pieces[:1], tmp_path / "out")
    script = f"""
        import os, signal
        from pathlib import Path
        from manifold_observer.pipeline.jobs import stream
        stream.observe_coordinates = lambda *_args, **_options: os.kill(os.getpid(), signal.SIGKILL)
        stream.continue_run(Path({str(learnt("stft"))!r}), [Path(p) for p in {list(map(str, pieces))}], Path("out"))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    *hidden, _ = everything(tmp_path / "out")
    assert [is_work_folder(tmp_path / "out" / name) for name in hidden] == [True, True]  # of the part, of the stream
    assert stream_dataset(tmp_path / "out").sizes["frame"] == 8
    continue_run(learnt("stft"), pieces, tmp_path / "out")
    assert everything(tmp_path / "out") == ["000000.zarr", "000001.zarr"]
    assert_same(tmp_path / "out", one_run(learnt("stft"), write_npy(tmp_path, "w", ALL[LEARNT:])), times=False)


def test_load__of_a_stream_parts_of_an_earlier_version_have_no_deviations(learnt, tmp_path):
    result, new = learnt("stft"), write_npy(tmp_path, "new", ALL[LEARNT:])
    continue_run(result, [new], tmp_path / "out")
    part = xr.open_datatree(tmp_path / "out" / "000000.zarr").load()
    later = part["state"].to_dataset()
    assert "state_std" in later
    joined = loading._along([later.drop_vars("state_std"), later], "state_std")
    assert joined.sizes["frame"] == 2 * later.sizes["frame"]
    assert np.isnan(joined[: later.sizes["frame"]]).all()
    np.testing.assert_array_equal(joined[later.sizes["frame"] :], later["state_std"])


def test_load__of_a_stream_refuses_what_is_not_whole(learnt, tmp_path):
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [83]))]
    for k in (1, 2):
        continue_run(learnt("stft"), pieces[:k], tmp_path / "out")
    (tmp_path / "out" / "000000.zarr").rename(tmp_path / "away")
    with pytest.raises(ValueError, match=r"has no 000000\.zarr"):
        stream_dataset(tmp_path / "out")
    xr.Dataset().to_zarr(tmp_path / "out" / "000000.zarr", zarr_format=3, consolidated=False)
    with pytest.raises(ValueError, match=r"000000\.zarr is not complete"):
        stream_dataset(tmp_path / "out")
    with pytest.raises(FileNotFoundError, match="holds no parts"):
        stream_dataset(tmp_path / "nothing")


# ------------------------------------------------------------------------------------------------------ follow


def arriving(*actions):
    """A wait that does the next thing, and asks to stop when there is none left."""
    left = list(actions)

    def wait(_seconds):
        if not left:
            return True
        left.pop(0)()
        return False

    return wait


def test_follow__a_growing_recording(tmp_path):
    recording, result = write_zarr(tmp_path, "recording", ALL[:503]), tmp_path / "result.zarr"
    run([recording], result, RunConfig(mo.FeatureConfig("stft", frame=10), embedding=mo.EmbedConfig(**EMBED)))
    cuts = [503, 506, 530, 531, 700, len(ALL)]
    waits = arriving(*(lambda a=a, b=b: grow(recording, ALL[a:b]) for a, b in itertools.pairwise(cuts)))
    steps = list(follow(result, [recording], tmp_path / "out", wait=waits))
    assert [step.added for step in steps] == [3, 17, 11]
    assert [step.total for step in steps] == [3, 20, 31]
    assert_same(tmp_path / "out", one_run(result, recording, first=50))


def test_follow__files_that_appear_and_are_not_ready(learnt, tmp_path):
    """A pattern is looked up again; what cannot be opened yet is waited for, and what follows it with it."""
    parts = np.split(ALL[LEARNT:], [83, 150])
    folder = tmp_path / "new"

    def half_written():
        whole = write_npy(folder, "1", parts[1]).read_bytes()
        (folder / "1.npy").write_bytes(whole[:-100])
        write_npy(folder, "2", parts[2])

    waits = arriving(
        folder.mkdir,
        lambda: write_npy(folder, "0", parts[0]),
        half_written,
        lambda: None,
        lambda: write_npy(folder, "1", parts[1]),
    )
    said = []
    steps = list(follow(learnt("stft"), [folder / "*.npy"], tmp_path / "out", wait=waits, notice=said.append))
    assert [step.added for step in steps] == [8, 13]
    assert len(said) == 1
    assert said[0].startswith(f"waiting for {folder / '1.npy'}: ")
    assert_same(tmp_path / "out", one_run(learnt("stft"), write_npy(tmp_path, "w", ALL[LEARNT:])), times=False)


def test_follow__waits_for_a_recording_and_stops_when_nothing_comes(learnt, tmp_path):
    new, said, looks = tmp_path / "new.npy", [], []
    assert list(follow(learnt("stft"), [new], tmp_path / "out", idle=0, notice=said.append)) == []
    assert said == [
        f"waiting for {new}: open_recording: {new} does not exist. Check the path; relative ones start at {Path.cwd()}."
    ]
    write_npy(tmp_path, "new", ALL[LEARNT:])
    steps = list(follow(learnt("stft"), [new], tmp_path / "out", idle=0, interval=7, wait=looks.append))
    assert [step.added for step in steps] == [21]
    assert looks == [7]
    assert list(follow(learnt("stft"), [new], tmp_path / "out", idle=0)) == []


def test_follow__holds_the_place(learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    with contextlib.closing(follow(learnt("stft"), [new], tmp_path / "out")) as steps:
        assert next(steps).added == 21
        with pytest.raises(ValueError, match="another run is writing"):
            continue_run(learnt("stft"), [new], tmp_path / "out")
    assert continue_run(learnt("stft"), [new], tmp_path / "out").added == 0


# ----------------------------------------------------------------------------------------------------- command


@pytest.fixture
def call(console):
    """The console, with the command continue."""
    return functools.partial(console, "continue")


def test_command__adds_one_part(call, learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    code, text, err = call(learnt("stft"), new, tmp_path / "out", "--json")
    assert (code, err) == (0, "")
    step = json.loads(text)
    assert step.pop("seconds") > 0
    assert step == {"part": str(tmp_path / "out/000000.zarr"), "added": 21, "total": 21}
    assert call(learnt("stft"), new, tmp_path / "out") == (0, "no new whole frame; 21 frames in all\n", "")
    more = write_npy(tmp_path, "p", ALL[:4])
    code, text, err = call(learnt("stft"), new, more, tmp_path / "out", "--cluster", "none")
    assert (code, err) == (0, "")
    assert text == f"1 frames added, 22 in all, written to {tmp_path / 'out/000001.zarr'}\n"


def test_command__extend_is_the_old_name(console, learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    code, text, err = console("extend", learnt("stft"), new, tmp_path / "out", "--json")
    assert code == 0
    assert json.loads(text)["added"] == 21
    assert err == "Warning: extend is now called continue; the old name will be removed in the next version.\n"
    code, text, err = console("--help")
    assert (code, err) == (0, "")
    assert " continue " in text
    assert " extend " not in text


def test_command__follows_until_nothing_comes(call, learnt, tmp_path):
    write_npy(tmp_path, "new", ALL[LEARNT:])
    options = ("--follow", "--idle", 0, "--interval", 0, "--json")
    code, text, err = call(learnt("stft"), tmp_path / "new*.npy", tmp_path / "out", *options)
    assert (code, err) == (0, "")
    assert [json.loads(line)["added"] for line in text.splitlines()] == [21]
    assert call(learnt("stft"), tmp_path / "new*.npy", tmp_path / "out", *options) == (0, "", "")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["a.zarr", "b.npy"], 2, "Name the result, at least one new recording, and the output last"),
        (["a.zarr", "b.npy", "out", "--workers", 2, "--cluster", "none"], 2, "--workers must be left out"),
        (["a.zarr", "b.npy", "out", "--interval", -1], 2, "-1.0 is not in the range"),
        (["a.zarr", "b.npy", "out"], 1, "a.zarr does not exist"),
        (["a.zarr", "b.npy", "out", "--follow"], 1, "a.zarr does not exist"),
    ],
)
def test_command__errors_are_one_sentence(call, tmp_path, monkeypatch, words, code, message):
    monkeypatch.chdir(tmp_path)
    found, text, err = call(*words)
    assert (found, text) == (code, "")
    assert message in err
    assert "Traceback" not in err
    assert everything(tmp_path) == []


@pytest.mark.parametrize("ask", share([signal.SIGTERM, signal.SIGINT], 2))
def test_command__follows_until_it_is_asked_to_end(learnt, tmp_path, ask):
    parts = np.split(ALL[LEARNT:], [83])
    write_npy(tmp_path, "0", parts[0])
    script = Path(sys.executable).parent / "manifold-observer"
    words = [script, "continue", learnt("stft"), "*.npy", "out", "--follow", "--interval", "0.05", "--json"]
    with subprocess.Popen(list(map(str, words)), cwd=tmp_path, stdout=subprocess.PIPE, text=True) as following:
        try:
            assert json.loads(following.stdout.readline())["added"] == 8
            write_npy(tmp_path, "1.part", parts[1])
            os.rename(tmp_path / "1.part.npy", tmp_path / "1.npy")
            assert json.loads(following.stdout.readline())["total"] == 21
            following.send_signal(ask)
            assert following.wait(timeout=60) == 0
            assert following.stdout.read() == ""
        finally:
            following.kill()
    assert_same(tmp_path / "out", one_run(learnt("stft"), write_npy(tmp_path, "w", ALL[LEARNT:])), times=False)


@pytest.fixture
def interruptible():
    """Ctrl-C is heard, as on a terminal: processes that are started in the background may be deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ending__a_second_interrupt_ends_at_once():
    with Ending() as ending:
        signal.raise_signal(signal.SIGINT)
        assert ending.wait(0)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("interruptible")
def test_ending__processes_started_unheard_do_not_hear_an_interrupt():
    script = "import signal; signal.raise_signal(signal.SIGINT); print('goes on')"
    with unheard():
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "goes on\n"
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("gain", ["kalman", "dmk"])
def test_continue__optimal_gains_go_on_to_the_bit_with_their_deviations(tmp_path, gain):
    rates = {"rates": np.array([0.05, 0.1])} if gain == "kalman" else {}
    result = learn(tmp_path, "identity", gain=gain, **rates)
    pieces = [write_npy(tmp_path, name, part) for name, part in (("b", ALL[LEARNT:-31]), ("c", ALL[-31:]))]
    for end in (1, 2):
        continue_run(result, pieces[:end], tmp_path / "out")
    expected = one_run(result, write_npy(tmp_path, "rest", ALL[LEARNT:]), gain=gain, **rates)
    found = stream_dataset(tmp_path / "out").load()
    np.testing.assert_array_equal(found["state"], expected["state"])
    np.testing.assert_array_equal(found["state_std"], expected["state_std"])
    np.testing.assert_array_equal(found["carry"], expected["carry"])
