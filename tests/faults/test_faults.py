"""No fault costs the user a file or a bit: all kinds of fault at a sample of calls; see the package's docstring."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from faults import damage, injector
from faults.injector import KINDS, Call
from faults.plans import sample
from faults.scenarios import SCENARIOS

pytestmark = [
    pytest.mark.skipif(injector.compiler() is None, reason="needs a C compiler on Linux"),
    pytest.mark.timeout(900),
]

# Two processes at a time; in each, imports are paid once.
GROUPS = ("run,overwrite,extend", "disk,demo,reproduce")
QUICK = ("--sample", "3", "--last", "8", "--twice", "1", "--between", "1", "--damage", "32")


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """What came of every scenario, and of the damages to its files."""
    library = injector.compiled(tmp_path_factory.mktemp("injector"))
    environment = injector.environment(library) | {"TMPDIR": str(tmp_path_factory.mktemp("watched"))}

    def driven(names):
        command = [sys.executable, "-m", "faults.program", "--scenarios", names, *QUICK]
        made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        return [json.loads(line) for line in made.stdout.splitlines()]

    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        return {row["scenario"]: row for rows in pool.map(driven, GROUPS) for row in rows}


@pytest.mark.parametrize("name", SCENARIOS)
def test_faults__nothing_is_lost_and_the_same_bits_come_after_repair(reports, name):
    report = reports[name]
    assert report["calls"] > 30
    assert report["faults"] > 20
    assert report["ended"]["killed"] > 8
    assert report["ended"]["failed"] > 0
    assert not report["violations"], "\n".join(report["violations"])


@pytest.mark.parametrize("name", damage.SCENARIOS)
def test_damage__gives_the_right_numbers_or_one_sentence(reports, name):
    report = reports[f"{name}, damaged"]
    assert report["faults"] > 5
    assert not report["violations"], "\n".join(report["violations"])


def test_sample__holds_every_kind_and_the_last_calls():
    calls = [Call(injector.OPERATIONS[n % 7], f"{n}", 8, False) for n in range(100)]
    cases = list(sample(calls, 20, 10))
    assert {case.faults[0].kind for case in cases} == set(KINDS)
    assert {case.faults[0].number for case in cases} >= {1, *range(91, 101)}
