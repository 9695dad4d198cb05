"""From labelled frames to the blocks that tiles are made of, with their local covariances."""

from __future__ import annotations

from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import xarray as xr
from dask.delayed import Delayed
from numpy.typing import NDArray

from manifold_observer.tasks.engine import forms, moments
from manifold_observer.tasks.engine import probe as probes
from manifold_observer.tasks.engine.conditioning import Conditioning, NegativeError
from manifold_observer.tasks.engine.covariance import DegenerateCovarianceError, PseudoInverse
from manifold_observer.tasks.engine.protocols import Block
from manifold_observer.tasks.engine.slab import Metric, Slab

from ..frames.labels import MAKE_FRAMES, in_order, segment_of
from ..frames.segments import segment_spans, short_segments
from ..graph.compute import Progress, compute, persist, task
from ..graph.slabs import ROWS_BYTES, Reading, rows_of
from ..graph.spans import Span, blocks
from .config import EmbedConfig
from .cuts import shrinking_windows, window_starts_of

# Frames up to the first size are brought here and sent along with the tasks; up to the second they are
# kept on the workers, so that a lazy feature graph runs once; beyond it they are read anew.
_HERE_BYTES = 2**23
_KEEP_BYTES = 2**26
# A largest covariance eigenvalue below this share of the total variance is rounding.
_ZERO_VARIANCE = 1e-14
# Variance below this share of the squared mean is rounding too.
_EQUAL = 1e-28
_PROBE_FRAMES = 128
# A form that costs this many times the best is not worth timing.
_HOPELESS = 3
_MARGIN = 0.5


class Table(NamedTuple):
    """Frames as they came: data (N, p), segment of every frame, given covariances or None.

    ``windows``: ``"whole"``, which every segment must hold, ``"shrinking"`` to short segments, or ``"causal"``.
    """

    data: da.Array | NDArray[Any]
    segment: NDArray[np.int64]
    covariance: da.Array | NDArray[Any] | None
    windows: str = "whole"
    conditioning: Conditioning | None = None

    @property
    def n_frames(self) -> int:
        """N."""
        return int(self.data.shape[0])

    @property
    def n_features(self) -> int:
        """The number p."""
        return int(self.data.shape[1])


def table(frames: xr.DataArray, covariance: xr.DataArray | None, window: int, windows: str = "whole") -> Table:
    """Check frames (and given covariances) from their metadata, and lay them out for the stages.

    Parameters
    ----------
    frames
        Dims ``(frame, feature)``; coordinate ``segment`` where the recording has gaps.
    covariance
        Dims ``(frame, feature, feature_1)``, or None for windows.
    window
        Frames of a window.
    windows
        Whether windows shrink to short segments, or see the past alone.

    Returns
    -------
    The table. Nothing is computed.

    Raises
    ------
    ValueError
        Wrong dims, too few frames, a segment shorter than the window.
    """
    frames = in_order("embed: frames", frames, ("frame", "feature"), MAKE_FRAMES)
    n = frames.sizes["frame"]
    if n < 3:
        raise ValueError(f"embed: frames must hold at least 3 frames; got {n}. Choose shorter frames.")
    segment = segment_of(frames)
    if covariance is None:
        if windows == "whole":
            _check_windows(segment, window)
        return Table(_data(frames), segment, None, windows)
    p = frames.sizes["feature"]
    if covariance.dims != ("frame", "feature", "feature_1") or covariance.shape != (n, p, p):
        raise ValueError(
            "embed: covariance must have dims (frame, feature, feature_1) and shape "
            f"{(n, p, p)}; got {covariance.dims} and {covariance.shape}."
        )
    return Table(_data(frames), segment, _data(covariance))


