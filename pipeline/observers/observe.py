"""The contracting observer as a scan over chunks of frames, each handing its carry to the next."""

from __future__ import annotations

from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
import xarray as xr
from dask.delayed import Delayed
from numpy.typing import NDArray

from manifold_observer.tasks.arrays import first_not_finite
from manifold_observer.tasks.engine.conditioning import Conditioning, conditioned
from manifold_observer.tasks.observers import kalman, observer
from manifold_observer.tasks.observers.kalman import Schedule, Steady
from manifold_observer.tasks.observers.observer import Filter

from ..frames.conditioning import conditioning_of
from ..frames.labels import MAKE_FRAMES, check_features, frame_labels, in_order, segment_of
from ..frames.segments import restarts
from ..frames.variables import annotate
from ..graph.compute import task
from ..graph.slabs import chunks_of
from .carries import SINCE, ages_of, carry_attrs, joined, seam, table_rows
from .config import ObserverConfig
from .coordinates import observe_coordinates, reads_coordinates
from .filters import Chosen, choose_filter

Floats = NDArray[np.float64]


class Scanned(NamedTuple):
    """One delayed array of states a chunk, the delayed last state, and the frames of every chunk."""

    parts: list[Delayed]
    last: Delayed
    lengths: tuple[int, ...]


