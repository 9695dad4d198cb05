"""New frames get the reference's coordinates, embedded ones their own, however frames and workers are cut."""

import functools
import itertools

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.embedding import extend as extension
from manifold_observer.pipeline.embedding import references
from manifold_observer.pipeline.jobs.config import RunConfig
from manifold_observer.pipeline.jobs.run import read_embedding, run
from reference import dense
from strategies import chunkings, embed_options, examples, share, smooth_motion, spd

# That some frames are far is told; only the tests of it look.
pytestmark = [pytest.mark.usefixtures("in_this_thread"), pytest.mark.filterwarnings("ignore:extend. .* far from all")]

N, M, P, WINDOW = 90, 45, 3, 15
VALUES = smooth_motion(np.random.default_rng(3), N + M, P)
SEGMENT = np.repeat([0, 1, 2, 3], [40, 50, 20, 25])
METHODS = ["nystrom", "one-sided"]
BOTH = pytest.mark.parametrize("method", METHODS)
OPTIONS = {"n_modes": 3, "window": WINDOW, "precision": "float64"}


def as_frames(values, segment, first=0):
    return xr.DataArray(
        values,
        dims=("frame", "feature"),
        coords={
            "time": ("frame", 0.5 * (first + np.arange(len(values))) + 10.0 * segment),
            "segment": ("frame", segment),
            "channel": ("feature", np.array([f"sensor {k}" for k in range(values.shape[1])], object)),
        },
        attrs={"frame_period": 0.5},
    )


FRAMES, NEW = as_frames(VALUES[:N], SEGMENT[:N]), as_frames(VALUES[N:], SEGMENT[N:], N)


@functools.cache
def given_covariances(n=N + M, p=P):
    return spd(np.random.default_rng(5), n, p)


def labelled(covariances):
    return xr.DataArray(covariances, dims=("frame", "feature", "feature_1"))


def precisions(values, segment, given=None, ridge=0.0, rank=None):
    covariances = dense.window_covariances(values, segment, WINDOW) if given is None else given
    if ridge:
        return [np.linalg.inv(c + ridge * np.eye(len(c))) for c in covariances]
    return [dense.pseudo_inverse(c, rank) for c in covariances]


def expected(embedding, method, new=NEW, frames=FRAMES, given=None, **how):
    """Coordinates and row sums as the formulas say, from what the embedding says of itself."""
    z, z_new = frames.values, new.values
    n = len(z)
    own = precisions(z, frames["segment"].values, None if given is None else given[:n], **how)
    if method == "nystrom":
        theirs = precisions(z_new, new["segment"].values, None if given is None else given[n:], **how)
        d = dense.distances_to_known(z_new, theirs, z, own)
    else:
        d = dense.one_sided_distances(z_new, z, own)
    over = d / float(embedding["epsilon"])
    if "scale" in embedding:
        scales = dense.scales_of_new(d, embedding.attrs["neighbours"], embedding.attrs["epsilon_factor"])
        over = d / np.sqrt(scales[:, None] * embedding["scale"].values)
    q, alpha = embedding["degree"].values, embedding.attrs["alpha"]
    psi, mu = embedding["coordinate"].values, embedding["eigenvalue"].values
    k = np.exp(-over)
    if method == "one-sided":
        return dense.one_sided(over, q, alpha, psi, mu), k.sum(axis=1)
    rows = k / q**alpha
    return rows / rows.sum(axis=1, keepdims=True) @ psi / mu, k.sum(axis=1)


def assert_equals(extended, reference, within=1e-8):
    coordinate, kernel_sum = reference
    assert_allclose(extended["coordinate"], coordinate, rtol=0, atol=within)
    assert_allclose(extended["kernel_sum"], kernel_sum, rtol=within)


def assert_same(one, other, within=0.0):
    for name in ("coordinate", "kernel_sum"):
        assert_allclose(one[name], other[name], rtol=0, atol=within * float(np.abs(other[name]).max()), err_msg=name)


@functools.cache
def embedded(**options):
    with dask.config.set(scheduler="synchronous"):
        return mo.embed(FRAMES, **embed_options(**OPTIONS, **options), preset="paper")


# ---------------------------------------------------------------------------------------------- reference


@BOTH
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("form", ["quadratic", "factor", "window"])
def test_extend__every_form_equals_the_reference(method, form, alpha):
    embedding = embedded(form=form, alpha=alpha)
    assert_equals(mo.extend(embedding, NEW, method), expected(embedding, method))


