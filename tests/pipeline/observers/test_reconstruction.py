"""From states back to features, and innovations that tell when the learnt dynamics no longer fit."""

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from strategies import smooth_motion
from toy import EMBEDDING, FILTERS, FRAMES, GAPPED, NAMES, VALUES, N, as_frames, lazily

pytestmark = pytest.mark.usefixtures("in_this_thread")

LIFT, MEAN = EMBEDDING["lift"].values, EMBEDDING["feature_mean"].values


@pytest.mark.parametrize("chunks", [None, 7])
def test_reconstruct__is_mean_and_lift(chunks):
    state = mo.observe(EMBEDDING, FRAMES if chunks is None else lazily(FRAMES, chunks), gain="unit")
    result = mo.reconstruct(EMBEDDING, state)
    np.testing.assert_allclose(result, MEAN + state["state"].values @ LIFT.T, atol=1e-12)
    assert (result.chunks is None) == (chunks is None)
    np.testing.assert_array_equal(result["time"], FRAMES["time"])


def test_reconstruct__takes_the_papers_sign_and_scale_back():
    paper, unit = (mo.observe(EMBEDDING, FRAMES, 0.6, gain=gain) for gain in ("paper", "unit"))
    np.testing.assert_allclose(mo.reconstruct(EMBEDDING, paper), mo.reconstruct(EMBEDDING, unit), atol=1e-10)
    np.testing.assert_allclose(mo.reconstruct(EMBEDDING, unit["state"]), mo.reconstruct(EMBEDDING, unit), atol=1e-12)


@pytest.mark.parametrize("options", FILTERS, ids=NAMES)
@pytest.mark.parametrize("frames", [FRAMES, GAPPED], ids=["one segment", "three segments"])
def test_innovations__are_frames_less_what_the_state_before_them_predicts(options, frames):
    state = mo.observe(EMBEDDING, frames, **options)
    found = mo.innovations(EMBEDDING, frames, state)
    optimal = options.get("gain") in ("kalman", "dmk")
    factor = np.exp(-np.array(state.attrs["rates"])) if optimal else np.full(2, -0.15 / 0.85)
    segment = frames["segment"].values
    for i in (0, 1, 24, 25, 26, 59):
        before = factor * state["state"].values[i - 1] if i and segment[i] == segment[i - 1] else np.zeros(2)
        expected = VALUES[i] - MEAN - LIFT @ before
        np.testing.assert_allclose(found["innovation"][i], expected, atol=1e-10)
        size = np.sqrt(np.mean(expected**2 / EMBEDDING["feature_variance"].values))
        np.testing.assert_allclose(found["innovation_size"][i], size)


@pytest.mark.parametrize("size", [1, 9, 60])
def test_innovations__any_chunking_gives_the_same(size):
    whole = mo.innovations(EMBEDDING, GAPPED, mo.observe(EMBEDDING, GAPPED))
    cut = GAPPED.chunk(frame=size)
    found = mo.innovations(EMBEDDING, cut, mo.observe(EMBEDDING, cut))
    assert found["innovation"].chunks is not None
    xr.testing.assert_allclose(found.compute(), whole, atol=1e-12)


def test_innovations__go_on_from_a_carry():
    whole = mo.innovations(EMBEDDING, FRAMES, mo.observe(EMBEDDING, FRAMES))
    first = mo.observe(EMBEDDING, FRAMES[:30])
    rest = mo.observe(EMBEDDING, FRAMES[30:], carry=first["carry"])
    found = mo.innovations(EMBEDDING, FRAMES[30:], rest, carry=first["carry"])
    np.testing.assert_allclose(found["innovation"], whole["innovation"][30:], atol=1e-12)


@pytest.mark.filterwarnings("ignore:calibrate")  # a sine
def test_innovations__a_recording_that_changes_is_due_for_a_refit_and_one_that_goes_on_is_not():
    rng = np.random.default_rng(5)
    hidden = np.sin(np.arange(1200) / 15)[:, None] * rng.normal(size=(1, 4))
    values = hidden + 0.2 * rng.normal(size=hidden.shape)
    frames = xr.DataArray(values, dims=("frame", "feature"))
    embedding = mo.embed(frames[:600], n_modes=2, engine=mo.Engine(method="exact"), preset="paper")
    for options in ({"gain": "unit"}, {"gain": "kalman"}):
        same = mo.innovations(embedding, frames[600:], mo.observe(embedding, frames[600:], **options))
        assert not same["refit_due"][100:].any()
        np.testing.assert_allclose(same["innovation_level"][100:], 1, atol=0.3)
        turned = frames[600:] * np.array([1, -1, 1, -1])
        other = mo.innovations(embedding, turned, mo.observe(embedding, turned, **options))
        assert other["refit_due"][150:].all()


REFUSALS = {
    "modes": (lambda: mo.reconstruct(EMBEDDING, xr.DataArray(np.zeros((3, 1)), dims=("frame", "mode"))), "the 2 modes"),
    "gamma 0": (lambda: mo.reconstruct(EMBEDDING, mo.observe(EMBEDDING, FRAMES, 0.0)), "gamma must be above 0"),
    "other frames": (
        lambda: mo.innovations(EMBEDDING, FRAMES[1:], mo.observe(EMBEDDING, FRAMES)),
        f"that of the {N - 1} frames; got {N}",
    ),
    "no reference": (
        lambda: mo.innovations(EMBEDDING.drop_vars("reference"), FRAMES, mo.observe(EMBEDDING, FRAMES)),
        "must hold its reference",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_reconstruction__refuses_in_one_sentence(name):
    call, message = REFUSALS[name]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_innovations__of_states_from_coordinates_go_on_from_a_carry():
    frames = as_frames(smooth_motion(np.random.default_rng(6), 300, 4))
    embedding = mo.embed(frames[:200], 2)
    first = mo.observe(embedding, frames[:200])
    rest = mo.observe(embedding, frames[200:], carry=first.carry)
    found = mo.innovations(embedding, frames[200:], rest, first.carry).innovation
    # The state before the first frame is the last one of the call before, as within one call.
    both = mo.observe(embedding, frames).assign_attrs(first.attrs)
    np.testing.assert_allclose(found, mo.innovations(embedding, frames, both).innovation[200:], rtol=1e-9, atol=1e-9)
    later = frames[200:].assign_coords(time=frames.time[200:] + 500.0)
    apart = mo.innovations(embedding, later, mo.observe(embedding, later, carry=first.carry), first.carry)
    alone = mo.innovations(embedding, later, mo.observe(embedding, later))
    np.testing.assert_array_equal(apart.innovation, alone.innovation)
