"""Every benchmark once at a tiny size, so that none can rot."""

import importlib.util
from pathlib import Path


def load(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_embed_vs_loop__both_find_the_same_eigenvalues():
    result = load("embed_vs_loop").compare(n_frames=300, repeats=1, n_workers=1)
    assert result["largest_eigenvalue_difference"] < 1e-5
    assert result["ratio"] > 0
