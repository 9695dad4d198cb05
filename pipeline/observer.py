"""The contracting observer as a scan over chunks of frames, each handing its carry to the next."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks import observer

from .config import RATES, ObserverConfig
from .cuts import restarts
from .diffusion import generator_rates
from .graph import task
from .join import seconds_between
from .variables import annotate

Floats = NDArray[np.float64]
# New frames that begin later than this many frame periods after the carry begin a new segment.
_GAP_PERIODS = 1.5


def observe(
    embedding: xr.Dataset,
    frames: xr.DataArray,
    gamma: float = 0.85,
    gain: str = "paper",
    step: str = "exact",
    rates: str | NDArray[np.float64] = "step",
    initial: str = "steady",
    carry: xr.DataArray | None = None,
    *,
    substeps: int | None = None,
    burst_duration: float | None = None,
) -> xr.Dataset:
    r"""Run the contracting observer over frames: the embedded ones, or new ones (Algorithm 3).

    .. math:: \hat\psi(t_{i+1}) = [I + (1 - \gamma) \Lambda]\, \hat\psi(t_i)
              + \gamma \Lambda \alpha^{\dagger} (z(t_i) - \bar z)

    as printed [1]_ with ``step="euler", substeps=1``, and with a zero-order hold by default, which
    contracts for every rate. The state tracks the coordinates, and smooths each by its own dynamics.

    Parameters
    ----------
    embedding
        As :func:`embed` made it.
    frames
        Dims ``(frame, feature)``, the same features. The recursion starts anew where ``segment`` changes.
    gamma
        Weight of the measurement against the dynamics, 0 <= gamma < 1.
    gain
        ``"paper"``: a constant input u settles to :math:`-\gamma/(1-\gamma)\,u`, the sign is flipped.
        ``"unit"``: the same filter, scaled to settle to u.
    step
        ``"exact"`` or ``"euler"``.
    rates
        ``"step"``: :math:`-\log\mu` per frame. ``"generator"``: those of the hidden diffusion times the
        frame period (needs ``burst_duration``). Or numbers per frame, one a mode.
    initial
        State before a segment's first frame: ``"steady"``, what the gain would settle to if the first
        frame lasted for ever; or ``"paper"``, its coordinate (embedded frames only).
    carry
        ``carry`` of an earlier result, to go on from exactly where that stopped. A gap in time between
        it and the first frame starts a new segment; a clock that starts over is taken to go on.
    substeps
        Euler steps a frame; by default enough for the map to contract.
    burst_duration
        Seconds over which burst covariances were measured, for ``rates="generator"``.

    Returns
    -------
    ``state(frame, mode)``, labelled by the last frame that it has seen, and ``carry(mode)``. Lazy where
    ``frames`` is, one task a chunk in a chain of carries; a task holds its chunk of frames. The labels of
    the frames (``time`` and ``segment``) are read at once.

    Raises
    ------
    ValueError
        Bad options, other features than the embedding's, an Euler map that does not contract.

    References
    ----------
    .. [1] T. Shnitzer, R. Talmon and J.-J. Slotine, "Manifold Learning with Contracting Observers for
       Data-driven Time-series Analysis", IEEE Trans. Signal Processing 65 (2017).

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
    config = ObserverConfig(gamma, gain, step, substeps, initial)
    frames = _checked(embedding, frames)
    decay = _rates(embedding, frames, rates, burst_duration)
    poles = _contracting_poles(decay, config)
    starts = _restarts(frames, carry)
    before = _starts(embedding, frames, starts, config)
    states, last = _scan(embedding, frames, starts, before, _carry(carry, len(decay)), poles, config)
    return _label(embedding, frames, states, last, config, decay)


def _checked(embedding: xr.Dataset, frames: xr.DataArray) -> xr.DataArray:
    """The frames must have the features of the embedding."""
    if set(frames.dims) != {"frame", "feature"}:
        raise ValueError(f"observe: frames must have dims (frame, feature); got {frames.dims}.")
    known, got = embedding.sizes["feature"], frames.sizes["feature"]
    if known != got:
        raise ValueError(
            f"observe: frames must have the {known} features of the embedding; got {got}. Make them with the "
            "same options (frame=, edges=) as the embedded frames."
        )
    if frames.sizes["frame"] == 0:
        raise ValueError("observe: frames must hold at least 1 frame; got 0.")
    return frames.transpose("frame", "feature")


def _rates(embedding: xr.Dataset, frames: xr.DataArray, rates: str | Floats, burst_duration: float | None) -> Floats:
    """Decay of every mode over one frame."""
    if not isinstance(rates, str):
        given = np.asarray(rates, np.float64)
        if given.shape != (embedding.sizes["mode"],) or not (given >= 0).all():
            raise ValueError(
                f"observe: rates must be {embedding.sizes['mode']} numbers of at least 0, one a mode; got {rates!r}."
            )
        return given
    if rates == "step":
        return embedding["rate"].values
    if rates != "generator":
        raise ValueError(f"observe: rates must be one of {', '.join(map(repr, RATES))}, or numbers; got {rates!r}.")
    if burst_duration is None:
        raise ValueError("observe: rates='generator' needs burst_duration= in seconds; got None.")
    return generator_rates(embedding, burst_duration).values * _frame_period(frames)


