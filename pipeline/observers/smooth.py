"""The smoother: a Kalman filter forwards, then backwards over its states, chunk by chunk in reverse."""

from __future__ import annotations

from typing import NamedTuple

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
from ..frames.labels import segments_of
from ..frames.segments import Segments
from ..frames.variables import annotate
from ..graph.compute import task
from .carries import BothWays, both_ways, joined, table_rows
from .config import ObserverConfig
from .coordinates import reads_coordinates, smooth_coordinates
from .filters import Chosen, choose_filter
from .observe import checked, label, starts_before
from .scans import Scanned, scan_chunks, scan_varying
from .starts import Starts

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
    segments, n_modes = segments_of(frames), len(chosen.decay)
    starts = Starts(len(segments), segments.firsts)
    if chosen.schedule is not None:
        scanned = scan_varying(embedding, frames, starts, np.zeros(n_modes), chosen)
        parts = _back_varying(scanned, starts, chosen)
    else:
        before = starts_before(embedding, frames, starts, config)
        scanned = scan_chunks(embedding, frames, starts, before, np.zeros(n_modes), chosen.filter)
        parts = _back(scanned, starts, kalman.backward(chosen.model, chosen.steady))
    states = joined(parts, scanned.lengths, n_modes)
    result = label(embedding, frames, states, config, chosen)
    result["state_std"] = (("frame", "mode"), _deviations(chosen, chosen.steady, segments, scanned.lengths))
    result = annotate(result.assign_attrs(smoothed="forwards and backwards"))
    return result if frames.chunks else result.compute()


def _back_varying(scanned: Scanned, starts: Starts, chosen: Chosen) -> list[Delayed]:
    """Smoothed states of all chunks, where the gain varies."""
    model, schedule = chosen.varying()
    gains, state = dask.delayed(schedule, traverse=False), dask.delayed(np.zeros(len(chosen.decay)))
    parts = []
    for filtered, own in zip(scanned.parts[::-1], both_ways(starts, scanned.lengths)[::-1], strict=True):
        smoothed, state = task(_varying_block, filtered, own, state, gains, model.poles, outputs=2)
        parts.append(smoothed)
    return parts[::-1]


def _varying_block(
    filtered: Floats, own: BothWays, carry: Floats, gains: Schedule, poles: Floats
) -> tuple[Floats, Floats]:
    """One chunk, from its end."""
    states = kalman.smoothed(filtered, own.starts.ages(), own.back.mask()[::-1], carry, gains, poles)
    return states, states[0].copy()


def _deviations(chosen: Chosen, steady: Steady, segments: Segments, lengths: tuple[int, ...]) -> da.Array:
    """Deviations of every frame, lazily, from a table of those that differ."""
    chunks = both_ways(Starts(len(segments), segments.firsts), lengths)
    if chosen.schedule is None:
        table = kalman.smoothed_variances(steady)
        return table_rows(chunks, lengths, _to_end, chosen.told(table), len(table))
    known = _varying_table(chosen.schedule, [stop - start for start, stop in segments.spans()])
    return table_rows(chunks, lengths, known.rows, chosen.told(known.variances))


def _to_end(own: BothWays, n_rows: int) -> NDArray[np.int64]:
    """Row of every frame of a chunk: how many frames of its segment follow it."""
    return np.minimum(own.ages()[1], n_rows - 1)


class _Table(NamedTuple):
    """Variances (k, m) of the frames of segments: once for all of one length, or so long that the middle is steady.

    ``kept`` are the lengths, ascending, and ``firsts`` their first rows; the gain is steady after ``begun`` frames.
    """

    variances: Floats
    kept: NDArray[np.int64]
    firsts: NDArray[np.int64]
    begun: int

    def rows(self, own: BothWays) -> NDArray[np.int64]:
        """Row of every frame of a chunk."""
        age, to_end = own.ages()
        length = age + to_end + 1
        place = np.minimum(np.searchsorted(self.kept, length), len(self.kept) - 1)
        kept, begun = self.kept[place], self.begun
        late = np.maximum(age - length + kept, begun - 1)
        return self.firsts[place] + np.where(age < begun, np.minimum(age, kept - 1), late)


def _varying_table(known: Schedule, lengths: list[int]) -> _Table:
    """Variances of the frames of segments of some lengths."""
    begun = len(known.gain)
    kept = np.unique(np.minimum(lengths, begun + kalman.settling(known)))
    firsts = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)[:-1]])
    return _Table(
        np.concatenate([kalman.segment_variances(known, int(length)) for length in kept]), kept, firsts, begun
    )


def _back(scanned: Scanned, starts: Starts, backward: Filter) -> list[Delayed]:
    """Smoothed states of all chunks, the last one first."""
    state, parts = dask.delayed(np.zeros(backward.transition.shape[0])), []
    for filtered, own in zip(scanned.parts[::-1], both_ways(starts, scanned.lengths)[::-1], strict=True):
        smoothed, state = task(_smooth_block, filtered, own.back, state, backward, outputs=2)
        parts.append(smoothed)
    return parts[::-1]


def _smooth_block(filtered: Floats, back: Starts, carry: Floats, backward: Filter) -> tuple[Floats, Floats]:
    """One chunk, from its end."""
    nothing, ends = np.zeros(filtered.shape[1]), back.mask()[::-1]
    drives = observer.project(filtered, nothing, backward.drive)
    after = observer.project(filtered[ends], nothing, backward.start)
    return observer.scan_back(drives, ends, after, carry, backward.transition)
