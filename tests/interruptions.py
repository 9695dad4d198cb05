"""An embedding that is interrupted at a pass, and what is found after it."""

import functools
import os

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine import exact as ways
from manifold_observer.tasks import atomic
from strategies import embed_options, smooth_motion

FRAMES = xr.DataArray(smooth_motion(np.random.default_rng(0), 300, 5), dims=("frame", "feature"))
OPTIONS = {
    "n_modes": 3,
    "window": 9,
    "home": "recomputed",
    "form": "quadratic",
    "tile": 150,
    "residual_tolerance": 1e-6,
}
PRODUCT = ways.recomputed_product


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class KilledError(Exception):
    """Stands for a run that ends in mid-pass."""


def counted(monkeypatch):
    """A list that grows with every pass over the kernel."""
    made, passes = ways.recomputed_product, []

    def counting(*arguments):
        matmat = made(*arguments)
        return lambda x: passes.append(1) or matmat(x)

    monkeypatch.setattr(ways, "recomputed_product", counting)
    return passes


def interrupted(monkeypatch, folder, at_pass, frames=FRAMES, **options):
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
            mo.embed(frames, **embed_options(checkpoint=folder, **OPTIONS | options), preset="paper")


@functools.cache
def undisturbed(**options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "recomputed_product", PRODUCT)
        return mo.embed(FRAMES, **embed_options(**OPTIONS | options), preset="paper")


def assert_same_bits(one, other):
    for name in ("eigenvalue", "coordinate", "residual", "degree", "spectrum"):
        assert_array_equal(one[name], other[name], err_msg=name)
    assert one.attrs["passes"] == other.attrs["passes"]


def failing(monkeypatch, step, number, passes):
    """Let a step of writing some passes fail."""
    made = getattr(atomic.os, step)
    written = []

    def fail(*arguments):
        if step == "replace" and "pass-" in str(arguments[1]):
            written.append(int(str(arguments[1])[-7:-4]))
            if written[-1] not in passes:
                return made(*arguments)
            raise OSError(number, os.strerror(number))
        return made(*arguments)

    monkeypatch.setattr(atomic.os, step, fail)
    return written
