"""What coordinates mean in features, and the principal components of the frames: one pass after the solve."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Array, Floats
from manifold_observer.tasks.engine import diffusion
from manifold_observer.tasks.engine.moments import Axes
from manifold_observer.tasks.observers import observer

from ..graph.compute import Progress, compute, task
from ..graph.slabs import ROWS_BYTES, rows_of
from ..graph.spans import blocks
from .blocks import Table
from .decide import Measured
from .shrink import PRINCIPAL


class Features(NamedTuple):
    """Mean of centred features times coordinates (p, m), the same of principal components (p, k), and these (N, k)."""

    lift: Floats
    principal_lift: Floats | None
    principal: Floats | None


def read_features(rows: Table, measured: Measured, psi: Floats, progress: Progress) -> Features:
    """One pass over the frames, for what coordinates mean in features and for principal components."""
    axes, m = measured.axes, psi.shape[1]
    k = 0 if measured.shrunk is None or axes.basis is None else PRINCIPAL
    basis = np.zeros((rows.n_features, 0)) if axes.basis is None else axes.basis[:, :k]
    spans = blocks(rows.n_frames, max(1, ROWS_BYTES // (8 * rows.n_features)))
    parts = [task(_lift_sum, rows_of(rows.data, span), axes, psi[span[0] : span[1]], basis) for span in spans]
    found = compute(parts, "lift", progress)
    total: Floats = sum(one for one, _ in found) / rows.n_frames
    return Features(total[:, :m], total[:, m:], np.concatenate([own for _, own in found]))


def _lift_sum(frames: Array, axes: Axes, psi: Floats, basis: Floats) -> tuple[Floats, Floats]:
    """One block's share of the lift, and its principal components: by rows, the same bits in any block."""
    values = axes.condition(np.asarray(frames, np.float64))
    principal = observer.project(values, axes.mean, basis.T)
    return diffusion.lift_sum(values, axes.mean, np.hstack([psi, principal])), principal
