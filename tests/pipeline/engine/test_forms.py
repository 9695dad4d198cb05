"""A form of the distance is one file and one name in the registry."""

import ast
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine.config import FORM_NAMES
from manifold_observer.tasks.engine import forms
from manifold_observer.tasks.engine.protocols import Form
from manifold_observer.tasks.engine.slab import precisions
from strategies import smooth_motion

pytestmark = pytest.mark.usefixtures("in_this_thread")

ROOT = Path(__file__).parents[3]
N, WINDOW = 240, 9
FRAMES = xr.DataArray(smooth_motion(np.random.default_rng(0), N, 3), dims=("frame", "feature"))
OPTIONS = {"n_modes": 2, "window": WINDOW, "preset": "paper"}


class PairsBlock(NamedTuple):
    """Frames and their precisions: differences of all pairs are formed, as by the book."""

    frames: np.ndarray
    precisions: np.ndarray

    @property
    def n_frames(self):
        return len(self.frames)

    @property
    def precision(self):
        return self.frames.dtype

    def astype(self, dtype):
        return PairsBlock(self.frames.astype(dtype), self.precisions.astype(dtype))

    def take(self, chosen):
        return PairsBlock(self.frames[chosen], self.precisions[chosen])

    def join(self, others):
        blocks = (self, *others)
        return PairsBlock(
            np.concatenate([block.frames for block in blocks]), np.concatenate([block.precisions for block in blocks])
        )

    def distances(self, columns, out=None):
        z = self.frames[:, None] - columns.frames
        either = (
            np.einsum("mnp,mpq,mnq->mn", z, self.precisions, z),
            np.einsum("mnp,npq,mnq->mn", z, columns.precisions, z),
        )
        return (either[0] + either[1]) / 2


class Pairs(Form):
    name = "pairs"

    def block(self, slab, metric):
        return PairsBlock(slab.frames[slab.rows], precisions(slab, metric))

    def points(self, frames):
        n, p = frames.shape
        return PairsBlock(frames, np.zeros((n, p, p)))

    def multiplications(self, n_features, rank, window):
        return 2 * n_features**2

    def numbers(self, n_features, rank, window):
        return n_features + n_features**2


@pytest.fixture
def pairs(monkeypatch):
    """The registry with a fourth form, which the option's choices are read from; nothing else is touched."""
    monkeypatch.setitem(forms.FORMS, Pairs.name, Pairs())
    (option,) = (kind for kind in fields(mo.Engine) if kind.name == "form")
    choices = {"choices": ("auto", *forms.FORMS)}
    monkeypatch.setattr(option, "metadata", MappingProxyType({**option.metadata, **choices}))


def engine(form, **options):
    return mo.Engine(form=form, precision="float64", **options)


WAYS = [
    ("median", {"method": "exact", "home": "local"}),
    ("median", {"method": "exact", "home": "recomputed", "tile": 100, "residual_tolerance": 1e-9}),
    ("local", {"method": "exact", "home": "disk", "tile": 100, "residual_tolerance": 1e-9}),
    ("median", {"method": "landmarks", "landmarks": 60}),
    ("median", {"method": "landmarks", "landmarks": 60, "landmark_route": "diffusion"}),
]


@pytest.mark.usefixtures("pairs")
@pytest.mark.filterwarnings("ignore:extend. .* are far")
@pytest.mark.parametrize(("epsilon", "way"), WAYS)
def test_registry__a_fourth_form_embeds_and_extends(epsilon, way):
    found, expected = (
        mo.embed(FRAMES, epsilon=epsilon, engine=engine(form, **way), **OPTIONS) for form in ("pairs", "quadratic")
    )
    assert found.attrs["form"] == "pairs"
    assert_allclose(found["eigenvalue"], expected["eigenvalue"], atol=1e-8)
    assert_allclose(found["coordinate"], expected["coordinate"], atol=1e-4)
    new = FRAMES[50:90] + 0.01
    for method in ("nystrom", "one-sided"):
        placed = [mo.extend(embedding, new, method)["coordinate"] for embedding in (found, expected)]
        assert_allclose(placed[0], placed[1], atol=1e-4 * float(np.abs(placed[1]).max()))


@pytest.mark.usefixtures("pairs")
def test_registry__a_fourth_form_is_planned_and_probed():
    assert mo.plan(FRAMES, engine=engine("pairs"), **OPTIONS).form == "pairs"
    landmarks = engine("pairs", method="landmarks", landmarks=60)
    assert mo.plan(FRAMES, engine=landmarks, **OPTIONS).form == "pairs"
    assert mo.plan(FRAMES, engine=engine("auto"), **OPTIONS).form in forms.FORMS


def test_registry__a_form_that_is_not_in_it_is_refused_with_the_names_of_those_that_are():
    with pytest.raises(ValueError, match="form must be one of 'auto', 'quadratic', 'factor', 'window'; got 'pairs'"):
        engine("pairs")


def spoken(path):
    """Strings of a file that are not documentation."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in docs]


def named(path):
    """Classes of a file that it asks for by isinstance."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    asked = [call.args[1] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "isinstance"]
    return {node.id for part in asked for node in ast.walk(part) if isinstance(node, ast.Name)}


def test_forms__their_names_stand_in_their_own_modules_only():
    rooms = [ROOT / "tasks" / "engine", ROOT / "pipeline" / "engine", ROOT / "pipeline" / "embedding"]
    files = [path for room in rooms for path in room.glob("*.py")]
    assert {"quadratic", "factor", "window"} == set(forms.FORMS)
    # Settings name them for --help, which does not wait for NumPy.
    assert {"auto", *forms.FORMS} == set(FORM_NAMES)
    for path in files:
        if path.name == "config.py":
            continue
        own = {path.stem} if path.parent.parent.name == "tasks" else set()
        # "window" is an option too: the frames of a local covariance.
        assert not {*spoken(path)} & (set(forms.FORMS) - own - {"window"}), path
        assert not {name for name in named(path) if name.endswith("Block")}, path


def test_inverse__only_the_slab_looks_into_how_a_covariance_is_inverted():
    rooms = [ROOT / "tasks" / "engine", ROOT / "pipeline" / "engine", ROOT / "pipeline" / "embedding"]
    for path in (path for room in rooms for path in room.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        asks = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "inverse"]
        assert not asks or path.name == "slab.py", path
