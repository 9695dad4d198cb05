"""The smoother: a Kalman filter forwards, then backwards over its states, chunk by chunk in reverse."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import xarray as xr
from dask.delayed import Delayed
from numpy.typing import NDArray

from manifold_observer.tasks.observers import kalman, observer
from manifold_observer.tasks.observers.observer import Filter

from ..frames.given import takes_frames
from ..frames.labels import segment_of
from ..frames.segments import restarts
from ..frames.variables import annotate
from ..graph.compute import task
from ..graph.spans import segment_spans
from .carries import joined
from .config import ObserverConfig
from .coordinates import reads_coordinates, smooth_coordinates
from .filters import choose_filter
from .observe import Scanned, checked, label, scan_chunks, starts_before

Floats = NDArray[np.float64]


@takes_frames
def smooth(
    embedding: xr.Dataset,
    frames: xr.DataArray,
    gain: str = "auto",
    step: str = "exact",
    rates: str | NDArray[np.float64] | None = None,
    initial: str = "steady",
    *,
    substeps: int | None = None,
    burst_duration: float | None = None,
    reading: str = "auto",
) -> xr.Dataset:
    r"""Estimate every state from all frames, those after it included: for recordings that have ended.

    By default the mean of the states that :func:`observe` gives forwards and backwards, each with its own mixture. With
    ``preset="paper"`` or any option the smoother of a Kalman filter,

    .. math:: \hat x_i = x_i + C\,(\hat x_{i+1} - A x_i), \qquad C = P^{+} A^\top P^{-1}

    with the states x of the Kalman filter, its poles A and error covariances :math:`P^{+}` after and P before a
    frame [1]_. No segment learns from another.

    Parameters
    ----------
    embedding, frames, step, rates, substeps, burst_duration, reading
        As for :func:`observe`.
    gain
        ``"kalman"`` (which ``"auto"`` is) or ``"dmk"``.
    initial
        State before a segment's first frame, as for :func:`observe`.

    Returns
    -------
    ``state(frame, mode)`` in units of the coordinates; ``state_std(frame, mode)``, which grows towards the end of a
    segment to that of the filter (a few frames at its beginning are less certain than said: the filter's gain is the
    steady one there too); ``posterior_covariance(mode, mode_1)`` of the filter. Lazy where ``frames`` is: a chain of
    tasks over the chunks, forwards and back.

    Raises
    ------
    ValueError
        Bad options, other features than the embedding's, an Euler map that does not contract.

    Notes
    -----
    The filter's states of all frames are kept on the workers between the passes, 8 bytes a number.

    References
    ----------
    .. [1] H. E. Rauch, F. Tung and C. T. Striebel, "Maximum likelihood estimates of linear dynamic systems", AIAA
       Journal 3 (1965).

    Examples
    --------
    An impulse is seen from both sides, and more certainly than at the end:

    >>> toy = xr.Dataset({
    ...     "lift": (("feature", "mode"), [[1.0]]), "feature_mean": ("feature", [0.0]), "rate": ("mode", [0.1]),
    ...     "feature_variance": ("feature", [1.0]), "epsilon": 2.0,
    ... })
    >>> frames = xr.DataArray(np.eye(401)[:, [200]], dims=("frame", "feature"))
    >>> result = smooth(toy, frames, gain="dmk")
    >>> bool(np.allclose(result.state[199], result.state[201])), bool(result.state_std[200] < result.state_std[-1])
    (True, True)
    """
    config = ObserverConfig(
        gain=gain,
        step=step,
        rates=rates,
        initial=initial,
        substeps=substeps,
        burst_duration=burst_duration,
        reading=reading,
    ).resolved(coordinates=reads_coordinates(embedding), usual_gain="kalman")
    frames = checked(embedding, frames)
    if config.reading == "coordinates":
        return smooth_coordinates(embedding, frames)
    if not config.optimal:
        raise ValueError(f"smooth: gain must be 'kalman' or 'dmk'; got {gain!r}.")
    chosen = choose_filter(embedding, frames, config)
    if chosen.model is None or chosen.steady is None:
        raise AssertionError(f"an optimal gain without a model: {config}")
    segment, n_modes = segment_of(frames), len(chosen.decay)
    starts = restarts(segment)
    before = starts_before(embedding, frames, starts, config)
    scanned = scan_chunks(embedding, frames, starts, before, np.zeros(n_modes), chosen.filter)
    parts = _back(scanned, segment, kalman.backward(chosen.model, chosen.steady))
    states = joined(parts, scanned.lengths, n_modes)
    result = label(embedding, frames, states, config, chosen)
    deviations = np.sqrt(kalman.smoothed_variances(chosen.steady))
    result["state_std"] = (("frame", "mode"), _deviations(_to_end(segment), deviations, states))
    result = annotate(result.assign_attrs(smoothed="forwards and backwards"))
    return result if frames.chunks else result.compute()


def _back(scanned: Scanned, segment: NDArray[np.int64], backward: Filter) -> list[Delayed]:
    """Smoothed states of all chunks, the last one first."""
    ends = restarts(segment[::-1])[::-1]
    state = dask.delayed(np.zeros(backward.transition.shape[0]))
    stop, parts = len(segment), []
    for filtered, length in zip(scanned.parts[::-1], scanned.lengths[::-1], strict=True):
        smoothed, state = task(_smooth_block, filtered, ends[stop - length : stop], state, backward, outputs=2)
        parts.append(smoothed)
        stop -= length
    return parts[::-1]


def _smooth_block(filtered: Floats, ends: NDArray[np.bool_], carry: Floats, backward: Filter) -> tuple[Floats, Floats]:
    """One chunk, from its end."""
    nothing = np.zeros(filtered.shape[1])
    drives = observer.project(filtered, nothing, backward.drive)
    after = observer.project(filtered[ends], nothing, backward.start)
    return observer.scan_back(drives, ends, after, carry, backward.transition)


def _to_end(segment: NDArray[np.int64]) -> NDArray[np.int64]:
    """Frames from every frame to the last of its segment."""
    return np.concatenate([np.arange(stop - start)[::-1] for start, stop in segment_spans(segment)])


def _deviations(to_end: NDArray[np.int64], table: Floats, like: da.Array) -> da.Array:
    """Row of the table for every frame, lazily; the last row holds beyond."""
    rows = da.from_array(np.minimum(to_end, len(table) - 1), chunks=(like.chunks[0],))
    return rows.map_blocks(_take, table, new_axis=1, chunks=like.chunks, dtype=np.float64, meta=np.empty((0, 0)))


def _take(rows: NDArray[np.int64], table: Floats) -> Floats:
    """Rows of a table."""
    return table[rows]
