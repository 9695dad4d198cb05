"""From labelled frames to the blocks that tiles are made of, with their local covariances."""

from __future__ import annotations

from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import xarray as xr
from dask.delayed import Delayed
from numpy.typing import NDArray

from manifold_observer.tasks.arrays import Array, Floats, Integers
from manifold_observer.tasks.engine import moments
from manifold_observer.tasks.engine.conditioning import Conditioning, NegativeError, conditioned
from manifold_observer.tasks.engine.covariance import DegenerateCovarianceError, PseudoInverse
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.protocols import Block
from manifold_observer.tasks.engine.slab import Metric, Slab
from manifold_observer.tasks.engine.values import TooLargeError

from ..frames.labels import MAKE_FRAMES, channels_of, check_number, in_order, segments_of
from ..frames.segments import Segments, check_windows
from ..graph.compute import compute, persist, task
from ..graph.progress import Progress
from ..graph.slabs import ROWS_BYTES, Reading, rows_of, source_of
from ..graph.spans import Span, blocks
from .config import EmbedConfig
from .diagnosis import check_spread, too_large
from .windows import Reach, reach

# Frames up to the first size are brought here and sent along with the tasks; up to the second they are
# kept on the workers, where a lazy feature graph runs once up to the third; beyond it they are read anew.
_HERE_BYTES = 2**23
_KEEP_BYTES, KEEP_COMPUTED_BYTES = 2**26, 2**27
# A largest covariance eigenvalue below this share of the total variance is rounding.
_ZERO_VARIANCE = 1e-14
# Variance below this share of the squared mean is rounding too.
_EQUAL = 1e-28


class Table(NamedTuple):
    """Frames as they come: data (N, p), segment of every frame, given covariances or None, conditioning, names.

    ``names`` are the channels of the features, where they have some; ``kind`` is what made them, if it is known.

    ``windows``: ``"whole"``, which every segment must hold, ``"shrinking"`` to short segments, or ``"causal"``.
    """

    data: da.Array | Array
    segment: Integers | Segments
    covariance: da.Array | Array | None
    windows: str = "whole"
    conditioning: Conditioning | None = None
    names: NDArray[Any] | None = None
    kind: str = ""

    @property
    def n_frames(self) -> int:
        """N."""
        return int(self.data.shape[0])

    @property
    def n_features(self) -> int:
        """The number p."""
        return int(self.data.shape[1])


def table(frames: xr.DataArray, covariance: xr.DataArray | None, config: EmbedConfig) -> Table:
    """Check frames (and given covariances) from their metadata, and lay them out for the stages.

    Parameters
    ----------
    frames
        Dims ``(frame, feature)``; coordinate ``segment`` where the recording has gaps.
    covariance
        Dims ``(frame, feature, feature_1)``, or None for windows.
    config
        Options: the window, and the number of modes.

    Returns
    -------
    The table. Nothing is computed.

    Raises
    ------
    ValueError
        Wrong dims, too few frames, a segment shorter than the window.
    """
    frames = in_order("embed: frames", frames, ("frame", "feature"), MAKE_FRAMES)
    segment, names = segments_of(frames), channels_of(frames)
    check_number(len(segment), config.n_modes)
    if covariance is None and config.windows == "whole":
        check_windows(segment, config.window)
    given = None if covariance is None else _data(_fitting(covariance, frames))
    return Table(_data(frames), segment, given, config.windows, None, names, str(frames.attrs.get("features", "")))


def _fitting(covariance: xr.DataArray, frames: xr.DataArray) -> xr.DataArray:
    """Covariances that fit the frames."""
    n, p = frames.shape
    if covariance.dims != ("frame", "feature", "feature_1") or covariance.shape != (n, p, p):
        raise ValueError(
            "embed: covariance must have dims (frame, feature, feature_1) and shape "
            f"{(n, p, p)}; got {covariance.dims} and {covariance.shape}."
        )
    return covariance