def _frame_period(frames: xr.DataArray) -> float:
    """Seconds between two frames."""
    if "frame_period" in frames.attrs:
        return float(frames.attrs["frame_period"])
    if "time" not in frames.coords or frames.sizes["frame"] < 2:
        raise ValueError("observe: frames need a 'time' coordinate in seconds for rates='generator'.")
    return float(np.median(np.diff(frames["time"].values)))


def _contracting_poles(decay: Floats, config: ObserverConfig) -> Floats:
    """Poles of the map, refused where it does not contract."""
    poles = observer.poles(decay, config.gamma, config.step, config.substeps)
    if (np.abs(poles) > 1).any():
        mode = int(np.argmax(np.abs(poles)))
        enough = observer.contracting_substeps(decay, config.gamma)
        raise ValueError(
            f"observe: the Euler map must contract; got the factor {poles[mode]:.3g} a frame for mode {mode + 1} with "
            f"substeps={config.substeps}. Give substeps={enough}, leave it out, or take step='exact'."
        )
    return poles


def _restarts(frames: xr.DataArray, carry: xr.DataArray | None) -> NDArray[np.bool_]:
    """Where the recursion starts anew."""
    n = frames.sizes["frame"]
    segment = frames["segment"].values if "segment" in frames.coords else np.zeros(n, np.int64)
    starts = restarts(segment)
    if carry is not None:
        starts[0] = _gap_after(carry, frames)
    return starts


def _gap_after(carry: xr.DataArray, frames: xr.DataArray) -> bool:
    """Whether the frames begin later than the carry's next frame.

    A clock that starts over, as that of every sound file does, is taken to go on.
    """
    if "last_time" not in carry.attrs or "time" not in frames.coords:
        return False
    apart = seconds_between(carry.attrs.get("start_time"), frames["time"].attrs.get("start_time"))
    wait = float(frames["time"][0]) + (apart or 0.0) - float(carry.attrs["last_time"])
    return wait > _GAP_PERIODS * float(carry.attrs["frame_period"])


def _starts(
    embedding: xr.Dataset, frames: xr.DataArray, starts: NDArray[np.bool_], config: ObserverConfig
) -> Floats | None:
    """Coordinates to start segments from, for initial="paper"."""
    if config.initial == "steady":
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


def _scan(
    embedding: xr.Dataset,
    frames: xr.DataArray,
    starts: NDArray[np.bool_],
    before: Floats | None,
    carry: Any,
    poles: Floats,
    config: ObserverConfig,
) -> tuple[da.Array, da.Array]:
    """Project every chunk on its own, then hand the carry from chunk to chunk."""
    lazy = frames.chunk(feature=-1) if frames.chunks else frames.chunk()
    mean, inverse = embedding["feature_mean"].values, np.linalg.pinv(embedding["lift"].values)
    gain = observer.steady_gain(config.gamma, config.gain)
    state = dask.delayed(carry)
    parts: list[da.Array] = []
    first = used = 0
    for block, length in zip(lazy.data.to_delayed().ravel(), lazy.data.chunks[0], strict=True):
        anew = starts[first : first + length]
        count = int(anew.sum())
        given = None if before is None else before[used : used + count]
        inputs = task(_project, block, mean, inverse, first)
        scanned, state = dask.delayed(_scan_block, nout=2, pure=False)(inputs, anew, given, state, poles, gain)
        parts.append(da.from_delayed(scanned, (length, len(poles)), dtype=np.float64, meta=np.empty((0, 0))))
        first, used = first + length, used + count
    return da.concatenate(parts), da.from_delayed(state, (len(poles),), dtype=np.float64, meta=np.empty(0))


def _project(frames: NDArray[Any], mean: Floats, inverse: Floats, first: int) -> Floats:
    """Inputs of one chunk; frames that are not finite are told."""
    finite = np.isfinite(frames).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"observe: frames must be finite; frame {first + int(np.argmin(finite))} holds NaN or infinity. Leave such "
            "frames out, with a new segment after each hole."
        )
    return observer.project(np.asarray(frames, np.float64), mean, inverse)


def _scan_block(
    inputs: Floats, anew: NDArray[np.bool_], before: Floats | None, carry: Floats, poles: Floats, gain: float
) -> tuple[Floats, Floats]:
    """One chunk."""
    starts = observer.steady_starts(inputs, anew, gain) if before is None else before
    return observer.scan(inputs, anew, starts, carry, poles, gain)


def _label(
    embedding: xr.Dataset,
    frames: xr.DataArray,
    states: da.Array,
    last: da.Array,
    config: ObserverConfig,
    decay: Floats,
) -> xr.Dataset:
    """States with the labels of their frames, and the carry with its time."""
    per_frame = {name: c for name, c in frames.coords.items() if c.dims == ("frame",)}
    mode = {"mode": embedding["mode"]} if "mode" in embedding.coords else {}
    attrs: dict[str, float | str] = {}
    if "time" in per_frame and ("frame_period" in frames.attrs or frames.sizes["frame"] > 1):
        attrs = {"last_time": float(frames["time"][-1]), "frame_period": _frame_period(frames)}
        attrs |= {k: v for k, v in frames["time"].attrs.items() if k == "start_time"}
    result = xr.Dataset(
        {"state": (("frame", "mode"), states), "carry": ("mode", last, attrs)},
        coords={**per_frame, **mode},
        attrs={**config.attrs(), "rates": [float(rate) for rate in decay]},
    )
    annotate(result)
    return result if frames.chunks else result.compute()
