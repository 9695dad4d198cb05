"""A hole in the times of frames is seen alike in one call and in two; a carry is that of a result, and finite."""

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from strategies import smooth_motion
from toy import EMBEDDING, FRAMES, N, P

pytestmark = pytest.mark.usefixtures("in_this_thread")

HOLE = 30


def holed():
    """Frames with a hole in their times, and no segments."""
    times = np.arange(N) + 25.0 * (np.arange(N) >= HOLE)
    bare = FRAMES.drop_vars(["segment", "time"], errors="ignore")
    return bare.assign_coords(time=("frame", times)).assign_attrs(frame_period=1.0)


def test_observe__a_hole_without_segments_is_one_in_one_call_and_in_two():
    frames = holed()
    whole = mo.observe(EMBEDDING, frames)
    for cut in (HOLE, HOLE - 10, HOLE + 10):
        first = mo.observe(EMBEDDING, frames.isel(frame=slice(cut)))
        second = mo.observe(EMBEDDING, frames.isel(frame=slice(cut, None)), carry=first["carry"])
        both = np.concatenate([first["state"], second["state"]])
        np.testing.assert_allclose(both, whole["state"], rtol=1e-12, atol=1e-12)


def test_observe__a_hole_without_segments_is_that_of_two_segments():
    frames = holed()
    segment = (np.arange(N) >= HOLE).astype(np.int64)
    marked = mo.observe(EMBEDDING, frames.assign_coords(segment=("frame", segment)))
    np.testing.assert_array_equal(mo.observe(EMBEDDING, frames)["state"], marked["state"])
    regular = mo.observe(EMBEDDING, frames.assign_coords(time=("frame", np.arange(N) * 1.0)))
    assert not np.allclose(regular["state"], marked["state"])


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda carry: carry.values, TypeError, "observe: carry must be the carry of an earlier result.*got ndarray"),
        (lambda carry: carry * np.nan, ValueError, "observe: carry must hold finite numbers; got NaN or infinity"),
        (lambda carry: carry / 0, ValueError, "observe: carry must hold finite numbers"),
        (lambda carry: carry.astype(str), TypeError, "observe: carry must hold real numbers"),
        (lambda carry: 0.0, TypeError, "got float"),
    ],
)
@pytest.mark.filterwarnings("ignore:(divide|invalid)")
def test_observe__a_carry_is_that_of_a_result(make, error, sentence):
    carry = mo.observe(EMBEDDING, FRAMES)["carry"]
    with pytest.raises(error, match=sentence):
        mo.observe(EMBEDDING, FRAMES, carry=make(carry))
    known = {"reference": (("frame", "feature"), FRAMES.values), "feature_variance": ("feature", np.ones(P))}
    with pytest.raises(error, match=sentence.replace("observe", "innovations")):
        mo.innovations(EMBEDDING.assign(known), FRAMES, xr.Dataset(), carry=make(carry))


def test_observe__a_lazy_carry_is_looked_at_as_it_is_computed():
    carry = mo.observe(EMBEDDING, FRAMES)["carry"]
    result = mo.observe(EMBEDDING, FRAMES.chunk(frame=40), carry=(carry * np.nan).chunk())
    with pytest.raises(ValueError, match="carry must hold finite numbers"):
        result.compute()


def dated(values, day):
    time = np.datetime64(day, "ns") + (np.arange(len(values)) * 1000).astype("timedelta64[ms]")
    return xr.DataArray(values, dims=("time", "channel"), coords={"time": time, "channel": ["x", "y", "z"]})


@pytest.mark.slow
def test_observe__embedded_frames_with_dates_are_known_in_parts_too():
    frames = mo.identity(dated(smooth_motion(np.random.default_rng(0), 300, 3), "2020-03-09T12:00:00.1"))
    embedding = mo.embed(frames, n_modes=2)
    whole = mo.observe(embedding, frames)
    for cut in (1, 77, 250):
        first = mo.observe(embedding, frames[:cut])
        second = mo.observe(embedding, frames[cut:], carry=first["carry"])
        np.testing.assert_array_equal(np.concatenate([first["state"], second["state"]]), whole["state"])


@pytest.mark.slow
def test_observe__a_carry_of_a_later_day_is_refused():
    values = smooth_motion(np.random.default_rng(0), 300, 3)
    monday, tuesday = (mo.identity(dated(values, day)) for day in ("2020-03-09", "2020-03-10"))
    embedding = mo.embed(monday, n_modes=2)
    carry = mo.observe(embedding, tuesday)["carry"]
    with pytest.raises(ValueError, match="observe: frames must come after the carry; got frames of a rec"):
        mo.observe(embedding, monday, carry=carry)
    mo.observe(embedding, tuesday, carry=mo.observe(embedding, monday)["carry"])
