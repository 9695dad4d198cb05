"""What coordinates mean in features, and the principal components of the frames: one pass after the solve."""

from __future__ import annotations

from typing import NamedTuple

import dask.array as da
import numpy as np

from manifold_observer.tasks.arrays import Array, Floats
from manifold_observer.tasks.engine import diffusion
from manifold_observer.tasks.engine.moments import Axes
from manifold_observer.tasks.observers import observer

from ..graph.compute import stream, task
from ..graph.kept import array_of
from ..graph.progress import Progress
from ..graph.slabs import ROWS_BYTES, rows_of
from ..graph.spans import blocks
from .blocks import Table
from .decide import Measured
from .shrink import PRINCIPAL


class Features(NamedTuple):
    """Mean of centred features times coordinates (p, m), the same of principal components (p, k), and these (N, k)."""

    lift: Floats
    principal_lift: Floats | None
    principal: Floats | da.Array | None


def read_features(rows: Table, measured: Measured, psi: Floats | da.Array, progress: Progress) -> Features:
    """One pass over the frames, for what coordinates mean in features and for principal components.

    These are lazy where the coordinates are.
    """
    axes, m = measured.axes, psi.shape[1]
    k = 0 if measured.shrunk is None or axes.basis is None else PRINCIPAL
    basis = np.zeros((rows.n_features, 0)) if axes.basis is None else axes.basis[:, :k]
    spans = blocks(rows.n_frames, max(1, ROWS_BYTES // (8 * rows.n_features)))
    here = isinstance(psi, np.ndarray)
    parts = (task(_lift_sum, rows_of(rows.data, span), axes, rows_of(psi, span), basis, here) for span in spans)
    found = list(stream(parts, len(spans), "lift", progress))
    total: Floats = sum(one for one, _ in found) / rows.n_frames
    if here:
        return Features(total[:, :m], total[:, m:], np.concatenate([own for _, own in found]))
    # Made from the frames where they are used.
    later = [task(_components, rows_of(rows.data, span), axes, basis) for span in spans]
    own = array_of(later, [stop - start for start, stop in spans], k, np.asarray)
    return Features(total[:, :m], total[:, m:], own)


def _components(frames: Array, axes: Axes, basis: Floats) -> Floats:
    """Principal components of one block: by rows, the same bits in any block."""
    return observer.project(axes.condition(np.asarray(frames, np.float64)), axes.mean, basis.T)


def _lift_sum(frames: Array, axes: Axes, psi: Floats, basis: Floats, wanted: bool) -> tuple[Floats, Floats]:
    """One block's share of the lift, and its principal components if they are wanted here."""
    values = axes.condition(np.asarray(frames, np.float64))
    principal = observer.project(values, axes.mean, basis.T)
    return diffusion.lift_sum(values, axes.mean, np.hstack([psi, principal])), principal if wanted else principal[:0]
