"""A result goes on over new data, wherever they are cut, to the bit as if all had been one long run."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from streams import ALL, KINDS, LEARNT, NEW, WRITERS, assert_same, frames_of, learn, one_run, write_npy

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.jobs import stream
from manifold_observer.pipeline.jobs.config import RunConfig
from manifold_observer.pipeline.jobs.run import read_embedding
from manifold_observer.pipeline.jobs.stream import continue_run, stream_dataset
from manifold_observer.pipeline.observers.config import ObserverConfig
from manifold_observer.pipeline.observers.observe import scan
from strategies import chunkings, examples, seeds, share

pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("suffix", WRITERS)
def test_continue__times_are_the_bits_of_the_recording_before_the_cut(learnt, tmp_path, suffix):
    """600 samples are 60 whole frames: the frames that follow are those of the uncut recording."""
    result, write = learnt("stft", suffix), WRITERS[suffix]
    pieces = [write(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [1, 50, 133]))]
    for k in (2, 3, 4):
        continue_run(result, pieces[:k], tmp_path / "out")
    assert_same(tmp_path / "out", one_run(result, write(tmp_path, "whole", ALL), first=LEARNT // 10))


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_continue__the_carry_reaches_the_scan_as_it_is_stored(learnt, tmp_path, monkeypatch):
    """Where a segment begins is told by restarts, not by a time that is written over the carry's own."""
    result, seen, scan = learnt("stft", gamma=0.5), [], stream.scan

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


def test_continue__a_scan_starts_anew_where_it_is_told_whatever_the_clock_says(learnt):
    path = learnt("stft", gamma=0.5)
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


@pytest.mark.slow
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
