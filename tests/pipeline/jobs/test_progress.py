"""Stages are timed, and each has a bar that fits its terminal and tells the time that is left."""

import ast
import io
import itertools
import os
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.graph.progress import or_watched
from manifold_observer.pipeline.jobs.bars import Bars, Lines, StageBar, shown
from manifold_observer.pipeline.jobs.events import Event, emit
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


def bars_on(out, clock=time.monotonic):
    return Bars(Lines(out), clock)


def test_bar__is_silent_where_nothing_shows_it():
    stages = Stages()
    with stages.bar():
        stages.report("eigensolve", 1, 2)
    assert stages.far == {"eigensolve": (1, 2)}


def test_bar__names_the_stage_and_the_remaining_time():
    out, now = Terminal(), itertools.count()
    stages = Stages(bars_on(out, lambda: float(next(now))))
    with stages.bar():
        stages.report("features", 1, 1)
        stages.report("eigensolve", 0, 2)
        stages.report("eigensolve", 1, 2)
    lines = out.getvalue().split("\r\x1b[K")
    assert "features" not in out.getvalue()  # it was over at once
    assert re.search(r"^eigensolve .*1 of 2 +about [\d.]+ s left$", lines[-2])
    assert lines[-1] == ""  # nothing is left on the line


def test_bar__is_that_of_the_session():
    """The command and ``mo.progress`` show the same lines for the same reports."""
    seen = []
    for follow in (lambda bars: Stages(bars).bar(), shown):
        out, now = io.StringIO(), itertools.count()
        bars = bars_on(out, lambda now=now: float(next(now)))
        with follow(bars):
            for done in range(4):
                emit(Event("stage", stage="lift", done=done, total=3))
        seen.append(out.getvalue())
    assert seen[0] == seen[1] != ""


def test_bar__shows_the_phase_while_nothing_is_counted():
    out, now = Terminal(), itertools.count()
    bars = bars_on(out, lambda: float(next(now)))
    with bars.phase("cluster"):
        bars.tick()
        bars.tick()
    assert re.search(r"cluster +for \d(\.0)? s$", out.getvalue())
    assert " of " not in out.getvalue()


def test_bar__time_goes_on_while_a_part_takes_long():
    bar = StageBar("kernel", begun=0.0, now=10.0, reported=10.0, done=1, total=2)
    assert bar.remaining == "about 10 s left"
    later = replace(bar, now=16.0)
    assert later.remaining == "about 4.0 s left"
    late = replace(bar, now=50.0)
    assert late.remaining == "about 30 s left"


def test_bar__what_was_done_before_is_left_out_of_the_pace():
    now = iter([0.0, 4.0])
    bars = Bars(lambda _: None, lambda: next(now))
    bars.report("works", 90, 100)
    bars.report("works", 92, 100)
    assert bars.stages["works"].remaining == "about 16 s left"


def test_bar__an_error_has_a_line_of_its_own():
    out = Terminal()
    with shown(bars_on(out), live=True):
        or_watched()("eigensolve", 2, 5)
    assert re.search(r"2 of 5[^\r\n]*\r\x1b\[K$", out.getvalue())


@pytest.mark.parametrize(("columns", "block"), [(40, "█"), (200, "█")])
def test_bar__fits_the_terminal_as_it_is_now(monkeypatch, columns, block):
    out = Terminal()
    out.fileno = lambda: 1
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((columns, 20)))
    Lines(out)([StageBar("eigensolve", 0.0, 5.0, 2, 4)])
    line = out.getvalue().rpartition("\x1b[K")[2]
    assert len(line) < columns
    assert block in line


def test_bar__has_plain_characters_where_the_encoding_asks_for_them():
    out = Terminal()
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    ascii_only.isatty = lambda: True
    Lines(ascii_only)([StageBar("eigensolve", 0.0, 5.0, 2, 4)])
    ascii_only.seek(0)
    assert "####" in ascii_only.read()
    Lines(out)([StageBar("eigensolve", 0.0, 5.0, 2, 4)])
    assert "████" in out.getvalue()


def test_bar__dumb_terminals_get_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    lines = Lines(out)
    lines([StageBar("lift", 0.0, 5.0, 2, 4)])
    lines([StageBar("lift", 0.0, 6.0, 4, 4)])
    assert out.getvalue().startswith("lift")
    assert "\x1b" not in out.getvalue()


NAMES = set(STAGES)
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
    """Stages that keep what is reported."""

    def __init__(self):
        super().__init__(Bars(lambda _: None))
        self.reported = []

    def report(self, stage, done, total):
        super().report(stage, done, total)
        self.reported.append((stage, done, total))

    def check(self):
        """Every stage has a name, is counted to its end, and counts up while it runs."""
        assert {stage for stage, _, _ in self.reported} <= NAMES | {"pass"}
        bars = self._bars.stages
        assert {stage for stage, _, _ in self.reported} - {"pass"} == set(bars)
        assert all(bar.ended for bar in bars.values()), [str(bar) for bar in bars.values()]
        for stage, reports in itertools.groupby(self.reported, lambda reported: reported[0]):
            counts = [done for _, done, _ in reports]
            rises = sum(later < earlier for earlier, later in itertools.pairwise(counts))
            assert rises <= counts.count(0), stage


@pytest.mark.slow
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
    stages.check()
    assert "projections" in stages.far
    assert ("landmarks" in stages.far) == ("landmarks" in ROUTES[route] and "refine" not in ROUTES[route])


@pytest.mark.parametrize("options", [{}, THROUGH], ids=["exact", "landmarks"])
def test_bar__moves_in_every_stage_of_an_extension(in_this_thread, make_frames, options):
    frames = make_frames(n=400, p=4)
    embedding = mo.embed(frames[:300], **embed_options(**OPTIONS, **options))
    stages = Watched()
    with stages.bar():
        mo.extend(embedding, frames[300:], progress=stages.report)
    stages.check()
    assert {"references", "extend"} <= set(stages.far)


def test_stages__every_one_that_is_named_is_described():
    found = set()
    for path in sorted((ROOT / "pipeline").rglob("*.py")):
        if path.name != "experiment.py":  # it has a bar of its own
            found |= named(ast.parse(path.read_text(encoding="utf-8")))
    assert {"features", "frames", "landmarks", "near", "pass", "extend", "smoother", "scores"} <= found
    assert found <= NAMES | {"pass"}


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
