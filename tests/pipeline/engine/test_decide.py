"""An embedding is decided once: by who plans and by who computes alike."""

from dataclasses import fields

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.embedding import embed as embedding
from manifold_observer.pipeline.engine import decide
from manifold_observer.pipeline.graph import limits
from strategies import smooth_motion

pytestmark = pytest.mark.usefixtures("in_this_thread")

N = 260
FRAMES = xr.DataArray(smooth_motion(np.random.default_rng(0), N, 4), dims=("frame", "feature"))
OPTIONS = {"n_modes": 2, "preset": "paper", "form": "quadratic", "precision": "float64", "landmarks": 50}
ENGINE = {kind.name for kind in fields(mo.Engine)}
WAYS = [
    {"method": "exact", "home": "resident"},
    {"method": "landmarks", "refine": 1, "home": "resident"},
    {"method": "exact", "home": "recomputed", "tile": 100},
    {"method": "landmarks"},
    {"epsilon": "local"},
]


def together(way):
    """All options, those of the engine in an Engine."""
    options = OPTIONS | way
    engine = {name: options.pop(name) for name in [*options] if name in ENGINE}
    return options | {"engine": mo.Engine(**engine)}


@pytest.fixture
def asked(monkeypatch):
    """How often it was asked what memory there is: plenty the first time, next to none from then on."""
    times = []

    def free():
        times.append(None)
        return 2**34 if len(times) == 1 else 2**16

    monkeypatch.setattr(limits, "free_memory", free)
    monkeypatch.setattr(limits, "own_memory", lambda: 0)
    return times


@pytest.mark.parametrize("way", WAYS)
def test_embed__workers_that_leave_while_it_runs_do_not_change_the_decision(asked, way):
    found = mo.embed(FRAMES, **together(way))
    assert len(asked) == 1
    assert found.attrs.get("home", "resident") == way.get("home", found.attrs.get("home", "resident"))


@pytest.mark.parametrize("way", WAYS)
def test_plan__asks_once_too(asked, way):
    assert mo.plan(FRAMES, **together(way)).worker_limit_bytes == 2**34
    assert len(asked) == 1


@pytest.mark.parametrize("way", [*WAYS, {"precision": "auto"}])
def test_plan__shows_the_decision_of_embed(monkeypatch, way):
    taken, find_modes = [], embedding.find_modes

    def watching(problem, kept):
        taken.append(problem.decision)
        return find_modes(problem, kept)

    monkeypatch.setattr(embedding, "find_modes", watching)
    options = together(way)
    planned, found = mo.plan(FRAMES, **options), mo.embed(FRAMES, **options)
    (decision,) = taken
    assert (planned.method, planned.home, planned.tile) == (decision.method, decision.home, decision.tile)
    assert (planned.form, planned.precision) == (decision.distance.form, decision.distance.precision)
    assert planned.n_axes == decision.distance.axes.width
    assert planned.passes == decision.passes
    assert planned.bytes_per_task == decision.memory.task
    assert planned.peak_worker_bytes == decision.memory.worker
    assert decision.choice.items() <= found.attrs.items()


def test_settle__a_decision_cannot_be_changed():
    distance = decide.Distance(decide.Metric(21, None), decide.Axes(np.zeros(3), None), "quadratic", "float32")
    decision = decide.settle(N, distance, 0.0, decide.EmbedConfig())
    with pytest.raises(AttributeError):
        decision.home = "disk"
