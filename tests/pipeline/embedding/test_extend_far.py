"""New frames that are far, labels of the new frames, and refusals."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from extensions import (
    BOTH,
    FRAMES,
    LONG_FRAMES,
    NEW,
    OPTIONS,
    VALUES,
    WINDOW,
    N,
    assert_same,
    embedded,
    given_covariances,
    labelled,
)
from numpy.testing import assert_allclose, assert_array_equal

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.embedding import extend as extension
from manifold_observer.pipeline.jobs.config import RunConfig
from manifold_observer.pipeline.jobs.run import read_embedding, run
from strategies import embed_options

# That some frames are far is told; only the tests of it look.
pytestmark = [pytest.mark.usefixtures("in_this_thread"), pytest.mark.filterwarnings("ignore:extend. .* far from all")]


def moved(*chosen, by=1e3):
    values = NEW.values.copy()
    values[list(chosen)] += by
    return NEW.copy(data=values)


def test_extend__row_sums_below_those_of_nearly_all_embedded_frames_are_far():
    embedding = embedded()
    extended = mo.extend(embedding, NEW)
    bound = np.quantile(embedding["degree"].values - 1, 0.001)
    assert extended.attrs["far_below"] == pytest.approx(bound)
    assert extended["far"].dtype == bool
    assert_array_equal(extended["far"], extended["kernel_sum"] < bound)


@BOTH
@pytest.mark.parametrize("by", [20.0, 1e3, 1e200])
def test_extend__frames_that_are_moved_away_are_far_and_told(method, by):
    embedding = mo.embed(
        FRAMES, **embed_options(covariance=labelled(given_covariances()[:N]), **OPTIONS), preset="paper"
    )
    rest = labelled(given_covariances()[N:]) if method == "nystrom" else None
    assert not mo.extend(embedding, NEW, method, covariance=rest)["far"][[4, 30]].any()
    with pytest.warns(
        UserWarning, match=r"extend: \d+ of 45 new frames are far .*first is frame [0-4]\).*Embed such"
    ) as told:
        extended = mo.extend(embedding, moved(4, 30, by=by), method, covariance=rest)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert extended["far"][[4, 30]].all()
    assert np.isfinite(extended["coordinate"]).all()
    if by > 20:
        assert_array_equal(extended["coordinate"][[4, 30]], 0)
        assert_array_equal(extended["kernel_sum"][[4, 30]], 0)


@BOTH
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_extend__local_scales_stay_finite_for_frames_that_are_far_or_equal(method, precision):
    options = {"n_modes": 2, "window": WINDOW, "epsilon": "local", "neighbours": 20, "precision": precision}
    covariances = given_covariances()
    embedding = mo.embed(FRAMES, **embed_options(covariance=labelled(covariances[:N]), **options), preset="paper")
    new = moved(4, by=1e30)
    new[7] = FRAMES[7].values
    rest = labelled(covariances[N:]) if method == "nystrom" else None
    extended = mo.extend(embedding, new, method, covariance=rest)
    assert np.isfinite(extended["coordinate"]).all()
    assert np.isfinite(extended["kernel_sum"]).all()
    assert not extended["far"][7]


@BOTH
def test_extend__labels_are_those_of_the_new_frames(method):
    extended = mo.extend(embedded(), NEW, method)
    assert_array_equal(extended["time"], NEW["time"])
    assert_array_equal(extended["segment"], NEW["segment"])
    assert_array_equal(extended["mode"], [1, 2, 3])
    assert (extended.attrs["method"], extended.attrs["n_references"]) == (method, N)
    assert extended["coordinate"].attrs["units"] == "1"
    assert "row sum" in extended["kernel_sum"].attrs["long_name"]
    assert set(extended.coords) == {"time", "segment", "mode"}


@BOTH
def test_extend__embedding_and_result_go_through_zarr(method, tmp_path):
    embedding = mo.embed(
        LONG_FRAMES[:600], n_modes=2, engine=mo.Engine(method="landmarks", landmarks=50), preset="paper"
    )
    extended = mo.extend(embedding, LONG_FRAMES[600:], method)
    embedding.to_zarr(tmp_path / "embedding.zarr", consolidated=False)
    stored = xr.open_zarr(tmp_path / "embedding.zarr", consolidated=False)
    assert_same(mo.extend(stored, LONG_FRAMES[600:], method), extended)
    extended.to_zarr(tmp_path / "extended.zarr", consolidated=False)
    xr.testing.assert_identical(xr.open_zarr(tmp_path / "extended.zarr", consolidated=False).compute(), extended)


def test_extend__takes_a_stored_result(tmp_path):
    np.save(tmp_path / "walk.npy", VALUES[:N])
    config = RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(**OPTIONS))
    out = tmp_path / "walk.zarr"
    run([tmp_path / "walk.npy"], out, config)
    stored = read_embedding(out)
    frames = stored["reference"]
    assert_allclose(mo.extend(stored, frames)["coordinate"], stored["coordinate"], rtol=0, atol=1e-6)


def test_extend__says_how_far_it_is():
    seen = []
    mo.extend(embedded(), NEW, progress=lambda *state: seen.append(state))
    assert {stage for stage, _, _ in seen} == {"frames", "covariances", "references", "extend"}
    assert seen[-1] == ("extend", 1, 1)


@pytest.mark.usefixtures("no_compute")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: mo.extend(e, NEW, "linear"), r"method must be one of 'nystrom', 'one-sided'; got 'linear'\."),
        (
            lambda e: mo.extend(e, NEW[:, :2]),
            "new_frames must have the channels of the embedding; got 'sensor 2' missing",
        ),
        (lambda e: mo.extend(e, NEW.rename(feature="x")), r"must have dims \(frame, feature\); got .*'x'"),
        (lambda e: mo.extend(e, NEW[:0]), "must hold at least 1 frame; got 0"),
        (
            lambda e: mo.extend(e.drop_vars("reference"), NEW),
            r"embedding must hold the embedded frames as 'reference'; got one without\. .*mo\.read_embedding\(OUT\)",
        ),
        (
            lambda e: mo.extend(e.drop_attrs(), NEW),
            "must have the attributes that mo.embed gave it; got none named window",
        ),
        (
            lambda e: mo.extend(e.assign_attrs(covariance_from="given"), NEW),
            "must hold the covariances that it was made with as 'reference_covariance'.*embedding.assign",
        ),
        (
            lambda e: mo.extend(e, NEW, covariance=labelled(given_covariances()[N:])),
            "covariance must be left out, as the embedding took windows of 15 frames; got one. Leave it out",
        ),
        (
            lambda e: mo.extend(e, NEW, "one-sided", covariance=labelled(given_covariances()[N:])),
            "covariance must be left out with method='one-sided'",
        ),
        (
            lambda e: mo.extend(e.assign(reference_covariance=labelled(given_covariances()[:N])), NEW),
            "covariance must be given, as the embedding was made with given ones; got None.*method='one-sided'",
        ),
        (
            lambda e: mo.extend(
                e.assign(reference_covariance=labelled(given_covariances()[:N])),
                NEW,
                covariance=labelled(given_covariances()),
            ),
            r"shape \(45, 3, 3\); got .* \(135, 3, 3\)",
        ),
        (
            lambda e: mo.extend(e, NEW[10:]),
            r"at least window=15 frames, as in the embedding; got 10 in segment 2 \(frames 0 \.\. 9\).*'one-sided'",
        ),
    ],
)
def test_extend__refuses_before_anything_is_computed(call, message):
    with pytest.raises(ValueError, match=f"^extend: .*{message}"):
        call(embedded())


def test_extend__refuses_what_are_no_numbers():
    with pytest.raises(TypeError, match=r"^extend: new_frames must hold real numbers; got dtype complex128\."):
        mo.extend(embedded(), NEW.astype(complex))


@BOTH
@pytest.mark.parametrize("frame", [0, 12, 44])
def test_extend__names_the_frame_that_is_not_finite(method, frame, monkeypatch):
    monkeypatch.setattr(extension, "_SPAN", 20)
    values = NEW.values.copy()
    values[frame] = np.nan
    with pytest.raises(ValueError, match=rf"^extend: new_frames must be finite; got .* frame {frame}\. Leave"):
        mo.extend(embedded(), NEW.copy(data=da.from_array(values, chunks=(11, 3))), method)


def test_extend__names_silent_frames_which_one_sided_takes():
    values = NEW.values.copy()
    values[:20] = values[0]
    silent = NEW.copy(data=values)
    with pytest.raises(
        ValueError, match=r"^extend: local covariances of new_frames .* at 20 frames from frame 0 on: the 15"
    ):
        mo.extend(embedded(), silent)
    assert np.isfinite(mo.extend(embedded(), silent, "one-sided")["coordinate"]).all()
    ridge = embedded(regularization=0.01)
    assert np.isfinite(mo.extend(ridge, silent)["coordinate"]).all()


def test_extend__names_given_covariances_that_are_zero():
    covariances = given_covariances().copy()
    embedding = mo.embed(FRAMES, **embed_options(covariance=labelled(covariances[:N]), **OPTIONS), preset="paper")
    covariances[N + 3] = 0
    with pytest.raises(ValueError, match=r"got zero \(or NaN\) at frame 3: as given"):
        mo.extend(embedding, NEW, covariance=labelled(covariances[N:]))
