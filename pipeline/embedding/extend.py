"""Diffusion coordinates of new frames, from the frames that were embedded."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from dask.delayed import Delayed

from manifold_observer.tasks.arrays import Array, Booleans, Integers, first_not_finite
from manifold_observer.tasks.engine import extension
from manifold_observer.tasks.engine.covariance import DegenerateCovarianceError
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.extension import Extended
from manifold_observer.tasks.engine.protocols import Block

from ..engine.blocks import Part, Table, part_of, slab_of
from ..frames.alike import frames_like
from ..frames.given import takes_frames
from ..frames.labels import frame_labels, segment_of
from ..frames.segments import short_segments
from ..frames.variables import annotate
from ..graph.compute import compute, one_blas_thread, task
from ..graph.progress import Progress, silent
from ..graph.slabs import rows_of
from ..graph.spans import Span, blocks
from ..graph.warn import warn
from .read import far_below
from .references import References, config_of, reference_numbers, references

METHODS = ("nystrom", "one-sided")
# New frames of one task.
_SPAN = 2048
# A local scale below this share of the median one is rounding.
_ROUNDING = 1e-6


@takes_frames
def extend(
    embedding: xr.Dataset,
    new_frames: xr.DataArray,
    method: str = "nystrom",
    *,
    covariance: xr.DataArray | None = None,
    progress: Progress = silent,
) -> xr.Dataset:
    r"""Diffusion coordinates of new frames, from the frames that were embedded; this computes.

    .. math:: \psi(i) = \frac1\mu \sum_j W_{ij} \psi_j, \qquad
              W_{ij} = \frac{K_{ij} q_j^{-a}}{\sum_j K_{ij} q_j^{-a}}, \qquad K_{ij} = e^{-d_{ij} / \varepsilon}

    for a new frame i and embedded frames j with row sums q: the equation that the coordinates fulfil, so that embedded
    frames themselves come back exactly. Each new frame is placed by itself: nothing is smoothed in time, which is what
    :func:`observe` does. It runs on the session's Dask Client, and without one on the threaded scheduler.

    Parameters
    ----------
    embedding
        As :func:`embed` made it. Where it came through landmarks alone (``refine=0``, their Nystrom route), they are
        the references, else all embedded frames are.
    new_frames
        Dims ``(frame, feature)``, the same features, with coordinates ``time`` (s) and ``segment``.
    method
        ``"nystrom"``: the distance of the embedding, for which new frames need covariances of their own, of windows
        as long as the embedding's. ``"one-sided"``: the earlier scheme [1]_, by the references' covariances
        alone, :math:`a_{ij}^2 = (z_i - z_j)^\top C_j^{+} (z_i - z_j)`, with half a step of the kernel:
        :math:`\psi(i) = \mu^{-1/2} \sum_j \tilde A_{ij} \psi_j` where the rows of
        :math:`\tilde A \propto e^{-2 a_{ij}^2 / \varepsilon} q_j^{-a}` sum to one. Even single frames will do.
    covariance
        Local covariances of the new frames, dims ``(frame, feature, feature_1)``: with ``"nystrom"`` exactly where
        the embedding was made with given ones.
    progress
        Called with (stage, parts done, parts in all).

    Returns
    -------
    ``coordinate(frame, mode)`` in the unit of the embedding's; ``kernel_sum(frame)``, row sum of the affinities
    :math:`K` to the references, scaled as ``degree`` of the embedding is (one-sided: of
    :math:`e^{-a_{ij}^2 / \varepsilon}`, the whole step); ``far(frame)``, true where it lies below what all but 0.1 %
    of the embedded frames have, the affinity to themselves taken off. Attributes: ``method``, ``n_references``,
    ``far_below``.

    Raises
    ------
    ValueError
        Unknown method, an embedding without its frames, other features, frames that are not finite, covariances
        missing or superfluous, segments shorter than the window, windows without variance.

    Warns
    -----
    UserWarning
        Some frames are far: their coordinates are extrapolated, and 0 where no reference is in reach.

    Notes
    -----
    O(n N p^2) time for n new frames and N references with narrow features, twice that with local scales. The blocks
    of the references stay on the workers. A task holds the blocks of 2,048 new frames and of as many references at
    most, and at most three times their tile, 100 MB in double precision.

    Distances are taken in all features: new frames may leave what the embedded ones span, and their own covariances
    measure how far. The one-sided distance is blind to that, unless the embedding had a ridge.

    With local scales a new frame's is that to its ``neighbours``-th nearest reference. An embedded frame that comes
    as a new one counts itself as the first, so that its coordinate comes back nearly.

    Nystrom coordinates have a mean square near 1 for frames like the embedded ones. One-sided ones fall short of it,
    the more the smaller :math:`\mu` (0.6 to 0.25 for :math:`\mu` of 0.23 to 0.08 on the sphere): half a step is the
    root of a whole one only where the scale is small and covariances change slowly. A regression takes up the factor.
    More of their row sums lie below the bound, too: 5 of 1,000 on the sphere, where Nystrom has 1.

    Covariances come from windows centred on their frames, so that Nystrom looks half a window ahead; one-sided
    extension and the observer do not.

    References
    ----------
    .. [1] R. Talmon and R. R. Coifman, "Empirical intrinsic geometry for nonlinear modeling and time series
       filtering", PNAS 110 (2013).

    Examples
    --------
    A slow oscillation seen by three noisy sensors, the first 300 of its frames embedded, the others new:

    >>> import manifold_observer.pipeline as mo
    >>> rng, time = np.random.default_rng(3), np.arange(400)
    >>> slow = np.sin(2 * np.pi * time / 100)[:, None] * [1.0, 0.5, -1.0]
    >>> frames = xr.DataArray(slow + 0.1 * rng.normal(size=(400, 3)), dims=("frame", "feature"))
    >>> embedding = mo.embed(frames[:300], n_modes=2)
    >>> more = mo.extend(embedding, frames[300:])
    >>> bool(abs(np.corrcoef(more.coordinate[:, 0], slow[300:, 0])[0, 1]) > 0.9), int(more.far.sum())
    (True, 0)
    """
    _check_embedding(embedding)
    new = _new_table(embedding, new_frames, method, covariance)
    numbers = reference_numbers(embedding)
    below = far_below(embedding, numbers)
    with one_blas_thread():
        known = references(embedding, numbers, progress)
        found = _extended(embedding, new, known, method == "one-sided", below, progress)
    _warn_far(found.far)
    attrs = {"method": method, "n_references": len(numbers), "far_below": below}
    return _label(embedding, new_frames, found).assign_attrs(attrs)


def _check_embedding(embedding: xr.Dataset) -> None:
    """An extension needs the frames, their covariances where they were given, and the settings."""
    if "reference" not in embedding:
        raise ValueError(
            "extend: embedding must hold the embedded frames as 'reference'; got one without. Read a stored result "
            "with mo.read_embedding(OUT)."
        )
    missing = [name for name in ("window", "form", "precision", "alpha") if name not in embedding.attrs]
    if missing:
        raise ValueError(
            f"extend: embedding must have the attributes that mo.embed gave it; got none named {', '.join(missing)}. "
            "Keep them with xr.set_options(keep_attrs=True)."
        )
    if embedding.attrs.get("covariance_from") == "given" and "reference_covariance" not in embedding:
        raise ValueError(
            "extend: embedding must hold the covariances that it was made with as 'reference_covariance'; got one "
            "without, as a stored result is. Add them with embedding.assign(reference_covariance=covariance)."
        )


def _new_table(embedding: xr.Dataset, frames: xr.DataArray, method: str, covariance: xr.DataArray | None) -> Table:
    """Check new frames and their covariances from their metadata; nothing is computed."""
    if method not in METHODS:
        raise ValueError(f"extend: method must be one of {', '.join(map(repr, METHODS))}; got {method!r}.")
    frames = frames_like("extend: new_frames", embedding, frames, "Make them as the embedded ones.")
    n, p = frames.shape
    segment = segment_of(frames)
    _check_covariance(embedding, method, covariance, (n, p, p))
    config = config_of(embedding)
    if method == "nystrom" and covariance is None and config.windows == "whole":
        _check_windows(segment, config.window)
    return Table(_lazy(frames), segment, None if covariance is None else _lazy(covariance), config.windows)


def _check_covariance(
    embedding: xr.Dataset, method: str, covariance: xr.DataArray | None, shape: tuple[int, int, int]
) -> None:
    """Covariances are given exactly where they are wanted, one a frame."""
    if method == "one-sided":
        if covariance is not None:
            raise ValueError(
                "extend: covariance must be left out with method='one-sided', which takes the references' alone; got "
                "one. Leave it out, or take method='nystrom'."
            )
        return
    given = "reference_covariance" in embedding
    if given and covariance is None:
        raise ValueError(
            "extend: covariance must be given, as the embedding was made with given ones; got None. Give "
            "covariance=, or take method='one-sided'."
        )
    if covariance is None:
        return
    if not given:
        raise ValueError(
            "extend: covariance must be left out, as the embedding took windows of "
            f"{embedding.attrs['window']} frames; got one. Leave it out."
        )
    if covariance.dims != ("frame", "feature", "feature_1") or covariance.shape != shape:
        raise ValueError(
            f"extend: covariance must have dims (frame, feature, feature_1) and shape {shape}; got {covariance.dims} "
            f"and {covariance.shape}. Transpose it, and give one a frame."
        )


def _check_windows(segment: Integers, window: int) -> None:
    """Every segment must hold a whole window."""
    for start, stop in short_segments(segment, window):
        raise ValueError(
            f"extend: every segment must hold at least window={window} frames, as in the embedding; got "
            f"{stop - start} in segment {segment[start]} (frames {start} .. {stop - 1}). Take method='one-sided', "
            f"or leave it out with new_frames.where(new_frames.segment != {segment[start]}, drop=True)."
        )


def _lazy(array: xr.DataArray) -> Any:
    """The data in Dask, so that a task takes no more than its own."""
    return array.data if array.chunks else array.chunk().data


def _extended(
    embedding: xr.Dataset, new: Table, known: References, one_sided: bool, below: float, progress: Progress
) -> Extended:
    """Every span of new frames meets every block of references; shares are added in the order of the blocks."""
    mu, epsilon = embedding["eigenvalue"].values, float(embedding["epsilon"])
    divisors = np.sqrt(mu) if one_sided else mu
    factor = embedding.sizes["frame"] / known.number
    made = []
    for span in blocks(new.n_frames, _SPAN):
        block = _new_block(new, known.distance, span, one_sided)
        own = _own_scales(embedding, block, known, one_sided)
        shares = [task(extension.shares, block, part, epsilon, own, one_sided) for part in known.parts]
        made.append(task(extension.finish, shares, divisors, factor, below))
    found = compute(made, "extend", progress)
    return Extended(
        coordinates=np.concatenate([part.coordinates for part in found]),
        kernel_sums=np.concatenate([part.kernel_sums for part in found]),
        far=np.concatenate([part.far for part in found]),
    )


def _new_block(new: Table, distance: Distance, span: Span, one_sided: bool) -> Delayed:
    """Block of one span of new frames, not yet computed."""
    if one_sided:
        return task(_points, distance, rows_of(new.data, span), span)
    return task(_with_covariances, distance, part_of(new, span, distance.window), span)


def _own_scales(embedding: xr.Dataset, block: Delayed, known: References, one_sided: bool) -> Delayed | None:
    """Local scales of one span of new frames, where the embedding has them."""
    if "scale" not in embedding:
        return None
    attrs = embedding.attrs
    k = min(int(attrs["neighbours"]), known.number)
    tables = [task(extension.nearest, block, part, k, one_sided) for part in known.parts]
    least = _ROUNDING * float(embedding["epsilon"])
    return task(extension.own_scales, tables, k, float(attrs["epsilon_factor"]), least)


def _points(distance: Distance, frames: Array, span: Span) -> Block:
    """New frames without covariances."""
    _check_finite(frames, span[0])
    with np.errstate(over="ignore", invalid="ignore"):  # what is too far for single precision is far
        return distance.points(np.asarray(frames, np.float64))


def _with_covariances(distance: Distance, part: Part, span: Span) -> Block:
    """New frames with their own covariances; a degenerate one is told with the frames it belongs to."""
    slab = slab_of(distance.axes, part)
    _check_finite(slab.frames, span[0] - int(slab.rows[0]))
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return distance.block(slab)
    except DegenerateCovarianceError as error:
        frames = span[0] + error.frames
        which = f"frame {frames[0]}" if len(frames) == 1 else f"{len(frames)} frames from frame {frames[0]} on"
        why = f"the {distance.window} frames around are all alike" if distance.window else "as given"
        raise ValueError(
            f"extend: local covariances of new_frames must not be zero; got zero (or NaN) at {which}: {why}. "
            "Leave the stretch out, take method='one-sided', or embed with a ridge such as regularization=1e-6."
        ) from None


def _check_finite(frames: Array, first: int) -> None:
    """Frames that are not finite are told."""
    bad = first_not_finite(frames)
    if bad is not None:
        raise ValueError(
            f"extend: new_frames must be finite; got NaN or infinity in frame {first + bad}. Leave "
            "such frames out, with a new segment after each hole."
        )


def _warn_far(far: Booleans) -> None:
    """Frames unlike all that were embedded are told."""
    if far.any():
        warn(
            f"extend: {np.count_nonzero(far)} of {len(far)} new frames are far from all embedded ones (the first is "
            f"frame {np.argmax(far)}): their coordinates are extrapolated. Embed such frames too, or leave them out "
            "where far is true."
        )


def _label(embedding: xr.Dataset, frames: xr.DataArray, found: Extended) -> xr.Dataset:
    """Numbers with the labels of the new frames and the embedding's modes."""
    mode = {"mode": embedding["mode"]} if "mode" in embedding.coords else {}
    result = xr.Dataset(
        {
            "coordinate": (("frame", "mode"), found.coordinates, {"long_name": "diffusion coordinate psi, extended"}),
            "kernel_sum": ("frame", found.kernel_sums),
            "far": ("frame", found.far),
        },
        coords={**frame_labels(frames), **mode},
    )
    return annotate(result)
