"""Stages are timed, and the bar only moves forwards, on a terminal only."""

import io
import time

import pytest

from manifold_observer.pipeline.jobs.progress import Stages


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
