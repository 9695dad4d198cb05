"""Every command that writes, under every kind of fault at every call that changes a file; see tests/faults.

It takes hours with ``--every 1``, and prints a table at the end; it fails where a promise was broken.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# This script bears the name of the package that it drives, and its folder comes first.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from faults import injector, program  # noqa: E402


def driven(words: list[str], library: Path) -> list[dict[str, Any]]:
    """Run the program with the injector loaded; the JSON objects that it prints."""
    command = [sys.executable, "-m", "faults.program", *words]
    made = subprocess.run(command, env=injector.environment(library), stdout=subprocess.PIPE, text=True, check=True)
    if "--trace" in words:
        print(made.stdout, end="")
        return []
    return [json.loads(line) for line in made.stdout.splitlines()]


def run(options: argparse.Namespace, words: list[str]) -> list[dict[str, Any]]:
    """All scenarios, as many at a time as there are cores."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        library = injector.compiled(Path(folder))
        jobs = [[*words, "--scenarios", name] for name in options.scenarios.split(",")]
        return [row for rows in pool.map(lambda job: driven(job, library), jobs) for row in rows]


def table(rows: list[dict[str, Any]]) -> str:
    """One line a scenario."""
    lines = ["| scenario | calls | faults | ended | violations |", "|---|---|---|---|---|"]
    for row in rows:
        ended = ", ".join(f"{number} {how}" for how, number in row["ended"].items())
        lines.append(f"| {row['scenario']} | {row['calls']} | {row['faults']} | {ended} | {len(row['violations'])} |")
    return "\n".join(lines)


if __name__ == "__main__":
    found = run(program.parser().parse_args(), sys.argv[1:])
    for violation in (violation for row in found for violation in row["violations"]):
        print(violation, file=sys.stderr)
    if found:
        print(table(found))
    sys.exit(any(row["violations"] for row in found))
