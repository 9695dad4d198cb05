"""Deliberate faults in the paper's verdicts, each in a copy of the project: do the tests see them?

python tests/benchmarks/mutations.py            # all of them; a table, and exit code 1 if one was not seen
python tests/benchmarks/mutations.py --only 3 7
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parents[2]
_FOLDERS = ("pipeline", "tasks", "datasets")
_JUDGES = ("tests/pipeline/paper/test_judges.py", "tests/tasks/comparison/test_verdicts.py")
_ESTIMATES = ("tests/pipeline/paper/test_experiment.py",)
_PRINTED = ("tests/pipeline/paper/test_printed.py",)
_CALIBRATE = ("tests/pipeline/observers/test_calibrate.py",)
_V, _D = "tasks/comparison/verdicts.py", "pipeline/paper/drift.py"


class Fault(NamedTuple):
    """What is wrong, where, the text that is replaced (it must occur), by what, and the tests that should see it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = _JUDGES


FAULTS = [
    # Those of the audit.
    Fault("p ignored", _V, "return holm(p) < level", "return holm(p) < 2"),
    Fault("the margin .01 made .5", _D, "_CLOSE = 0.01", "_CLOSE = 0.5"),
    Fault(
        "a claim wired to True: boundary",
        "pipeline/paper/sphere.py",
        "verdicts.exceeds(ratio, level)",
        "verdicts.exceeds(ratio, 0.0)",
    ),
    Fault(
        "a claim wired to True: window",
        _D,
        "verdicts.exceeds_everywhere(pairs),\n            )",
        "verdicts.Finding(1, 1, 1, 0.0),\n            )",
    ),
    Fault(
        "diffusion maps rolled by a frame",
        _D,
        "    values = [x.transpose(",
        '    estimates["diffusion_maps"] = estimates["diffusion_maps"].roll(frame=1)\n    values = [x.transpose(',
        _ESTIMATES,
    ),
    Fault("TICA's lag 50", _D, "TICA(lagtime=1,", "TICA(lagtime=50,", _ESTIMATES),
    Fault(
        "rapid run inverted",
        "pipeline/paper/music_claims.py",
        "verdicts.exceeds(slow, rapid, _CLEARLY)",
        "verdicts.exceeds(rapid, slow, _CLEARLY)",
    ),
    # Ten more, and the one of the calibration.
    Fault(
        "calibrated_rate_error without its factor",
        "tasks/observers/dynamics.py",
        "_times(_rate_errors(shared, error, own, apart), rates)",
        "_rate_errors(shared, error, own, apart)",
        _CALIBRATE,
    ),
    Fault("the test is two-sided", _V, "stdtr(r - 1, -excess / error))", "2 * stdtr(r - 1, -abs(excess / error)))"),
    Fault("no correction for many tests", _V, "return holm(p) < level", "return np.asarray(p) < level"),
    Fault(
        "best place in place of all places",
        _V,
        "_replace(p=max(place.p for place in found))",
        "_replace(p=min(place.p for place in found))",
    ),
    Fault("deviation without its degree of freedom", _V, "difference.std(ddof=1)", "difference.std()"),
    Fault(
        "one realisation is enough",
        _V,
        "if r < 2:\n        return Finding(mean, -np.inf, np.inf, 1.0)",
        "if r < 2:\n        return Finding(mean, mean, mean, 0.0 if mean > margin else 1.0)",
    ),
    Fault("a band with one side", _V, "max(max(above.p, below.p) for", "max(min(above.p, below.p) for"),
    Fault(
        "the null of the boundary does not shrink",
        _V,
        "r**2 * centred + r * np.sqrt(1 - r**2) * noise",
        "centred + np.sqrt(1 / r**2 - 1) * noise",
    ),
    Fault(
        "the regression is read where it was fitted",
        _D,
        "tasks.linear_readout(x, angles, N_FOLDS)",
        "tasks.linear_readout(x, angles)",
        _ESTIMATES,
    ),
    Fault(
        "the extension is fitted on the new frames",
        "pipeline/paper/sphere.py",
        "scores.fit_linear(value, angles[:learnt])",
        "scores.fit_linear(value, angles[-len(value):])",
        _ESTIMATES,
    ),
    Fault(
        "alpha of the double well swapped",
        "pipeline/paper/theory.py",
        'joined["well_rate"].values[:, k]',
        'joined["well_rate"].values[:, 1 - k]',
    ),
    Fault(
        "the mend is the tangent",
        "pipeline/paper/printed.py",
        '"isotropic": _isotropic,',
        '"isotropic": _tangent,',
        _PRINTED,
    ),
    Fault(
        "silhouettes of instruments are those of notes",
        "pipeline/paper/music_claims.py",
        'scores["silhouette"].sel(label=label), than)',
        'scores["silhouette"].sel(label="note"), than)',
    ),
]


def seen(fault: Fault) -> str:
    """The first test that failed with the fault, or nothing."""
    with tempfile.TemporaryDirectory(prefix="manifold-observer-fault-") as folder:
        copy = Path(folder) / "project"
        copy.mkdir()
        for name in (*_FOLDERS, "tests"):
            shutil.copytree(HERE / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(HERE / "pyproject.toml", copy)
        links = Path(folder) / "links" / "manifold_observer"
        links.mkdir(parents=True)
        for name in _FOLDERS:
            (links / name).symlink_to(copy / name)
        _break(copy / fault.file, fault)
        return _first_failure(copy, links.parent, fault.tests)


def _break(place: Path, fault: Fault) -> None:
    """Put the fault in; the text that it replaces must be there."""
    text = place.read_text()
    if fault.old not in text:
        raise SystemExit(f"mutations: {fault.file} must hold {fault.old!r} for the fault {fault.name!r}; it does not.")
    place.write_text(text.replace(fault.old, fault.new, 1))


def _first_failure(copy: Path, path: Path, tests: tuple[str, ...]) -> str:
    """Name of the first failing test in the copy."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "--tb=no",
        "-rf",
        *tests,
    ]
    environment = os.environ | {"PYTHONPATH": str(path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    failed = [line.split(" ")[1].rpartition("::")[2] for line in done.stdout.splitlines() if line.startswith("FAILED")]
    if done.returncode not in (0, 1):
        raise SystemExit(f"mutations: the tests must run; pytest ended with {done.returncode}.\n{done.stdout[-2000:]}")
    return failed[0] if failed else ""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of faults, from 1")
    only = parser.parse_args().only or range(1, len(FAULTS) + 1)
    print("| fault | seen by |\n|---|---|", flush=True)
    missed = 0
    for number in only:
        found = seen(FAULTS[number - 1])
        missed += not found
        print(f"| {number}. {FAULTS[number - 1].name} | {f'`{found}`' if found else '**nothing**'} |", flush=True)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
