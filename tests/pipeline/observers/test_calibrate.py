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


# ------------------------------------------------------------------------------------- errors and how well it fits


def in_segments(seed, length, count, decay, noise=0.5):
    rng = np.random.default_rng(seed)
    truth = np.concatenate([states(rng, length, decay) for _ in range(count)])
    return truth, truth @ LIFT.T + noise * rng.normal(size=(len(truth), 3)), np.repeat(np.arange(count), length)


def quietly(call, *arguments, **options):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        return call(*arguments, **options), [str(warning.message) for warning in told]


@pytest.mark.slow
def test_calibrate__twice_the_error_covers_the_rates_or_the_error_is_infinite_and_said_to_be():
    covered = {}
    for length, count in ((15, 200), (30, 100), (3000, 1)):
        for rate in (0.005, 0.05, 0.2, 1.0):
            decay = rate * SHAPE / SHAPE[0]
            for seed in range(4):
                _, values, segment = in_segments(seed, length, count, decay)
                found, told = quietly(mo.calibrate, embedding(values, segment))
                error = found["calibrated_rate_error"].values
                inside = np.abs(found["calibrated_rate"].values - decay) < 2 * error
                covered.setdefault(np.isfinite(error).all(), []).append(inside)
                if not np.isfinite(error).all():
                    assert "modes 1 and 2" in told[0]
                    assert "errors are infinite" in told[0]
    assert np.mean(covered[True]) >= 0.9
    assert 3 < len(covered[False]) < 12


@pytest.mark.parametrize(
    ("length", "rate", "message"),
    [(15, 0.002, "are the least that lags of 7 frames can show.*longest has 15"), (4, 0.2, "segments of 4 frames")],
)
def test_calibrate__a_fit_at_its_bound_is_said_to_be_one(length, rate, message):
    _, values, segment = in_segments(1, length, 400, rate * SHAPE / SHAPE[0])
    with pytest.warns(UserWarning, match=message):
        found = mo.calibrate(embedding(values, segment))
    assert np.isinf(found["calibrated_rate_error"]).all()
    assert found.attrs["calibration_sampling"] in ("slow", "segments")


@pytest.mark.parametrize("decay", [[0.04, 0.3], [0.3, 0.04]])
def test_calibrate__a_wrong_shape_of_the_spectrum_is_told_and_its_error_covers(decay):
    found, told = quietly(mo.calibrate, embedding(measured(n=8000, decay=np.array(decay))))
    assert "do not decay in the ratios of the spectrum" in told[0]
    assert found.attrs["calibration_sampling"] == "shape"
    assert found.attrs["goodness_of_fit"] < 0.95 < mo.calibrate(embedding(VALUES)).attrs["goodness_of_fit"]
    off = np.abs(found["calibrated_rate"].values - decay)
    assert (off < 2 * found["calibrated_rate_error"].values).all()
    np.testing.assert_allclose(found["own_rate"], decay, rtol=0.35)
    again, told = quietly(mo.calibrate, embedding(measured(n=8000, decay=np.array(decay))), found["own_rate"].values)
    assert not told
    assert np.isfinite(again["signal_variance_error"]).all()


def test_calibrate__modes_that_rotate_are_not_taken_for_decay():
    rng, turn, x = np.random.default_rng(0), 0.3, np.zeros((4000, 2))
    matrix = 0.98 * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    for i in range(1, 4000):
        x[i] = matrix @ x[i - 1] + 0.2 * rng.normal(size=2)
    found, told = quietly(mo.calibrate, embedding(x @ LIFT.T + 0.3 * rng.normal(size=(4000, 3))))
    assert "they oscillate" in told[0]
    assert np.isinf(found["calibrated_rate_error"]).all()
    assert found.attrs["goodness_of_fit"] < 0.5


def test_calibrate__rates_that_contradict_the_frames_are_told():
    with pytest.warns(UserWarning, match=r"the given rates 0.01, 0.01 of modes 1 and 2 contradict the frames"):
        mo.calibrate(embedding(VALUES), np.array([0.01, 0.01]))
    _, told = quietly(mo.calibrate, embedding(VALUES), np.array([2.0, 2.0]))
    assert "the given rates 2, 2 of modes 1 and 2 contradict the frames" in told[0]
    assert "the first lags of modes 1 and 2 do not decay at the rate taken" in told[1]


# ------------------------------------------------------------------------------------------------------------ bands

SETTINGS = [(20, 200, 0.1, 0.5), (8, 400, 0.3, 1.0), (60, 60, 0.05, 0.5), (2000, 3, 0.1, 0.5)]


@pytest.mark.parametrize(("length", "count", "rate", "noise"), SETTINGS)
def test_bands__hold_from_the_first_frame_of_a_segment_on(length, count, rate, noise):
    """Of what the features would say without noise."""
    held = {"first": [], "all": []}
    for seed in range(4):
        truth, values, segment = in_segments(seed, length, count, rate * SHAPE / SHAPE[0], noise)
        learnt = mo.calibrate(embedding(values, segment))
        frames = xr.DataArray(values, dims=("frame", "feature"), coords={"segment": ("frame", segment)})
        truth = truth - np.linalg.pinv(LIFT) @ values.mean(axis=0)
        first = np.tile(np.arange(length), count) < 3
        for result in (mo.observe(learnt, frames, gain="kalman"), mo.smooth(learnt, frames)):
            inside = np.abs(result["state"].values - truth) < 1.96 * result["state_std"].values
            held["all"].append(inside.mean(axis=0))
            held["first"].append(inside[first].mean(axis=0))
    assert 0.93 < np.mean(held["all"]) < 0.97
    # 36 first frames of long recordings say little.
    assert 0.93 < np.mean(held["first"]) < 0.97 or count < 10