def check_moments(
    table: Table,
    progress: Progress,
    *,
    digested: bool = False,
    looked: bool = False,
    spans: list[Span] | None = None,
) -> tuple[Table, moments.Moments]:
    """Mean and variance of the features, in one pass over the frames, or over some spans of them; it computes.

    Small frames are kept in memory from here on, so that their graph runs once. A digest of the frames, where it is
    asked for, is the same for any chunks: its spans depend on the number of features alone. With ``looked``, the
    moments say too what the values look like.

    Raises
    ------
    ValueError
        A frame holds NaN, infinity or numbers whose squares are infinite, or all frames are equal.
    """
    table = _nearer(table) if spans is None else table
    spans = spans or blocks(table.n_frames, max(1, ROWS_BYTES // (8 * table.n_features)))
    asked = (digested, looked, table.conditioning, table.names)
    parts = [task(_moments, rows_of(table.data, span), span[0], *asked) for span in spans]
    total = moments.combine(compute(parts, "frames", progress))
    # Equal frames leave what rounding their mean left.
    check_spread(table, total, _EQUAL)
    return table, total


def _nearer(table: Table) -> Table:
    """Bring small frames here, keep larger ones on the workers, leave the largest where they are."""
    if isinstance(table.data, np.ndarray):
        return table
    if table.data.nbytes > (KEEP_COMPUTED_BYTES if source_of(table.data) is None else _KEEP_BYTES):
        return table
    if table.data.nbytes <= _HERE_BYTES:
        return table._replace(data=compute([table.data])[0])
    return table._replace(data=table.data.persist())


def local_metric(table: Table, total: moments.Moments, config: EmbedConfig) -> Metric:
    """Windows, and how local covariances are inverted, with the size below which they count as zero."""
    smallest = _ZERO_VARIANCE * (float(total.squares.sum()) / total.n)
    inverse = PseudoInverse(config.rank, config.tolerance, config.regularization, smallest)
    return Metric(0 if table.covariance is not None else config.window, inverse)


def make_blocks(table: Table, distance: Distance, spans: list[Span], progress: Progress) -> list[Delayed]:
    """Blocks of all frames, kept on the workers; it computes.

    Raises
    ------
    ValueError
        Frames whose local covariance is zero or not finite, named.
    """
    made = [task(block_task, distance, part_of(table, span, distance.window), span) for span in spans]
    return persist(made, "covariances", progress)


def _data(array: xr.DataArray) -> da.Array | Array:
    """The data, in Dask unless they are small and here."""
    if array.chunks or array.nbytes <= _HERE_BYTES:
        return array.data if array.chunks else np.asarray(array.values)
    return array.chunk().data


class Part(NamedTuple):
    """What a slab is made from: frames with halo (maybe delayed), covariances or None, and the rows that it takes."""

    frames: Reading | Delayed | Array
    covariance: Reading | Delayed | Array | None
    reach: Reach


def part_of(table: Table, span: Span, window: int, chosen: Integers | None = None) -> Part:
    """Frames of a span with the halo of their windows; with ``chosen``, only those of its frames, and their windows."""
    wanted = reach(table.segment, window, span, chosen, table.windows)
    given = None if table.covariance is None else rows_of(table.covariance, span)
    return Part(rows_of(table.data, wanted.span), given, wanted)


def _moments(
    frames: Floats,
    first: int,
    digested: bool,
    looked: bool,
    conditioning: Conditioning | None,
    names: NDArray[Any] | None,
) -> moments.Moments:
    """One task of :func:`check_moments`."""
    try:
        return moments.moments(conditioned(np.asarray(frames, np.float64), conditioning), digested, looked)
    except NegativeError as error:
        raise ValueError(
            f"embed: features must not be negative for their square root; got {error.least:g} between frames {first} "
            f"and {first + len(frames) - 1}. Give condition='standard' or condition='none'."
        ) from None
    except TooLargeError as error:
        raise too_large(names, error.feature, error.value, first + error.index) from None
    except moments.NotFiniteError as error:
        raise ValueError(
            f"embed: frames must be finite; frame {first + error.index} is the first of {error.count} between "
            f"{first} and {first + len(frames) - 1} with NaN or infinity. Open the recording with gaps='nan' "
            "to leave such samples out, or use frames.dropna('frame') and a new segment after each hole."
        ) from None


def slab_of(axes: moments.Axes, part: Part) -> Slab:
    """Slab of centred frames, within a task."""
    used = slice(None) if part.reach.used is None else part.reach.used.expand()
    exact = None if part.covariance is None else np.asarray(np.asarray(part.covariance)[used], np.float64)
    frames = axes.apply(np.asarray(np.asarray(part.frames)[used], np.float64))
    starts = part.reach.starts.expand()
    widths = None if part.reach.stops is None else part.reach.stops.expand() - starts
    return Slab(frames, part.reach.rows.expand(), starts, exact, widths)


def block_task(distance: Distance, part: Part, span: Span) -> Block:
    """One block; a degenerate covariance is told with the frames it belongs to."""
    try:
        return distance.block(slab_of(distance.axes, part))
    except DegenerateCovarianceError as error:
        raise degenerate(error, distance.window, span) from None


def degenerate(error: DegenerateCovarianceError, window: int, span: Span) -> ValueError:
    """The sentence for frames without a local covariance."""
    frames = span[0] + error.frames
    which = f"frame {frames[0]}" if len(frames) == 1 else f"frames {frames[0]} .. {frames[-1]} ({len(frames)})"
    why = f"the {window} frames around are all alike" if window else "as given"
    return ValueError(
        f"embed: local covariances must not be zero; got zero (or NaN) at {which} of block {span[0]} .. "
        f"{span[1] - 1}: {why}. Cut the silence out, widen window=, or give a ridge such as regularization=1e-6."
    )