def observe(
    embedding: xr.Dataset,
    frames: xr.DataArray,
    gamma: float = 0.85,
    gain: str = "auto",
    step: str = "exact",
    rates: str | NDArray[np.float64] | None = None,
    initial: str = "auto",
    carry: xr.DataArray | None = None,
    *,
    substeps: int | None = None,
    burst_duration: float | None = None,
    reading: str = "auto",
) -> xr.Dataset:
    r"""Run contracting observers over frames: the embedded ones, or new ones (Algorithm 3).

    By default every frame is read by its own coordinates y, diffusion coordinates and two principal components,
    which a bank of observers with fixed poles follows; the state is the mixture W of all of them that predicts the
    coordinates of the next frame, learnt from the embedded frames:

    .. math:: x^{(a)}_i = a\,x^{(a)}_{i-1} + (1 - a)\,y_i, \qquad \hat y_i = W\,(x^{(a)}_i)_a

    With an embedding of ``preset="paper"``, or with any option from ``gamma`` to ``burst_duration``, a frame is read
    linearly by its features, as printed [1]_:

    .. math:: \hat\psi(t_{i+1}) = [I + (1 - \gamma) \Lambda]\, \hat\psi(t_i)
              + \gamma \Lambda \alpha^{\dagger} (z(t_i) - \bar z)

    to the letter with ``step="euler", substeps=1``, and with a zero-order hold by default, which
    contracts for every rate. Either state tracks the coordinates, and contracts.

    Parameters
    ----------
    embedding
        As :func:`embed` made it.
    frames
        Dims ``(frame, feature)``, the same features. The recursion starts anew where ``segment`` changes.
    gamma
        Weight of the measurement against the dynamics, 0 <= gamma < 1: the larger, the smoother the state. The optimal
        gains do not need it.
    gain
        ``"auto"`` is ``"paper"``: a constant input u settles to :math:`-\gamma/(1-\gamma)\,u`, the sign is flipped.
        ``"unit"``: the same filter, scaled to settle to u. ``"kalman"``: the optimal one for the dynamics and
        the noise that the embedded frames show (see :func:`calibrate`). ``"dmk"``: the settings of the authors'
        follow-up [2]_, process noise :math:`\mathrm{diag}(\lambda^2)` and measurement noise
        :math:`\mathrm{diag}(\mathrm{var}\,z)`. The last two take the gains of the Riccati equation, and their state
        estimates :math:`\psi` itself.
    step
        ``"exact"`` or ``"euler"``.
    rates
        Decay of the modes. ``"step"``: :math:`-\log\mu` per frame. ``"paper"``: as printed,
        :math:`-(2/\varepsilon)\log\mu`, a frame being the unit of time. ``"generator"``: those of the hidden
        diffusion times the frame period (needs ``burst_duration``). ``"calibrated"``: as the embedded frames
        move, from :func:`calibrate`, which is called (and computes) where the embedding has not been through it. Or
        numbers per frame, one a mode. By default ``"calibrated"`` for ``"kalman"``, ``"paper"`` for ``"dmk"``,
        else ``"step"``.
    initial
        State before a segment's first frame. ``"prior"``, which ``"auto"`` is for ``gain="kalman"``: the mean, with
        the stationary variance; the gain is then the best one for every frame, from the first one on, and settles to
        the steady one. ``"steady"``, which ``"auto"`` is for the others: what the steady gain would settle to if the
        first frame lasted for ever. ``"paper"``: its coordinate (embedded frames only), with the steady gain.
    carry
        ``carry`` of an earlier result, to go on from exactly where that stopped. A gap in time between
        it and the first frame starts a new segment; a clock that starts over is taken to go on.
    substeps
        Euler steps a frame; by default enough for the map to contract.
    burst_duration
        Seconds over which burst covariances were measured, for ``rates="generator"``.
    reading
        ``"coordinates"``, ``"lift"`` (linear), or ``"auto"``.

    Returns
    -------
    ``state(frame, mode)``, labelled by the last frame that it has seen, and ``carry``, for a later call; by coordinates
    ``reads(mode)``, what each mode estimates in units of its deviation, and ``far(frame)``, new frames unlike all
    embedded ones. Embedded frames (by time and value) have their own coordinates, of windows that see half a window
    ahead, as the attribute ``has_seen`` says; new ones are read from their past alone. ``state_std(frame, mode)`` is
    the standard deviation of what the state is off by: by coordinates from the coordinate of the same frame without its
    noise, infinite where a frame is ``far``, or too few frames were embedded to tell (see Notes); by the optimal gains
    from what the frame would read without noise, infinite for modes that :func:`calibrate` found not to decay as
    modelled. The optimal gains also have ``posterior_covariance(mode, mode_1)``, that of the steady state. The
    attribute ``contraction_factor`` is what a frame brings two states together by, at least, in the metric of the
    posterior covariance of each frame. Lazy where ``frames`` is, one task a chunk in a chain of carries; a task holds
    its chunk of frames. The labels of the frames (``time`` and ``segment``) are read at once.

    Raises
    ------
    ValueError
        Bad options, other features than the embedding's, an Euler map that does not contract; for optimal gains modes
        that the features cannot tell apart, or that never forget.

    Notes
    -----
    Every map contracts. Bank and constant gains are first-order filters with poles below 1; the mixture is outside of
    the recursion. A Kalman gain that starts from the stationary variance P has error covariances that fall to the
    steady ones, and :math:`\delta^\top (P^{+})^{-1} \delta` of the difference of two states falls with every frame.

    By coordinates, ``state_std`` is learnt from the embedded frames, by frames since the segment began. A coordinate is
    taken for a part that persists from frame to frame and noise that is new in every frame: the autocovariance at lags
    of 1 to 24 frames, brought back to lag 0, is the variance of the part that persists. Noise that lasts for several
    frames counts as part of the coordinate. Of frames that were not embedded some embedded ones, read as if they were
    new, tell how much larger the deviation is. On simulations bands of 1.96 deviations hold 93 to 98 % of the
    coordinates with a signal; those of coordinates that are noise are wider. All this is computed in every call, unless
    the embedding brings it, as that of a stored result does.

    References
    ----------
    .. [1] T. Shnitzer, R. Talmon and J.-J. Slotine, "Manifold Learning with Contracting Observers for
       Data-driven Time-series Analysis", IEEE Trans. Signal Processing 65 (2017).
    .. [2] T. Shnitzer, R. Talmon and J.-J. Slotine, "Diffusion Maps Kalman Filter for a Class of Systems with
       Gradient Flows", IEEE Trans. Signal Processing 68 (2020).

    Examples
    --------
    >>> toy = xr.Dataset({
    ...     "lift": (("feature", "mode"), [[2.0]]), "feature_mean": ("feature", [0.0]),
    ...     "rate": ("mode", [np.log(4)]),
    ... })
    >>> frames = xr.DataArray([[0.0], [2.0], [2.0]], dims=("frame", "feature"))
    >>> observe(toy, frames, gamma=0.5, gain="unit").state.values.ravel()
    array([0.  , 0.5 , 0.75])
    """
    config = ObserverConfig(gamma, gain, step, substeps, initial, rates, burst_duration, reading).resolved(
        coordinates=reads_coordinates(embedding)
    )
    frames = checked(embedding, frames)
    if config.reading == "coordinates":
        return observe_coordinates(embedding, frames, carry)
    starts = restarts(segment_of(frames))
    if carry is not None:
        starts[0] = seam(carry, frames).windows
    return scan(embedding, frames, config, starts, carry)


