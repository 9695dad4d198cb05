"""docs/troubleshooting.md: every heading is a part of a message that the package gives in that case."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
import prepared

PAGE = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
pytestmark = pytest.mark.usefixtures("in_this_thread")


def missing(console):
    return console("run", "missing.npy", "out.zarr", "--features", "identity", "--cluster", "none")[2]


def labelled(console):
    prepared.bench(Path.cwd())
    return console("run", "bench.csv", "out.zarr", "--features", "identity", "--cluster", "none")[2]


def existing(console):
    prepared.nights(Path.cwd(), ["night"])
    Path("out.zarr").mkdir()
    return console("run", "night.npy", "out.zarr", "--features", "histogram", "--frame", "60", "--cluster", "none")[2]


def holes(console):
    walk = np.random.default_rng(0).normal(size=(200, 3)).cumsum(axis=0)
    walk[50] = np.nan
    np.save("walk.npy", walk)
    return console("run", "walk.npy", "out.zarr", "--features", "identity", "--cluster", "none")[2]


def noise(_console):
    return warned(lambda: mo.embed(frames(np.random.default_rng(0).normal(size=(400, 4)))))


def strangers(_console):
    walk = frames(np.random.default_rng(0).normal(size=(400, 4)).cumsum(axis=0))
    embedding = mo.embed(walk)
    return warned(lambda: mo.extend(embedding, walk[:60] + 1000))


CASES = {
    "does not exist. Check the path": missing,
    "must tell which channels are signals": labelled,
    "already exists. Choose another name, or give --overwrite": existing,
    "must be finite": holes,
    "the coordinates foretell": noise,
    "are far from all embedded ones": strangers,
}


def frames(values):
    return xr.DataArray(values, dims=("frame", "feature"))


def warned(call):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call()
    return " ".join(str(one.message) for one in said)


def test_page__every_heading_has_a_case():
    assert list(CASES) == HEADINGS


@pytest.mark.parametrize("heading", HEADINGS)
def test_page__the_message_is_given(heading, tmp_path, monkeypatch, console):
    monkeypatch.chdir(tmp_path)
    assert heading in " ".join(CASES[heading](console).split())
