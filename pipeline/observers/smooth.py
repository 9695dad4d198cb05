"""The smoother: a Kalman filter forwards, then backwards over its states, chunk by chunk in reverse."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import xarray as xr
from dask.delayed import Delayed
from numpy.typing import NDArray

from manifold_observer.tasks.observers import kalman, observer
from manifold_observer.tasks.observers.kalman import Schedule, Steady
from manifold_observer.tasks.observers.observer import Filter

from ..frames.given import takes_frames
from ..frames.labels import segment_of
from ..frames.segments import restarts
from ..frames.variables import annotate
from ..graph.compute import task
from ..graph.spans import segment_spans
from .carries import ages_of, joined, table_rows
from .config import ObserverConfig
from .coordinates import reads_coordinates, smooth_coordinates
from .filters import Chosen, choose_filter
from .observe import checked, label, starts_before
from .scans import Scanned, scan_chunks, scan_varying

Floats = NDArray[np.float64]


@takes_frames
def smooth(
    embedding: xr.Dataset,
    frames: xr.DataArray,
    gain: str = "auto",
    step: str = "exact",
    rates: str | NDArray[np.float64] | None = None,
    initial: str = "auto",
    *,
    substeps: int | None = None,
    burst_duration: float | None = None,
    reading: str = "auto",
    dynamics: str = "auto",
) -> xr.Dataset:
    r"""Estimate every state from all frames, those after it included: for recordings that have ended.

    By default the mean of the states that :func:`observe` gives forwards and backwards, each with its own mixture; new
    frames are measured by those on both sides of them, as the embedded ones were. With
    ``preset="paper"`` or any option the smoother of a Kalman filter,

    .. math:: \hat x_i = x_i + C\,(\hat x_{i+1} - A x_i), \qquad C = P^{+} A^\top P^{-1}

    with the states x of the Kalman filter, its poles A and error covariances :math:`P^{+}` after and P before a
    frame [1]_. No segment learns from another.

    Parameters
    ----------
    embedding, frames, step, rates, substeps, burst_duration, reading, dynamics
        As for :func:`observe`.
    gain
        ``"kalman"`` (which ``"auto"`` is) or ``"dmk"``.
    initial
        State before a segment's first frame, as for :func:`observe`.

    Returns
    -------
    ``state(frame, mode)`` in units of the coordinates; ``state_std(frame, mode)``, as for :func:`observe`, which grows
    towards both ends of a segment; ``posterior_covariance(mode, mode_1)`` of the Kalman filter, in its steady state.
    Lazy where ``frames`` is: a chain of tasks over the chunks, forwards and back.

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
        dynamics=dynamics,
    ).resolved(coordinates=reads_coordinates(embedding), usual_gain="kalman")
    frames = checked(embedding, frames)
    if config.reading == "coordinates":
        return smooth_coordinates(embedding, frames, config.dynamics)
    if not config.optimal:
        raise ValueError(f"smooth: gain must be 'kalman' or 'dmk'; got {gain!r}.")
    chosen = choose_filter(embedding, frames, config)
    if chosen.model is None or chosen.steady is None:
        raise AssertionError(f"an optimal gain without a model: {config}")
    segment, n_modes = segment_of(frames), len(chosen.decay)
    starts = restarts(segment)
    if chosen.schedule is not None:
        scanned = scan_varying(embedding, frames, ages_of(starts), np.zeros(n_modes), chosen)
        parts = _back_varying(scanned, segment, chosen)
    else:
        before = starts_before(embedding, frames, starts, config)
        scanned = scan_chunks(embedding, frames, starts, before, np.zeros(n_modes), chosen.filter)
        parts = _back(scanned, segment, kalman.backward(chosen.model, chosen.steady))
    states = joined(parts, scanned.lengths, n_modes)
    result = label(embedding, frames, states, config, chosen)
    result["state_std"] = (("frame", "mode"), _deviations(chosen, chosen.steady, segment, states))
    result = annotate(result.assign_attrs(smoothed="forwards and backwards"))
    return result if frames.chunks else result.compute()


def _back_varying(scanned: Scanned, segment: NDArray[np.int64], chosen: Chosen) -> list[Delayed]:
    """Smoothed states of all chunks, where the gain varies."""
    model, schedule = chosen.varying()
    gains, state = dask.delayed(schedule, traverse=False), dask.delayed(np.zeros(len(chosen.decay)))
    ends, ages = restarts(segment[::-1])[::-1], ages_of(restarts(segment))
    stop, parts = len(segment), []
    for filtered, length in zip(scanned.parts[::-1], scanned.lengths[::-1], strict=True):
        own = slice(stop - length, stop)
        smoothed, state = task(_varying_block, filtered, ages[own], ends[own], state, gains, model.poles, outputs=2)
        parts.append(smoothed)
        stop -= length
    return parts[::-1]


def _varying_block(
    filtered: Floats, ages: NDArray[np.int64], ends: NDArray[np.bool_], carry: Floats, gains: Schedule, poles: Floats
) -> tuple[Floats, Floats]:
    """One chunk, from its end."""
    states = kalman.smoothed(filtered, ages, ends, carry, gains, poles)
    return states, states[0].copy()


def _deviations(chosen: Chosen, steady: Steady, segment: NDArray[np.int64], like: da.Array) -> da.Array:
    """Deviations of every frame, lazily, from a table of those that differ."""
    lengths = [stop - start for start, stop in segment_spans(segment)]
    if chosen.schedule is None:
        table = kalman.smoothed_variances(steady)
        to_end = np.concatenate([np.arange(length)[::-1] for length in lengths])
        return table_rows(np.minimum(to_end, len(table) - 1), chosen.told(table), like)
    rows, table = _varying_table(chosen.schedule, lengths)
    return table_rows(rows, chosen.told(table), like)


def _varying_table(known: Schedule, lengths: list[int]) -> tuple[NDArray[np.int64], Floats]:
    """Row of every frame, and variances: once for all segments of one length, or so long that the middle is steady."""
    begun = len(known.gain)
    most = begun + kalman.settling(known)
    tables, firsts, rows, size = [], {}, [], 0
    for length in lengths:
        kept = min(length, most)
        if kept not in firsts:
            firsts[kept] = size
            tables.append(kalman.segment_variances(known, kept))
            size += kept
        age = np.arange(length)
        rows.append(
            firsts[kept] + np.where(age < begun, np.minimum(age, kept - 1), np.maximum(age - length + kept, begun - 1))
        )
    return np.concatenate(rows), np.concatenate(tables)


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