def check_moments(table: Table, progress: Progress, digested: bool = False) -> tuple[Table, moments.Moments]:
    """Mean and variance of the features, in one pass over the frames; it computes.

    Small frames are kept in memory from here on, so that their graph runs once. A digest of the frames, where it is
    asked for, is the same for any chunks: its spans depend on the number of features alone.

    Raises
    ------
    ValueError
        A frame holds NaN or infinity, or all frames are equal.
    """
    table = _nearer(table)
    spans = blocks(table.n_frames, max(1, ROWS_BYTES // (8 * table.n_features)))
    parts = [task(_moments, rows_of(table.data, span), span[0], digested, table.conditioning) for span in spans]
    total = moments.combine(compute(parts, "frames", progress))
    # Equal frames leave what rounding their mean left.
    if not (total.squares > _EQUAL * total.n * np.square(total.mean)).any():
        raise ValueError(
            f"embed: all {table.n_frames} frames are equal, so that there is nothing to embed. "
            "Check the recording (a dead channel?) and the features."
        )
    return table, total


def _nearer(table: Table) -> Table:
    """Bring small frames here, keep larger ones on the workers, leave the largest where they are."""
    if isinstance(table.data, np.ndarray) or table.data.nbytes > _KEEP_BYTES:
        return table
    if table.data.nbytes <= _HERE_BYTES:
        return table._replace(data=compute([table.data])[0])
    return table._replace(data=table.data.persist())


def pseudo_inverse(config: EmbedConfig, total: moments.Moments) -> PseudoInverse:
    """How local covariances are inverted, with the size below which they count as zero."""
    variance = float(total.squares.sum()) / total.n
    return PseudoInverse(config.rank, config.tolerance, config.regularization, _ZERO_VARIANCE * variance)


def probe(table: Table, metric: Metric, axes: moments.Axes, form: str) -> probes.Probe:
    """Time a small tile in every form that is not hopeless, where the frames are; it computes."""
    n = min(_PROBE_FRAMES, table.n_frames)
    middle = (table.n_frames - n) // 2
    spans = [(first, first + n) for first in (0, middle)]
    parts = [part_of(table, span, metric.window) for span in spans]
    forms = _candidates(table, metric, axes.width) if form == "auto" else [form]
    return compute([task(_probe, axes, parts, metric, forms, spans)])[0]


def fastest(seconds: dict[str, float]) -> str:
    """The form to take: the first by counting, unless the probe finds another more than twice as fast.

    The margin keeps a busy moment from choosing another form, with another rounding, the next time.
    """
    expected = next(iter(seconds))
    best = min(seconds, key=lambda form: seconds[form])
    return best if seconds[best] < _MARGIN * seconds[expected] else expected


def make_blocks(
    table: Table,
    metric: Metric,
    axes: moments.Axes,
    spans: list[Span],
    form: str,
    dtype: str,
    progress: Progress,
) -> list[Delayed]:
    """Blocks of all frames, kept on the workers; it computes.

    Raises
    ------
    ValueError
        Frames whose local covariance is zero or not finite, named.
    """
    made = [task(block_task, axes, part_of(table, span, metric.window), metric, form, dtype, span) for span in spans]
    return persist(made, "covariances", progress)


def _check_windows(segment: NDArray[np.int64], window: int) -> None:
    """Every segment must hold a whole window."""
    for start, stop in short_segments(segment, window):
        raise ValueError(
            f"embed: every segment must hold at least window={window} frames; got {stop - start} in segment "
            f"{segment[start]} (frames {start} .. {stop - 1}). {_shorter(stop - start)}eave the segment out with "
            f"frames.where(frames.segment != {segment[start]}, drop=True)."
        )


def _shorter(n: int) -> str:
    """A window that would fit, where there is one."""
    return f"Give window={n}, or l" if n > 1 else "L"


def _data(array: xr.DataArray) -> da.Array | NDArray[Any]:
    """The data, in Dask unless they are small and here."""
    if array.chunks or array.nbytes <= _HERE_BYTES:
        return array.data if array.chunks else np.asarray(array.values)
    return array.chunk().data


class Runs(NamedTuple):
    """Whole numbers that mostly count up by one, as (offset from counting, how many) pairs: a task's graph is small."""

    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def expand(self) -> NDArray[np.int64]:
        """The numbers."""
        return np.repeat(self.offsets, self.lengths) + np.arange(int(self.lengths.sum()))


def _runs(numbers: NDArray[np.int64]) -> Runs:
    """Pack whole numbers."""
    offsets = numbers - np.arange(len(numbers))
    spans = segment_spans(offsets)
    return Runs(offsets[[start for start, _ in spans]], np.array([stop - start for start, stop in spans]))


class Part(NamedTuple):
    """What a slab is made from: frames with halo (maybe delayed), rows, window starts, covariances or None.

    ``used`` are the rows of the frames that the slab takes, None for all; rows and starts count in those. ``stops``
    are the rows after the windows, where these are not all as wide as the metric says.
    """

    frames: Reading | Delayed | NDArray[Any]
    rows: Runs
    starts: Runs
    covariance: Reading | Delayed | NDArray[Any] | None
    used: Runs | None = None
    stops: Runs | None = None


def part_of(table: Table, span: Span, window: int, chosen: NDArray[np.int64] | None = None) -> Part:
    """Frames of a span with the halo of their windows; with ``chosen``, only those of its frames, and their windows."""
    if chosen is not None:
        return _chosen_part(table, span, window, chosen)
    start, stop = span
    if table.covariance is not None:
        rows = _runs(np.arange(stop - start))
        return Part(rows_of(table.data, span), rows, rows, rows_of(table.covariance, span))
    starts, stops = _windows(table, window, span)
    low, high = min(int(starts[0]), start), max(int(stops[-1]), stop)
    after = None if table.windows == "whole" else _runs(stops - low)
    rows = _runs(np.arange(start, stop) - low)
    return Part(rows_of(table.data, (low, high)), rows, _runs(starts - low), None, None, after)


def _windows(table: Table, window: int, span: Span) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First frames of the windows of a span, and the frames after their last."""
    if table.windows != "whole":
        return shrinking_windows(table.segment, window, span, table.windows == "causal")
    starts = window_starts_of(table.segment, window, span)
    return starts, starts + window


def _chosen_part(table: Table, span: Span, window: int, chosen: NDArray[np.int64]) -> Part:
    """A few frames of a span: a block of landmarks that kept the frames between them would hold all there are."""
    if table.covariance is not None:
        own = chosen - span[0]
        rows = _runs(np.arange(len(own)))
        return Part(rows_of(table.data, span), rows, rows, rows_of(table.covariance, span), _runs(own))
    starts, stops = (numbers[chosen - span[0]] for numbers in _windows(table, window, span))
    within = np.minimum(starts[:, None] + np.arange(window), stops[:, None] - 1)
    used = np.unique(within)  # a frame lies within its window
    low, high = int(used[0]), int(used[-1]) + 1
    rows, first = (_runs(np.searchsorted(used, numbers)) for numbers in (chosen, starts))
    after = None if table.windows == "whole" else _runs(np.searchsorted(used, stops - 1) + 1)
    return Part(rows_of(table.data, (low, high)), rows, first, None, _runs(used - low), after)


def _candidates(table: Table, metric: Metric, p: int) -> list[str]:
    """Forms worth timing, the best by counting first: the window form needs windows, the hopeless are left out."""
    most = p if table.covariance is not None or metric.shrinkage is not None else min(p, metric.window - 1)
    rank = min(metric.inverse.rank or most, most)
    narrow = table.covariance is not None or metric.shrinkage is not None
    usable = [name for name, form in forms.FORMS.items() if not (narrow and form.needs_windows)]
    costs = {form: forms.cost(form, p, rank, metric.window) for form in usable}
    return sorted((form for form in usable if costs[form] <= _HOPELESS * min(costs.values())), key=costs.__getitem__)


def _moments(
    frames: NDArray[np.float64], first: int, digested: bool, conditioning: Conditioning | None
) -> moments.Moments:
    """One task of :func:`check_moments`."""
    values = np.asarray(frames, np.float64)
    try:
        return moments.moments(values if conditioning is None else conditioning.forward(values), digested)
    except NegativeError as error:
        raise ValueError(
            f"embed: features must not be negative for their square root; got {error.least:g} between frames {first} "
            f"and {first + len(frames) - 1}. Give condition='standard' or condition='none'."
        ) from None
    except moments.NotFiniteError as error:
        raise ValueError(
            f"embed: frames must be finite; frame {first + error.index} is the first of {error.count} between "
            f"{first} and {first + len(frames) - 1} with NaN or infinity. Cut the stretch out of the recording, "
            "or leave the frames out with frames.dropna('frame') and a new segment after each hole."
        ) from None


def slab_of(axes: moments.Axes, part: Part) -> Slab:
    """Slab of centred frames, within a task."""
    used = slice(None) if part.used is None else part.used.expand()
    exact = None if part.covariance is None else np.asarray(np.asarray(part.covariance)[used], np.float64)
    frames = axes.apply(np.asarray(np.asarray(part.frames)[used], np.float64))
    starts = part.starts.expand()
    widths = None if part.stops is None else part.stops.expand() - starts
    return Slab(frames, part.rows.expand(), starts, exact, widths)


def block_task(axes: moments.Axes, part: Part, metric: Metric, form: str, dtype: str, span: Span) -> Block:
    """One block; a degenerate covariance is told with the frames it belongs to."""
    try:
        return forms.build_block(slab_of(axes, part), metric, form, dtype)
    except DegenerateCovarianceError as error:
        raise degenerate(error, metric, span) from None


def _probe(axes: moments.Axes, parts: list[Part], metric: Metric, tried: list[str], spans: list[Span]) -> probes.Probe:
    """One timed tile a form."""
    slabs = [slab_of(axes, part) for part in parts]
    for slab, span in zip(slabs, spans, strict=True):
        try:
            forms.build_block(slab, metric, tried[0])
        except DegenerateCovarianceError as error:
            raise degenerate(error, metric, span) from None
    rows, columns = slabs
    return probes.probe(rows, columns, metric, tried)


def degenerate(error: DegenerateCovarianceError, metric: Metric, span: Span) -> ValueError:
    """The sentence for frames without a local covariance."""
    frames = span[0] + error.frames
    which = f"frame {frames[0]}" if len(frames) == 1 else f"frames {frames[0]} .. {frames[-1]} ({len(frames)})"
    why = f"the {metric.window} frames around are all alike" if metric.window else "as given"
    return ValueError(
        f"embed: local covariances must not be zero; got zero (or NaN) at {which} of block {span[0]} .. "
        f"{span[1] - 1}: {why}. Cut the silence out, widen window=, or give a ridge such as regularization=1e-6."
    )
