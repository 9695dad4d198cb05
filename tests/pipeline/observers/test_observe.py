"""The observer equals the plain loop, whatever the chunks, and goes on exactly where it stopped."""

import itertools

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import manifold_observer.pipeline as mo
from manifold_observer.tasks.observers import kalman
from reference import dense
from strategies import chunkings, examples, share
from toy import CALM, EMBEDDING, FILTERS, FRAMES, GAPPED, NAMES, RATES, SEGMENT, VALUES, M, N, P, as_frames, lazily

pytestmark = pytest.mark.usefixtures("in_this_thread")


def reference(segment=None, gamma=0.85, rates=RATES, **options):
    segment = np.zeros(N, np.int64) if segment is None else segment
    psi = EMBEDDING["coordinate"].values
    mean, lift = EMBEDDING["feature_mean"].values, EMBEDDING["lift"].values
    return dense.observer(VALUES, segment, mean, lift, rates, gamma, psi=psi, **options)


@pytest.mark.parametrize("gamma", [0.0, 0.1, 0.85, 0.99])
@pytest.mark.parametrize("segment", [None, SEGMENT], ids=["one segment", "three segments"])
@pytest.mark.parametrize("initial", ["steady", "paper"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {}),
        ({"step": "euler"}, {"step": "euler", "substeps": None}),
        ({"step": "euler", "substeps": 4}, {"step": "euler", "substeps": 4}),
    ],
    ids=["exact", "euler", "euler 4"],
)
def test_observe__equals_the_reference(gamma, segment, initial, options, expected):
    if "substeps" in expected and expected["substeps"] is None:
        expected = expected | {"substeps": max(1, int(np.ceil((1 - gamma) * RATES.max())))}
    states, last = reference(segment, gamma, initial=initial, **expected)
    result = mo.observe(EMBEDDING, as_frames(segment=segment), gamma, initial=initial, **options)
    np.testing.assert_allclose(result["state"], states, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(result["carry"], last, rtol=1e-10, atol=1e-10)


def test_observe__one_euler_step_is_the_map_as_printed():
    gamma, slow = 0.85, np.array([0.3, 1.5])
    result = mo.observe(EMBEDDING, FRAMES, gamma, step="euler", substeps=1, rates=slow, initial="paper")
    mean, lift = EMBEDDING["feature_mean"].values, EMBEDDING["lift"].values
    first = EMBEDDING["coordinate"].values[0]
    for n in (1, 2, 30, N):
        expected = dense.telescoped(VALUES, mean, lift, slow, gamma, first, n)
        np.testing.assert_allclose(result["state"][n - 1], expected, rtol=1e-10, atol=1e-10)


def test_observe__unit_gain_is_the_same_filter_scaled():
    paper, unit = (mo.observe(EMBEDDING, GAPPED, 0.6, gain=gain)["state"] for gain in ("paper", "unit"))
    np.testing.assert_allclose(paper, -0.6 / 0.4 * unit, rtol=1e-12)


def test_observe__a_constant_input_settles_with_the_sign_flipped():
    frames = as_frames(np.tile(VALUES[:1], (400, 1)))
    inputs = np.linalg.pinv(EMBEDDING["lift"].values) @ (VALUES[0] - EMBEDDING["feature_mean"].values)
    zero = xr.DataArray(np.zeros(M), dims="mode")
    for gain, factor in (("paper", -0.85 / 0.15), ("unit", 1.0)):
        state = mo.observe(EMBEDDING, frames, 0.85, gain=gain, carry=zero)["state"]
        np.testing.assert_allclose(state[-1], factor * inputs, rtol=1e-6)
        assert np.abs(state[0] - factor * inputs).max() > 0.1


@pytest.mark.parametrize("options", FILTERS, ids=NAMES)
@examples(10)
@given(chunks=st.tuples(chunkings(N), chunkings(P)))
def test_observe__any_chunking_gives_the_same(options, chunks):
    whole = mo.observe(EMBEDDING, GAPPED, **options)
    cut = mo.observe(EMBEDDING, GAPPED.chunk(frame=chunks[0], feature=chunks[1]), **options).compute()
    np.testing.assert_allclose(cut["state"], whole["state"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(cut["carry"], whole["carry"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", FILTERS, ids=NAMES)
def test_observe__any_chunking_gives_the_same_bits(options):
    rng = np.random.default_rng(0)
    fewest = M if options.get("gain") in ("kalman", "dmk") else 1  # these tell no more modes apart than features
    for p in share((257, fewest, 40, 3, 8, 5), 2):
        frames = as_frames(rng.normal(size=(N, p)))
        embedding = EMBEDDING.drop_dims("feature").assign(
            lift=(("feature", "mode"), rng.normal(size=(p, M))),
            feature_mean=("feature", frames.mean("frame").values),
            feature_variance=("feature", frames.var("frame").values),
            reference=(("frame", "feature"), frames.values),
        )
        whole = mo.observe(embedding, frames, **options)
        for size in share((1, 2, 7, 16, 59, 3), 2):
            cut = mo.observe(embedding, frames.chunk(frame=size), **options).compute()
            np.testing.assert_array_equal(cut["state"], whole["state"], err_msg=f"{p} features, chunks of {size}")
            np.testing.assert_array_equal(cut["carry"], whole["carry"])


@pytest.mark.usefixtures("no_compute")
def test_observe__is_lazy_where_the_frames_are():
    result = mo.observe(EMBEDDING, lazily(GAPPED, 7))
    assert result["state"].chunks == ((7,) * 8 + (4,), (M,))
    assert result["carry"].chunks is not None
    assert result["state"].sizes == {"frame": N, "mode": M}


def test_observe__one_task_a_chunk_in_a_chain():
    graph = mo.observe(EMBEDDING, GAPPED.chunk(frame=6))["state"].__dask_graph__()
    scans = [key for key in graph if "_scan_block" in str(key)]
    assert len(scans) == N // 6


def test_observe__numpy_frames_are_computed():
    result = mo.observe(EMBEDDING, FRAMES)
    assert isinstance(result["state"].data, np.ndarray)
    assert isinstance(result["carry"].data, np.ndarray)


def test_observe__frames_may_be_turned():
    xr.testing.assert_identical(mo.observe(EMBEDDING, FRAMES.T), mo.observe(EMBEDDING, FRAMES))


def test_observe__labels_units_and_settings():
    result = mo.observe(EMBEDDING, GAPPED, 0.7, step="euler")
    np.testing.assert_array_equal(result["time"], GAPPED["time"])
    np.testing.assert_array_equal(result["segment"], SEGMENT)
    assert result["mode"].values.tolist() == [1, 2]
    assert result["state"].dtype == np.float64
    assert result["state"].attrs["units"] == "1"
    assert "seen" in result["state"].attrs["long_name"]
    assert result["carry"].attrs["last_time"] == float(GAPPED["time"][-1])
    assert result["carry"].attrs["frame_period"] == 0.5
    kept = {"gamma": 0.7, "gain": "paper", "step": "euler", "initial": "steady", "substeps": "none"}
    assert result.attrs.items() >= kept.items()
    assert result.attrs["rates"] == RATES.tolist()


@pytest.mark.parametrize("frame", [0, 17, 58])
def test_observe__state_has_seen_the_frames_up_to_its_own(frame):
    states = mo.observe(EMBEDDING, FRAMES)["state"]
    changed = FRAMES.copy(deep=True)
    changed[frame + 1] += 1.0
    later = mo.observe(EMBEDDING, changed)["state"]
    np.testing.assert_array_equal(later[: frame + 1], states[: frame + 1])
    assert (np.abs(later[frame + 1] - states[frame + 1]) > 1e-6).all()
    assert float(later["time"][frame + 1]) == float(FRAMES["time"][frame + 1])


# ----------------------------------------------------------------------------------------------- rates


def test_observe__rates_may_be_numbers_or_those_of_the_generator():
    states, _ = reference(rates=np.array([0.1, 0.2]))
    np.testing.assert_allclose(mo.observe(EMBEDDING, FRAMES, rates=np.array([0.1, 0.2]))["state"], states, rtol=1e-10)
    generator = RATES / (3.0 * 0.05) * 0.5  # per second, times the frame period
    states, _ = reference(rates=generator)
    result = mo.observe(EMBEDDING, FRAMES, rates="generator", burst_duration=0.05)
    np.testing.assert_allclose(result["state"], states, rtol=1e-10)
    np.testing.assert_allclose(result.attrs["rates"], generator)


def test_observe__the_frame_period_is_read_from_the_times():
    bare = FRAMES.drop_attrs()
    expected = mo.observe(EMBEDDING, FRAMES, rates="generator", burst_duration=0.05)
    result = mo.observe(EMBEDDING, bare, rates="generator", burst_duration=0.05)
    np.testing.assert_allclose(result["state"], expected["state"], rtol=1e-12)


@pytest.mark.parametrize("segment", [None, SEGMENT], ids=["one segment", "three segments"])
def test_observe__dmk_is_the_kalman_filter_of_its_settings_in_all_features(segment):
    numbers = segment if segment is not None else np.zeros(N, np.int64)
    lift, mean, variance = (EMBEDDING[name].values for name in ("lift", "feature_mean", "feature_variance"))
    decay = 2 / 3.0 * RATES
    expected, posterior, _ = dense.kalman(VALUES, numbers, mean, lift, np.exp(-decay), np.diag(decay**2), variance)
    result = mo.observe(EMBEDDING, as_frames(segment=segment), gain="dmk")
    np.testing.assert_allclose(result["state"], expected, atol=1e-7)
    np.testing.assert_allclose(result["posterior_covariance"], posterior, atol=1e-9)
    np.testing.assert_allclose(result["state_std"], np.tile(np.sqrt(np.diag(posterior)), (N, 1)), atol=1e-8)
    np.testing.assert_allclose(result.attrs["rates"], decay)
    assert "gamma" not in result.attrs


def test_observe__kalman_takes_noise_from_the_frames_and_rates_that_are_given():
    learnt = mo.calibrate(EMBEDDING, CALM)
    expected = mo.observe(learnt, FRAMES, gain="kalman", rates=CALM)
    xr.testing.assert_identical(mo.observe(EMBEDDING, FRAMES, gain="kalman", rates=CALM), expected)
    other = mo.observe(learnt, FRAMES, gain="kalman", rates=0.5 * CALM)
    assert other.attrs["rates"] == (0.5 * CALM).tolist()
    xr.testing.assert_identical(mo.observe(EMBEDDING, FRAMES, gain="kalman", rates=0.5 * CALM), other)


@pytest.mark.parametrize("options", FILTERS, ids=NAMES)
def test_observe__two_states_approach_each_other_by_the_stated_factor(options):
    one, other = (xr.DataArray(x, dims="mode") for x in ([3.0, -1.0], [-5.0, 2.0]))
    a, b = (mo.observe(EMBEDDING, FRAMES, carry=carry, **options) for carry in (one, other))
    metric = np.linalg.inv(a["posterior_covariance"]) if "posterior_covariance" in a else np.eye(M)
    apart = np.concatenate([(one - other).values[None], (a["state"] - b["state"]).values])
    lengths = np.sqrt(np.einsum("nj,jk,nk->n", apart, metric, apart))
    factor = a.attrs["contraction_factor"]
    assert 0 < factor < 1
    assert (lengths[1:] <= factor * lengths[:-1] * (1 + 1e-9) + 1e-12).all()
    assert lengths[-1] < 0.1 * lengths[0]


# ----------------------------------------------------------------------------------------------- carry


@pytest.mark.parametrize("cut", [1, 2, 24, 25, 26, 30, 59])
def test_observe__goes_on_where_it_stopped(cut):
    whole = mo.observe(EMBEDDING, GAPPED)
    first = mo.observe(EMBEDDING, GAPPED[:cut])
    rest = mo.observe(EMBEDDING, GAPPED[cut:], carry=first["carry"])
    np.testing.assert_allclose(rest["state"], whole["state"][cut:], rtol=0, atol=1e-12)
    np.testing.assert_allclose(rest["carry"], whole["carry"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", FILTERS, ids=NAMES)
@pytest.mark.parametrize("chunks", [None, 9])
def test_observe__goes_on_to_the_bit_through_zarr(tmp_path, chunks, options):
    frames = FRAMES if chunks is None else FRAMES.chunk(frame=chunks)
    whole = mo.observe(EMBEDDING, frames, **options).compute()
    for cut in (1, 9, 18, 31, 59):
        path = tmp_path / f"{cut}.zarr"
        mo.observe(EMBEDDING, frames[:cut], **options).to_zarr(path, zarr_format=3, consolidated=False)
        carry = xr.open_zarr(path, consolidated=False)["carry"]
        rest = mo.observe(EMBEDDING, frames[cut:], carry=carry, **options).compute()
        np.testing.assert_array_equal(rest["state"], whole["state"][cut:], err_msg=f"cut at {cut}")
        np.testing.assert_array_equal(rest["carry"], whole["carry"])


@pytest.mark.slow
@pytest.mark.parametrize("frames", share([GAPPED, FRAMES], 2))
def test_observe__a_gain_that_varies_goes_on_to_the_bit_cut_anywhere(frames):
    options = {"gain": "kalman", "rates": CALM}
    whole = mo.observe(EMBEDDING, frames, **options)
    assert (whole["state_std"][0] > 1.01 * whole["state_std"][20]).all()
    for cuts in ([1, 2, 3], [5, 24, 25, 26, 27], [30], list(range(1, N))):
        carry, parts = None, []
        for first, stop in itertools.pairwise([0, *cuts, N]):
            part = mo.observe(EMBEDDING, frames[first:stop], carry=carry, **options)
            carry = part["carry"]
            parts.append(part)
        for name in ("state", "state_std"):
            np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), whole[name])
        xr.testing.assert_identical(carry, whole["carry"])


def test_observe__a_carry_that_does_not_say_when_its_segment_began_goes_on_with_the_steady_gain():
    options = {"gain": "kalman", "rates": CALM}
    carry = mo.observe(EMBEDDING, FRAMES[:3], **options)["carry"].drop_attrs()
    old = mo.observe(EMBEDDING, FRAMES[3:], carry=carry, initial="steady", **options)
    new = mo.observe(EMBEDDING, FRAMES[3:], carry=carry, **options)
    np.testing.assert_allclose(new["state"], old["state"], atol=1e-9)
    np.testing.assert_allclose(new["state_std"], old["state_std"], rtol=1e-6)


def test_observe__a_gain_that_varies_contracts_by_the_stated_factor_in_the_metric_of_each_frame():
    learnt, poles = mo.calibrate(EMBEDDING, CALM), np.exp(-CALM)
    process = np.diag((1 - poles**2) * learnt["signal_variance"].values)
    reading, _ = kalman.weighted_reading(EMBEDDING["lift"].values, learnt["feature_noise"].values)
    known = kalman.schedule(kalman.Model(poles, process, reading, learnt["measurement_noise"].values))
    factor = mo.observe(EMBEDDING, FRAMES, gain="kalman", rates=CALM).attrs["contraction_factor"]
    assert 0.3 < factor < 1
    one, other = (xr.DataArray(x, dims="mode", attrs={"frames_since_start": 1}) for x in ([3.0, -1.0], [-5.0, 2.0]))
    a, b = (mo.observe(EMBEDDING, FRAMES, gain="kalman", rates=CALM, carry=x)["state"].values for x in (one, other))
    apart = np.concatenate([(one - other).values[None], a - b])
    metric = np.linalg.inv(known.posterior[known.rows(np.arange(N + 1))])
    lengths = np.sqrt(np.einsum("nj,njk,nk->n", apart, metric, apart))
    assert (lengths[1:] <= factor * lengths[:-1] * (1 + 1e-9) + 1e-12).all()
    sizes = np.trace(known.posterior, axis1=1, axis2=2)
    assert (np.diff(sizes) <= 1e-12).all()


@pytest.mark.usefixtures("no_compute")
def test_observe__a_lazy_carry_stays_lazy():
    first = mo.observe(EMBEDDING, lazily(FRAMES[:20], 5))
    assert mo.observe(EMBEDDING, lazily(FRAMES[20:], 5), carry=first["carry"])["state"].chunks is not None


@pytest.mark.parametrize(("wait", "anew"), [(0.5, False), (0.74, False), (0.76, True), (60.0, True)])
def test_observe__a_gap_after_the_carry_starts_anew(wait, anew):
    first = mo.observe(EMBEDDING, FRAMES[:20])
    later = as_frames(VALUES[20:], first=float(FRAMES["time"][19]) + wait)
    rest = mo.observe(EMBEDDING, later, carry=first["carry"])["state"]
    alone, on = mo.observe(EMBEDDING, later)["state"], mo.observe(EMBEDDING, FRAMES)["state"][20:]
    np.testing.assert_allclose(rest, alone if anew else on, rtol=0, atol=1e-12)
    assert np.abs(alone[0] - on[0]).max() > 1e-3


def test_observe__a_clock_that_starts_over_goes_on():
    first = mo.observe(EMBEDDING, FRAMES[:20])
    rest = mo.observe(EMBEDDING, as_frames(VALUES[20:]), carry=first["carry"])["state"]
    np.testing.assert_allclose(rest, mo.observe(EMBEDDING, FRAMES)["state"][20:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("zone", ["", "Z"])
@pytest.mark.parametrize(("start", "anew"), [("12:00:10", False), ("12:01:00", True)])
def test_observe__date_times_tell_a_gap_after_the_carry(start, anew, zone):
    """The first 20 frames end at 9.75 s, so that a recording which starts at 10 s goes on."""
    first, later = FRAMES[:20].copy(), as_frames(VALUES[20:])
    first["time"].attrs["start_time"] = f"2020-03-09T12:00:00{zone}"
    later["time"].attrs["start_time"] = f"2020-03-09T{start}{zone}"
    rest = mo.observe(EMBEDDING, later, carry=mo.observe(EMBEDDING, first)["carry"])["state"]
    alone, on = mo.observe(EMBEDDING, later)["state"], mo.observe(EMBEDDING, FRAMES)["state"][20:]
    np.testing.assert_allclose(rest, alone if anew else on, rtol=0, atol=1e-12)


# ---------------------------------------------------------------------------------------------- refusals

REFUSALS = {
    "gamma 1": (lambda: mo.observe(EMBEDDING, FRAMES, 1.0), r"gamma must lie in \[0, 1\); got 1\.0.*does not contract"),
    "gamma above": (lambda: mo.observe(EMBEDDING, FRAMES, 1.5), "gamma must lie in"),
    "gamma below": (lambda: mo.observe(EMBEDDING, FRAMES, -0.1), "gamma must lie in"),
    "gamma NaN": (lambda: mo.observe(EMBEDDING, FRAMES, np.nan), "gamma must lie in"),
    "gain": (
        lambda: mo.observe(EMBEDDING, FRAMES, gain="big"),
        "gain must be one of 'auto', 'paper', 'unit', 'kalman', 'dmk'",
    ),
    "step": (lambda: mo.observe(EMBEDDING, FRAMES, step="leap"), "step must be one of 'exact', 'euler'"),
    "initial": (lambda: mo.observe(EMBEDDING, FRAMES, initial="zero"), "initial must be one of 'steady', 'paper'"),
    "substeps": (lambda: mo.observe(EMBEDDING, FRAMES, step="euler", substeps=0), "substeps must be at least 1"),
    "substeps of exact": (lambda: mo.observe(EMBEDDING, FRAMES, substeps=2), "only applies to step='euler'"),
    "Euler that does not contract": (
        lambda: mo.observe(EMBEDDING, FRAMES, 0.1, step="euler", substeps=1),
        r"must contract; got the factor -1\.25 a frame for mode 2 .*Give substeps=3",
    ),
    "other features": (
        lambda: mo.observe(EMBEDDING, FRAMES[:, :4]),
        "must have the 5 features of the embedding; got 4",
    ),
    "dims": (lambda: mo.observe(EMBEDDING, FRAMES.rename(frame="when")), r"must have dims \(frame, feature\)"),
    "no frames": (lambda: mo.observe(EMBEDDING, FRAMES[:0]), "at least 1 frame; got 0"),
    "rates": (
        lambda: mo.observe(EMBEDDING, FRAMES, rates="fast"),
        "rates must be one of 'step', 'paper', 'generator', 'calibrated'",
    ),
    "rates in number": (lambda: mo.observe(EMBEDDING, FRAMES, rates=np.ones(3)), "rates must be 2 numbers"),
    "rates below 0": (
        lambda: mo.observe(EMBEDDING, FRAMES, rates=-np.ones(2)),
        "rates must be 2 numbers of at least 0",
    ),
    "no burst": (lambda: mo.observe(EMBEDDING, FRAMES, rates="generator"), "needs burst_duration= in seconds"),
    "carry of other modes": (
        lambda: mo.observe(EMBEDDING, FRAMES, carry=xr.DataArray(np.zeros(3), dims="mode")),
        r"carry must hold 2 modes; got shape \(3,\)",
    ),
    "paper start of other frames": (
        lambda: mo.observe(EMBEDDING, FRAMES[:20], initial="paper"),
        "these are other frames",
    ),
    "NaN": (lambda: mo.observe(EMBEDDING, FRAMES.where(FRAMES["time"] != 8.75)), "frame 17 holds NaN or infinity"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_observe__refuses_in_one_sentence(name):
    call, message = REFUSALS[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_observe__the_fix_for_euler_is_enough():
    with pytest.raises(ValueError, match="Give substeps=3"):
        mo.observe(EMBEDDING, FRAMES, 0.1, step="euler", substeps=1)
    states = mo.observe(EMBEDDING, FRAMES, 0.1, step="euler", substeps=3)["state"]
    expected, _ = reference(gamma=0.1, step="euler", substeps=3)
    np.testing.assert_allclose(states, expected, rtol=1e-10, atol=1e-10)


def test_observe__nan_in_chunks_names_the_frame_of_the_whole():
    frames = FRAMES.where(FRAMES["time"] != 8.75).chunk(frame=10)
    with pytest.raises(ValueError, match="frame 17 holds NaN or infinity"):
        mo.observe(EMBEDDING, frames).compute()
