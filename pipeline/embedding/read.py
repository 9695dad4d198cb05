"""What a state is read from: coordinates of embedded frames as they are, those of new frames from their past alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import xarray as xr
from dask.delayed import Delayed

from manifold_observer.tasks.arrays import Array, Booleans, Floats, Integers, first_not_finite
from manifold_observer.tasks.engine import borrowing, extension
from manifold_observer.tasks.engine.borrowing import Lent
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.extension import Reference
from manifold_observer.tasks.engine.moments import Axes
from manifold_observer.tasks.engine.slab import Slab, precisions
from manifold_observer.tasks.observers import observer

from ..engine.shrink import PRINCIPAL
from ..engine.windows import shrinking_windows
from ..frames.labels import segments_of
from ..frames.segments import Segments
from ..graph.compute import compute, one_blas_thread, stream_kept, task
from ..graph.kept import Of, array_of
from ..graph.progress import or_watched, silent
from ..graph.slabs import rows_of
from ..graph.spans import Span, blocks
from .references import References, axes_of, reference_numbers, references

# New frames of one task, and of one product: always as many, so that a frame's numbers do not depend on how many
# others came with it.
_SPAN, _TOGETHER = 2048, 256
_READ_TOGETHER = 2**17


class Read(NamedTuple):
    """Coordinates beside principal components (n, m), and whether a frame is new and far from all others (n,).

    Of new frames also the row sum of affinities to the references, scaled as ``degree`` is, and the distance to the
    nearest one, both (n,); NaN for embedded frames.
    """

    values: Floats
    far: Booleans
    kernel_sums: Floats
    nearest: Floats


class Columns(NamedTuple):
    """Arrays (n, m) side by side, of which tasks read the rows that they use; they may be stored, or lazy."""

    parts: tuple[Array | da.Array, ...]

    @property
    def n(self) -> int:
        """Rows."""
        return int(self.parts[0].shape[0])

    @property
    def width(self) -> int:
        """Columns in all."""
        return sum(int(part.shape[1]) for part in self.parts)

    def rows(self, span: Span) -> list[Any]:
        """Some rows of each, as a task takes them."""
        return [rows_of(part, span) for part in self.parts]

    def here(self, spans: Sequence[Span]) -> Floats:
        """Some rows, one span after the other; this computes."""
        found = compute([task(side_by_side, self.rows(span)) for span in spans])
        return np.concatenate(found) if len(found) != 1 else np.asarray(found[0])


def side_by_side(parts: list[Array]) -> Floats:
    """Arrays (n, m) as one, row after row in memory.

    Examples
    --------
    >>> side_by_side([np.eye(2), np.ones((2, 1))])
    array([[1., 0., 1.],
           [0., 1., 1.]])
    """
    return np.ascontiguousarray(np.hstack([np.asarray(part, np.float64) for part in parts]))


def known_columns(embedding: xr.Dataset) -> Columns:
    """Diffusion coordinates of the embedded frames beside their principal components, where they are."""
    return Columns(tuple(embedding[name].data for name in ("coordinate", "principal") if name in embedding))


def read(embedding: xr.Dataset, frames: xr.DataArray, number: Integers, past: Floats, *, centred: bool = False) -> Read:
    """Coordinates and principal components of frames, embedded and new ones; this computes.

    Parameters
    ----------
    embedding
        As :func:`embed` made it, with shrunk covariances.
    frames
        Dims ``(frame, feature)``, plain features.
    number
        Which embedded frame each is, -1 for new ones, as :func:`embedded_numbers` finds.
    past
        Frames along the axes that came before the first one in its segment, shape (h, axes), maybe none.
    centred
        Measure a new frame by the frames on both sides of it, as embedded ones are, where all of them are there
        already; by default by those before it.

    Returns
    -------
    Numbers of all frames. Those of a new frame depend on it and the frames before it in its segment, at most a window
    of them, and on nothing else: to the bit, however frames are cut into calls (centred: into segments).

    Notes
    -----
    O(n N p^2) time for n new frames, N references and p axes.
    """
    n, columns = len(number), embedding.sizes["mode"] + embedding.sizes["component"]
    found = Read(np.empty((n, columns)), np.zeros(n, bool), np.full(n, np.nan), np.full(n, np.nan))
    known = number >= 0
    if known.any():
        found.values[known] = known_coordinates(embedding)[number[known]]
    if not known.all():
        with one_blas_thread():
            _read_new(embedding, frames, ~known, past, found, centred)
    return found


class ReadLazily(NamedTuple):
    """Coordinates of new frames that the workers keep, where these are far, how many are, and the first of them."""

    values: Columns
    far: da.Array
    n_far: int
    first_far: int


def read_lazily(embedding: xr.Dataset, frames: xr.DataArray, past: Floats, *, centred: bool = False) -> ReadLazily:
    """As :func:`read`, for many frames of which none were embedded: their numbers stay on the workers."""
    spans = blocks(frames.sizes["frame"], _SPAN)
    with one_blas_thread():
        made = _new_spans(embedding, frames, past, spans, centred)
        parts = (task(_told, part, span[0]) for part, span in zip(made, spans, strict=True))
        found = list(stream_kept(parts, len(spans), "extend", or_watched()))
    kept, lengths = [Of(part, (0,)) for part, _ in found], [stop - start for start, stop in spans]
    columns = embedding.sizes["mode"] + embedding.sizes["component"]
    n_far, firsts = sum(n for _, (n, _) in found), [first for _, (n, first) in found if n]
    values = array_of(kept, lengths, columns, attrgetter("values"))
    far = array_of(kept, lengths, None, attrgetter("far"), dtype=bool)
    return ReadLazily(Columns((values,)), far, n_far, firsts[0] if firsts else -1)


def _told(found: Read, first: int) -> tuple[Read, tuple[int, int]]:
    """What is read of one span, and how many of its frames are far, and which is the first."""
    far = np.flatnonzero(found.far)
    return found, (len(far), first + int(far[0]) if len(far) else -1)


def known_coordinates(embedding: xr.Dataset) -> Floats:
    """Diffusion coordinates of the embedded frames, beside their principal components where there are some, (N, m)."""
    names = [name for name in ("coordinate", "principal") if name in embedding]
    return np.ascontiguousarray(np.hstack([embedding[name].values for name in names]))


def along_axes(embedding: xr.Dataset, frames: xr.DataArray) -> Floats:
    """A few frames along the axes of the distances, by rows: the same bits in any number; this computes."""
    data = frames.transpose("frame", "feature").data
    values = compute([task(_along, axes_of(embedding), rows_of(data, (0, data.shape[0])))])
    return np.asarray(values[0])


def far_below(embedding: xr.Dataset, numbers: Integers) -> float:
    """Row sum below which a new frame is far; row sums of all frames are read a piece at a time."""
    degree, n = embedding["degree"].data, embedding.sizes["frame"]
    spans = blocks(n, _READ_TOGETHER)
    own = [numbers[(numbers >= start) & (numbers < stop)] - start for start, stop in spans]
    share = n / len(numbers)
    parts = [task(extension.least, rows_of(degree, span), few, share, n) for span, few in zip(spans, own, strict=True)]
    return extension.far_of(compute(parts), n)


class _Map(NamedTuple):
    """What new frames are read by: references and their precisions, and constants of the embedding."""

    known: References
    window: int
    epsilon: float
    divisors: Floats
    factor: float
    below: float


def _map_of(embedding: xr.Dataset) -> _Map:
    """What new frames are read by; it computes the references."""
    numbers = reference_numbers(embedding)
    known = references(embedding, numbers, silent, lending=True)
    return _Map(
        known,
        int(embedding.attrs["window"]),
        float(embedding["epsilon"]),
        _divisors(embedding),
        embedding.sizes["frame"] / known.number,
        far_below(embedding, numbers),
    )


def _read_new(
    embedding: xr.Dataset, frames: xr.DataArray, new: Booleans, past: Floats, found: Read, centred: bool
) -> None:
    """Fill in new frames, span by span, each against every block of references."""
    spans = [span for span in blocks(len(new), _SPAN) if new[slice(*span)].any()]
    made = list(_new_spans(embedding, frames, past, spans, centred))
    for span, part in zip(spans, compute(made, "extend", or_watched()), strict=True):
        own = np.flatnonzero(new[slice(*span)])
        for whole, values in zip(found, part, strict=True):
            whole[span[0] + own] = values[own]


def _new_spans(
    embedding: xr.Dataset, frames: xr.DataArray, past: Floats, spans: Sequence[Span], centred: bool
) -> Iterator[Delayed]:
    """What is read of the frames of some spans, each against every block of references."""
    there = _map_of(embedding)
    data = frames.transpose("frame", "feature")
    rows = data.data if data.chunks else np.asarray(data.values)
    segments = segments_of(frames)
    return (_span_tasks(there, rows, segments, past, span, centred) for span in spans)


def _divisors(embedding: xr.Dataset) -> Floats:
    r"""What means over references are divided by, a mode.

    A mean without the frame's own share is nearer to 0 than the coordinate: one slope a mode, over the embedded
    frames, brings it back. Its own share of a row sum q is 1; the mean without it is
    :math:`(\mu q - 1) \psi / (q - 1)`.
    """
    mu = np.asarray(embedding["eigenvalue"].values)
    if "landmark" in embedding.variables or float(embedding.attrs["alpha"]) != 0:
        return mu
    psi, degree = np.ascontiguousarray(embedding["coordinate"].values), embedding["degree"].values[:, None]
    alone = degree > 1 + 1e-9
    without = np.where(alone, (mu * degree - 1) * psi / np.where(alone, degree - 1, 1.0), 0.0)
    slope = (psi * without).sum(axis=0) / np.maximum(np.square(without).sum(axis=0), 1e-300)
    return np.asarray(np.where(slope > 0, 1 / np.where(slope > 0, slope, 1.0), mu))


def _span_tasks(there: _Map, data: Any, segments: Segments, past: Floats, span: Span, centred: bool) -> Delayed:
    """What is read of the frames of one span."""
    h, distance, epsilon = len(past), there.known.distance, there.epsilon
    starts, stops = _windows(there, segments, h, span, centred)
    low = int(starts[0])
    frames = rows_of(data, (max(low - h, 0), int(stops[-1]) - h))
    rows, first = np.arange(*span) + h - low, max(low - h, 0)
    slab = task(_slab, distance.axes, past[min(low, h) :], frames, starts - low, stops - low, rows, first)
    lenders = zip(there.known.parts, there.known.packed, strict=True)
    lent = [task(_lend, slab, distance, part, packed, epsilon) for part, packed in lenders]
    measured = task(_measured, slab, distance, lent, epsilon)
    shares = [task(_shares, measured, distance, part, epsilon) for part in there.known.parts]
    return task(_finish, slab, shares, there.divisors, there.factor, there.below)


def _windows(there: _Map, segments: Segments, h: int, span: Span, centred: bool) -> tuple[Integers, Integers]:
    """First frames of the windows of a span and those after their last, counted from the first of h past frames."""
    low, high = max(span[0] - there.window, 0), min(span[1] + there.window, len(segments))
    # The frames before the first one are of its segment.
    near, before = segments[low:high], 0 if low else h
    longer = np.concatenate([np.full(before, near[0]), near])
    shift = low + h - before
    cut = shrinking_windows(longer, there.window, (span[0] + h - shift, span[1] + h - shift), causal=not centred)
    return cut[0] + shift, cut[1] + shift


def _along(axes: Axes, frames: Array) -> Floats:
    """Frames along the axes, row by row."""
    centred = axes.condition(np.asarray(frames, np.float64)) - axes.mean
    return centred if axes.basis is None else observer.project(centred, np.zeros(1), np.ascontiguousarray(axes.basis.T))


def _slab(
    axes: Axes, before: Floats, frames: Array, starts: Integers, stops: Integers, rows: Integers, first: int
) -> Slab:
    """New frames with those around them, and their windows; ``first`` is the number of the first frame that is read."""
    bad = first_not_finite(np.asarray(frames, np.float64))
    if bad is not None:
        raise ValueError(
            f"observe: frames must be finite; frame {first + bad} holds NaN or infinity. Leave such "
            "frames out, with a new segment after each hole."
        )
    values = np.concatenate([before, _along(axes, frames)])
    return Slab(values, rows, starts, None, stops - starts)


def _lend(slab: Slab, distance: Distance, reference: Reference, packed: Floats, epsilon: float) -> Lent:
    """What one block of references lends to the new frames, as many at a time as in every other call."""
    frames, parts = slab.frames[slab.rows], []
    for first, own in _batches(len(frames)):
        with np.errstate(over="ignore", invalid="ignore"):
            points = distance.kind.points(frames[own]).astype(distance.precision)
        lent = borrowing.lend(points, reference.block, packed, epsilon)
        parts.append(Lent(*(values[: len(frames) - first] for values in lent)))
    return Lent(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def _measured(slab: Slab, distance: Distance, lent: list[Lent], epsilon: float) -> Slab:
    """New frames with their precisions: half from the frames before them, half from the references around."""
    own = precisions(slab, distance.metric)
    around = borrowing.borrowed(lent, epsilon, slab.frames.shape[1])
    return slab._replace(precisions=(own + around) / 2)


def _shares(slab: Slab, distance: Distance, reference: Reference, epsilon: float) -> tuple[Floats, Floats]:
    """Shares of one block of references, and the distance to its nearest; always as many new frames at a time."""
    frames, known, parts = slab.frames[slab.rows], slab.precisions, []
    for first, own in _batches(len(frames)):
        some = Slab(frames, own, own, None, None, None if known is None else known[own])
        with np.errstate(over="ignore", invalid="ignore"):
            block = distance.block(some)
        apart = extension.apart(block, reference.block, one_sided=False)
        nearest = apart.min(axis=1).astype(np.float64)
        found = extension.shares_at(apart, reference, epsilon, None, one_sided=False)
        parts.append((found[: len(frames) - first], nearest[: len(frames) - first]))
    shares, nearest = (np.concatenate(values) for values in zip(*parts, strict=True))
    return shares, nearest


def _batches(n: int) -> Iterator[tuple[int, Integers]]:
    """First frame and numbers of every batch; the last frame is repeated to fill the last one up."""
    for first in range(0, n, _TOGETHER):
        yield first, np.minimum(np.arange(first, first + _TOGETHER), n - 1)


def _finish(slab: Slab, shares: list[tuple[Floats, Floats]], divisors: Floats, factor: float, below: float) -> Read:
    """Coordinates from the shares of all references; principal components are the first axes."""
    found = extension.finish([own for own, _ in shares], divisors, factor, below)
    nearest = np.min([least for _, least in shares], axis=0)
    values = np.hstack([found.coordinates, slab.frames[slab.rows][:, :PRINCIPAL]])
    return Read(values, found.far, found.kernel_sums, nearest)
