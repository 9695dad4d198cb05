"""No fault costs the user a file or a bit: all kinds of fault at a sample of calls; see the package's docstring."""

import json
import subprocess
import sys

import pytest

from faults import damage, injector
from faults.injector import KINDS, Call
from faults.plans import sample
from faults.scenarios import SCENARIOS
from strategies import QUICK

pytestmark = [
    pytest.mark.skipif(injector.compiler() is None, reason="needs a C compiler on Linux"),
    pytest.mark.timeout(900),
]

TWICE = ("--twice", "1", "--between", "1")
# How many calls and files are chosen, and how many faults and kills these are at least.
SAMPLE, MOST_LAST, LEAST_FAULTS, LEAST_KILLED = (
    (("--sample", "2", "--damage", "64", *TWICE), "4", 10, 4)
    if QUICK
    else (("--sample", "3", "--damage", "32", *TWICE), "5", 12, 5)
)
# A run ends as it does with other tiles, and a demo too: their last calls are the same ones.
LAST = {"disk": "1", "demo": "2"}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """What a process needs that the injector is loaded into."""
    library = injector.compiled(tmp_path_factory.mktemp("injector"))
    return injector.environment(library) | {"TMPDIR": str(tmp_path_factory.mktemp("watched"))}


# A test is a scenario with its damages, in a process of its own: imports are paid once, and tests may run side by side.
@pytest.mark.parametrize("name", SCENARIOS)
def test_faults__nothing_is_lost_and_the_same_bits_come_after_repair(environment, name):
    command = [
        sys.executable,
        "-m",
        "faults.program",
        "--scenarios",
        name,
        "--last",
        LAST.get(name, MOST_LAST),
        *SAMPLE,
    ]
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    faulted, *damaged = [json.loads(line) for line in made.stdout.splitlines()]
    assert faulted["calls"] > 30
    assert faulted["faults"] > LEAST_FAULTS
    assert faulted["ended"]["killed"] > LEAST_KILLED
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
