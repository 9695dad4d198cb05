"""Axes, metric, form and precision: what is chosen before the first tile."""

from __future__ import annotations

from typing import Any

from manifold_observer.tasks.engine.moments import Axes, Moments, span_axes
from manifold_observer.tasks.engine.probe import Probe
from manifold_observer.tasks.engine.slab import Metric

from ..graph.compute import Progress, silent
from .blocks import Table, fastest, probe, pseudo_inverse
from .config import EmbedConfig
from .shrink import Shrunk, leading, shrink

# Single precision must be this much finer than the scale of the kernel.
_FLOAT32_SHARE = 2e-5


def choose_metric(
    rows: Table, total: Moments, window: int, config: EmbedConfig, progress: Progress = silent
) -> tuple[Metric, Axes, Shrunk | None]:
    """Axes of the distances, and how local covariances are inverted in them; it computes where they are shrunk.

    The axes are the leading ones, or all that the frames span. Given covariances may reach beyond it: their inverses
    must be taken in all features.
    """
    inverse = pseudo_inverse(config, total)
    if rows.covariance is not None:
        return Metric(window, inverse), Axes(total.mean, None), None
    if config.axes is None and config.shrinkage == "none":
        axes = span_axes(total)
        return Metric(window, inverse), axes._replace(conditioning=rows.conditioning), None
    turned = leading(rows, total, config.axes or rows.n_features)
    if config.shrinkage == "none":
        return Metric(window, inverse), turned.axes, None
    shrunk = shrink(rows, turned, window, config, progress)
    return Metric(window, inverse, shrunk.how), turned.axes, shrunk


def choose_form(
    rows: Table, metric: Metric, axes: Axes, config: EmbedConfig, earlier: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Form and precision that a probe chooses; it computes one task.

    Parameters
    ----------
    rows
        Frames.
    metric, axes
        As :func:`choose_metric` chose them.
    config
        Options.
    earlier
        What an earlier run chose, which is chosen again.

    Returns
    -------
    The choice: ``form``, ``precision``, ``float32_error``, ``axes``.
    """
    if earlier:
        return earlier
    found = probe(rows, metric, axes, config.form)
    form = fastest(found.seconds)
    return {
        "form": form,
        "precision": _precision(found, form, config),
        "float32_error": found.float32_error[form],
        "axes": axes.width,
    }


def _precision(found: Probe, form: str, config: EmbedConfig) -> str:
    """float32 where its error is far below the scale of the kernel."""
    if config.precision != "auto":
        return config.precision
    scale = config.epsilon if not isinstance(config.epsilon, str) else config.epsilon_factor * found.median
    share = 0.05 if config.epsilon == "local" else 1.0  # near neighbours lie far below the median
    return "float32" if found.float32_error[form] <= _FLOAT32_SHARE * share * scale else "float64"
