"""The circle: same seed same frames, a path with its stated statistics, covariances that hold the rates."""

import math
import tracemalloc

import numpy as np
import pytest
import xarray as xr
from scipy.sparse.linalg import eigsh

from manifold_observer.datasets.simulators.circle import BLOCK_FRAMES, write_circle
from manifold_observer.datasets.simulators.simulated import open_simulation

SMALL = {"n_frames": 150, "burst_size": 20, "burst_samples": 12}


@pytest.fixture(scope="module")
def circle(tmp_path_factory):
    path = tmp_path_factory.mktemp("circle") / "circle.zarr"
    return write_circle(path, n_frames=1_600, seed=1, burst_size=40, burst_samples=20).load()


def rates_at(angle, arc=0.5, far=0.5):
    sensors = far * np.exp(1j * np.array([math.pi / 2, -math.pi / 2, math.pi]))
    return np.exp(-np.abs(np.exp(1j * arc * np.asarray(angle))[:, None] - sensors))


def recovered_rates(circle, factor, n_modes):
    """The dense way: rank 1 pseudo-inverses, Gaussian kernel, Markov chain, logarithm."""
    spread, axes = np.linalg.eigh(circle.covariance.values)
    factors = axes[:, :, -1] / np.sqrt(spread[:, -1:])
    z = circle.frames.values
    steps = factors @ z.T - (factors * z).sum(axis=1)[:, None]
    distances = (steps**2 + steps.T**2) / 2
    epsilon = factor * np.median(distances)
    kernel = np.exp(-distances / epsilon)
    degree = np.sqrt(kernel.sum(axis=1))
    mu = eigsh(kernel / degree / degree[:, None], k=n_modes + 1, which="LA", return_eigenvectors=False)
    return -np.log(np.sort(mu)[-2::-1]) / (epsilon * circle.attrs["covariance_duration"])


@pytest.mark.parametrize("chunk_frames", [7, BLOCK_FRAMES + 1, 1_000])
@pytest.mark.parametrize("features", ["rates", "histogram"])
def test_circle__same_seed_same_bytes_for_any_chunk(tmp_path, features, chunk_frames):
    one = write_circle(tmp_path / "one", seed=5, features=features, **SMALL)
    other = write_circle(tmp_path / "other", seed=5, features=features, chunk_frames=chunk_frames, **SMALL)
    assert other.frames.encoding["chunks"][0] == min(chunk_frames, 150)
    xr.testing.assert_identical(one.load(), other.load())


def test_circle__longer_run_begins_with_the_same_frames_and_seeds_differ(tmp_path):
    short = write_circle(tmp_path / "short", **SMALL | {"n_frames": 90}).load()
    long = write_circle(tmp_path / "long", **SMALL).load().isel(frame=slice(90))
    other = write_circle(tmp_path / "other", seed=1, **SMALL | {"n_frames": 90}).load()
    xr.testing.assert_equal(short, long)
    assert not np.array_equal(short.angle, other.angle)
    assert not np.array_equal(short.frames, other.frames)


def test_circle__path_is_stationary_with_unit_variance_and_unit_rate(tmp_path):
    angle = write_circle(tmp_path / "c", n_frames=6_400, dt=0.5, burst_size=2, burst_samples=1).angle.values
    # 6,400 frames half a second apart hold some 1,500 independent ones.
    assert abs(angle.mean()) < 0.1
    assert angle.var() == pytest.approx(1, abs=0.12)
    assert np.corrcoef(angle[1:], angle[:-1])[0, 1] == pytest.approx(math.exp(-0.5), abs=0.04)
    firsts = [
        write_circle(tmp_path / f"{seed}", n_frames=1, seed=seed, burst_size=2, burst_samples=1).angle.item()
        for seed in range(20)
    ]
    assert 0.5 < np.std(firsts) < 1.5


def test_circle__frames_are_the_rates_at_the_angle(circle):
    spread = np.sqrt(np.einsum("fii->fi", circle.covariance.values))
    residual = (circle.frames.values - rates_at(circle.angle)) / spread
    assert np.abs(residual.mean()) < 0.1
    assert residual.std() == pytest.approx(1, abs=0.1)


def test_circle__covariances_are_symmetric_and_positive(circle):
    covariance = circle.covariance.values
    np.testing.assert_array_equal(covariance, covariance.swapaxes(1, 2))
    eigenvalues = np.linalg.eigvalsh(covariance)
    assert (eigenvalues[:, 0] > -1e-12 * eigenvalues[:, -1]).all()
    assert (eigenvalues[:, 1] < 0.2 * eigenvalues[:, 2]).all(), "one hidden angle: rank 1"