def test_observe__from_the_prior_is_as_near_as_can_be_in_a_segment_s_first_frames():
    truth, values, segment = in_segments(0, 10, 400, 0.1 * SHAPE / SHAPE[0], 1.0)
    learnt = mo.calibrate(embedding(values, segment))
    frames = xr.DataArray(values, dims=("frame", "feature"), coords={"segment": ("frame", segment)})
    first = np.arange(4000) % 10 == 0
    errors = [
        np.square(mo.observe(learnt, frames, gain="kalman", initial=initial)["state"].values - truth)[first].mean()
        for initial in ("prior", "steady")
    ]
    signal, noise = np.diag(SIGNAL), np.linalg.inv(LIFT.T @ LIFT)
    best = np.trace(signal - signal @ np.linalg.solve(signal + noise, signal)) / 2
    assert errors[0] < 1.1 * best < 1.3 * best < errors[1]


@pytest.mark.parametrize("weak", [0.01, 0.0])
def test_bands__of_a_mode_without_signal_are_not_nearly_zero(weak):
    rng = np.random.default_rng(3)
    truth = states(rng) * np.sqrt([1.0, weak / SIGNAL[1]])
    values = truth @ LIFT.T + rng.normal(size=(N, 3))
    truth = truth - np.linalg.pinv(LIFT) @ values.mean(axis=0)
    frames = xr.DataArray(values, dims=("frame", "feature"))
    result = mo.observe(mo.calibrate(embedding(values)), frames, gain="kalman")
    inside = np.abs(result["state"].values - truth) < 1.96 * result["state_std"].values
    assert (inside.mean(axis=0) > 0.93).all()


def test_bands__of_modes_with_more_signal_than_variance_are_infinite():
    """Rates far too fast: what the first lags say, brought back to lag 0, is more than all there is."""
    frames = xr.DataArray(VALUES, dims=("frame", "feature"))
    result, _ = quietly(mo.observe, embedding(VALUES), frames, gain="kalman", rates=np.array([2.0, UNIT * SHAPE[1]]))
    assert np.isinf(result["state_std"][:, 0]).all()
    assert np.isfinite(result["state_std"][:, 1]).all()
    assert np.isfinite(result["state"]).all()


# -------------------------------------------------------------------------------------------------- what cannot work

FRAMES = xr.DataArray(VALUES, dims=("frame", "feature"))
WIDE = embedding(VALUES).assign(lift=(("feature", "mode"), LIFT @ np.array([[1.0, 1.0], [1.0, 1.0]])))
IMPOSSIBLE = {
    "a mode that never forgets": (
        lambda: mo.observe(embedding(VALUES), FRAMES, gain="kalman", rates=np.array([0.1, 0.0])),
        r"rates must be above 0 for gain='kalman'; got 0 a frame for mode 2.*Give numbers of 1e-6 or more",
    ),
    "infinite rates": (
        lambda: mo.observe(embedding(VALUES), FRAMES, gain="kalman", rates=np.array([0.1, np.inf])),
        "rates must be 2 numbers of at least 0, finite",
    ),
    "a rank too low": (
        lambda: mo.observe(WIDE, FRAMES, gain="kalman"),
        "as many independent columns as modes; got rank 1 for 2 modes of 3 features.*Embed with n_modes=1",
    ),
    "a rank too low, dmk": (lambda: mo.smooth(WIDE.assign(epsilon=1.0), FRAMES, gain="dmk"), "got rank 1 for 2 modes"),
    "calibrating a rank too low": (lambda: mo.calibrate(WIDE), "got rank 1 for 2 modes"),
    "a prior for a constant gain": (
        lambda: mo.observe(embedding(VALUES), FRAMES, gain="unit", initial="prior"),
        "initial='prior' needs gain='kalman' or 'dmk'",
    ),
}


@pytest.mark.filterwarnings("ignore:calibrate")
@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_observe__refuses_what_has_no_filter_in_one_sentence(name):
    call, message = IMPOSSIBLE[name]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.filterwarnings("ignore:calibrate")
@pytest.mark.parametrize("rates", [[1e-6, 0.1], [1e-6, 1e-6], [700.0, 0.1], [1e5, 1e5]])
def test_observe__extreme_rates_give_finite_states(rates):
    for result in (
        mo.observe(embedding(VALUES), FRAMES, gain="kalman", rates=np.array(rates)),
        mo.smooth(embedding(VALUES), FRAMES, rates=np.array(rates)),
    ):
        assert np.isfinite(result["state"]).all()


@pytest.mark.parametrize("decay", [UNIT * SHAPE, np.array([0.04, 0.3])])
def test_calibrate__errors_are_those_of_rates_and_do_not_depend_on_the_unit_of_the_spectrum(decay):
    values = measured(n=8000, decay=decay)
    plain = embedding(values)
    found, _ = quietly(mo.calibrate, plain)
    rescaled, _ = quietly(mo.calibrate, plain.assign(rate=10 * plain["rate"]))
    for name in ("calibrated_rate", "calibrated_rate_error", "own_rate", "own_rate_error"):
        np.testing.assert_allclose(rescaled[name], found[name], rtol=1e-6, err_msg=name)
    share = found["calibrated_rate_error"] / found["calibrated_rate"]
    assert (share >= (1 - 1e-9) * found.attrs["time_unit_error"] / found.attrs["time_unit"]).all()
