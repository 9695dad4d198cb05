"""States that are read from coordinates: the same bits in any chunks and calls, for embedded frames and new ones."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.embedding import known as known_frames
from manifold_observer.pipeline.embedding.known import embedded_numbers
from manifold_observer.pipeline.observers.starts import begun
from manifold_observer.tasks.observers import bank
from strategies import chunkings, examples, smooth_motion

pytestmark = pytest.mark.usefixtures("in_this_thread")
LEARNT, NEW, P = 300, 130, 6
VALUES = smooth_motion(np.random.default_rng(3), LEARNT + NEW, P)
SEGMENT = np.repeat([0, 1, 2, 3], [180, 2, 168, 80])
TIME = np.arange(LEARNT + NEW) * 0.5 + 3.0 * (SEGMENT > 1) + 50.0 * (SEGMENT > 2)


def as_frames(values=VALUES, segment=SEGMENT, time=TIME, **attrs):
    coords = {"time": ("frame", time[: len(values)]), "segment": ("frame", segment[: len(values)])}
    return xr.DataArray(
        values, dims=("frame", "feature"), coords=coords, attrs={"frame_period": 0.5, "features": "identity", **attrs}
    )


FRAMES = as_frames()


@pytest.fixture(scope="module")
def embedding(in_this_thread):
    return mo.embed(FRAMES[:LEARNT], n_modes=3)


@pytest.fixture(scope="module")
def whole(embedding):
    return mo.observe(embedding, FRAMES)


def ridge(inputs, later):
    squares = inputs.T @ inputs / len(inputs) + 0.1 * np.eye(inputs.shape[1])
    return np.linalg.solve(squares, inputs.T @ later / len(inputs))


def reduced(parts, some, m=5):
    """The leading directions of what is foretold, over some of the frames."""
    return parts @ np.linalg.svd(parts[some], full_matrices=False)[2][:m].T


def test_observe__of_embedded_frames_is_the_bank_over_their_own_coordinates(embedding):
    known = np.hstack([embedding["coordinate"], embedding["principal"]])
    known = (known - known.mean(axis=0)) / known.std(axis=0)
    poles = np.array(bank.POLES)
    rows, _ = bank.scan(known, begun(FRAMES[:LEARNT]).mask(), np.zeros(5 * len(poles)), poles)
    scaled = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    segment = SEGMENT[:LEARNT]
    several = {h: np.flatnonzero(segment[:-h] == segment[h:]) for h in (1, 2, 4, 8)}
    foretold = {h: scaled @ ridge(scaled[now], known[now + h]) for h, now in several.items()}
    expected = reduced(np.hstack([part * (1 if h == 1 else 0.5) for h, part in foretold.items()]), several[1])
    state = mo.observe(embedding, FRAMES[:LEARNT])
    turn, _, back = np.linalg.svd(expected[several[1]].T @ foretold[1][several[1]])
    expected = expected @ turn @ back
    size = [
        (ours @ other) / (ours @ ours)
        for ours, other in zip(*(x[several[1]].T for x in (expected, foretold[1])), strict=True)
    ]
    plain = rows[:, 5 * bank.POLES.index(0.7) :][:, :5]
    drawn = 0.8 * expected * size + 0.2 * (plain - plain.mean(axis=0))
    np.testing.assert_allclose(state["state"], drawn, atol=1e-6)
    assert state["reads"].values.tolist()[-1] == "principal component 2"
    assert state.attrs["contraction_factor"] == 0.98


@examples(6)
@given(chunks=chunkings(LEARNT + NEW))
def test_observe__any_chunks_give_the_same_bits(embedding, whole, chunks):
    lazily = mo.observe(embedding, FRAMES.chunk(frame=chunks))
    assert lazily["state"].chunks is not None
    for name in ("state", "carry", "far"):
        np.testing.assert_array_equal(lazily[name], whole[name])


@pytest.mark.slow
@examples(6)
@given(lengths=chunkings(LEARNT + NEW))
def test_observe__cut_into_calls_anywhere_gives_the_same_bits(embedding, whole, lengths):
    carry, parts, first = None, [], 0
    for length in lengths:
        found = mo.observe(embedding, FRAMES[first : first + length], carry=carry)
        carry, first = found["carry"], first + length
        parts.append(found["state"].values)
    np.testing.assert_array_equal(np.concatenate(parts), whole["state"])
    np.testing.assert_array_equal(carry, whole["carry"])


def test_observe__the_past_of_a_new_frame_is_all_that_it_sees(embedding, whole):
    changed = FRAMES.copy(data=np.where(np.arange(LEARNT + NEW)[:, None] < 370, VALUES, -VALUES))
    again = mo.observe(embedding, changed)
    np.testing.assert_array_equal(again["state"][:370], whole["state"][:370])
    assert not np.allclose(again["state"][371:375], whole["state"][371:375])


def test_observe__new_frames_read_nearly_as_embedded_ones_do():
    """The frames after those that were embedded, against the same frames in an embedding of all."""
    frames = as_frames(segment=np.zeros(LEARNT + NEW, int), time=np.arange(LEARNT + NEW) * 0.5)
    half, both = mo.embed(frames[:LEARNT], n_modes=3), mo.embed(frames, n_modes=3)
    new, known = (mo.observe(one, frames)["state"][LEARNT:].values for one in (half, both))
    fitted = known @ np.linalg.lstsq(known, new, rcond=None)[0]
    assert np.corrcoef(fitted[:, 0], new[:, 0])[0, 1] > 0.95


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        (FRAMES[50:60], np.arange(50, 60)),
        (FRAMES[295:305], [*range(295, 300), *[-1] * 5]),
        (FRAMES[:40] + 1e-9, [-1] * 40),  # other frames at the same times
        (FRAMES[:40].assign_coords(time=FRAMES.time[:40] + 0.1), [-1] * 40),
        (FRAMES[:LEARNT].drop_vars("time"), [-1] * LEARNT),
    ],
)
def test_embedded_numbers__go_by_time_and_value(embedding, frames, expected):
    np.testing.assert_array_equal(embedded_numbers(embedding, frames), expected)


def test_embedded_numbers__recordings_that_are_silent_at_the_same_times_are_told_apart():
    """Their evenly spread frames agree."""
    rng, events = np.random.default_rng(0), ~np.isin(np.arange(120) % 10, [0, 9])
    one, other = (as_frames(np.where(events[:, None], rng.normal(size=(120, P)), 0.0)) for _ in range(2))
    embedding = mo.embed(one, n_modes=2)
    assert (embedded_numbers(embedding, one) == np.arange(120)).all()
    assert (embedded_numbers(embedding, other) == -1).all()


def test_starts__short_pauses_are_bridged_unless_nobody_knows_how_short():
    """The second segment follows at once, the third after 3 s, which is 6 frames, the fourth after 50 s."""
    assert begun(FRAMES).places.tolist() == [0, 182, 350]
    shorter = FRAMES.assign_coords(time=("frame", TIME - 0.6 * (SEGMENT > 1)))
    assert begun(shorter).places.tolist() == [0, 350]
    shorter["time"].attrs["unknown_pauses"] = [float(shorter["time"][182])]
    assert begun(shorter).places.tolist() == [0, 182, 350]


def test_smooth__sees_what_comes_after(embedding):
    late = FRAMES[:LEARNT].copy(data=np.where(np.arange(LEARNT)[:, None] < 250, VALUES[:LEARNT], -VALUES[:LEARNT]))
    forwards, both = mo.observe(embedding, FRAMES[:LEARNT]), mo.smooth(embedding, FRAMES[:LEARNT])
    assert both["state"].sizes == forwards["state"].sizes
    assert both.attrs["smoothed"] == "forwards and backwards"
    changed = mo.smooth(embedding, late.assign_coords(time=late.time + 1e4))
    assert not np.allclose(changed["state"][240:249], mo.smooth(embedding, FRAMES[:LEARNT])["state"][240:249])


def test_smooth__measures_new_frames_by_those_on_both_sides_as_embedded_ones_are(embedding):
    """The same frames a minute later are new, and come out as the embedded ones do, their windows being the same."""
    known = mo.smooth(embedding, FRAMES[:180])
    again = FRAMES[:180].assign_coords(time=("frame", TIME[:180] + 1e4))
    errors = [np.square(way(embedding, again)["state"] - known["state"]).mean() for way in (mo.smooth, mo.observe)]
    assert errors[0] < 0.02 < errors[1]
    assert mo.smooth(embedding, again).attrs["has_seen"] == "all frames"
    causal = mo.embed(FRAMES[:LEARNT], n_modes=3, geometry=mo.Geometry(causal=True))
    assert np.isfinite(mo.smooth(causal, again)["state"]).all()


def test_smooth__any_chunks_give_the_same_bits(embedding):
    whole = mo.smooth(embedding, FRAMES)
    np.testing.assert_array_equal(mo.smooth(embedding, FRAMES.chunk(frame=77))["state"], whole["state"])


@pytest.mark.parametrize("condition", ["standard", "none", "log", "root"])
def test_reconstruct__gives_features_in_their_own_units(condition):
    frames = as_frames(VALUES**2 * 100)
    embedding = mo.embed(frames, n_modes=4, geometry=mo.Geometry(condition=condition))
    features = mo.reconstruct(embedding, mo.smooth(embedding, frames))
    for k in range(P):
        assert np.corrcoef(features[:, k], frames[:, k])[0, 1] > 0.8
        assert features[:, k].mean() == pytest.approx(float(frames[:, k].mean()), rel=0.2)


def test_innovations__of_the_embedded_frames_are_as_large_as_usual(embedding):
    frames = FRAMES[:LEARNT]
    found = mo.innovations(embedding, frames, mo.observe(embedding, frames))
    assert found["innovation_level"][50:].mean() == pytest.approx(1, abs=0.2)
    assert not found["refit_due"][50:].any()  # the first frames have nothing before them
    other = frames.copy(data=np.random.default_rng(0).permutation(VALUES[:LEARNT])).assign_coords(
        time=("frame", TIME[:LEARNT] + 1e4)
    )
    changed = mo.innovations(embedding, other, mo.observe(embedding, other))
    assert changed["innovation_level"][-1] > 1.2


def test_observe__says_where_many_frames_are_far(embedding):
    moved = as_frames(VALUES + 50.0, time=TIME + 1e5)
    with pytest.warns(UserWarning, match=r"observe: 430 of 430 frames are far from all embedded ones"):
        found = mo.observe(embedding, moved)
    assert found["far"].all()
    assert np.isfinite(found["state"]).all()


def test_observe__options_of_the_lift_take_the_lift(embedding):
    for options in ({"gamma": 0.5}, {"gain": "unit"}, {"rates": "step"}, {"reading": "lift"}):
        found = mo.observe(embedding, FRAMES, **options)
        assert found.attrs["reading"] == "lift"
        assert found.sizes["mode"] == 3
    with pytest.raises(ValueError, match="belong to reading='lift'"):
        mo.observe(embedding, FRAMES, gamma=0.5, reading="coordinates")
    printed = mo.embed(FRAMES[:180], n_modes=2, preset="paper")
    assert mo.observe(printed, FRAMES).attrs["reading"] == "lift"
    with pytest.raises(ValueError, match="needs an embedding with shrunk covariances"):
        mo.observe(printed, FRAMES, reading="coordinates")


def test_observe__refuses_the_carry_of_another_embedding(embedding):
    with pytest.raises(ValueError, match="carry must be that of an earlier result with the same embedding"):
        mo.observe(embedding, FRAMES, carry=xr.DataArray(np.zeros(7), dims="carried"))


def test_embed__causal_windows_see_no_frame_that_comes_later():
    geometry = mo.Geometry(causal=True, shrinkage="identity")
    embedding = mo.embed(FRAMES[:LEARNT], n_modes=2, geometry=geometry)
    assert "after it" not in mo.observe(embedding, FRAMES[:LEARNT]).attrs["has_seen"]
    assert "the covariance of the 10 after it" in mo.observe(mo.embed(FRAMES[:LEARNT]), FRAMES[:5]).attrs["has_seen"]


@pytest.mark.parametrize("lengths", [[1, 2, 3, 294], [20] * 15, [300]])
def test_embed__segments_may_be_of_any_length(lengths):
    frames = as_frames(VALUES[:LEARNT], np.repeat(np.arange(len(lengths)), lengths))
    found = mo.observe(mo.embed(frames, n_modes=3), frames)
    assert np.isfinite(found["state"]).all()


@given(st.integers(3, 12))
@examples(4)
def test_embed__of_few_frames_finds_what_there_is(n):
    frames = as_frames(VALUES[:n])
    embedding = mo.embed(frames)
    assert 1 <= embedding.sizes["mode"] <= min(6, n - 2)
    assert np.isfinite(mo.observe(embedding, frames)["state"]).all()


def test_observe__goes_through_zarr(embedding, whole, tmp_path):
    embedding.to_zarr(tmp_path / "e.zarr", consolidated=False)
    stored = xr.open_zarr(tmp_path / "e.zarr", consolidated=False)
    np.testing.assert_array_equal(mo.observe(stored, FRAMES)["state"], whole["state"])


def test_embed__of_long_silences_takes_its_scale_from_the_frames_that_differ():
    rng, bursts = np.random.default_rng(0), np.arange(LEARNT) % 50 < 10
    frames = as_frames(np.where(bursts[:, None], VALUES[:LEARNT] + 0.1 * rng.normal(size=(LEARNT, P)), 0.0))
    with pytest.warns(UserWarning, match="most frames are equal"):
        embedding = mo.embed(frames, n_modes=2)
    assert 0.05 < embedding["eigenvalue"][0] < 1
    state = mo.observe(embedding, frames)["state"]
    assert abs(np.corrcoef(state[:, 0], bursts)[0, 1]) > 0.5 or abs(np.corrcoef(state[:, -2], bursts)[0, 1]) > 0.5


def test_observe__of_embedded_frames_in_many_chunks_takes_few_tasks_and_reads_none_of_them(embedding, monkeypatch):
    chunked = FRAMES[:LEARNT].chunk(frame=10)
    known = embedding.assign(reference=chunked.drop_vars(chunked.coords))
    monkeypatch.setattr(known_frames, "_telling", None)  # which frames to compare: none, where both are one array
    state = mo.observe(known, chunked)
    assert state["state"].chunks == ((LEARNT,), (5,))
    xr.testing.assert_equal(
        state.compute(), mo.observe(embedding.assign(reference=known["reference"]), chunked).compute()
    )
    monkeypatch.undo()
    xr.testing.assert_equal(state["state"].compute(), mo.observe(embedding, FRAMES[:LEARNT])["state"])


def test_observe__of_other_arrays_compares_values_whatever_their_times(embedding):
    moved = (FRAMES[:LEARNT] + 1.0).chunk(frame=10)
    known = embedding.assign(reference=FRAMES[:LEARNT].drop_vars(FRAMES.coords).chunk(frame=10))
    assert (embedded_numbers(known, moved) == -1).all()
    assert (embedded_numbers(known, FRAMES[:LEARNT].chunk(frame=7)) == np.arange(LEARNT)).all()
