"""Bars tell the truth about every stage, for threads, Clients and runs; an interrupt leaves a usable session."""

import io
import re
import threading

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.graph.progress import or_watched, silent
from manifold_observer.pipeline.session.progress import Bars, StageBar, as_html
from strategies import smooth_motion

FRAMES = xr.DataArray(smooth_motion(np.random.default_rng(1), 300, 3), dims=("frame", "feature"))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def names_in(text):
    return re.findall(r"^(\w+) +█* +\d+ of \d+ +took", text, re.MULTILINE)


def test_bars__time_left_is_that_of_the_pace_so_far():
    clock, drawn = iter([0.0, 2.0, 6.0, 8.0]), []
    bars = Bars(lambda stages: drawn.append([str(bar) for bar in stages]), lambda: next(clock))
    for done in (0, 1, 3, 4):
        bars.report("lift", done, 4)
    assert ["begun" in drawn[0][0], "6 s left" in drawn[1][0], "2.0 s left" in drawn[2][0]] == [True] * 3
    assert drawn[3][0].endswith("took 8 s")


def test_bars__panels_are_parts_of_a_pass_and_a_stage_may_come_again():
    now = iter(range(100))
    bars = Bars(lambda _: None, lambda: float(next(now)))
    bars.report("eigensolve", 0, 5)
    bars.report("pass", 1, 2)
    assert bars.stages["eigensolve"].done == 0.5
    bars.report("eigensolve", 1, 5)
    bars.report("pass", 1, 2)
    assert bars.stages["eigensolve"].done == 1.5
    bars.report("eigensolve", 4, 4)
    assert bars.stages["eigensolve"].ended
    bars.report("eigensolve", 0, 5)
    assert not bars.stages["eigensolve"].ended
    assert bars.stages["eigensolve"].begun > 4
    assert "pass" not in bars.stages
    bars.report("eigensolve", 5, 5)
    bars.report("eigensolve", 1, 4)  # another one, which said nothing before its first pass
    assert (bars.stages["eigensolve"].ended, bars.stages["eigensolve"].done) == (False, 1)
    assert bars.stages["eigensolve"].begun > 5


def test_bars__are_drawn_at_most_five_times_a_second_from_any_thread():
    drawn = []
    bars = Bars(drawn.append, lambda: 0.0)
    threads = [
        threading.Thread(target=lambda: [bars.report("lift", k, 10_000) for k in range(1, 500)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_progress__a_line_a_stage_where_nothing_can_be_redrawn():
    said = io.StringIO()
    with mo.progress(said):
        embedding = mo.embed(FRAMES)
        mo.observe(embedding, FRAMES[:50] + 0.01)
    names = names_in(said.getvalue())
    assert {"eigensolve", "extend"} <= set(names)
    assert "\x1b" not in said.getvalue()
    before = said.getvalue()
    mo.embed(FRAMES)
    assert said.getvalue() == before
    assert or_watched(silent) is silent


@pytest.mark.filterwarnings("ignore")
def test_progress__a_terminal_has_the_running_stage_on_its_last_line():
    said = Terminal()
    with mo.progress(said):
        mo.embed(FRAMES)
    assert said.getvalue().count("\r\x1b[K") > 2
    assert said.getvalue().rpartition("\r\x1b[K")[2] == ""  # the line is clear at the end


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_progress__of_a_run_and_of_a_client(tmp_path, workers_here):
    np.save(tmp_path / "a.npy", FRAMES.values)
    config = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
    said = io.StringIO()
    with mo.progress(said):
        mo.run([tmp_path / "a.npy"], tmp_path / "a.zarr", config)
    assert {"features", "eigensolve", "observer"} <= set(names_in(said.getvalue()))
    said = io.StringIO()
    with workers_here(1), mo.progress(said):
        mo.embed(FRAMES)
    assert "eigensolve" in names_in(said.getvalue())


@pytest.mark.filterwarnings("ignore")
def test_progress__an_interrupt_leaves_a_usable_session():
    def interrupting(stage, done, total):
        if stage == "eigensolve":
            raise KeyboardInterrupt

    said = io.StringIO()
    with pytest.raises(KeyboardInterrupt), mo.progress(said):
        mo.embed(FRAMES, progress=interrupting)
    assert or_watched(silent) is silent
    with mo.progress(said):
        again = mo.embed(FRAMES)
    np.testing.assert_array_equal(again.coordinate, mo.embed(FRAMES).coordinate)


def test_as_html__names_are_escaped():
    assert "<script>" not in as_html([StageBar("<script>", 0.0, 1.0, 1, 2)])
