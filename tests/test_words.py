"""What docs/words.md says of other libraries' words, checked by running it where they are installed."""

import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from sklearn.decomposition import PCA

import manifold_observer.pipeline as mo
from strategies import smooth_motion

TEXT = (Path(__file__).parents[1] / "docs" / "words.md").read_text(encoding="utf-8")
X = smooth_motion(np.random.default_rng(0), 300, 4)
FRAMES = xr.DataArray(X, dims=("frame", "feature"), coords={"time": ("frame", np.arange(300) * 0.5)})
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def embedding():
    return mo.embed(FRAMES, 2)


def test_words__names_exist_and_so_do_variables(embedding):
    names = set(re.findall(r"\bmo\.(\w+)", TEXT))
    assert names <= set(mo.__all__)
    assert set(re.findall(r"embedding\.(?!attrs)(\w+)", TEXT)) <= set(map(str, embedding.variables))
    assert "foretold" in embedding.attrs
    state = mo.observe(embedding, FRAMES)
    assert state.reads.size == state.sizes["mode"] == embedding.sizes["mode"] + embedding.sizes["component"]


@pytest.mark.slow
def test_words__scikit_learn_and_xeofs(embedding):
    np.testing.assert_array_equal(
        mo.ManifoldObserver(n_modes=2).fit_transform(FRAMES), mo.observe(embedding, FRAMES).state
    )
    ours = mo.baselines(embedding, FRAMES)["pca"].values
    theirs = PCA(2).fit_transform(X / X.std(axis=0))
    for k in range(2):
        assert abs(np.corrcoef(ours[:, k], theirs[:, k])[0, 1]) > 0.999


def test_words__coordinates_have_unit_mean_square_and_lift_is_what_is_said(embedding):
    psi = embedding.coordinate.values
    np.testing.assert_allclose((psi**2).mean(axis=0), 1, rtol=1e-6)
    conditioned = (X - X.mean(axis=0)) / embedding.feature_scale.values
    np.testing.assert_allclose(embedding.lift, conditioned.T @ psi / len(X), rtol=1e-6, atol=1e-8)


def test_words__timescales_of_deeptime_are_inverse_rates(embedding):
    msm = pytest.importorskip("deeptime.markov.msm")
    mu = embedding.eigenvalue.values
    theirs = [
        msm.MarkovStateModel([[(1 + m) / 2, (1 - m) / 2], [(1 - m) / 2, (1 + m) / 2]]).timescales()[0] for m in mu
    ]
    np.testing.assert_allclose(1 / embedding.rate, theirs)


def test_words__updates_are_the_bits_of_one_call(embedding):
    first = mo.observe(embedding, FRAMES[:120])
    rest = mo.observe(embedding, FRAMES[120:], carry=first.carry)
    np.testing.assert_array_equal(np.concatenate([first.state, rest.state]), mo.observe(embedding, FRAMES).state.values)