def scan(
    embedding: xr.Dataset,
    frames: xr.DataArray,
    config: ObserverConfig,
    starts: NDArray[np.bool_],
    carry: xr.DataArray | None,
) -> xr.Dataset:
    """Run the observer over frames that start anew where the caller says.

    Parameters
    ----------
    embedding, frames, carry
        As for :func:`observe`.
    config
        Which filter.
    starts
        True where the recursion starts anew, shape (n,). It starts from the carry where the first is False.

    Returns
    -------
    As :func:`observe`.
    """
    chosen = choose_filter(embedding, frames, config)
    n_modes = len(chosen.decay)
    ages = ages_of(starts, carry)
    handed = _carry(carry, n_modes)
    if chosen.schedule is not None:
        scanned = scan_varying(embedding, frames, ages, handed, chosen)
    else:
        before = starts_before(embedding, frames, starts, config)
        scanned = scan_chunks(embedding, frames, starts, before, handed, chosen.filter)
    states = joined(scanned.parts, scanned.lengths, n_modes)
    result = label(embedding, frames, states, config, chosen)
    last = da.from_delayed(scanned.last, (n_modes,), dtype=np.float64, meta=np.empty(0))
    since = {} if chosen.schedule is None else {SINCE: int(ages[-1]) + 1}
    result["carry"] = ("mode", last, carry_attrs(frames) | since)
    if chosen.steady is not None:
        result["state_std"] = (("frame", "mode"), _deviations(chosen, chosen.steady, ages, states))
    annotate(result)
    return result if frames.chunks else result.compute()


def _deviations(chosen: Chosen, steady: Steady, ages: NDArray[np.int64], like: da.Array) -> da.Array:
    """Posterior deviation of every frame, lazily."""
    if chosen.schedule is not None:
        variances = np.diagonal(chosen.schedule.posterior, axis1=1, axis2=2)
        return table_rows(chosen.schedule.rows(ages), chosen.told(variances), like)
    return da.broadcast_to(chosen.told(np.diag(steady.posterior)), like.shape, chunks=like.chunks)


def checked(embedding: xr.Dataset, frames: xr.DataArray) -> xr.DataArray:
    """The frames must have the features of the embedding."""
    frames = in_order("observe: frames", frames, ("frame", "feature"), MAKE_FRAMES)
    check_features("observe: frames", embedding, frames)
    return frames


def starts_before(
    embedding: xr.Dataset, frames: xr.DataArray, starts: NDArray[np.bool_], config: ObserverConfig
) -> Floats | None:
    """Coordinates to start segments from, for initial="paper"; None where the filter says."""
    if config.initial != "paper":
        return None
    psi = embedding["coordinate"]
    same = psi.sizes["frame"] == frames.sizes["frame"]
    if same and "time" in psi.coords and "time" in frames.coords:
        same = bool(np.array_equal(psi["time"].values, frames["time"].values))
    if not same:
        raise ValueError(
            "observe: initial='paper' starts from the coordinates of the embedded frames, and these are other "
            "frames. Take initial='steady'."
        )
    return psi.values[starts]


def _carry(carry: xr.DataArray | None, n_modes: int) -> Any:
    """The state to go on from; what is not used is zero."""
    if carry is None:
        return np.zeros(n_modes)
    if carry.shape != (n_modes,):
        raise ValueError(f"observe: carry must hold {n_modes} modes; got shape {carry.shape}.")
    return carry.data


