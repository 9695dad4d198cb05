"""Which calls of a scenario go wrong, and how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .injector import KINDS, Call, Fault, applies

_OF_WRITES = ("cut", "short")
_ROTATION = tuple(name for name in KINDS if name not in _OF_WRITES)
_SURVIVED = tuple(name for name in _ROTATION if not KINDS[name].kills)


class Case(NamedTuple):
    """Faults of the runs one after the other, each of which fails; then follows one without."""

    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        return ", then ".join(f"{fault.kind} at {fault.number}" for fault in self.faults)


def every(calls: Sequence[Call], step: int = 1) -> Iterator[Case]:
    """Every kind of fault at every step-th call. A kill after a call is the kill before the next one."""
    for number in range(1, len(calls) + 1, step):
        for kind in KINDS:
            if applies(kind, calls[number - 1]) and (kind != "kill-after" or number == len(calls)):
                yield Case((Fault(kind, number),))


def sample(calls: Sequence[Call], n_spread: int, n_last: int) -> Iterator[Case]:
    """All kinds in turn over calls that are evenly spread; the last ones with a kill each, and a failure.

    Among the last ones are the renames that let a result appear.
    """
    n = len(calls)
    spread = sorted({1 + k * max(0, n - n_last - 1) // max(1, n_spread) for k in range(n_spread)})
    for turn, number in enumerate(spread):
        yield from (Case((Fault(kind, number),)) for kind in _in_turn(calls[number - 1], _ROTATION, 2 * turn, 2))
    for turn, number in enumerate(_ending(calls, n_last)):
        yield Case((Fault("kill-before", number),))
        yield from (Case((Fault(kind, number),)) for kind in _in_turn(calls[number - 1], _SURVIVED, turn, 1))
    yield Case((Fault("kill-after", n),))
    writes = [number for number, call in enumerate(calls, 1) if applies("cut", call)]
    for turn in range(n_spread if writes else 0):
        yield Case((Fault(_OF_WRITES[turn % 2], writes[turn * (len(writes) - 1) // max(1, n_spread - 1)]),))


def _ending(calls: Sequence[Call], n_last: int) -> list[int]:
    """So many last calls, every other one from the last back, and the last renames with the calls after them."""
    n = len(calls)
    renames = [number for number, call in enumerate(calls, 1) if call.operation == "rename" and number > n - 40][-1:]
    ending = {*range(n, max(0, n - 2 * n_last), -2), *renames, *(number + 1 for number in renames)}
    return sorted(number for number in ending if 1 <= number <= n)


def twice(calls: Sequence[Call], n_pairs: int) -> Iterator[Case]:
    """Two runs that are killed at different places, one after the other."""
    n = len(calls)
    for k in range(n_pairs):
        late, early = n - 1 - (k * n) // (2 * n_pairs + 1), 1 + (k + 1) * n // (n_pairs + 2)
        pair = (late, early) if k % 2 == 0 else (early, late)
        yield Case(tuple(Fault("kill-before", max(1, number)) for number in pair))


def _in_turn(call: Call, kinds: Sequence[str], turn: int, number: int) -> list[str]:
    """So many kinds that the call can suffer: those whose turn it is, or that come next."""
    able = [kind for k in range(len(kinds)) if applies(kind := kinds[(turn + k) % len(kinds)], call)]
    return able[:number]
