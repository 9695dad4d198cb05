"""What every way to the coordinates is given, and what it finds."""

from __future__ import annotations

from typing import NamedTuple

import dask.array as da

from manifold_observer.tasks.arrays import Floats, Integers
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.kernel import Scale

from ..graph.progress import Progress
from ..graph.spans import Span, blocks
from .blocks import Table
from .config import Attrs, EmbedConfig
from .decide import Decision


class Problem(NamedTuple):
    """Frames, how they are embedded, options, progress."""

    table: Table
    decision: Decision
    config: EmbedConfig
    progress: Progress

    @property
    def distance(self) -> Distance:
        """Metric, axes, form and precision."""
        return self.decision.distance

    @property
    def spans(self) -> list[Span]:
        """Frames of every block."""
        return blocks(self.table.n_frames, self.decision.tile)


class Found(NamedTuple):
    """Eigenpairs by descending eigenvalue, row sums, scale, lift where it is known, attributes, landmarks to extend.

    Coordinates and row sums of landmarks alone may be Dask arrays, of what the workers keep.
    """

    eigenvalues: Floats
    residuals: Floats
    coordinates: Floats | da.Array
    degrees: Floats | da.Array
    scale: Scale
    lift: Floats | None
    attrs: Attrs
    landmarks: Integers | None = None