def scan_chunks(
    embedding: xr.Dataset,
    frames: xr.DataArray,
    starts: NDArray[np.bool_],
    before: Floats | None,
    carry: Any,
    chosen: Filter,
) -> Scanned:
    """Read the drives of every chunk on its own, then hand the carry from chunk to chunk.

    Parameters
    ----------
    embedding
        For the feature means.
    frames
        Dims ``(frame, feature)``.
    starts
        True where the recursion starts anew, shape (n,).
    before
        States before the first frames of the segments, in order; None for those of the filter.
    carry
        State before the first frame, maybe lazy.
    chosen
        The filter.

    Returns
    -------
    One delayed array a chunk, and the last state.
    """
    lazy = frames.chunk(feature=-1) if frames.chunks else frames.chunk()
    mean, conditioning = embedding["feature_mean"].values, conditioning_of(embedding)
    state, parts, lengths = dask.delayed(carry), [], lazy.data.chunks[0]
    first = used = 0
    for block, length in zip(chunks_of(lazy.data), lengths, strict=True):
        anew = starts[first : first + length]
        count = int(anew.sum())
        given = None if before is None else before[used : used + count]
        drives, steady = task(_drives, block, mean, chosen.drive, chosen.start, anew, first, conditioning, outputs=2)
        begin = steady if given is None else given
        scanned, state = task(_scan_block, drives, anew, begin, state, chosen.transition, outputs=2)
        parts.append(scanned)
        first, used = first + length, used + count
    return Scanned(parts, state, lengths)


def scan_varying(
    embedding: xr.Dataset, frames: xr.DataArray, ages: NDArray[np.int64], carry: Any, chosen: Chosen
) -> Scanned:
    """The same for a gain that varies with the frames since the segment began.

    Parameters
    ----------
    embedding, frames, carry
        As for :func:`scan_chunks`.
    ages
        Frames before each frame in its segment, shape (n,).
    chosen
        A filter with its model and schedule.

    Returns
    -------
    One delayed array a chunk, and the last state.
    """
    model, schedule = chosen.varying()
    lazy = frames.chunk(feature=-1) if frames.chunks else frames.chunk()
    mean, conditioning = embedding["feature_mean"].values, conditioning_of(embedding)
    state, parts, lengths = dask.delayed(carry), [], lazy.data.chunks[0]
    gains, first = dask.delayed(schedule, traverse=False), 0
    for block, length in zip(chunks_of(lazy.data), lengths, strict=True):
        own = ages[first : first + length]
        none = np.zeros(length, bool)
        readings, _ = task(_drives, block, mean, model.reading, model.reading, none, first, conditioning, outputs=2)
        scanned, state = task(_varying_block, readings, own, state, gains, outputs=2)
        parts.append(scanned)
        first += length
    return Scanned(parts, state, lengths)


def _varying_block(readings: Floats, ages: NDArray[np.int64], carry: Floats, gains: Schedule) -> tuple[Floats, Floats]:
    """One chunk."""
    return kalman.run(readings, ages, carry, gains)


def _drives(
    frames: NDArray[Any],
    mean: Floats,
    drive: Floats,
    start: Floats,
    anew: NDArray[np.bool_],
    first: int,
    conditioning: Conditioning | None,
) -> tuple[Floats, Floats]:
    """Drives of one chunk, and the states before its segments; frames that are not finite are told."""
    bad = first_not_finite(frames)
    if bad is not None:
        raise ValueError(
            f"observe: frames must be finite; frame {first + bad} holds NaN or infinity. Leave such "
            "frames out, with a new segment after each hole."
        )
    values = conditioned(np.asarray(frames, np.float64), conditioning)
    return observer.project(values, mean, drive), observer.project(values[anew], mean, start)


def _scan_block(
    drives: Floats, anew: NDArray[np.bool_], before: Floats, carry: Floats, transition: Floats
) -> tuple[Floats, Floats]:
    """One chunk."""
    return observer.scan(drives, anew, before, carry, transition)


def label(
    embedding: xr.Dataset, frames: xr.DataArray, states: da.Array, config: ObserverConfig, chosen: Chosen
) -> xr.Dataset:
    """States with the labels of their frames, and the settings.

    Parameters
    ----------
    embedding, frames
        What was observed.
    states
        Shape (frames, modes).
    config, chosen
        How.

    Returns
    -------
    ``state``, and for optimal gains ``posterior_covariance``.
    """
    mode = {"mode": embedding["mode"]} if "mode" in embedding.coords else {}
    result = xr.Dataset({"state": (("frame", "mode"), states)}, coords={**frame_labels(frames), **mode})
    if chosen.steady is not None:
        result["posterior_covariance"] = (("mode", "mode_1"), chosen.steady.posterior)
    return result.assign_attrs(
        {**config.attrs(), "rates": [float(rate) for rate in chosen.decay], "contraction_factor": chosen.contraction}
    )
