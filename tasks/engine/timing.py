"""How long the parts of an embedding take on this worker, from a few tiles of real frames."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.engine import kernel, panel
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.slab import Slab


class Rates(NamedTuple):
    """Seconds a frame to make its block, a pair to make and multiply its affinity, and to multiply a stored one."""

    block: float
    fused: float
    stored: float


def rates(slab: Slab, distance: Distance, width: int) -> Rates:
    """Time a block and a tile of it.

    Parameters
    ----------
    slab
        Centred frames with halo; a tile as large as those of the embedding is best.
    distance
        As the embedding has it.
    width
        Vectors that a pass multiplies.

    Returns
    -------
    Seconds, best of three for the products.

    Notes
    -----
    Takes about as long as one block and seven tiles.

    Examples
    --------
    >>> from manifold_observer.tasks.engine.covariance import PseudoInverse
    >>> from manifold_observer.tasks.engine.moments import Axes
    >>> from manifold_observer.tasks.engine.slab import Metric
    >>> distance = Distance(Metric(0, PseudoInverse()), Axes(np.zeros(3), None), "factor", "float64")
    >>> slab = Slab(np.eye(3), np.arange(3), np.arange(3), np.tile(np.eye(3), (3, 1, 1)))
    >>> min(rates(slab, distance, 2)) > 0
    True
    """
    before = time.perf_counter()
    block = distance.block(slab)
    n = block.n_frames
    per_frame = (time.perf_counter() - before) / n
    x = np.random.default_rng(0).normal(size=(2 * n, width))
    typical = float(np.median(kernel.squared_distances(block, block.take(np.arange(min(n, 64))))))
    scale = kernel.Scale(max(typical, 1e-30))
    fused = _best(lambda: panel.fused_product([block, block], [(0, 1)], [(0, n)], scale, x))
    tile = kernel.kernel_tile(block, block, scale.epsilon)
    stored = _best(lambda: panel.stored_product([tile], [(0, n)], x))
    return Rates(per_frame, fused / n**2, stored / n**2)


def _best(function: Callable[[], object], repeats: int = 3) -> float:
    """Least of a few times."""
    seconds = []
    for _ in range(repeats):
        before = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - before)
    return min(seconds)
