"""The sphere: same seed same values, and a truth with the statistics it states."""

import math
import tracemalloc

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.datasets.simulators.simulated import open_simulation, rebatched
from manifold_observer.datasets.simulators.sphere import BLOCK_SAMPLES, write_sphere
from strategies import examples


@pytest.fixture(scope="module")
def sphere(tmp_path_factory):
    path = tmp_path_factory.mktemp("sphere") / "sphere.zarr"
    return write_sphere(path, n_samples=400_000, seed=3, drift_rate=0.2).load()


def expected_rates(angle, distance, noise):
    elevation, azimuth = angle.values.T
    x = np.sin(elevation) * np.cos(azimuth), np.sin(elevation) * np.sin(azimuth), np.cos(elevation)
    squares = [sum((p - distance * (axis == sensor)) ** 2 for axis, p in enumerate(x)) for sensor in range(3)]
    return np.exp(-np.sqrt(squares)).T + noise


@pytest.mark.parametrize("chunk_samples", [10_007, BLOCK_SAMPLES + 1, 1_000_000])
def test_sphere__same_seed_same_bytes_for_any_chunk(tmp_path, chunk_samples):
    n_samples = BLOCK_SAMPLES + 20_000
    one = write_sphere(tmp_path / "one.zarr", n_samples=n_samples, seed=5)
    other = write_sphere(tmp_path / "other.zarr", n_samples=n_samples, seed=5, chunk_samples=chunk_samples)
    assert other.recording.encoding["chunks"][0] == min(chunk_samples, n_samples)
    xr.testing.assert_identical(one.load(), other.load())


def test_sphere__same_call_same_files(tmp_path):
    for name in "ab":
        write_sphere(tmp_path / name, n_samples=500, seed=2, chunk_samples=100)
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*") if p.is_file())
    assert len(files) > 10
    assert all((tmp_path / "a" / f).read_bytes() == (tmp_path / "b" / f).read_bytes() for f in files)


def test_sphere__longer_recording_begins_with_the_same_samples(tmp_path):
    short = write_sphere(tmp_path / "short", n_samples=700).load()
    long = write_sphere(tmp_path / "long", n_samples=BLOCK_SAMPLES + 5).load().isel(time=slice(700))
    np.testing.assert_array_equal(short.recording, long.recording)
    np.testing.assert_array_equal(short.angle, long.angle)


def test_sphere__seeds_differ_and_noise_leaves_the_path(tmp_path):
    one, two, quiet = (
        write_sphere(tmp_path / f"{seed}-{noise}", n_samples=1_000, seed=seed, noise=noise).load()
        for seed, noise in [(0, 0.1), (1, 0.1), (0, 0.0)]
    )
    assert not np.array_equal(one.recording, two.recording)
    assert not np.array_equal(one.angle, two.angle)
    np.testing.assert_array_equal(one.angle, quiet.angle)
    assert (one.recording >= quiet.recording).all()


@examples(50)
@given(st.lists(st.integers(0, 12), max_size=8), st.integers(1, 15))
def testrebatched__keeps_rows_in_order_and_sizes_equal(lengths, size):
    rows = np.arange(sum(lengths))
    blocks = [(part, -part) for part in np.split(rows, np.cumsum(lengths)[:-1])] if lengths else []
    batches = list(rebatched(blocks, size))
    assert all(len(batch[0]) == size for batch in batches[:-1])
    assert all(0 < len(batch[0]) <= size for batch in batches)
    np.testing.assert_array_equal(np.concatenate([batch[0] for batch in batches] or [rows]), rows)
    assert all((first == -second).all() for first, second in batches)


def test_sphere__angles_have_the_stationary_variance(sphere):
    np.testing.assert_array_equal(sphere.angle[0], [math.pi / 2, 0.2])
    deviation = sphere.angle.values - [math.pi / 2, 0.2]
    variance = 0.005 / (2 * 0.2 - 0.2**2 * 0.1)  # the last term: the Euler step, 1% here
    # 400,000 samples at c dt = 0.02 are some 4,000 independent ones: 3 standard errors are 7%.
    np.testing.assert_allclose(deviation.var(axis=0), variance, rtol=0.07)
    assert abs(np.corrcoef(deviation.T)[0, 1]) < 0.07


def test_sphere__autocorrelation_decays_at_the_drift_rate(sphere):
    deviation = sphere.angle.values - sphere.angle.values.mean(axis=0)
    for lag in (25, 50):
        products = (deviation[lag:] * deviation[:-lag]).mean(axis=0)
        np.testing.assert_allclose(products / deviation.var(axis=0), (1 - 0.2 * 0.1) ** lag, atol=0.05)


def test_sphere__steps_are_white_across_blocks(sphere):
    deviation = sphere.angle.values - [math.pi / 2, 0.2]
    steps = (deviation[1:] - (1 - 0.2 * 0.1) * deviation[:-1]) / math.sqrt(0.005 * 0.1)
    np.testing.assert_allclose(steps.std(axis=0), 1, rtol=0.01)
    assert np.abs(steps[BLOCK_SAMPLES - 5 : BLOCK_SAMPLES + 5]).max() < 5
    assert len(np.unique(steps.round(9), axis=0)) == len(steps)


