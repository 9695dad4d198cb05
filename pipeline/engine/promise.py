"""What is said of landmarks with a tolerated residual: what is expected, what came of it, and what would help."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from manifold_observer.tasks.engine import diffusion
from manifold_observer.tasks.engine.expected import RATE, Expected

from ..graph.warn import warn
from .config import Attrs, EmbedConfig
from .decide import Decision, choose_home, larger, shape_of
from .foresight import Foresight
from .memory import exact_memory, projected_memory
from .problem import Found, Problem
from .rounds import Outcome


def through(outcome: Outcome, problem: Problem) -> Found:
    """Coordinates as landmarks alone give them: unit mean square, fixed signs, residuals from exact rows."""
    last, n = outcome.last, problem.table.n_frames
    psi = last.carried.coordinates / np.sqrt(np.square(last.carried.coordinates).mean(axis=0))
    psi *= diffusion.signs(psi)
    rows = f"{outcome.sample} exact rows" if outcome.sample < n else "all rows"
    return Found(
        eigenvalues=last.eigenvalues,
        residuals=last.judged.residuals,
        coordinates=psi,
        degrees=last.carried.degrees,
        scale=outcome.scale,
        lift=None,
        attrs={
            "passes": 0,
            "residual_from": f"estimated from {rows}",
            "residual_at_most": float(last.judged.bounds.max()),
        },
    )


def told(found: Found, outcome: Outcome, problem: Problem) -> Found:
    """The same with what was expected and what was reached; a warning where that is less than what was asked for."""
    config, foreseen = problem.config, outcome.foresight.expected
    tolerance = (config.residual_tolerance or 0.0) * float(found.eigenvalues[0])
    worst = float(found.attrs.get("residual_at_most", found.residuals.max()))
    if worst > tolerance:
        warn(_unreached(worst / float(found.eigenvalues[0]), found, outcome, config))
    attrs: Attrs = {
        "method": "landmarks",
        "landmark_kernel": "projected",
        "n_landmarks": outcome.last.landmarks,
        "landmark_rounds": ", ".join(f"{one.landmarks}: {one.residual:.1e}" for one in outcome.rounds),
        "epsilon_from": "sample" if isinstance(config.epsilon, str) else "given",
        "residual_reached": "yes" if worst <= tolerance else "no",
        "expected_landmarks": foreseen.landmarks,
        "expected_passes": foreseen.passes,
        "expected_residual": foreseen.residual,
    }
    return found._replace(attrs=found.attrs | attrs)


def with_passes(problem: Problem, foreseen: Expected) -> Decision:
    """The decision with the landmarks and passes that are expected: home of the tiles, passes, memory."""
    decision, config, n = problem.decision, problem.config, problem.table.n_frames
    shape = shape_of(n, decision.distance, config, decision.workers.threads)
    memory = projected_memory(shape, foreseen.landmarks)
    passes = max(foreseen.passes, config.refine)
    if not passes:
        return replace(decision, passes=0, memory=memory)
    home = choose_home(n, decision.distance.itemsize, config.home, decision.workers)
    exact = exact_memory(shape, home, passes, decision.workers.number)
    return replace(decision, home=home, passes=passes, memory=larger(memory, exact))


def _unreached(worst: float, found: Found, outcome: Outcome, config: EmbedConfig) -> str:
    """The sentence for a residual above what was asked for."""
    how = "is" if found.attrs["residual_from"] == "measured" else "may be"
    return (
        f"embed: the largest residual {how} {worst:.1e} of the largest eigenvalue, above "
        f"residual_tolerance={config.residual_tolerance:g}, after {outcome.last.landmarks} landmarks and "
        f"{found.attrs['passes']} exact passes. {_remedy(outcome.foresight, outcome, config)}"
    )


def _remedy(foresight: Foresight, outcome: Outcome, config: EmbedConfig) -> str:
    """What would bring it down further."""
    bounds, prices, spent = foresight.bounds, foresight.prices, outcome.last.landmarks
    done = sum(prices.of_landmarks(one.landmarks) for one in outcome.rounds)
    helps = []
    if config.landmarks is not None and spent >= config.landmarks:
        helps.append(f"more than landmarks={config.landmarks}")
    if outcome.passes and outcome.passes >= config.max_passes:
        helps.append(f"more than max_passes={config.max_passes}")
    if prices.of_passes(1) + prices.of_landmarks(2 * spent) > bounds.work - done:
        more = max(prices.of_passes(outcome.passes + 2), prices.of_passes(1) + prices.of_landmarks(2 * spent))
        hours = np.ceil((more + done) / RATE / 3600)
        helps.append(f"max_core_hours={hours:g}")
    if not bounds.passes:
        helps.append("workers with more memory")
    return f"Give {', or '.join([*helps, 'a larger residual_tolerance='])}."
