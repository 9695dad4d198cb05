"""The embedded frames that new frames are placed by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from dask.delayed import Delayed

from manifold_observer.tasks.arrays import Floats, Integers
from manifold_observer.tasks.engine import borrowing, extension, forms
from manifold_observer.tasks.engine.covariance import PseudoInverse
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.moments import Axes
from manifold_observer.tasks.engine.shrinkage import Shrinkage
from manifold_observer.tasks.engine.slab import Metric, Slab, precisions

from ..engine.blocks import Part, Table, block_task, check_moments, local_metric, make_blocks, part_of, slab_of, table
from ..engine.config import EmbedConfig
from ..engine.cuts import gather_rows, tile_size
from ..frames.conditioning import conditioning_of
from ..graph.compute import persist, task
from ..graph.progress import Progress
from ..graph.spans import Span, blocks


class References(NamedTuple):
    """Blocks of references on the workers, which embedded frames they are, and the distance that new frames share.

    ``packed`` are their precisions, block by block, where these are lent.
    """

    parts: list[Delayed]
    numbers: Integers
    distance: Distance
    packed: list[Delayed]

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.numbers)


def reference_numbers(embedding: xr.Dataset) -> Integers:
    """Which embedded frames are references, ascending."""
    if "landmark" in embedding.variables:
        return embedding["landmark"].values
    return np.arange(embedding.sizes["frame"])


def references(embedding: xr.Dataset, numbers: Integers, progress: Progress, *, lending: bool = False) -> References:
    """Blocks of the references, as the embedding made them but in all features; it computes.

    Parameters
    ----------
    embedding
        As :func:`embed` made it, with its frames.
    numbers
        Which of its frames are references.
    progress
        Where to report.
    lending
        Whether new frames borrow from the precisions of the references, which are shrunk.

    Returns
    -------
    The references.
    """
    config = config_of(embedding)
    rows = table(*_embedded(embedding), config)._replace(conditioning=conditioning_of(embedding))
    shrinkage = _shrinkage_of(embedding)
    if shrinkage is not None and len(numbers) < rows.n_frames:  # the others are not looked at once more
        metric = Metric(config.window, PseudoInverse(), shrinkage)
    else:
        rows, total = check_moments(rows, progress)
        metric = local_metric(rows, total, config)._replace(shrinkage=shrinkage)
    distance = Distance(metric, axes_of(embedding), config.form, config.precision)
    spans = blocks(len(numbers), tile_size(len(numbers)))
    made, lent = _made(rows, distance, numbers, spans, lending, progress)
    parts = _with_columns(embedding, numbers, made, spans)
    kept = persist([*parts, *lent], "references", progress)
    return References(kept[: len(parts)], numbers, distance, kept[len(parts) :])


def _made(
    rows: Table, distance: Distance, numbers: Integers, spans: list[Span], lending: bool, progress: Progress
) -> tuple[list[Delayed], list[Delayed]]:
    """Blocks of the references, and their packed precisions where these are lent."""
    gathered, shrunk = len(numbers) < rows.n_frames, distance.metric.shrinkage is not None
    slabs = [_slabs(rows, distance, numbers[a:b]) for a, b in spans] if shrunk and (gathered or lending) else []
    if not gathered:
        made = make_blocks(rows, distance, spans, progress)
    elif shrunk:
        made = [task(forms.join, [task(distance.block, slab) for slab in own]) for own in slabs]
    else:
        made = [_chosen_block(rows, distance, numbers[a:b]) for a, b in spans]
    return made, [task(_packed, own, distance) for own in slabs] if lending else []


def _slabs(rows: Table, distance: Distance, numbers: Integers) -> list[Delayed]:
    """Embedded frames that need not follow each other, gathered by as many tasks as they are apart."""
    return [
        task(_measured, distance, part_of(rows, span, distance.window, own), span)
        for span, own in _runs_of(rows, numbers)
    ]


def _measured(distance: Distance, part: Part, span: Span) -> Slab:
    """Frames of one run, with their shrunk precisions: blocks need them, and what is lent."""
    slab = slab_of(distance.axes, part)
    if not np.isfinite(slab.frames).all():
        raise ValueError(
            f"embed: embedded frames must be finite; some of frames {span[0]} .. {span[1] - 1} hold NaN or "
            "infinity. Copy the embedding again, or embed again."
        )
    return slab._replace(precisions=precisions(slab, distance.metric))


def _packed(slabs: list[Slab], distance: Distance) -> Floats:
    """Upper triangles of the precisions of one block of references."""
    return np.concatenate([borrowing.pack(precisions(slab, distance.metric)) for slab in slabs])


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
