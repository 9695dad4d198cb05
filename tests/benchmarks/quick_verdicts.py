"""The quick form of the paper's experiments against a stored table of verdicts.

    python tests/benchmarks/quick_verdicts.py OUT/claims.json            # exit code 1 where a verdict differs
    python tests/benchmarks/quick_verdicts.py OUT/claims.json --store    # write the table anew

A few realisations prove little, so a verdict counts only where its p is far from the level on both sides: rows with p
between 0.01 and 0.25 may turn either way. Rows of sounds that this machine cannot make are left out.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

STORED = Path(__file__).parent / "quick_verdicts.json"
SURE, OPEN = 0.01, 0.25


def verdict(p: float) -> str:
    """What can be said of a row: yes, no, or either."""
    return "yes" if p < SURE else "no" if p > OPEN else "either"


def rows(claims: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, str]]:
    """Verdict of every claim by experiment."""
    return {name: {row["claim"]: verdict(row["p"]) for row in own} for name, own in claims.items()}


def differences(
    found: dict[str, list[dict[str, Any]]], stored: dict[str, dict[str, str]], sampled: bool = True
) -> list[str]:
    """One line for every claim that is missing, new, or judged otherwise; none where all is as it was."""
    lines = []
    for name, own in stored.items():
        now = {row["claim"]: row for row in found.get(name, [])}
        for claim, expected in own.items():
            if claim in now and _differs(now[claim], expected):
                lines.append(f"{name}: {claim}: {'yes' if now[claim]['holds'] else 'no'}, stored {expected}")
            elif claim not in now and (sampled or "sampled" not in claim):
                lines.append(f"{name}: {claim}: missing")
        lines += [f"{name}: {claim}: not stored" for claim in now if claim not in own and "additive" not in claim]
    return lines


def _differs(row: dict[str, Any], expected: str) -> bool:
    """Whether a verdict turned that was not open."""
    return expected != "either" and bool(row["holds"]) != (expected == "yes")


def main() -> None:
    """Compare, or store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("claims", type=Path)
    parser.add_argument("--store", action="store_true")
    arguments = parser.parse_args()
    found = json.loads(arguments.claims.read_text())
    if arguments.store:
        STORED.write_text(json.dumps(rows(found), indent=1, ensure_ascii=False) + "\n")
        return
    sampled = bool(re.search("sampled", arguments.claims.read_text()))
    lines = differences(found, json.loads(STORED.read_text()), sampled)
    print("\n".join(lines) or "verdicts as stored")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
