"""Streams of live data with faults: numbers that are cut, missing samples, files that are not there yet."""

import numpy as np
import pytest
from streams import acting

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.jobs.config import RunConfig
from manifold_observer.pipeline.jobs.run import run
from manifold_observer.pipeline.jobs.stream import continue_run, follow, stream_dataset

pytestmark = pytest.mark.usefixtures("in_this_thread")
WALK = np.round(np.random.default_rng(0).normal(size=(240, 2)).cumsum(axis=0), 4)
LEARNT = 120
CONFIG = RunConfig(
    mo.FeatureConfig("identity"),
    opening=mo.OpenConfig(sampling_rate=10.0),
    embedding=mo.EmbedConfig(n_modes=2, window=9),
)


def rows(values, cells=str):
    return "".join(",".join(map(cells, row)) + "\n" for row in values)


def table(path, values):
    path.write_text("x,y\n" + rows(values))
    return path


@pytest.fixture(scope="module")
def learnt(tmp_path_factory, in_this_thread):
    folder = tmp_path_factory.mktemp("learnt")
    run([table(folder / "a.csv", WALK[:LEARNT])], folder / "out.zarr", CONFIG)
    return folder / "out.zarr"


def append(path, text):
    with path.open("a") as file:
        file.write(text)


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 2, 4, 8])
def test_follow__a_number_that_is_cut_is_left_until_its_line_ends(learnt, tmp_path, cut):
    new, whole = tmp_path / "new.csv", rows(WALK[LEARNT:])
    at = len(rows(WALK[LEARNT : LEARNT + 40])) - cut  # in the last cell of a row, or at its end
    new.write_text("x,y\n" + whole[:at])
    steps = list(follow(learnt, [new], tmp_path / "more", wait=acting(lambda: append(new, whole[at:]))))
    assert [step.added for step in steps] == [39, 81]
    np.testing.assert_array_equal(stream_dataset(tmp_path / "more").frames.values, WALK[LEARNT:])


@pytest.mark.slow
def test_continue__a_row_without_line_end_is_left_for_the_next_call(learnt, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("x,y\n" + rows(WALK[LEARNT : LEARNT + 20])[:-2])
    assert continue_run(learnt, [new], tmp_path / "more").added == 19
    new.write_text("x,y\n" + rows(WALK[LEARNT:]))
    assert continue_run(learnt, [new], tmp_path / "more").added == 101
    np.testing.assert_array_equal(stream_dataset(tmp_path / "more").frames.values, WALK[LEARNT:])


def test_continue__a_piece_that_another_follows_has_ended(learnt, tmp_path):
    first, second = tmp_path / "1.csv", table(tmp_path / "2.csv", WALK[LEARNT + 20 :])
    first.write_text("x,y\n" + rows(WALK[LEARNT : LEARNT + 20])[:-1])
    assert continue_run(learnt, [first], tmp_path / "more").added == 19
    with pytest.warns(UserWarning, match="has no line end"):
        assert continue_run(learnt, [first, second], tmp_path / "more").added == 101
    np.testing.assert_array_equal(stream_dataset(tmp_path / "more").frames.values, WALK[LEARNT:])


def test_run__a_row_without_line_end_is_taken_with_a_warning(tmp_path):
    path = table(tmp_path / "a.csv", WALK[:50])
    path.write_text(path.read_text()[:-3])
    with pytest.warns(UserWarning, match=r"a\.csv: line 51, the last, has no line end"):
        recording = mo.open_recording(path)
    assert recording.sizes["time"] == 50
    assert mo.open_recording(path, growing=True).sizes["time"] == 49


@pytest.mark.slow
@pytest.mark.parametrize(("bad", "at"), [("", 0), ("nan", 17), ("inf", 60), ("", 60)])
def test_follow__goes_on_after_what_is_missing(learnt, tmp_path, bad, at):
    """Rows that are no numbers are left out; frames after them are a new segment."""
    new, said = tmp_path / "new.csv", []
    values, first = WALK[LEARNT:], LEARNT + at
    new.write_text("x,y\n" + rows(WALK[LEARNT:first]) + f"1.5,{bad}\n{bad},2\n")
    waits = acting(lambda: append(new, rows(WALK[first + 2 : first + 5])), lambda: append(new, rows(WALK[first + 5 :])))
    steps = list(follow(learnt, [new], tmp_path / "more", wait=waits, notice=said.append))
    assert sum(step.added for step in steps) == len(values) - 2
    found = stream_dataset(tmp_path / "more").load()
    np.testing.assert_array_equal(found.frames.values, np.delete(values, [at, at + 1], axis=0))
    assert np.isfinite(found.state.values).all()
    np.testing.assert_array_equal(np.flatnonzero(np.diff(found.segment)), [at - 1] if at else [])
    np.testing.assert_allclose(np.diff(found.time), np.where(np.arange(len(values) - 3) == at - 1, 0.3, 0.1))
    assert len(said) == 1
    assert said[0].startswith(f"left out: {new} holds NaN or infinite values from sample {at} on; a new segment begins")


@pytest.mark.slow
def test_follow__holes_give_the_same_wherever_the_calls_are_cut(learnt, tmp_path):
    values = WALK[LEARNT:].copy()
    values[[5, 6, 30, 119], 0] = np.nan
    new = tmp_path / "new.csv"
    table(new, values)
    list(follow(learnt, [new], tmp_path / "once", wait=lambda _: True, notice=lambda _: None))
    table(new, values[:3])
    cuts = [3, 6, 7, 29, 31, 90, 120]
    waits = acting(*(lambda stop=stop: table(new, values[:stop]) for stop in cuts[1:]))
    list(follow(learnt, [new], tmp_path / "often", wait=waits, notice=lambda _: None))
    once, often = (stream_dataset(tmp_path / name).load() for name in ("once", "often"))
    for name in ("frames", "state", "time", "segment"):
        np.testing.assert_array_equal(once[name], often[name])
    assert once.sizes["frame"] == 116


def test_follow__frames_of_several_samples_do_not_straddle_what_is_missing(tmp_path):
    config = RunConfig(
        mo.FeatureConfig("log_rms", frame=5, hop=2),
        opening=mo.OpenConfig(sampling_rate=10.0),
        embedding=mo.EmbedConfig(n_modes=2, window=9),
    )
    run([table(tmp_path / "a.csv", WALK[:LEARNT])], tmp_path / "out.zarr", config)
    values = WALK[LEARNT:].copy()
    values[33, 1] = np.inf
    list(follow(tmp_path / "out.zarr", [table(tmp_path / "b.csv", values)], tmp_path / "more", wait=lambda _: True))
    found = stream_dataset(tmp_path / "more")
    firsts = [*range(0, 33 - 4, 2), *range(34, 120 - 4, 2)]
    expected = [np.log(np.sqrt((values[first : first + 5] ** 2).mean(axis=0))) for first in firsts]
    np.testing.assert_allclose(found.frames.values, expected, rtol=1e-9)
