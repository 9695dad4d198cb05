"""The smoother is the textbook's over the observer's states, whatever the chunks."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given

import manifold_observer.pipeline as mo
from manifold_observer.tasks.observers import kalman
from reference import dense
from strategies import chunkings, examples
from toy import CALM, EMBEDDING, FRAMES, GAPPED, SEGMENT, N, lazily

pytestmark = pytest.mark.usefixtures("in_this_thread")

STEADY = [{"gain": "kalman", "rates": CALM, "initial": "steady"}, {"gain": "dmk"}]
VARYING = [{"gain": "kalman", "rates": CALM}, {"gain": "dmk", "initial": "prior"}]


def known(options):
    """The toy with its noise, as if that were known without error: bands are those of the model alone."""
    return EMBEDDING if options["gain"] == "dmk" else mo.calibrate(EMBEDDING, CALM).drop_vars("measurement_noise_error")


def steady(result):
    """Covariances before and after a frame, from the settings that a result tells."""
    poles = np.exp(-np.array(result.attrs["rates"]))
    posterior = result["posterior_covariance"].values
    if result.attrs["gain"] == "dmk":
        return poles, posterior, np.diag(poles) @ posterior @ np.diag(poles) + np.diag(np.square(result.attrs["rates"]))
    signal = mo.calibrate(EMBEDDING, CALM)["signal_variance"].values
    return poles, posterior, np.diag(poles) @ posterior @ np.diag(poles) + np.diag((1 - poles**2) * signal)


@pytest.mark.parametrize("options", STEADY, ids=["kalman", "dmk"])
@pytest.mark.parametrize("frames", [FRAMES, GAPPED], ids=["one segment", "three segments"])
def test_smooth__is_the_backward_pass_over_the_filtered_states(options, frames):
    filtered = mo.observe(known(options), frames, **options)
    poles, posterior, predicted = steady(filtered)
    segment = frames["segment"].values
    expected, variances = dense.smoother(filtered["state"].values, segment, poles, posterior, predicted)
    result = mo.smooth(known(options), frames, **options)
    np.testing.assert_allclose(result["state"], expected, atol=1e-7)
    np.testing.assert_allclose(result["state_std"], np.sqrt(variances), atol=1e-7)
    ends = np.append(np.diff(segment) != 0, True)
    np.testing.assert_allclose(result["state"][ends], filtered["state"][ends], atol=1e-12)
    assert (result["state_std"] <= filtered["state_std"] + 1e-12).all()


@pytest.mark.parametrize("options", [*VARYING, STEADY[1]], ids=["kalman", "dmk from the prior", "dmk"])
@examples(15)
@given(chunks=chunkings(N))
def test_smooth__any_chunking_gives_the_same_bits(options, chunks):
    whole = mo.smooth(EMBEDDING, GAPPED, **options)
    cut = mo.smooth(EMBEDDING, GAPPED.chunk(frame=chunks), **options)
    assert cut["state"].chunks[0] == chunks
    xr.testing.assert_equal(cut.compute(), whole)


@pytest.mark.parametrize("options", VARYING, ids=["kalman", "dmk"])
@pytest.mark.parametrize("frames", [FRAMES, GAPPED], ids=["one segment", "three segments"])
def test_observe_and_smooth__are_the_textbook_s_filter_and_smoother_from_the_prior(options, frames):
    poles, _, _ = steady(mo.observe(EMBEDDING, frames, **{**options, "initial": "steady"}))
    lift, mean = EMBEDDING["lift"].values, EMBEDDING["feature_mean"].values
    if options["gain"] == "dmk":
        process, noise = np.diag(np.square(np.log(poles))), EMBEDDING["feature_variance"].values
        reading, noise = kalman.weighted_reading(lift, noise)
    else:
        learnt = mo.calibrate(EMBEDDING, CALM)
        process = np.diag((1 - poles**2) * learnt["signal_variance"].values)
        reading, noise = kalman.weighted_reading(lift, learnt["feature_noise"].values)
        noise = learnt["measurement_noise"].values
    inputs, segment = (frames.values - mean) @ reading.T, frames["segment"].values
    expected = dense.from_prior(inputs, segment, poles, process, noise)
    filtered, smoothed = (way(known(options), frames, **options) for way in (mo.observe, mo.smooth))
    for result, (states, variances) in zip((filtered, smoothed), expected, strict=True):
        np.testing.assert_allclose(result["state"], states, atol=1e-9)
        np.testing.assert_allclose(result["state_std"], np.sqrt(variances), atol=1e-9)


@pytest.mark.usefixtures("no_compute")
def test_smooth__is_lazy_where_the_frames_are():
    result = mo.smooth(EMBEDDING, lazily(GAPPED, 7), gain="dmk")
    assert result["state"].chunks[0] == (7,) * 8 + (4,)
    assert result["state_std"].chunks == result["state"].chunks


def test_smooth__no_segment_learns_from_another():
    changed = GAPPED.copy(deep=True)
    changed[SEGMENT == 2] += 1.0
    one, other = (mo.smooth(EMBEDDING, frames, gain="dmk")["state"] for frames in (GAPPED, changed))
    np.testing.assert_array_equal(one[SEGMENT < 2], other[SEGMENT < 2])
    assert (np.abs(one - other)[SEGMENT == 2] > 1e-6).all()


def test_smooth__labels_units_and_settings():
    result = mo.smooth(EMBEDDING, GAPPED, gain="dmk")
    np.testing.assert_array_equal(result["time"], GAPPED["time"])
    np.testing.assert_array_equal(result["segment"], SEGMENT)
    assert result["state_std"].attrs["long_name"] == "posterior standard deviation of the state"
    assert result.attrs["gain"] == "dmk"
    assert result.attrs["smoothed"]


@pytest.mark.parametrize("gain", ["paper", "unit", "best"])
def test_smooth__refuses_gains_without_a_model(gain):
    with pytest.raises(ValueError, match="gain must be"):
        mo.smooth(EMBEDDING, FRAMES, gain=gain)


def test_smoothed_variances__end_where_they_have_settled():
    _, posterior, predicted = steady(mo.observe(EMBEDDING, FRAMES, gain="dmk"))
    known = kalman.Steady(np.eye(2), predicted, posterior, np.zeros((2, 2)))
    assert len(kalman.smoothed_variances(known)) <= 3


def test_state_std__is_wider_than_the_model_s_where_signal_and_noise_are_estimates():
    options = VARYING[0]
    for way in (mo.observe, mo.smooth):
        model, told = (way(one, FRAMES, **options) for one in (known(options), mo.calibrate(EMBEDDING, CALM)))
        xr.testing.assert_equal(model["state"], told["state"])
        assert (told["state_std"] > 1.001 * model["state_std"]).all()
