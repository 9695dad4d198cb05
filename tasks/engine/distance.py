"""The distance between frames: chosen once, before the first tile, and sent along with every task."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Floats
from manifold_observer.tasks.engine.forms import FORMS, build_block
from manifold_observer.tasks.engine.moments import Axes
from manifold_observer.tasks.engine.protocols import Block, Form
from manifold_observer.tasks.engine.slab import Metric, Slab


class Distance(NamedTuple):
    """The local metric, the axes in which frames are taken, the form of the distance, and the precision of the tiles.

    Examples
    --------
    >>> from manifold_observer.tasks.engine.covariance import PseudoInverse
    >>> from manifold_observer.tasks.engine.kernel import squared_distances
    >>> distance = Distance(Metric(2, PseudoInverse()), Axes(np.zeros(1), None), "quadratic", "float64")
    >>> block = distance.block(Slab(np.array([[0.0], [1.0], [2.0]]), np.arange(3), np.array([0, 0, 1]), None))
    >>> squared_distances(block, block)[0]
    array([0., 2., 8.])
    """

    metric: Metric
    axes: Axes
    form: str
    precision: str

    @property
    def kind(self) -> Form:
        """The form itself."""
        return FORMS[self.form]

    @property
    def itemsize(self) -> int:
        """Bytes of a number of a tile."""
        return np.dtype(self.precision).itemsize

    @property
    def window(self) -> int:
        """Frames of a local covariance, 0 where covariances are given."""
        return self.metric.window

    @property
    def rank(self) -> int:
        """Largest rank that a local covariance can have."""
        return self.metric.span(self.axes.width)

    def block(self, slab: Slab) -> Block:
        """The block of a slab's own frames, as :func:`.forms.build_block` makes it."""
        return build_block(slab, self.metric, self.form, self.precision)

    def points(self, frames: Floats) -> Block:
        r"""Block of frames (m, p) as they come, without covariances.

        Its distance to another block is :math:`\tfrac12 (z_i - z_j)^\top C_j^{+} (z_i - z_j)`.
        """
        return self.kind.points(self.axes.apply(frames)).astype(self.precision)
