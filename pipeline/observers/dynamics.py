"""How coordinates are followed: by a bank of poles, or by transitions where those foretell left-out frames better."""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from manifold_observer.tasks.observers import bank as tasks
from manifold_observer.tasks.observers import transitions
from manifold_observer.tasks.observers.bank import Memory, Mixture

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
AT_BOUND = "transitions_at_bound"
"""Attribute: the fit of the transitions ended at its bound."""
# Frames whose bank is held at a time while a mixture is learnt.
_CHUNK = 2**16
# Frames on which poles and transitions are compared at most, in as many runs; and those transitions are learnt from.
_COMPARED, _RUNS, _LEARNT = 2048, 4, 2**16


class Ahead(NamedTuple):
    """Embedded frames: coordinates (n, m) in units of their deviation, segments (n,), starts of observers (n,)."""

    values: Floats
    segment: NDArray[np.int64]
    anew: Booleans

    def back(self) -> Ahead:
        """The same in reverse order."""
        return Ahead(self.values[::-1], self.segment[::-1], ends_of(self.anew))


class Dynamics(NamedTuple):
    """Memories and mixtures, forwards and backwards; learnt transitions, if they were taken; what is said of it."""

    memories: tuple[Memory, Memory]
    mixtures: tuple[Mixture, Mixture]
    transitions: Floats | None
    attrs: dict[str, Any]


def choose(ahead: Ahead, wanted: str) -> Dynamics:
    """Learn the dynamics that are wanted, or those that foretell left-out frames better.

    Parameters
    ----------
    ahead
        The embedded frames.
    wanted
        ``"poles"``, ``"transitions"`` or ``"auto"``.

    Raises
    ------
    ValueError
        Transitions are wanted of too few frames.
    """
    if wanted == "poles":
        return _poles(ahead, {})
    if wanted == "transitions":
        return _transitions(ahead, {}) or _refused(ahead)
    shares = _compare(ahead)
    if shares is None:
        return _poles(ahead, {})
    told = {"dynamics_foretold": [float(shares.poles.mean()), float(shares.transitions.mean())]}
    found = _transitions(ahead, told) if shares.clearly_better else None
    return found if found is not None and not found.attrs[AT_BOUND] else _poles(ahead, told)


def ends_of(starts: Booleans) -> Booleans:
    """Where observers start anew that run over the same frames in reverse order.

    Examples
    --------
    >>> ends_of(np.array([True, False, True]))
    array([ True,  True, False])
    """
    return np.concatenate([[True], starts[:0:-1]])


def _poles(ahead: Ahead, told: dict[str, Any]) -> Dynamics:
    """The bank of fixed poles."""
    poles = np.array(tasks.POLES)
    attrs = {"dynamics": "poles", **told, "poles": list(tasks.POLES)}
    return Dynamics((poles, poles), (_mixture(ahead), _mixture(ahead.back())), None, attrs)


def _transitions(ahead: Ahead, told: dict[str, Any]) -> Dynamics | None:
    """Learnt transitions both ways; None where there are too few frames."""
    forwards, backwards = (transitions.learn(one.values[:_LEARNT], one.anew[:_LEARNT]) for one in (ahead, ahead.back()))
    if forwards is None or backwards is None:
        return None
    bound = int(forwards.at_bound or backwards.at_bound)
    attrs = {"dynamics": "transitions", **told, AT_BOUND: bound}
    mixtures = forwards.mixture, backwards.mixture
    return Dynamics((forwards.filter, backwards.filter), mixtures, forwards.dynamics, attrs)


def _refused(ahead: Ahead) -> NoReturn:
    """Say of how many frames transitions can be learnt."""
    raise ValueError(
        "observe: dynamics='transitions' needs five frames that follow another one for each of the "
        f"{ahead.values.shape[1]} coordinates; got {len(ahead.values)} embedded frames. Embed more of them, or give "
        "dynamics='poles'."
    )


def _compare(ahead: Ahead) -> transitions.Shares | None:
    """What both foretell, on all frames or on a few evenly spread runs."""
    n = len(ahead.values)
    if n > _COMPARED:
        length = _COMPARED // _RUNS
        firsts = np.linspace(0, n - length, _RUNS).astype(np.int64)
        some = (firsts[:, None] + np.arange(length)).ravel()
        begun = np.isin(np.arange(len(some)) % length, [0])
        segment = np.cumsum(begun | np.concatenate([[True], np.diff(ahead.segment[some]) != 0]))
        ahead = Ahead(ahead.values[some], segment, ahead.anew[some] | begun)
    return transitions.shares(*ahead, np.array(tasks.POLES))


def _mixture(ahead: Ahead) -> Mixture:
    """Learn from frames in their order how a bank is mixed."""
    poles, (values, segment, anew) = np.array(tasks.POLES), ahead
    n, m = values.shape
    carry = np.zeros(m * len(poles))
    sums = [tasks.nothing(len(carry), m) for _ in tasks.AHEAD]
    later = [np.minimum(np.arange(n) + h, n - 1) for h in tasks.AHEAD]
    followed = [(segment[then] == segment) & (np.arange(n) + h < n) for h, then in zip(tasks.AHEAD, later, strict=True)]
    for first in range(0, n, _CHUNK):
        own = slice(first, first + _CHUNK)
        bank, carry = tasks.scan(values[own], anew[own], carry, poles)
        sums = [
            tasks.add(known, bank, values[then[own]], where[own])
            for known, then, where in zip(sums, later, followed, strict=True)
        ]
    return tasks.steadied(tasks.foretell(sums), poles)