def test_sphere__counts_have_the_poisson_mean_and_variance(sphere):
    rates = expected_rates(sphere.angle, 1.2, 0.1)
    residual = sphere.recording.values - rates
    np.testing.assert_allclose(residual.mean(axis=0), 0, atol=0.005)
    np.testing.assert_allclose((residual**2).mean(axis=0), rates.mean(axis=0), rtol=0.02)
    far = np.quantile(rates, [0.1, 0.9], axis=0)
    for sensor in range(3):
        high = sphere.recording.values[rates[:, sensor] > far[1, sensor], sensor].mean()
        low = sphere.recording.values[rates[:, sensor] < far[0, sensor], sensor].mean()
        assert high - low > 0.8 * (far[1, sensor] - far[0, sensor])


def test_sphere__labels_and_settings_are_complete(tmp_path):
    sphere = write_sphere(tmp_path / "s", n_samples=40, seed=np.int64(7), dt=0.2, mean=(1, 0), noise=0)
    assert sphere.recording.dtype == np.uint8
    assert list(sphere.channel.values) == ["x", "y", "z"]
    assert sphere.angle.sel(component="azimuth").dims == ("time",)
    for variable in (sphere.recording, sphere.angle, sphere.time):
        assert {"units", "long_name"} <= variable.attrs.keys()
    assert sphere.recording.attrs["sampling_rate"] == 5.0
    assert sphere.attrs == {
        "n_samples": 40,
        "seed": 7,
        "drift_rate": 0.008,
        "noise": 0,
        "variance": 0.005,
        "dt": 0.2,
        "mean": [1, 0],
        "sensor_distance": 1.2,
        "simulator": "manifold_observer.datasets.simulators.sphere",
        "simulator_version": "1",
        "sampling_rate": 5.0,
    }


def test_sphere__opens_lazily_without_stored_times(tmp_path):
    write_sphere(tmp_path / "s", n_samples=40)
    sphere = open_simulation(tmp_path / "s")
    assert not (tmp_path / "s" / "time").exists()
    assert not sphere.recording.variable._in_memory
    np.testing.assert_allclose(sphere.time, np.arange(40) / 10)
    assert float(sphere.sel(time=1.23, method="nearest").time) == pytest.approx(1.2)
    plain = xr.open_zarr(tmp_path / "s", consolidated=False, chunks=None)
    np.testing.assert_array_equal(plain.recording, sphere.recording)


def test_sphere__large_counts_get_a_larger_dtype(tmp_path):
    sphere = write_sphere(tmp_path / "s", n_samples=1_000, noise=300.0).load()
    assert sphere.recording.dtype == np.uint16
    assert sphere.recording.max() > 300


def test_sphere__memory_does_not_grow_with_the_recording(tmp_path):
    tracemalloc.start()
    try:
        write_sphere(tmp_path / "s", n_samples=10 * BLOCK_SAMPLES, chunk_samples=50_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 250 * BLOCK_SAMPLES, f"{peak / BLOCK_SAMPLES:.0f} bytes a sample of a block"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_samples": 0}, "sphere: n_samples must be a whole number, at least 1; got 0"),
        ({"n_samples": 10.5}, "sphere: n_samples must be a whole number, at least 1; got 10.5"),
        ({"seed": -1}, "sphere: seed must be a whole number, at least 0; got -1"),
        ({"chunk_samples": 0}, "sphere: chunk_samples must be a whole number, at least 1; got 0"),
        ({"drift_rate": 0.0}, "sphere: drift_rate must be finite and positive; got 0.0"),
        ({"variance": math.inf}, "sphere: variance must be finite and positive; got inf"),
        ({"sensor_distance": -1.2}, "sphere: sensor_distance must be finite and positive; got -1.2"),
        ({"noise": -0.1}, "sphere: noise must be finite and not negative; got -0.1"),
        ({"noise": math.nan}, "sphere: noise must be finite and not negative; got nan"),
        ({"mean": (1.0, math.nan)}, "sphere: mean must be two finite angles in rad; got"),
        ({"mean": (1.0, 2.0, 3.0)}, "sphere: mean must be two finite angles in rad; got"),
        ({"drift_rate": 3.0, "dt": 1.0}, "sphere: drift_rate \\* dt must be below 1, .*; got 3. Try dt="),
    ],
)
def test_sphere__refuses_bad_settings_before_writing(tmp_path, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        write_sphere(tmp_path / "s", **({"n_samples": 10} | options))
    assert not (tmp_path / "s").exists()


def test_open_simulation__refuses_an_unfinished_store(tmp_path):
    xr.Dataset({"recording": (("time", "channel"), np.zeros((4, 3)))}).to_zarr(tmp_path / "s", consolidated=False)
    with pytest.raises(ValueError, match="the store must be complete; got no sampling_rate"):
        open_simulation(tmp_path / "s")


def test_sphere__does_not_overwrite(tmp_path):
    write_sphere(tmp_path / "s", n_samples=10)
    with pytest.raises(Exception, match="exists"):
        write_sphere(tmp_path / "s", n_samples=10)
