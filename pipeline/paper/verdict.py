"""Statements with what was found, turned into claims: a statement holds where its test survives all the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from manifold_observer.tasks.comparison import verdicts
from manifold_observer.tasks.comparison.verdicts import Finding

from .experiment import Claim


@dataclass(frozen=True)
class Statement:
    """What is claimed, what was measured, what it is tested against, and the finding of the test."""

    figure: str
    claim: str
    measured: str
    null: str
    finding: Finding


def settle(statements: Sequence[Statement]) -> list[Claim]:
    """Claims of one experiment; tests are corrected for their number by Holm's method.

    Examples
    --------
    >>> found = Finding(0.1, 0.05, 0.15, 0.001)
    >>> settle([Statement("1", "it works", "r 0.9", "r 0.8", found)])[0].holds
    True
    """
    p = [statement.finding.p for statement in statements]
    return [
        Claim(
            own.figure,
            own.claim,
            own.measured,
            bool(holds),
            null=own.null,
            test=described(own.finding, float(adjusted)),
            p=float(adjusted),
        )
        for own, holds, adjusted in zip(statements, verdicts.shown(p), verdicts.holm(p), strict=True)
    ]


def described(finding: Finding, adjusted: float) -> str:
    """Value, interval and p, as the table shows them.

    Examples
    --------
    >>> described(Finding(0.1, 0.05, 0.15, 0.001), 0.002)
    '+0.1 [+0.05, +0.15], p = 0.002'
    """
    return f"{finding.value:+.3g} [{finding.low:+.3g}, {finding.high:+.3g}], p = {adjusted:.2g}"
