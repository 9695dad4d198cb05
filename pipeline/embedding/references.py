"""The embedded frames that new frames are placed by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from dask.delayed import Delayed

from manifold_observer.tasks.arrays import Floats, Integers
from manifold_observer.tasks.engine import borrowing, extension, forms
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.moments import Axes
from manifold_observer.tasks.engine.shrinkage import Shrinkage
from manifold_observer.tasks.engine.slab import precisions

from ..engine.blocks import Part, Table, block_task, check_moments, local_metric, make_blocks, part_of, slab_of, table
from ..engine.config import EmbedConfig
from ..engine.cuts import gather_rows, tile_size
from ..frames.conditioning import conditioning_of
from ..graph.compute import persist, task
from ..graph.progress import Progress, silent
from ..graph.spans import Span, blocks


class References(NamedTuple):
    """Blocks of references on the workers, which embedded frames they are, and the distance that new frames share."""

    parts: list[Delayed]
    numbers: Integers
    distance: Distance
    table: Table

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.numbers)


def reference_numbers(embedding: xr.Dataset) -> Integers:
    """Which embedded frames are references, ascending."""
    if "landmark" in embedding.variables:
        return embedding["landmark"].values
    return np.arange(embedding.sizes["frame"])


def references(embedding: xr.Dataset, numbers: Integers, progress: Progress) -> References:
    """Blocks of the references, as the embedding made them but in all features; it computes.

    Parameters
    ----------
    embedding
        As :func:`embed` made it, with its frames.
    numbers
        Which of its frames are references.
    progress
        Where to report.

    Returns
    -------
    The references.
    """
    config = config_of(embedding)
    rows = table(*_embedded(embedding), config)._replace(conditioning=conditioning_of(embedding))
    rows, total = check_moments(rows, progress)
    metric = local_metric(rows, total, config)._replace(shrinkage=_shrinkage_of(embedding))
    distance = Distance(metric, axes_of(embedding), config.form, config.precision)
    spans = blocks(len(numbers), tile_size(len(numbers)))
    if len(numbers) == rows.n_frames:
        made = make_blocks(rows, distance, spans, progress)
    else:
        made = [_chosen_block(rows, distance, numbers[a:b]) for a, b in spans]
    parts = _with_columns(embedding, numbers, made, spans)
    return References(persist(parts, "references", progress), numbers, distance, rows)


def packed_precisions(known: References) -> list[Delayed]:
    """Precisions of the references, block by block as :func:`references` has them; they stay on the workers."""
    rows, distance, made = known.table, known.distance, []
    for first, stop in blocks(known.number, tile_size(known.number)):
        parts = [
            task(_packed, distance, part_of(rows, span, distance.window, own))
            for span, own in _runs_of(rows, known.numbers[first:stop])
        ]
        made.append(task(np.concatenate, parts))
    return persist(made, "references", silent)


def _packed(distance: Distance, part: Part) -> Floats:
    """Upper triangles of the precisions of one run."""
    return borrowing.pack(precisions(slab_of(distance.axes, part), distance.metric))


def config_of(embedding: xr.Dataset) -> EmbedConfig:
    """The options of the embedding that its distance depends on."""
    return EmbedConfig.from_attrs(embedding.attrs)


def axes_of(embedding: xr.Dataset) -> Axes:
    """The axes in which new frames are measured: the leading ones that were kept, else all features."""
    # Sums round by the order of numbers in memory, which a file does not keep.
    basis = np.ascontiguousarray(embedding["axes"].values) if "axes" in embedding else None
    return Axes(np.asarray(embedding["feature_mean"].values), basis, conditioning_of(embedding))


def _shrinkage_of(embedding: xr.Dataset) -> Shrinkage | None:
    """How an embedding shrinks local covariances, if it does."""
    if "mean_covariance" not in embedding:
        return None
    attrs = embedding.attrs
    return Shrinkage(
        float(attrs["shrinkage_intensity"]),
        float(attrs["shrinkage_ridge"]),
        int(attrs["window"]),
        np.asarray(embedding["mean_covariance"].values),
        str(attrs["shrinkage_target"]),
    )


def _embedded(embedding: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray | None]:
    """The embedded frames, and their covariances where those were given."""
    return embedding["reference"], embedding.get("reference_covariance")


def _chosen_block(rows: Table, distance: Distance, numbers: Integers) -> Delayed:
    """One block of embedded frames that do not follow each other, gathered from as many tasks as they are apart."""
    runs = _runs_of(rows, numbers)
    return task(
        forms.join, [task(block_task, distance, part_of(rows, span, distance.window, own), span) for span, own in runs]
    )


def _runs_of(rows: Table, numbers: Integers) -> list[tuple[Span, Integers]]:
    """Frames that one task gathers, and the span that they lie in."""
    cuts = np.flatnonzero(np.diff(numbers // gather_rows(rows.n_frames, rows.n_features))) + 1
    return [((int(own[0]), int(own[-1]) + 1), own) for own in np.split(numbers, cuts)]


def _with_columns(embedding: xr.Dataset, numbers: Integers, made: list[Delayed], spans: list[Span]) -> list[Delayed]:
    """Blocks with what their affinities are multiplied with, and local scales."""
    psi, degrees = (embedding[name].isel(frame=numbers).values for name in ("coordinate", "degree"))
    columns = extension.reference_columns(psi, degrees, float(embedding.attrs["alpha"]))
    scales = embedding["scale"].isel(frame=numbers).values if "scale" in embedding else None
    return [
        task(extension.Reference, block, columns[a:b], None if scales is None else scales[a:b])
        for block, (a, b) in zip(made, spans, strict=True)
    ]