@BOTH
@pytest.mark.parametrize("neighbours", [12, 200])
def test_extend__local_scales_equal_the_reference(method, neighbours):
    embedding = embedded(epsilon="local", neighbours=neighbours, epsilon_factor=1.5, form="quadratic")
    assert_equals(mo.extend(embedding, NEW, method), expected(embedding, method))


@BOTH
@pytest.mark.parametrize("options", [{"rank": 2}, {"regularization": 0.05}], ids=["rank", "ridge"])
@pytest.mark.parametrize("form", ["quadratic", "factor", "window"])
def test_extend__covariances_are_inverted_as_in_the_embedding(method, options, form):
    embedding = embedded(form=form, **options)
    how = {"rank": options.get("rank"), "ridge": options.get("regularization", 0.0)}
    assert_equals(mo.extend(embedding, NEW, method), expected(embedding, method, **how))


@BOTH
@pytest.mark.parametrize("chunk", [None, 17])
def test_extend__takes_covariances_that_are_given(method, chunk):
    first, rest = (labelled(part) for part in (given_covariances()[:N], given_covariances()[N:]))
    if chunk:
        first, rest = first.chunk(frame=chunk), rest.chunk(frame=chunk)
    embedding = mo.embed(FRAMES, **embed_options(covariance=first, **OPTIONS), preset="paper")
    assert embedding.attrs["covariance_from"] == "given"
    extended = mo.extend(embedding, NEW, method, covariance=rest if method == "nystrom" else None)
    assert_equals(extended, expected(embedding, method, given=given_covariances()))


@BOTH
def test_extend__frames_may_leave_what_the_embedded_ones_span(method):
    """The embedded frames lie in a plane; new ones leave it, which only their own covariances see."""
    values = VALUES @ np.array([[1.0, 0, 1], [0, 1, 1], [0, 0, 0]])
    flat, leaving = as_frames(values[:N], SEGMENT[:N]), as_frames(values[N:], SEGMENT[N:], N)
    leaving = leaving + xr.DataArray(0.01 * np.random.default_rng(0).normal(size=(M, P)), dims=("frame", "feature"))
    embedding = mo.embed(flat, **embed_options(**OPTIONS), preset="paper")
    assert embedding.attrs["axes"] == 2
    extended = mo.extend(embedding, leaving, method)
    assert_equals(extended, expected(embedding, method, leaving, flat), within=1e-6)
    projected = leaving.copy(data=leaving.values @ np.linalg.pinv(values[:5]) @ values[:5])
    apart = float(np.abs(mo.extend(embedding, projected, method)["coordinate"] - extended["coordinate"]).max())
    assert apart > 1e-3 if method == "nystrom" else apart < 1e-6


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("form", ["quadratic", "factor", "window"])
def test_extend__embedded_frames_get_their_own_coordinates(form, alpha, precision):
    embedding = mo.embed(
        FRAMES, n_modes=3, window=WINDOW, alpha=alpha, engine=mo.Engine(form=form, precision=precision), preset="paper"
    )
    again = mo.extend(embedding, FRAMES)
    within = 1e-6 if precision == "float64" else 1e-4
    assert_allclose(again["coordinate"], embedding["coordinate"], rtol=0, atol=within)
    assert_allclose(again["kernel_sum"], embedding["degree"], rtol=within)


def test_extend__with_local_scales_embedded_frames_come_back_nearly():
    embedding = embedded(epsilon="local", neighbours=8)
    again = mo.extend(embedding, FRAMES)["coordinate"]
    for mode in range(2):
        assert np.corrcoef(again[:, mode], embedding["coordinate"][:, mode])[0, 1] > 0.99


def test_extend__one_sided_needs_no_window():
    embedding = embedded()
    whole = mo.extend(embedding, NEW, "one-sided")
    alone = [mo.extend(embedding, NEW[i : i + 1], "one-sided") for i in range(5)]
    assert_allclose(np.concatenate([one["coordinate"] for one in alone]), whole["coordinate"][:5], rtol=0, atol=1e-10)


# ------------------------------------------------------------------------------------------- through landmarks

LONG = smooth_motion(np.random.default_rng(0), 700, 4)
LONG_FRAMES = xr.DataArray(LONG, dims=("frame", "feature"), coords={"segment": ("frame", np.repeat([0, 1], 350))})


