"""Passes on disk."""

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal

import manifold_observer.pipeline as mo
from manifold_observer.pipeline import ways
from manifold_observer.pipeline.checkpoint import Checkpoint, fingerprint
from manifold_observer.tasks import lanczos
from strategies import smooth_motion

FRAMES = xr.DataArray(smooth_motion(np.random.default_rng(0), 300, 5), dims=("frame", "feature"))
OPTIONS = {
    "n_modes": 3,
    "window": 9,
    "home": "recomputed",
    "form": "quadratic",
    "tile": 64,
    "residual_tolerance": 1e-9,
}


@pytest.fixture(autouse=True)
def few_landmarks(monkeypatch):
    """So few that a solve which starts from them takes some passes."""
    monkeypatch.setattr("manifold_observer.pipeline.landmarks._WARM_LANDMARKS", 20)


class KilledError(Exception):
    """Stands for a run that ends in mid-pass."""


def interrupted(monkeypatch, folder, at_pass):
    """Embed until a pass, then stop as if killed in the middle of it."""
    made = ways.recomputed_product

    def failing(*arguments):
        matmat, calls = made(*arguments), []

        def product(x):
            calls.append(1)
            if len(calls) == at_pass:
                raise KilledError
            return matmat(x)

        return product

    with monkeypatch.context() as patched:
        patched.setattr(ways, "recomputed_product", failing)
        with pytest.raises(KilledError):
            mo.embed(FRAMES, checkpoint=folder, **OPTIONS)


@pytest.mark.parametrize("at_pass", [2, 3])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_embed__goes_on_from_the_last_pass_with_the_same_result(tmp_path, monkeypatch, at_pass, alpha):
    monkeypatch.setitem(OPTIONS, "alpha", alpha)
    whole = mo.embed(FRAMES, **OPTIONS)
    interrupted(monkeypatch, tmp_path / "kept", at_pass + (alpha != 0))
    kept = len(list((tmp_path / "kept").glob("pass-*.npz")))
    assert kept == at_pass - 1
    products = []
    made = ways.recomputed_product

    def counting(*arguments):
        matmat = made(*arguments)
        return lambda x: products.append(1) or matmat(x)

    monkeypatch.setattr(ways, "recomputed_product", counting)
    resumed = mo.embed(FRAMES, checkpoint=tmp_path / "kept", **OPTIONS)
    assert resumed.attrs["passes"] == whole.attrs["passes"]
    assert len(products) == whole.attrs["passes"] - kept - (alpha != 0)
    assert_array_equal(resumed["coordinate"], whole["coordinate"])
    assert_array_equal(resumed["eigenvalue"], whole["eigenvalue"])


def test_embed__another_problem_starts_anew(tmp_path, monkeypatch):
    interrupted(monkeypatch, tmp_path / "kept", 3)
    other = FRAMES + 0.1 * FRAMES.isel(frame=slice(None, None, -1)).values
    fresh = mo.embed(other, **OPTIONS)
    assert_array_equal(mo.embed(other, checkpoint=tmp_path / "kept", **OPTIONS)["coordinate"], fresh["coordinate"])


def test_checkpoint__leftovers_of_a_killed_write_are_not_read(tmp_path):
    folder = tmp_path / "kept"
    kept = Checkpoint(folder, {"n": 1})
    matrix = np.diag(np.arange(20.0))
    start = lanczos.random_block(20, 3, seed=0)
    state = lanczos.begin(start, matrix @ start)
    kept.save(state, np.ones(20), None)
    (folder / "pass-002.partial").write_bytes(b"half")
    begun = Checkpoint(folder, {"n": 1}).load()
    assert begun.krylov.passes == 1
    assert_allclose(begun.krylov.basis, state.basis, atol=1e-14)
    assert begun.density_degrees is None


def test_checkpoint__without_a_folder_nothing_is_kept(tmp_path):
    kept = Checkpoint(None, {})
    kept.choose({"form": "quadratic"})
    assert kept.load() is None
    assert kept.choice == {}
    assert list(tmp_path.iterdir()) == []


def test_fingerprint__sees_values_and_names():
    one = fingerprint({"a": np.arange(3.0), "b": "x"})
    assert one == fingerprint({"b": "x", "a": np.arange(3.0)})
    assert len({one, fingerprint({"a": np.arange(3.0) + 1e-12, "b": "x"}), fingerprint({"a": np.arange(3.0)})}) == 3
