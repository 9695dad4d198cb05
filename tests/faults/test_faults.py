"""No fault costs the user a file or a bit: all kinds of fault at a sample of calls; see the package's docstring."""

import json
import subprocess
import sys
from typing import NamedTuple

import pytest

from faults import damage, injector
from faults.injector import KINDS, Call
from faults.plans import sample
from faults.scenarios import SCENARIOS
from strategies import QUICK, share

pytestmark = [
    pytest.mark.skipif(injector.compiler() is None, reason="needs a C compiler on Linux"),
    pytest.mark.timeout(900),
]


class Chosen(NamedTuple):
    """How many calls and files are chosen in a scenario, and how many faults and kills these are at least."""

    sample: str
    last: str
    damage: str
    faults: int
    killed: int

    @property
    def words(self):
        return ("--sample", self.sample, "--last", self.last, "--damage", self.damage, "--twice", "1", "--between", "1")


# A run ends as it does with other tiles or over an earlier result, and a demo too: their last calls are the same ones.
LIKE_RUN = {"disk": "1", "demo": "2"}
CHOSEN = {
    name: (Chosen("1", "1", "64", 6, 4) if name in (*LIKE_RUN, "overwrite") else Chosen("1", "1", "128", 6, 3))
    if QUICK
    else Chosen("1", LIKE_RUN.get(name, "3"), "64", 6, 4)
    for name in SCENARIOS
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """What a process needs that the injector is loaded into."""
    library = injector.compiled(tmp_path_factory.mktemp("injector"))
    return injector.environment(library) | {"TMPDIR": str(tmp_path_factory.mktemp("watched"))}


# A test is a scenario with its damages, in a process of its own: imports are paid once, and tests may run side by side.
@pytest.mark.slow
@pytest.mark.parametrize("name", share(SCENARIOS, 6))
def test_faults__nothing_is_lost_and_the_same_bits_come_after_repair(environment, name):
    chosen = CHOSEN[name]
    command = [sys.executable, "-m", "faults.program", "--scenarios", name, *chosen.words]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    faulted, *damaged = [json.loads(line) for line in made.stdout.splitlines()]
    assert faulted["calls"] > 30
    assert faulted["faults"] > chosen.faults
    assert faulted["ended"]["killed"] > chosen.killed
    assert faulted["ended"]["failed"] > 0
    assert [row["faults"] > 5 for row in damaged] == [True] * (name in damage.SCENARIOS)
    violations = [sentence for row in (faulted, *damaged) for sentence in row["violations"]]
    assert not violations, "\n".join(violations)


def test_sample__holds_every_kind_and_the_last_calls():
    calls = [Call(injector.OPERATIONS[n % 7], f"{n}", 8, False) for n in range(100)]
    cases = list(sample(calls, 20, 10))
    assert {case.faults[0].kind for case in cases} == set(KINDS)
    assert calls[97].operation == "rename"
    assert {case.faults[0].number for case in cases} >= {1, 98, 99, *range(82, 101, 2)}


@pytest.mark.slow
def test_faults__of_a_corpus_cost_no_other_recording_and_the_same_command_mends_them(environment):
    command = [sys.executable, "-m", "faults.corpus", "--sample", "3" if QUICK else "8"]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    found = json.loads(made.stdout.splitlines()[-1])
    assert found["broken"] == []
    assert found["faults"] >= 3
