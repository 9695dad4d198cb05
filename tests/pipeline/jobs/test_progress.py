"""Stages are timed, and the bar only moves forwards, on a terminal only."""

import ast
import io
import itertools
import time
from pathlib import Path

import numpy as np
import pytest

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.jobs.progress import STAGES, Stages
from manifold_observer.pipeline.jobs.run import RunConfig, run
from strategies import embed_options, share

ROOT = Path(__file__).parents[3]
REPORTING = {"compute", "persist", "stream", "progress", "report"}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_stages__seconds_add_up():
    stages = Stages()
    for _ in range(2):
        with stages("embed"):
            time.sleep(0.01)
    with stages("observe"):
        pass
    assert list(stages.seconds) == ["embed", "observe"]
    assert stages.seconds["embed"] >= 0.02
    assert stages.seconds["observe"] < 0.01


def test_stages__a_stage_that_fails_is_timed():
    stages = Stages()
    with pytest.raises(KeyError), stages("embed"):
        raise KeyError
    assert "embed" in stages.seconds


def test_bar__is_silent_without_a_terminal():
    out = io.StringIO()
    stages = Stages(out)
    with stages.bar():
        stages.report("eigensolve", 1, 2)
    assert out.getvalue() == ""


def test_bar__names_the_stage_and_the_remaining_time():
    out = Terminal()
    stages = Stages(out)
    with stages.bar():
        stages.report("features", 1, 1)
        stages.report("eigensolve", 1, 2)
    text = out.getvalue()
    assert text.index("features") < text.index("eigensolve") < text.index("done")
    assert "100%" in text


def test_bar__moves_within_a_pass():
    stages = Stages(Terminal())
    seen = []
    with stages.bar():
        for stage, done, total in [
            ("eigensolve", 1, 4),
            ("pass", 1, 4),
            ("pass", 3, 4),
            ("eigensolve", 2, 3),
            ("pass", 1, 2),
            ("eigensolve", 3, 3),
            ("pass", 1, 2),  # one more than was expected
        ]:
            stages.report(stage, done, total)
            seen.append(stages._within["eigensolve"])
    assert seen == pytest.approx([1 / 4, 5 / 16, 7 / 16, 2 / 3, 5 / 6, 1, 1])


def test_bar__never_moves_backwards_or_past_its_end():
    stages = Stages(Terminal())
    seen = []
    with stages.bar():
        for stage, done, total in [
            ("features", 0, 0),
            ("eigensolve", 3, 4),
            ("eigensolve", 1, 4),
            ("frames", 1, 1),
            ("observer", 9, 4),
            ("no such stage", 1, 1),
        ]:
            stages.report(stage, done, total)
            seen.append(stages._bar.pos)
    assert seen == sorted(seen)
    assert seen[1] == seen[2] > seen[0]
    assert seen[-1] <= 1000


NAMES = {stage.name for stage in STAGES}
OPTIONS = {"n_modes": 3, "window": 9, "form": "quadratic", "precision": "float64", "tile": 100}
THROUGH = {"method": "landmarks", "landmarks": 60}
ROUTES = {
    **{home: {"home": home} for home in ("local", "resident", "recomputed", "disk")},
    "local scale": {"home": "resident", "epsilon": "local"},
    "given scale": {"home": "resident", "epsilon": 300.0},
    "landmarks": THROUGH,
    "k-means++": THROUGH | {"landmark_choice": "kmeans++", "preset": "paper"},
    "diffusion route": THROUGH | {"landmark_route": "diffusion"},
    "refined": THROUGH | {"refine": 2, "home": "resident"},
    "refined diffusion": THROUGH | {"refine": 1, "landmark_route": "diffusion"},
}


@pytest.fixture
def few_landmarks(monkeypatch):
    """Exact solves of a few hundred frames start from landmarks too."""
    monkeypatch.setattr("manifold_observer.pipeline.engine.landmarks._WARM_LANDMARKS", 50)


class Watched(Stages):
    """Stages that keep what is reported, and where the bar stands."""

    def __init__(self):
        super().__init__(Terminal())
        self.reported = []

    def report(self, stage, done, total):
        super().report(stage, done, total)
        self.reported.append((stage, self._bar.pos))

    def check(self):
        """Every stage has a share and moves the bar, which never moves back."""
        positions = [position for _, position in self.reported]
        assert positions == sorted(positions)
        assert {stage for stage, _ in self.reported} <= NAMES | {"pass"}
        before = 0
        for stage, reports in itertools.groupby(
            self.reported, lambda reported: reported[0].replace("pass", "eigensolve")
        ):
            *_, (_, last) = reports
            assert last > before, stage
            before = last


@pytest.mark.filterwarnings("ignore:calibrate")  # the motion of the frames is made of sines
@pytest.mark.parametrize("route", share(ROUTES, 3))
def test_bar__moves_in_every_stage_of_a_run(tmp_path, few_landmarks, in_this_thread, make_frames, route):
    np.save(tmp_path / "walk.npy", make_frames(n=400, p=4).values)
    config = RunConfig(
        mo.FeatureConfig("identity"),
        embedding=mo.EmbedConfig(**OPTIONS | ROUTES[route]),
        observer=mo.ObserverConfig(gain="kalman"),
        smooth=True,
    )
    stages = Watched()
    with stages.bar():
        run([tmp_path / "walk.npy"], tmp_path / "walk.zarr", config, stages=stages)
        assert stages._bar.pos > 900
    stages.check()
    assert "projections" in dict(stages.reported)
    assert ("landmarks" in dict(stages.reported)) == ("landmarks" in ROUTES[route] and "refine" not in ROUTES[route])
    # Most of the work takes most of the bar, whichever way it goes.
    work = {"sums", "links", "landmarks", "near", "covariances", "distances", "scale", "kernel", "eigensolve", "pass"}
    assert sum(last for stage, last in moves(stages.reported) if stage in work) > 500


def moves(reported):
    """How far each report moved the bar."""
    return [(stage, there - here) for (_, here), (stage, there) in itertools.pairwise([("", 0), *reported])]


@pytest.mark.parametrize("options", [{}, THROUGH], ids=["exact", "landmarks"])
def test_bar__moves_in_every_stage_of_an_extension(in_this_thread, make_frames, options):
    frames = make_frames(n=400, p=4)
    embedding = mo.embed(frames[:300], **embed_options(**OPTIONS, **options))
    stages = Watched()
    with stages.bar():
        mo.extend(embedding, frames[300:], progress=stages.report)
        assert stages._bar.pos > 900
    stages.check()
    assert {"references", "extend"} <= set(dict(stages.reported))


def test_stages__every_one_that_is_named_has_a_share():
    found = set()
    for path in sorted((ROOT / "pipeline").rglob("*.py")):
        if path.name != "experiment.py":  # it has a bar of its own
            found |= named(ast.parse(path.read_text(encoding="utf-8")))
    assert {"features", "frames", "landmarks", "near", "pass", "extend", "smoother", "scores"} <= found
    assert found <= NAMES | {"pass"}
    assert len(NAMES) == len(STAGES)


def named(tree):
    """Names of stages in the calls that report or compute them."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    reporting = [call for call in calls if ast.unparse(call.func).split(".")[-1] in REPORTING]
    given = [branch for call in reporting for each in call.args for branch in branches(each)]
    return {
        word.value for word in given if isinstance(word, ast.Constant) and isinstance(word.value, str) and word.value
    }


def branches(node):
    """What an argument may be: either of a choice."""
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]
