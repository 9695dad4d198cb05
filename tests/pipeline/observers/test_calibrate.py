"""Calibration learns time unit and noise from the embedded frames, whatever their chunks."""

import warnings

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo

pytestmark = pytest.mark.usefixtures("in_this_thread")

N, UNIT = 6000, 0.2
SHAPE = np.array([0.4, 0.5])
LIFT = np.array([[1.0, 0.3], [0.2, -0.8], [0.5, 0.5]])
SIGNAL = np.array([1.0, 0.6])


def states(rng, n=N, decay=UNIT * SHAPE):
    x = np.zeros((n, 2))
    x[0] = rng.normal(size=2) * np.sqrt(SIGNAL)
    poles = np.exp(-decay)
    steps = rng.normal(size=(n, 2)) * np.sqrt((1 - poles**2) * SIGNAL)
    for i in range(1, n):
        x[i] = poles * x[i - 1] + steps[i]
    return x


def embedding(values, segment=None, size=None):
    lazily = values if size is None else da.from_array(values, chunks=(size, -1))
    found = xr.Dataset(
        {
            "lift": (("feature", "mode"), LIFT),
            "feature_mean": ("feature", values.mean(axis=0)),
            "feature_variance": ("feature", values.var(axis=0)),
            "rate": ("mode", SHAPE),
            "reference": (("frame", "feature"), lazily),
        },
        attrs={"alpha": 0.0},
    )
    return found if segment is None else found.assign_coords(segment=("frame", segment))


def measured(seed=0, n=N, noise=0.5, decay=UNIT * SHAPE):
    rng = np.random.default_rng(seed)
    return states(rng, n, decay) @ LIFT.T + noise * rng.normal(size=(n, 3))


VALUES = measured()
SAMPLED = states(np.random.default_rng(0)).var(axis=0)  # of this draw, before noise


def test_calibrate__finds_rates_signal_and_noise():
    found = mo.calibrate(embedding(VALUES))
    np.testing.assert_allclose(found["calibrated_rate"], UNIT * SHAPE, rtol=0.15)
    np.testing.assert_allclose(found["signal_variance"], SAMPLED, rtol=0.1)
    # The signal is known to a tenth, and what is left of the variance to a tenth of the signal in it.
    assert (np.abs(found["feature_noise"] - 0.25) < 0.1 * LIFT**2 @ SIGNAL).all()
    noise = 0.25 * np.linalg.inv(LIFT.T @ LIFT)
    np.testing.assert_allclose(found["measurement_noise"], noise, atol=0.2 * noise.max())
    error = found["calibrated_rate_error"].values
    assert (np.abs(found["calibrated_rate"].values - UNIT * SHAPE) < 3 * error).all()
    assert found.attrs["time_unit"] == pytest.approx(UNIT, rel=0.15)
    assert found["calibrated_rate"].attrs["units"] == "1"
    xr.testing.assert_identical(found.drop_attrs()[["lift", "rate"]], embedding(VALUES).drop_attrs()[["lift", "rate"]])


@pytest.mark.parametrize("size", [100, 777, N])
def test_calibrate__any_chunking_gives_the_same(size):
    whole, cut = mo.calibrate(embedding(VALUES)), mo.calibrate(embedding(VALUES, size=size))
    for name in ("calibrated_rate", "signal_variance", "feature_noise", "measurement_noise"):
        np.testing.assert_array_equal(cut[name], whole[name])


def test_calibrate__segments_are_not_joined():
    parts = [measured(seed, 300) for seed in range(20)]
    found = mo.calibrate(embedding(np.concatenate(parts), np.repeat(np.arange(20), 300)))
    np.testing.assert_allclose(found["calibrated_rate"], UNIT * SHAPE, rtol=0.2)


def test_calibrate__rates_that_are_known_are_kept():
    found = mo.calibrate(embedding(VALUES), UNIT * SHAPE)
    np.testing.assert_array_equal(found["calibrated_rate"], UNIT * SHAPE)
    np.testing.assert_allclose(found["signal_variance"], SAMPLED, rtol=0.1)
    assert found.attrs["calibration"] == "given"
    assert "calibrated_rate_error" not in found


def test_observe__takes_the_calibration_that_the_embedding_brings():
    frames = xr.DataArray(VALUES, dims=("frame", "feature"))
    plain = embedding(VALUES)
    expected = mo.observe(mo.calibrate(plain), frames, gain="kalman")
    xr.testing.assert_identical(mo.observe(plain, frames, gain="kalman"), expected)
    without = mo.calibrate(plain).drop_vars("reference")
    xr.testing.assert_identical(mo.observe(without, frames, gain="kalman"), expected)
    known = mo.observe(mo.calibrate(plain, UNIT * SHAPE), frames, gain="kalman")
    xr.testing.assert_identical(known, expected)  # numbers that were given are not those of the frames
    observer = mo.observe(plain, frames, rates="calibrated")
    np.testing.assert_array_equal(observer.attrs["rates"], mo.calibrate(plain)["calibrated_rate"])


def test_kalman_and_smoother__are_nearer_the_state_than_what_is_measured_and_cover_it():
    rng = np.random.default_rng(7)
    truth = states(rng, 20_000)
    values = truth @ LIFT.T + 0.5 * rng.normal(size=(20_000, 3))
    learnt = mo.calibrate(embedding(values))
    frames = xr.DataArray(values, dims=("frame", "feature"))
    inputs = (values - values.mean(axis=0)) @ np.linalg.pinv(LIFT).T
    filtered, smoothed = mo.observe(learnt, frames, gain="kalman"), mo.smooth(learnt, frames)
    errors = [np.square(x - truth).mean() for x in (inputs, filtered["state"].values, smoothed["state"].values)]
    assert errors[2] < 0.8 * errors[1] < 0.8 * 0.7 * errors[0]
    for result in (filtered, smoothed):
        covered = np.abs(result["state"].values - truth) < 1.96 * result["state_std"].values
        np.testing.assert_allclose(covered.mean(axis=0), 0.95, atol=0.02)


HIDDEN = {
    "white": (np.random.default_rng(0).normal(size=(2000, 3)), "frames are too far apart"),
    "slow": (measured(n=300, decay=np.array([0.002, 0.003])), "the recording spans too few"),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_calibrate__warns_where_the_sampling_hides_the_dynamics(name):
    values, message = HIDDEN[name]
    with pytest.warns(UserWarning, match=message) as told:
        mo.calibrate(embedding(values))
    assert told[0].filename == __file__


def test_calibrate__is_silent_where_the_dynamics_are_seen():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mo.calibrate(embedding(VALUES))


REFUSALS = {
    "no reference": (lambda: mo.calibrate(embedding(VALUES).drop_vars("reference")), "must hold its reference"),
    "no variance": (lambda: mo.calibrate(embedding(VALUES).drop_vars("feature_variance")), "its feature_variance"),
    "too few rates": (lambda: mo.calibrate(embedding(VALUES), np.ones(3)), "rates must be 2 numbers"),
    "negative rates": (lambda: mo.calibrate(embedding(VALUES), -np.ones(2)), "rates must be 2 numbers"),
    "no decay": (lambda: mo.calibrate(embedding(VALUES).assign(rate=("mode", [0.0, 0.0]))), "must be above 0"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_calibrate__refuses_in_one_sentence(name):
    call, message = REFUSALS[name]
    with pytest.raises(ValueError, match=message):
        call()
