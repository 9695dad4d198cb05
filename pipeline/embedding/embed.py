"""Diffusion maps: frames in, an embedding out."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr

from manifold_observer.tasks.arrays import Array, Floats, digest
from manifold_observer.tasks.engine import diffusion
from manifold_observer.tasks.engine.moments import Moments

from .. import __version__
from ..engine.blocks import Table, check_moments, table
from ..engine.checkpoint import Checkpoint, check_checkpoint
from ..engine.condition import choose_conditioning, is_scaled, warn_cut
from ..engine.config import EmbedConfig, Engine, Geometry
from ..engine.decide import Measured, decide, measure
from ..engine.diagnosis import check_values
from ..engine.eigensolve import modes_to_keep, warn_frozen
from ..engine.exact import find_modes
from ..engine.problem import Found, Problem
from ..engine.reading import Features, read_features
from ..engine.shrink import equal_frames_scale, warn_unforetold
from ..frames.alike import MEANING
from ..frames.conditioning import kept as kept_conditioning
from ..frames.given import takes_frames
from ..frames.variables import annotate
from ..graph.compute import compute, one_blas_thread, task
from ..graph.deprecated import moved_into
from ..graph.progress import Progress, silent
from ..graph.slabs import ROWS_BYTES, rows_of
from ..graph.spans import blocks

# Packages whose versions may change the last digits.
_ROUNDING = ("manifold-observer", "numpy", "scipy")


@moved_into("engine", Engine)
@moved_into("geometry", Geometry)
@takes_frames
def embed(
    frames: xr.DataArray,
    n_modes: int | None = None,
    window: int = 21,
    rank: int | None = None,
    tolerance: float = 1e-3,
    covariance: xr.DataArray | None = None,
    epsilon: float | str = "median",
    alpha: float = 0.0,
    *,
    epsilon_factor: float = 1.0,
    neighbours: int = 16,
    preset: str = "auto",
    geometry: Geometry | None = None,
    engine: Engine | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress = silent,
) -> xr.Dataset:
    r"""Diffusion coordinates of frames under the modified Mahalanobis distance; this computes.

    .. math:: d_{ij} = \tfrac12 (z_i - z_j)^\top (C_i^{+} + C_j^{+}) (z_i - z_j), \qquad
              K_{ij} = e^{-d_{ij} / \varepsilon}, \qquad W = D^{-1} K

    The distance sees the hidden state rather than the way it was measured; the slowest eigenvectors of
    the Markov matrix W are coordinates of that state, and their eigenvalues its linear dynamics [1]_.
    It runs on the session's Dask Client, and without one on the threaded scheduler.

    Parameters
    ----------
    frames
        Feature vectors, dims ``(frame, feature)``, with coordinates ``time`` (s) and ``segment``.
    n_modes
        Coordinates wanted. ``None`` takes six, or fewer where fewer eigenvalues are above 0.
    window
        Frames of a local covariance, centred, shifted inwards at the ends of a segment, fewer in shorter segments.
    rank
        Eigenvalues of a local covariance that are kept at most; with it, and with a ``tolerance`` other than 1e-3,
        covariances are not shrunk.
    tolerance
        Eigenvalues of a local covariance at or below this fraction of its largest are cut, where it is not shrunk.
    covariance
        Local covariances (of bursts, say) in place of windows, dims ``(frame, feature, feature_1)``.
    epsilon
        Scale of the kernel: ``"median"`` of the distances, a number, or ``"local"`` for
        :math:`K = \exp(-d_{ij}/\sqrt{s_i s_j})` with s the distance to the k-th nearest frame.
    alpha
        Density normalisation: 0 graph Laplacian, 1/2 Fokker-Planck, 1 Laplace-Beltrami.
    epsilon_factor
        Factor on the median or on the local scales.
    neighbours
        The k of the local scale.
    preset
        ``"auto"``, or ``"paper"`` for the method as printed [1]_: features as they are, in all directions that they
        span, pseudo-inverses of the windows' covariances, and as many coordinates as lie before the spectral gap.
    geometry
        What features go through and how local covariances are made: ``mo.Geometry(condition=, max_axes=,
        shrinkage=, causal=, regularization=)``. By default features are transformed by their kind and turned to 20
        principal axes at most, or to 40 where what lies beyond 20 lasts, and covariances are shrunk by as much as
        their own noise asks for.
    engine
        How this is computed: ``mo.Engine(method=, landmarks=, refine=, precision=, home=, lazy=, seed=, ...)``. Method
        and memory are chosen by the number of frames and the workers when absent.
    checkpoint
        Folder in which every pass over the kernel is kept, new, empty or made by an earlier call; the same call
        resumes after the last pass that is there. Tiles with ``home="disk"`` lie there too, until the end.
    progress
        Called with (stage, parts done, parts in all). Stage ``"eigensolve"`` counts passes; within each,
        ``"pass"`` counts panels of tiles, unless tiles are local.

    Returns
    -------
    ``eigenvalue(mode)`` :math:`\mu_1, \mu_2, \ldots` without the trivial one; ``coordinate(frame, mode)``
    :math:`\psi` with unit mean square, its entry of largest magnitude positive; ``rate(mode)``
    :math:`-\log \mu` per frame; ``lift(feature, mode)`` in feature units; ``feature_mean(feature)`` and
    ``feature_variance(feature)``; ``epsilon()`` (and ``scale(frame)`` where local); ``residual(mode)``;
    ``degree(frame)``; ``spectrum(mode_found)``, all eigenvalues that were looked at;
    ``axes(feature, axis)``, ``principal(frame, component)`` and ``mean_covariance(axis, axis_1)`` where covariances
    are shrunk; ``feature_scale(feature)`` where features are conditioned, whose means and lift are then those of
    conditioned features, and ``feature_limit(side, feature)`` where outliers of sensors count as less than they are;
    ``reference(frame, feature)``, the plain frames, lazily; ``landmark(landmark)``, numbers of the landmarks where the
    others were extended from them. The settings are attributes, and ``condition_why``, ``shrinkage_target``,
    ``shrinkage_intensity``, ``foretold`` and ``foretold_by_chance``: what was chosen, and how much of the features a
    few frames later the coordinates foretell; ``axes``, and where 40 were tried ``foretold_further`` and
    ``foretold_further_in_more_axes``, what coordinates in 20 and in 40 axes foretell of the axes beyond 20. Above
    half a million frames through landmarks alone, without a ``residual_tolerance``, ``coordinate``, ``degree`` and
    ``principal`` are lazy and stay on the workers until they are used or stored: nothing as long as the recording is
    held here.

    Raises
    ------
    ValueError
        Bad options, frames that are equal or not finite, windows without variance, more modes than
        positive eigenvalues, a kernel that does not fit in memory or on its disk, a checkpoint folder that
        holds something else.
    RuntimeError
        The eigensolve did not converge.

    Notes
    -----
    O(N^2 p^2) time for windows of narrow features. Resident tiles of the upper triangle are N^2 / 2
    numbers on the workers, and a task holds one panel of them, about 64 MB; recomputed ones take the
    blocks of two groups and one tile a task, and each pass costs as much as all tiles.

    References
    ----------
    .. [1] T. Shnitzer, R. Talmon and J.-J. Slotine, "Manifold Learning with Contracting Observers for
       Data-driven Time-series Analysis", IEEE Trans. Signal Processing 65 (2017).

    Examples
    --------
    A slow oscillation seen by three noisy sensors:

    >>> rng, time = np.random.default_rng(0), np.arange(400)
    >>> slow = np.sin(2 * np.pi * time / 200)[:, None] * [1.0, 0.5, -1.0]
    >>> frames = xr.DataArray(slow + 0.1 * rng.normal(size=(400, 3)), dims=("frame", "feature"))
    >>> embedding = embed(frames, n_modes=2)
    >>> bool(abs(np.corrcoef(embedding.coordinate[:, 0], slow[:, 0])[0, 1]) > 0.9)
    True
    """
    config = EmbedConfig.of(
        engine,
        geometry,
        n_modes=n_modes,
        window=window,
        rank=rank,
        tolerance=tolerance,
        epsilon=epsilon,
        epsilon_factor=epsilon_factor,
        neighbours=neighbours,
        alpha=alpha,
        preset=preset,
    ).resolved(given_covariances=covariance is not None)
    folder = None if checkpoint is None else Path(checkpoint)
    if folder is not None:
        check_checkpoint(folder)
    with one_blas_thread():
        solved = _embed(frames, covariance, config, folder, progress)
    return _label(solved, frames, covariance)


def _embed(
    frames: xr.DataArray,
    covariance: xr.DataArray | None,
    config: EmbedConfig,
    checkpoint: Path | None,
    progress: Progress,
) -> xr.Dataset:
    """All stages in their order; numbers without labels."""
    rows = table(frames, covariance, config)
    rows, why = choose_conditioning(rows, config.condition, progress)
    rows, total = check_moments(rows, progress, digested=checkpoint is not None)
    if not is_scaled(rows):
        check_values(rows, total)
    kept = Checkpoint(checkpoint, {} if checkpoint is None else _problem(rows, total, config))
    measured = measure(rows, total, config, progress)
    if measured.shrunk is not None:
        warn_unforetold(measured.shrunk.own)
        warn_cut(rows, measured.axes, total)
        if measured.shrunk.scale and config.epsilon == "median":
            config = replace(config, epsilon=equal_frames_scale(measured.shrunk, config.epsilon_factor))
    decision = decide(rows, measured, config, earlier=kept.choice)
    kept.choose(decision.choice)
    problem = Problem(rows, decision, config, progress)
    found = find_modes(problem, kept)
    n_modes = modes_to_keep(found.eigenvalues, config)
    warn_frozen(found.eigenvalues)
    psi = found.coordinates[:, :n_modes]
    lifted = found.lift if measured.shrunk is None and found.lift is not None else None
    read = read_features(rows, measured, psi, progress) if lifted is None else Features(lifted[:, :n_modes], None, None)
    variables, attrs = kept_conditioning(rows.conditioning)
    numbers = _numbers(found, n_modes, psi, read.lift, total).assign(variables)
    numbers = numbers.assign(_metric_variables(measured, read)).assign_attrs(
        config.attrs() | decision.choice | found.attrs | attrs | {"condition_why": why}
    )
    if measured.shrunk is not None:
        numbers = numbers.assign_attrs(measured.shrunk.attrs())
    numbers = _in_chunks(numbers) if config.lazy == "always" else numbers
    return numbers.assign_attrs(version=__version__)  # read once: asking takes milliseconds


def _in_chunks(numbers: xr.Dataset) -> xr.Dataset:
    """Numbers of every frame as Dask arrays, whatever way they came here."""
    along = {name: v.chunk() for name, v in numbers.data_vars.items() if "frame" in v.dims and v.chunks is None}
    return numbers.assign(along)


def _metric_variables(measured: Measured, read: Features) -> dict[str, Any]:
    """What new frames need to be measured as the embedded ones were, and the principal components of these."""
    if measured.shrunk is None or measured.axes.basis is None:
        return {}
    return {
        "axes": (("feature", "axis"), measured.axes.basis),
        "mean_covariance": (("axis", "axis_1"), measured.shrunk.how.mean),
        "principal": (("frame", "component"), read.principal),
        "principal_lift": (("feature", "component"), read.principal_lift),
    }


_NOT_OF_THE_NUMBERS = ("max_passes", "max_core_hours", "lazy")


def _problem(rows: Table, total: Moments, config: EmbedConfig) -> dict[str, Any]:
    """What a checkpoint must agree with: everything that the numbers of a pass depend on.

    Not the limits of passes and of work: who follows the advice to raise one resumes after what was made. Nor where
    coordinates are kept.
    """
    return {
        **{name: value for name, value in config.attrs().items() if name not in _NOT_OF_THE_NUMBERS},
        "shape": (rows.n_frames, rows.n_features),
        "frames": total.digest,
        "segment": np.asarray(rows.segment[:]),
        "covariance": _covariance_digest(rows),
        **{f"{name} version": version(name) for name in _ROUNDING},
    }


def _covariance_digest(rows: Table) -> bytes | None:
    """Digest of given covariances, the same for any chunks."""
    if rows.covariance is None:
        return None
    spans = blocks(rows.n_frames, max(1, ROWS_BYTES // (8 * rows.n_features**2)))
    return b"".join(compute([task(_digest, rows_of(rows.covariance, span)) for span in spans]))


def _digest(values: Array) -> bytes:
    """Digest of one span."""
    return digest(np.asarray(values, np.float64))


def _numbers(found: Found, n_modes: int, psi: Floats | da.Array, lifted: Floats, total: Moments) -> xr.Dataset:
    """Variables of an embedding."""
    mu = found.eigenvalues[:n_modes]
    numbers = xr.Dataset(
        {
            "eigenvalue": ("mode", mu),
            "coordinate": (("frame", "mode"), psi),
            "rate": ("mode", diffusion.step_rates(mu)),
            "residual": ("mode", found.residuals[:n_modes]),
            "spectrum": ("mode_found", found.eigenvalues),
            "degree": ("frame", found.degrees),
            "lift": (("feature", "mode"), lifted),
            "feature_mean": ("feature", total.mean),
            "feature_variance": ("feature", total.squares / total.n),
            "epsilon": ((), found.scale.epsilon),
        },
        coords={"mode": np.arange(1, n_modes + 1)},
    )
    if found.landmarks is not None:
        numbers = numbers.assign_coords(landmark=found.landmarks)
    return numbers if found.scale.local is None else numbers.assign(scale=("frame", found.scale.local))


def _label(solved: xr.Dataset, frames: xr.DataArray, covariance: xr.DataArray | None) -> xr.Dataset:
    """Give the numbers the labels of the frames, and keep what an extension needs."""
    frames = frames.transpose("frame", "feature").rename("reference")
    coords = {name: c for name, c in frames.coords.items() if c.dims in (("frame",), ("feature",))}
    labelled = solved.assign_coords(coords).assign(reference=frames.astype(np.float64).drop_vars(frames.coords))
    if covariance is not None:
        labelled["reference_covariance"] = covariance.astype(np.float64).drop_vars(covariance.coords)
    labelled.attrs["covariance_from"] = "windows" if covariance is None else "given"
    labelled.attrs |= {f"frames_{k}": v for k, v in frames.attrs.items() if k in MEANING}
    return annotate(labelled)
