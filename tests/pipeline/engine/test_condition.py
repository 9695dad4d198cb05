"""A few wild numbers of a sensor do not own the coordinates; what is rare but not wild stays as it is."""

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.conditioning import conditioning_of
from strategies import smooth_motion

pytestmark = pytest.mark.usefixtures("in_this_thread")
N = 600
RNG = np.random.default_rng(3)
HIDDEN = smooth_motion(RNG, N, 1)[:, 0]
CLEAN = np.tanh(np.outer(HIDDEN / HIDDEN.std(), [1.0, -0.5, 0.8, 0.3])) + 0.2 * RNG.normal(size=(N, 4))


def framed(values, **chunks):
    frames = xr.DataArray(values, dims=("frame", "feature"), coords={"time": ("frame", np.arange(N) * 0.1)})
    return frames.chunk(**chunks) if chunks else frames


def struck(values, size=20.0):
    rng, wild = np.random.default_rng(4), values.copy()
    for k in range(3):  # the last sensor is sound
        wild[rng.choice(N, 4, replace=False), k] += size * rng.choice([-1, 1], 4)
    return wild


def followed(frames):
    state = mo.observe(mo.embed(frames), frames)["state"].values
    known = np.column_stack([np.ones(N), state])
    return np.corrcoef(known @ np.linalg.lstsq(known, HIDDEN, rcond=None)[0], HIDDEN)[0, 1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fall into")
def test_outliers__do_not_own_the_coordinates():
    wild, plain = framed(struck(CLEAN)), mo.Geometry(condition="none")
    assert followed(wild) > followed(framed(CLEAN)) - 0.02
    assert abs(np.corrcoef(mo.embed(wild, geometry=plain)["principal"][:, 0], HIDDEN)[0, 1]) < 0.5
    assert (
        mo.embed(wild)
        .attrs["condition_why"]
        .endswith("outliers of 3 sensors are limited to twice the range of all but 1% of the frames")
    )


@pytest.mark.slow
def test_outliers__limits_are_kept_and_hold_for_new_frames(tmp_path):
    wild = framed(struck(CLEAN))
    mo.embed(wild[:400]).to_zarr(tmp_path / "e.zarr", consolidated=False)
    embedding = xr.open_zarr(tmp_path / "e.zarr", consolidated=False).load()
    limits = conditioning_of(embedding).limits
    assert np.isfinite(limits).all(axis=0).tolist() == [True, True, True, False]
    # However far an outlier of a new frame lies, it counts as the limit.
    states = [mo.observe(embedding, framed(struck(CLEAN, size))[400:])["state"].values for size in (20.0, 900.0)]
    np.testing.assert_array_equal(*states)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("method", ["nystrom", "one-sided"])
def test_outliers__infinity_is_none_and_is_refused_in_new_frames(method):
    embedding, values = mo.embed(framed(struck(CLEAN))), CLEAN.copy()
    assert np.isfinite(conditioning_of(embedding).limits[:, 0]).all()
    values[50, 0] = np.inf
    with pytest.raises(ValueError, match=r"new_frames must be finite; got NaN or infinity in frame"):
        mo.extend(embedding, framed(values), method=method)


def test_outliers__same_bits_for_any_chunks():
    wild = struck(CLEAN)
    whole, chunked = (mo.embed(frames) for frames in (framed(wild), framed(wild, frame=77)))
    xr.testing.assert_equal(whole["feature_limit"], chunked["feature_limit"].compute())


@pytest.mark.filterwarnings("ignore:.*look frozen")
@pytest.mark.parametrize("share", [0.004, 0.05])
def test_outliers__events_of_a_silent_sensor_and_common_bursts_stay(share):
    values, rng = CLEAN.copy(), np.random.default_rng(5)
    values[:, 3] = 0.0
    values[rng.choice(N, int(share * N), replace=False), 3] = 40.0
    values[:, 2] = np.where(rng.random(N) < 0.05, 40.0, values[:, 2])
    assert "feature_limit" not in mo.embed(framed(values))


def test_outliers__of_sound_sensors_are_none():
    embedding = mo.embed(framed(CLEAN))
    assert embedding.attrs["condition_why"] == "every sensor is divided by its standard deviation"
    assert "feature_limit" not in embedding