@pytest.mark.parametrize("reach", [16384, 100])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("form", ["quadratic", "factor", "window"])
def test_extend__through_landmarks_is_the_extension_that_embed_made(form, alpha, reach, monkeypatch):
    monkeypatch.setattr("manifold_observer.pipeline.engine.cuts.GATHER_SPAN", reach)
    monkeypatch.setattr(extension, "_SPAN", 300)
    embedding = mo.embed(
        LONG_FRAMES,
        n_modes=3,
        alpha=alpha,
        engine=mo.Engine(method="landmarks", landmarks=150, form=form, precision="float64"),
        preset="paper",
    )
    assert embedding.sizes["landmark"] == 150
    again = mo.extend(embedding, LONG_FRAMES)
    assert again.attrs["n_references"] == 150
    assert_allclose(again["coordinate"], embedding["coordinate"], rtol=0, atol=1e-6)
    assert_allclose(again["kernel_sum"], embedding["degree"], rtol=1e-6)
    assert again["far"].sum() <= 2


@BOTH
def test_extend__through_landmarks_equals_the_reference_over_them(method):
    covariances = given_covariances(700, 4)
    options = {"n_modes": 3, "method": "landmarks", "precision": "float64", "landmarks": 60, "alpha": 0.5}
    embedding = mo.embed(
        LONG_FRAMES[:600], **embed_options(covariance=labelled(covariances[:600]), **options), preset="paper"
    )
    chosen = embedding["landmark"].values
    new = LONG_FRAMES[600:]
    rest = labelled(covariances[600:]) if method == "nystrom" else None
    extended = mo.extend(embedding, new, method, covariance=rest)
    known = embedding[["coordinate", "degree", "eigenvalue", "epsilon"]].isel(frame=chosen)
    given_ones = np.concatenate([covariances[chosen], covariances[600:]])
    coordinate, kernel_sum = expected(known, method, new, LONG_FRAMES[chosen], given_ones)
    assert_equals(extended, (coordinate, kernel_sum * 600 / 60))


@pytest.mark.parametrize("options", [{"refine": 1}, {"landmark_route": "diffusion"}, {"method": "exact"}])
def test_extend__all_frames_are_references_where_landmarks_did_not_make_the_coordinates(options):
    embedding = mo.embed(
        LONG_FRAMES, **embed_options(n_modes=2, **({"method": "landmarks", "landmarks": 150} | options)), preset="paper"
    )
    assert "landmark" not in embedding.variables
    assert mo.extend(embedding, LONG_FRAMES[:30]).attrs["n_references"] == 700


# ------------------------------------------------------------------------------- the same however it is cut


@examples(8)
@given(st.tuples(chunkings(M), chunkings(P), chunkings(N)), st.sampled_from(["nystrom", "one-sided"]))
def test_extend__any_chunking_gives_the_same(chunks, method):
    embedding = embedded(form="quadratic")
    whole = mo.extend(embedding, NEW, method)
    cut = embedding.assign(reference=embedding["reference"].chunk(frame=chunks[2]))
    assert_same(mo.extend(cut, NEW.chunk(frame=chunks[0], feature=chunks[1]), method), whole)


@pytest.mark.parametrize(
    ("method", "epsilon", "size"), share(itertools.product(METHODS, ["median", "local"], [7, 1, 30]), 4)
)
def test_extend__any_block_and_any_span_give_the_same(method, epsilon, size, monkeypatch):
    embedding = embedded(epsilon=epsilon, form="window")
    whole = mo.extend(embedding, NEW, method)
    monkeypatch.setattr(extension, "_SPAN", size)
    monkeypatch.setattr(references, "tile_size", lambda n: 2 * size)
    assert_same(mo.extend(embedding, NEW, method), whole, within=1e-10)


@BOTH
def test_extend__threads_and_workers_give_the_same(method, monkeypatch, workers_here):
    embedding = embedded(form="quadratic")
    monkeypatch.setattr(extension, "_SPAN", 20)
    monkeypatch.setattr(references, "tile_size", lambda n: 32)
    whole = mo.extend(embedding, NEW, method)
    with dask.config.set(scheduler="threads", num_workers=3):
        assert_same(mo.extend(embedding, NEW.chunk(frame=13), method), whole)
    with workers_here(2):
        lazy = embedding.assign(reference=embedding["reference"].chunk(frame=21))
        assert_same(mo.extend(lazy, NEW.chunk(frame=13), method), whole, within=1e-12)


# ---------------------------------------------------------------------------------------------------- far


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


# ------------------------------------------------------------------------------------------------- labels


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


# ---------------------------------------------------------------------------------------------- refusals


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
