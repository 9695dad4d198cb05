"""Coordinates of new frames against the dense reference, and the same however they are cut."""

import itertools

import dask
import numpy as np
import pytest
import xarray as xr
from extensions import (
    BOTH,
    FRAMES,
    LONG_FRAMES,
    METHODS,
    NEW,
    OPTIONS,
    SEGMENT,
    VALUES,
    WINDOW,
    M,
    N,
    P,
    as_frames,
    assert_same,
    embedded,
    given_covariances,
    labelled,
)
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.embedding import extend as extension
from manifold_observer.pipeline.embedding import references
from reference import dense
from strategies import chunkings, embed_options, examples, share

# That some frames are far is told; only the tests of it look.
pytestmark = [pytest.mark.usefixtures("in_this_thread"), pytest.mark.filterwarnings("ignore:extend. .* far from all")]


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


@examples(8)
@given(st.tuples(chunkings(M), chunkings(P), chunkings(N)), st.sampled_from(["nystrom", "one-sided"]))
def test_extend__any_chunking_gives_the_same(chunks, method):
    embedding = embedded(form="quadratic")
    whole = mo.extend(embedding, NEW, method)
    cut = embedding.assign(reference=embedding["reference"].chunk(frame=chunks[2]))
    assert_same(mo.extend(cut, NEW.chunk(frame=chunks[0], feature=chunks[1]), method), whole)


@pytest.mark.slow
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