def test_circle__covariances_follow_the_slope_and_the_duration(circle, tmp_path):
    angle, step = circle.angle.values, 1e-5
    slope = (rates_at(angle + step) - rates_at(angle - step)) / (2 * step)
    stated = 2 * circle.attrs["covariance_duration"] * (slope**2).sum(axis=1)
    trace = np.einsum("fii->f", circle.covariance.values)
    assert np.mean(trace / stated) == pytest.approx(1, abs=0.05)
    long = write_circle(tmp_path / "long", burst_duration=0.04, **SMALL).load()
    short = write_circle(tmp_path / "short", burst_duration=0.01, **SMALL).load()
    traces = [np.einsum("fii->f", run.covariance.values) for run in (long, short)]
    assert np.median(traces[0] / traces[1]) == pytest.approx(4, rel=0.1)
    assert long.attrs["covariance_duration"] == pytest.approx(0.04 / 3 * 1.13, rel=0.05)


@pytest.mark.parametrize("factor", [0.16, 0.5])
def test_circle__rates_are_recovered_from_bursts(circle, factor):
    rates = recovered_rates(circle, factor, 4)
    np.testing.assert_allclose(rates[:2], [1, 2], rtol=0.2)
    np.testing.assert_allclose(rates[2:], [3, 4], rtol=0.3)


def test_circle__histograms_are_shares_of_the_counts(tmp_path):
    circle = write_circle(tmp_path / "c", features="histogram", noise=0.2, n_frames=400, burst_size=4).load()
    shares = circle.frames.values.reshape(400, 3, -1)
    np.testing.assert_allclose(shares.sum(axis=2), 1)
    means = shares @ np.arange(shares.shape[2])
    np.testing.assert_allclose(means.mean(axis=0), rates_at(circle.angle).mean(axis=0) + 0.2, rtol=0.05)
    assert circle.feature.values[1] == "sensor 0, count 1"


def test_circle__labels_and_settings_are_complete(tmp_path):
    circle = write_circle(tmp_path / "c", seed=np.int64(3), dt=0.5, **SMALL)
    assert circle.frames.dims == ("frame", "feature")
    assert circle.covariance.dims == ("frame", "feature", "feature_1")
    assert {"time", "segment", "feature", "feature_1"} == set(circle.coords)
    np.testing.assert_array_equal(circle.time, np.arange(150) * 0.5)
    assert (circle.segment == 0).all()
    for name in ("frames", "covariance", "angle", "time", "segment"):
        assert {"units", "long_name"} <= circle[name].attrs.keys()
    settings = {"n_frames", "seed", "dt", "arc", "features", "noise", "burst_duration", "burst_size"}
    settings |= {"burst_samples", "sensor_angles", "sensor_distance"}
    origin = {"simulator", "simulator_version", "sampling_rate", "covariance_duration"}
    assert circle.attrs.keys() == settings | origin
    assert circle.attrs["seed"] == 3
    assert circle.attrs["sampling_rate"] == 2
    xr.testing.assert_identical(open_simulation(tmp_path / "c").load(), circle.load())


def test_circle__memory_does_not_grow_with_the_run(tmp_path):
    tracemalloc.start()
    try:
        write_circle(tmp_path / "c", n_frames=10 * BLOCK_FRAMES, burst_size=50, chunk_frames=50)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    samples = BLOCK_FRAMES * 50 * 60
    assert peak < 150 * samples, f"{peak / samples:.0f} bytes a sample of a block"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_frames": 0}, "circle: n_frames must be a whole number, at least 1; got 0"),
        ({"burst_size": 1}, "circle: burst_size must be a whole number, at least 2; got 1"),
        ({"burst_samples": 2.5}, "circle: burst_samples must be a whole number, at least 1; got 2.5"),
        ({"seed": True}, "circle: seed must be a whole number, at least 0; got True"),
        ({"chunk_frames": -3}, "circle: chunk_frames must be a whole number, at least 1; got -3"),
        ({"dt": 0.0}, "circle: dt must be finite and positive; got 0.0"),
        ({"arc": math.nan}, "circle: arc must be finite and positive; got nan"),
        ({"burst_duration": -0.1}, "circle: burst_duration must be finite and positive; got -0.1"),
        ({"noise": -1.0}, "circle: noise must be finite and not negative; got -1.0"),
        ({"noise": 0.1}, "circle: noise must be 0 for features='rates', which count nothing; got 0.1"),
        ({"features": "stft"}, "circle: features must be 'rates' or 'histogram'; got 'stft'"),
        ({"sensor_distance": 1.0}, "circle: sensor_distance must keep 0.05 away from 1, .*; got 1.0"),
        ({"sensor_angles": (0.0, 1.0)}, "circle: sensor_angles must be three finite angles in rad; got"),
    ],
)
def test_circle__refuses_bad_settings_before_writing(tmp_path, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        write_circle(tmp_path / "c", **SMALL | options)
    assert not (tmp_path / "c").exists()
