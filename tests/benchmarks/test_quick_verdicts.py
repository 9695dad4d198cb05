"""The comparison of verdicts sees what turned, and allows for few realisations."""

import importlib.util
import json
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("quick_verdicts", Path(__file__).with_name("quick_verdicts.py"))
quick_verdicts = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(quick_verdicts)
OPEN, SURE, STORED = quick_verdicts.OPEN, quick_verdicts.SURE, quick_verdicts.STORED
differences, rows, verdict = quick_verdicts.differences, quick_verdicts.rows, quick_verdicts.verdict

CLAIMS = {"toy": [{"claim": "a", "holds": True, "p": 0.001}, {"claim": "b", "holds": False, "p": 0.9}]}


@pytest.mark.parametrize(
    ("p", "expected"),
    [(0.9 * SURE, "yes"), (1.1 * SURE, "either"), (0.9 * OPEN, "either"), (1.1 * OPEN, "no")],
)
def test_verdict__is_open_near_the_level(p, expected):
    assert verdict(p) == expected


def test_differences__as_stored_there_are_none():
    assert differences(CLAIMS, rows(CLAIMS)) == []


@pytest.mark.parametrize("place", [0, 1])
def test_differences__a_verdict_that_turned_is_named(place):
    changed = json.loads(json.dumps(CLAIMS))
    changed["toy"][place]["holds"] = not changed["toy"][place]["holds"]
    (line,) = differences(changed, rows(CLAIMS))
    assert line.startswith(f"toy: {'ab'[place]}: ")
    open_rows = {"toy": dict.fromkeys("ab", "either")}
    assert differences(changed, open_rows) == []


def test_differences__claims_that_are_missing_or_new_are_named():
    fewer = {"toy": CLAIMS["toy"][:1]}
    assert differences(fewer, rows(CLAIMS)) == ["toy: b: missing"]
    assert differences(CLAIMS, rows(fewer)) == ["toy: b: not stored"]
    assert differences({}, rows(fewer)) == ["toy: a: missing"]


def test_stored__has_both_verdicts_of_all_experiments():
    stored = json.loads(STORED.read_text())
    assert len(stored) == 9
    kinds = [verdict for own in stored.values() for verdict in own.values()]
    assert kinds.count("yes") >= 10
    assert kinds.count("no") >= 10
