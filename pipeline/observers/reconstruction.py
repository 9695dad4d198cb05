"""Back to the measurements: what a state stands for, and how far frames are from what was expected of them."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import xarray as xr
from dask.delayed import Delayed
from numpy.typing import NDArray

from manifold_observer.tasks.arrays import deviations
from manifold_observer.tasks.engine.conditioning import Conditioning, conditioned
from manifold_observer.tasks.observers import innovation as tasks
from manifold_observer.tasks.observers import observer

from ..embedding.read import known_coordinates
from ..frames.conditioning import conditioning_of
from ..frames.given import takes_frames
from ..frames.labels import frame_labels, require, segment_of
from ..frames.segments import restarts
from ..frames.variables import annotate
from ..graph.compute import compute, task
from ..graph.slabs import chunks_of
from .bank import learn_bank, mixture_of
from .carries import given_carry, joined, seam
from .config import OPTIMAL_GAINS
from .observe import checked, observe
from .starts import BRIDGED

Floats = NDArray[np.float64]


@takes_frames
def reconstruct(embedding: xr.Dataset, state: xr.DataArray | xr.Dataset) -> xr.DataArray:
    r"""Features that a state stands for, :math:`\hat z = \bar z + \alpha \hat\psi`.

    Parameters
    ----------
    embedding
        As :func:`embed` made it.
    state
        A result of :func:`observe` or :func:`smooth` (the sign and scale of the paper's gain are taken back), or
        numbers in units of the coordinates, dims ``(frame, mode)``.

    Returns
    -------
    Dims ``(frame, feature)``, in feature units; lazy where the state is, one task a chunk.

    Raises
    ------
    ValueError
        Another number of modes than the embedding's.

    Examples
    --------
    >>> toy = xr.Dataset({"lift": (("feature", "mode"), [[2.0]]), "feature_mean": ("feature", [10.0])})
    >>> reconstruct(toy, xr.DataArray([[0.5]], dims=("frame", "mode"))).values
    array([[11.]])
    """
    values, lift = _state(embedding, state)
    how = conditioning_of(embedding)
    result = xr.apply_ufunc(
        _reconstruct,
        values,
        input_core_dims=[["mode"]],
        output_core_dims=[["feature"]],
        kwargs={"lift": lift, "mean": embedding["feature_mean"].values, "how": how},
        dask="parallelized",
        output_dtypes=[np.float64],
        dask_gufunc_kwargs={"output_sizes": {"feature": lift.shape[0]}, "allow_rechunk": True},
    )
    of_features = {name: c for name, c in embedding.coords.items() if c.dims == ("feature",)}
    labelled = result.assign_coords(of_features).to_dataset(name="reconstruction")
    return annotate(labelled)["reconstruction"]


@takes_frames
def innovations(
    embedding: xr.Dataset,
    frames: xr.DataArray,
    state: xr.Dataset,
    carry: xr.DataArray | None = None,
    *,
    width: int = 100,
) -> xr.Dataset:
    r"""What frames say beyond what the states before them predict, and whether a refit is due; this computes.

    .. math:: z_i - \bar z - \alpha\,a\,\hat\psi_{i-1}

    with :math:`a = e^{-\lambda}` for the optimal gains; the paper's state is a prediction already, a = 1. The
    prediction of a segment's first frame is the mean.

    Parameters
    ----------
    embedding
        As :func:`embed` made it, with its ``reference`` frames.
    frames
        The frames that were observed, dims ``(frame, feature)``.
    state
        What :func:`observe` made of them.
    carry
        The carry that ``state`` went on from, if it did.
    width
        Frames of the recent past that the level looks at.

    Returns
    -------
    ``innovation(frame, feature)`` in feature units, lazily where the frames are; ``innovation_size(frame)``: root mean
    square over the features, in units of their deviation; ``innovation_level(frame)``: root mean square of the last
    ``width`` sizes over that of the embedded frames, about 1 where the learnt dynamics fit; ``refit_due(frame)``:
    the level is above what it ever was on the embedded frames, by a tenth. Attributes: ``embedded_size``,
    ``largest_embedded_level``.

    Raises
    ------
    ValueError
        Frames and state do not belong together, or the embedding has no reference frames.

    Notes
    -----
    One pass over the frames and two over the embedded ones; memory O(frames) here.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> wave = np.sin(np.arange(600) / 20)[:, None] + 0.1 * rng.normal(size=(600, 2))
    >>> toy = xr.Dataset({
    ...     "lift": (("feature", "mode"), [[0.7], [0.7]]), "feature_mean": ("feature", [0.0, 0.0]),
    ...     "rate": ("mode", [0.3]), "feature_variance": ("feature", [0.5, 0.5]),
    ...     "reference": (("frame", "feature"), wave),
    ... })
    >>> changed = xr.DataArray(wave[::-1] * [1, -1], dims=("frame", "feature"))
    >>> found = innovations(toy, changed, observe(toy, changed))
    >>> bool(found.refit_due[-1])
    True
    """
    frames, carry = checked(embedding, frames), given_carry("innovations", carry)
    require("innovations", embedding, "reference", "feature_variance")
    if state.sizes["frame"] != frames.sizes["frame"]:
        raise ValueError(
            f"innovations: the state must be that of the {frames.sizes['frame']} frames; got {state.sizes['frame']}."
        )
    known = _embedded_level(embedding, frames, state, width)
    parts, sizes, lengths = _predict(embedding, frames, state, carry)
    size = np.concatenate(compute(sizes))
    level, due = tasks.compare(size, restarts(segment_of(frames)), width, known)
    innovation = joined(parts, lengths, frames.sizes["feature"])
    result = xr.Dataset(
        {
            "innovation": (("frame", "feature"), innovation),
            "innovation_size": ("frame", size),
            "innovation_level": ("frame", level),
            "refit_due": ("frame", due),
        },
        coords=frame_labels(frames),
        attrs={"width": width, "embedded_size": known.size, "largest_embedded_level": known.largest_level},
    )
    annotate(result)
    return result if frames.chunks else result.compute()


def _embedded_level(embedding: xr.Dataset, frames: xr.DataArray, state: xr.Dataset, width: int) -> tasks.Usual:
    """The same observer over the embedded frames, and its innovations."""
    attrs = {name: value for name, value in frames.attrs.items() if name == "frame_period"}
    labels = {name: c for name, c in frame_labels(embedding).items() if name in ("time", "segment")}
    reference = embedding["reference"].assign_coords(labels).assign_attrs(attrs)
    again = observe(embedding, reference, **_options(state))
    _, sizes, _ = _predict(embedding, reference, again, None)
    return tasks.usual(np.concatenate(compute(sizes)), restarts(segment_of(reference)), width)


def _options(state: xr.Dataset) -> dict[str, Any]:
    """Options of the observer that made a state."""
    if _reads_coordinates(state):
        return {"reading": "coordinates", "dynamics": str(state.attrs.get("dynamics", "poles"))}
    kept = {name: state.attrs[name] for name in ("gamma", "gain", "step", "substeps", "initial") if name in state.attrs}
    numbers = {name: value for name, value in kept.items() if not (isinstance(value, str) and value == "none")}
    return numbers | {"rates": np.atleast_1d(np.asarray(state.attrs["rates"], np.float64))}


def _predict(
    embedding: xr.Dataset, frames: xr.DataArray, state: xr.Dataset, carry: xr.DataArray | None
) -> tuple[list[Delayed], list[Delayed], tuple[int, ...]]:
    """Innovations and their sizes, one delayed array a chunk."""
    lazy = frames.chunk(feature=-1) if frames.chunks else frames.chunk()
    values, lift = _state(embedding, state, blind=True)
    lengths = lazy.data.chunks[0]
    states = values.chunk({"frame": lengths, "mode": -1}).data.to_delayed().ravel()
    starts = restarts(segment_of(frames))
    starts[0] = carry is None or seam(carry, frames, BRIDGED if _reads_coordinates(state) else 0).filters
    before = dask.delayed(_left_by(embedding, state, carry, values.sizes["mode"]))
    factor, how = _decay(state), conditioning_of(embedding)
    constants = [lift, *(embedding[name].values for name in ("feature_mean", "feature_variance"))]
    parts, sizes, first = [], [], 0
    for block, own, length in zip(chunks_of(lazy.data), states, lengths, strict=True):
        anew = starts[first : first + length]
        innovation, size = task(_innovation_block, block, own, before, anew, factor, *constants, how, outputs=2)
        parts.append(innovation)
        sizes.append(size)
        before, first = own, first + length
    return parts, sizes, lengths


def _reads_coordinates(state: xr.Dataset) -> bool:
    """Whether a state was read from coordinates."""
    return bool(state.attrs.get("reading") == "coordinates")


def _left_by(embedding: xr.Dataset, state: xr.Dataset, carry: xr.DataArray | None, n_modes: int) -> Floats:
    """The state before the first frame, shape (1, modes): that of a carry, which may hold a bank in its place."""
    if carry is None:
        return np.zeros((1, n_modes))
    if not _reads_coordinates(state):
        return np.asarray(carry.values[None])
    mixture = mixture_of(learn_bank(embedding, _options(state)["dynamics"]))
    return mixture.states(np.asarray(carry.values[None, : len(mixture.mean)]))


def _innovation_block(
    frames: Floats,
    states: Floats,
    before: Floats,
    anew: NDArray[np.bool_],
    factor: Floats,
    lift: Floats,
    mean: Floats,
    variance: Floats,
    how: Conditioning | None,
) -> tuple[Floats, Floats]:
    """One chunk."""
    predicted = tasks.predicted_states(states, before[-1], anew, factor)
    found = tasks.innovations(conditioned(np.asarray(frames, np.float64), how), predicted, lift, mean)
    return found, tasks.sizes(found, variance)


def _decay(state: xr.Dataset) -> Floats:
    """What is left of a state after a frame of which nothing is known."""
    if _reads_coordinates(state):  # the mixture predicts the next frame already
        return np.ones(state.sizes["mode"])
    rates = np.atleast_1d(np.asarray(state.attrs["rates"], np.float64))
    return np.exp(-rates) if state.attrs["gain"] in OPTIMAL_GAINS else np.ones(len(rates))


def _state(
    embedding: xr.Dataset, state: xr.DataArray | xr.Dataset, *, blind: bool = False
) -> tuple[xr.DataArray, Floats]:
    """Numbers of a state, and the matrix (p, m) that leads from them to centred features.

    A state with gamma=0 has not seen the frames: it is refused, or where it may be ``blind`` leads to 0.
    """
    attrs = state.attrs if isinstance(state, xr.Dataset) else {}
    values = state["state"] if isinstance(state, xr.Dataset) else state
    n_modes = embedding.sizes["mode"]
    both = attrs.get("reading") == "coordinates" or values.sizes.get("mode") == _n_readings(embedding)
    wanted = _n_readings(embedding) if both else n_modes
    if set(values.dims) != {"frame", "mode"} or values.sizes["mode"] != wanted:
        raise ValueError(
            f"reconstruct: state must have dims (frame, mode) and the {n_modes} modes of the embedding; got "
            f"{dict(values.sizes)}."
        )
    gain = observer.steady_gain(float(attrs["gamma"])) if attrs.get("gain") == "paper" else 1.0
    if gain == 0 and not blind:
        raise ValueError("reconstruct: gamma must be above 0, the state has not seen the frames; got 0.")
    lift = _reading_lift(embedding) if both else embedding["lift"].transpose("feature", "mode").values
    return values.transpose("frame", "mode"), lift / gain if gain else np.zeros_like(lift)


def _n_readings(embedding: xr.Dataset) -> int:
    """Columns of a state that is read from coordinates; 0 where there is none."""
    return embedding.sizes["mode"] + embedding.sizes["component"] if "principal" in embedding else 0


def _reading_lift(embedding: xr.Dataset) -> Floats:
    """Least squares from states to features over the embedded frames: principal components and coordinates overlap."""
    plain = known_coordinates(embedding)
    deviation = deviations(plain)
    covariance = np.cov(plain / deviation, rowvar=False, ddof=0)
    lifted = np.hstack([embedding["lift"].values, embedding["principal_lift"].values]) / deviation
    return np.asarray(lifted @ np.linalg.pinv(covariance, rcond=1e-9, hermitian=True))


def _reconstruct(states: Floats, lift: Floats, mean: Floats, how: Conditioning | None) -> Floats:
    """One chunk; other dimensions do not come here."""
    features = observer.reconstruct(states, lift, mean)
    return features if how is None else how.backward(features)
