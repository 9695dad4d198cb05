"""Axes, metric, form and precision: what is chosen before the first tile."""

from __future__ import annotations

from typing import Any

from manifold_observer.tasks.engine.moments import Axes, Moments, span_axes
from manifold_observer.tasks.engine.probe import Probe
from manifold_observer.tasks.engine.slab import Metric

from .blocks import Table, fastest, probe, pseudo_inverse
from .config import EmbedConfig

# Single precision must be this much finer than the scale of the kernel.
_FLOAT32_SHARE = 2e-5


def choose_axes(rows: Table, total: Moments) -> Axes:
    """Axes of the distances: what the frames span.

    Given covariances may reach beyond it: their inverses must be taken in all features.
    """
    return Axes(total.mean, None) if rows.covariance is not None else span_axes(total)


def choose_form(
    rows: Table, total: Moments, window: int, config: EmbedConfig, earlier: dict[str, Any] | None = None
) -> tuple[Metric, Axes, dict[str, Any]]:
    """Metric and axes, and the form and precision that a probe chooses; it computes one task.

    Parameters
    ----------
    rows
        Frames.
    total
        Their moments.
    window
        Frames of a window, 0 where covariances are given.
    config
        Options.
    earlier
        What an earlier run chose, which is chosen again.

    Returns
    -------
    Metric, axes, and the choice: ``form``, ``precision``, ``float32_error``, ``axes``.
    """
    metric, axes = Metric(window, pseudo_inverse(config, total)), choose_axes(rows, total)
    if earlier:
        return metric, axes, earlier
    found = probe(rows, metric, axes, config.form)
    form = fastest(found.seconds)
    choice = {
        "form": form,
        "precision": _precision(found, form, config),
        "float32_error": found.float32_error[form],
        "axes": axes.width,
    }
    return metric, axes, choice


def _precision(found: Probe, form: str, config: EmbedConfig) -> str:
    """float32 where its error is far below the scale of the kernel."""
    if config.precision != "auto":
        return config.precision
    scale = config.epsilon if not isinstance(config.epsilon, str) else config.epsilon_factor * found.median
    share = 0.05 if config.epsilon == "local" else 1.0  # near neighbours lie far below the median
    return "float32" if found.float32_error[form] <= _FLOAT32_SHARE * share * scale else "float64"
