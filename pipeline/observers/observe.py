"""The contracting observer: which filter runs over which frames, and what its states are labelled with."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.observers.kalman import Steady

from ..frames.alike import frames_like
from ..frames.given import takes_frames
from ..frames.labels import MAKE_FRAMES, frame_labels, segments_of
from ..frames.variables import annotate
from .carries import SINCE, behind, carry_attrs, cuts, given_carry, joined, seam, table_rows
from .config import ObserverConfig
from .coordinates import observe_coordinates, reads_coordinates
from .filters import Chosen, choose_filter
from .projections import are_embedded
from .scans import scan_chunks, scan_varying
from .starts import Starts

Floats = NDArray[np.float64]


@takes_frames
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
    dynamics: str = "auto",
) -> xr.Dataset:
    r"""Run contracting observers over frames: the embedded ones, or new ones (Algorithm 3).

    By default every frame is read by its own coordinates y, diffusion coordinates and two principal components,
    which a bank of observers with fixed poles follows; the state is the mixture W of all of them that holds most of
    what they foretell of the coordinates 1, 2, 4 and 8 frames later, learnt from the embedded frames:

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
    dynamics
        By coordinates: ``"poles"``, the bank; ``"transitions"``, one filter :math:`x_i = (I - K) A x_{i-1} + K y_i`
        with m x m transitions A learnt from the embedded frames, which rotate, and :math:`\hat y_i = A x_i`; or
        ``"auto"``, which takes the transitions where they foretell a twentieth more of the next frames' variance on
        blocks that were left out (for recordings of some hundred frames, which a bank has too many weights for).

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
    the recursion. Learnt transitions stand in the basis of their posterior covariance, where the norm of :math:`(I - K)
    A` is below 1; a fit at its bound (``transitions_at_bound``) has an infinite ``state_std``. A Kalman gain that
    starts from the stationary variance P has error covariances that fall to the steady ones, and :math:`\delta^\top
    (P^{+})^{-1} \delta` of the difference of two states falls with every frame.

    By coordinates, ``state_std`` is learnt from the embedded frames, by frames since the segment began. A coordinate is
    taken for a part that persists from frame to frame and noise that is new in every frame: the autocovariance at lags
    of 1 to 24 frames, brought back to lag 0, is the variance of the part that persists. Noise that lasts for several
    frames counts as part of the coordinate. Of frames that were not embedded some embedded ones, read as if they were
    new, tell how much larger the deviation is. On simulations bands of 1.96 deviations mostly hold 93 to 98 % of the
    coordinates with a signal; fewer, down to 90 %, in a segment's first frames out of the sample and where only some
    hundred frames were embedded; those of coordinates that are noise are wider. All this is computed in every call,
    unless the embedding brings it, as that of a stored result does.

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
    config = ObserverConfig(gamma, gain, step, substeps, initial, rates, burst_duration, reading, dynamics).resolved(
        coordinates=reads_coordinates(embedding)
    )
    frames, carry = checked(embedding, frames), given_carry("observe", carry)
    if config.reading == "coordinates":
        return observe_coordinates(embedding, frames, carry, dynamics=config.dynamics)
    segments = segments_of(frames)
    starts = Starts(len(segments), segments.firsts)
    if carry is not None:
        starts = starts.first_of(seam(carry, frames).windows)
    return scan(embedding, frames, config, starts, carry)


def scan(
    embedding: xr.Dataset,
    frames: xr.DataArray,
    config: ObserverConfig,
    starts: Starts | NDArray[np.bool_],
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
        Where the recursion starts anew; it starts from the carry where the first frame is none of them.

    Returns
    -------
    As :func:`observe`.
    """
    chosen = choose_filter(embedding, frames, config)
    n_modes = len(chosen.decay)
    starts = (starts if isinstance(starts, Starts) else Starts.of(starts))._replace(before=behind(carry))
    handed = _carry(carry, n_modes)
    if chosen.schedule is not None:
        scanned = scan_varying(embedding, frames, starts, handed, chosen)
    else:
        before = starts_before(embedding, frames, starts, config)
        scanned = scan_chunks(embedding, frames, starts, before, handed, chosen.filter)
    states = joined(scanned.parts, scanned.lengths, n_modes)
    result = label(embedding, frames, states, config, chosen)
    last = da.from_delayed(scanned.last, (n_modes,), dtype=np.float64, meta=np.empty(0))
    since = {} if chosen.schedule is None else {SINCE: starts.next_age}
    result["carry"] = ("mode", last, carry_attrs(frames) | since)
    if chosen.steady is not None:
        result["state_std"] = (("frame", "mode"), _deviations(chosen, chosen.steady, starts, states))
    annotate(result)
    return result if frames.chunks else result.compute()


def _deviations(chosen: Chosen, steady: Steady, starts: Starts, like: da.Array) -> da.Array:
    """Posterior deviation of every frame, lazily."""
    if chosen.schedule is not None:
        variances = np.diagonal(chosen.schedule.posterior, axis1=1, axis2=2)
        lengths = like.chunks[0]
        return table_rows(cuts(starts, lengths), lengths, _schedule_rows, chosen.told(variances), len(variances))
    return da.broadcast_to(chosen.told(np.diag(steady.posterior)), like.shape, chunks=like.chunks)


def _schedule_rows(starts: Starts, n_rows: int) -> NDArray[np.int64]:
    """Row of every frame of a chunk in the table of a schedule."""
    return np.minimum(starts.ages(), n_rows - 1)


def checked(embedding: xr.Dataset, frames: xr.DataArray) -> xr.DataArray:
    """Frames with the features of the embedding, in its order."""
    return frames_like("observe: frames", embedding, frames, MAKE_FRAMES)


def starts_before(embedding: xr.Dataset, frames: xr.DataArray, starts: Starts, config: ObserverConfig) -> Floats | None:
    """Coordinates to start segments from, for initial="paper"; None where the filter says."""
    if config.initial != "paper":
        return None
    if not are_embedded(embedding, frames):
        raise ValueError(
            "observe: initial='paper' starts from the coordinates of the embedded frames, and these are other "
            "frames. Take initial='steady'."
        )
    return np.asarray(embedding["coordinate"].isel(frame=starts.places).values)


def _carry(carry: xr.DataArray | None, n_modes: int) -> Any:
    """The state to go on from; what is not used is zero."""
    if carry is None:
        return np.zeros(n_modes)
    if carry.shape != (n_modes,):
        raise ValueError(f"observe: carry must hold {n_modes} modes; got shape {carry.shape}.")
    return carry.data


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
