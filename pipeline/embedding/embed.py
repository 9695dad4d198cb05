"""Diffusion maps: frames in, an embedding out."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from manifold_observer.tasks.arrays import Array, Floats, digest
from manifold_observer.tasks.engine import diffusion
from manifold_observer.tasks.engine.moments import Moments

from ..engine.blocks import Table, check_moments, table
from ..engine.checkpoint import Checkpoint, check_checkpoint
from ..engine.config import EmbedConfig
from ..engine.decide import decide
from ..engine.eigensolve import modes_to_keep, warn_frozen
from ..engine.exact import find_modes
from ..engine.problem import Found, Problem
from ..frames.variables import annotate
from ..graph.compute import Progress, compute, one_blas_thread, silent, task
from ..graph.slabs import ROWS_BYTES, rows_of
from ..graph.spans import blocks

# Packages whose versions may change the last digits.
_ROUNDING = ("manifold-observer", "numpy", "scipy")


def embed(
    frames: xr.DataArray,
    n_modes: int | None = None,
    window: int = 21,
    rank: int | None = None,
    tolerance: float = 1e-3,
    covariance: xr.DataArray | None = None,
    epsilon: float | str = "median",
    alpha: float = 0.0,
    method: str = "auto",
    precision: str = "auto",
    seed: int = 0,
    *,
    epsilon_factor: float = 1.0,
    neighbours: int = 16,
    regularization: float = 0.0,
    form: str = "auto",
    home: str = "auto",
    tile: int | None = None,
    residual_tolerance: float | None = None,
    max_passes: int = 60,
    landmarks: int = 2000,
    landmark_choice: str = "uniform",
    landmark_route: str = "nystrom",
    refine: int = 0,
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
        Coordinates wanted. ``None`` takes those before the largest gap among the first 10 eigenvalues.
    window
        Frames of a local covariance, centred, shifted inwards at the ends of a segment.
    rank
        Eigenvalues of a local covariance that are kept at most. It matters more than anything else.
    tolerance
        Eigenvalues of a local covariance at or below this fraction of its largest are cut.
    covariance
        Local covariances (of bursts, say) in place of windows, dims ``(frame, feature, feature_1)``.
    epsilon
        Scale of the kernel: ``"median"`` of the distances, a number, or ``"local"`` for
        :math:`K = \exp(-d_{ij}/\sqrt{s_i s_j})` with s the distance to the k-th nearest frame.
    alpha
        Density normalisation: 0 graph Laplacian, 1/2 Fokker-Planck, 1 Laplace-Beltrami.
    method
        ``"exact"`` (all pairs), ``"landmarks"`` (every frame meets a few only), or ``"auto"``: exact up to
        50,000 frames, or as long as resident tiles fit.
    precision
        ``"float32"`` or ``"float64"`` tiles. ``"auto"`` takes float32 where a sampled check finds its
        error below 2e-5 of the scale. Sums are taken in float64; a panel's travels in the tiles' precision.
    seed
        Of the start vectors, and of the sample for the scale beyond 8,192 frames.
    epsilon_factor
        Factor on the median or on the local scales.
    neighbours
        The k of the local scale.
    regularization
        Ridge added to local covariances, in squared feature units, in place of ``rank`` and ``tolerance``;
        gives silent stretches an inverse.
    form
        Form of the distance: ``"quadratic"``, ``"factor"``, ``"window"``, or ``"auto"`` by a timed probe.
        All are exact; they differ in rounding.
    home
        Where the tiles of the kernel live: ``"local"`` (here, for the smallest), ``"resident"`` on the
        workers, ``"recomputed"`` in every pass, ``"disk"``, or ``"auto"``: local up to 64 MB, resident
        where they fit into half of the workers' memory, else recomputed.
    tile
        Frames on the side of a tile; chosen by the number of frames when absent.
    residual_tolerance
        Largest residual of an eigenpair, relative to the largest eigenvalue; by default 1e-10
        with local tiles, 1e-6 with resident ones, else 1e-4.
    max_passes
        Products with the kernel matrix at most.
    landmarks
        Frames that stand for all, for ``method="landmarks"``, and for the start of a solve over
        recomputed tiles.
    landmark_choice
        ``"uniform"`` in time, or spread over the features: ``"kmeans++"``, ``"farthest"`` points.
    landmark_route
        ``"nystrom"``: diffusion maps of the landmarks, extended. ``"diffusion"``: frames linked through
        the landmarks; three passes over the frames.
    refine
        Exact passes over the whole kernel after the landmarks: 1 or 2 bring residuals that count.
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
    ``reference(frame, feature)``, the frames, lazily; ``landmark(landmark)``, numbers of the landmarks where the
    others were extended from them. The settings are attributes.

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
    config = EmbedConfig(
        n_modes=n_modes,
        window=window,
        rank=rank,
        tolerance=tolerance,
        regularization=regularization,
        epsilon=epsilon,
        epsilon_factor=epsilon_factor,
        neighbours=neighbours,
        alpha=alpha,
        method=method,
        precision=precision,
        form=form,
        home=home,
        tile=tile,
        residual_tolerance=residual_tolerance,
        max_passes=max_passes,
        landmarks=landmarks,
        landmark_choice=landmark_choice,
        landmark_route=landmark_route,
        refine=refine,
        seed=seed,
    )
    rows = table(frames, covariance, config)
    folder = None if checkpoint is None else Path(checkpoint)
    if folder is not None:
        check_checkpoint(folder)
    with one_blas_thread():
        solved = _embed(rows, config, folder, progress)
    return _label(solved, frames, covariance)


def _embed(rows: Table, config: EmbedConfig, checkpoint: Path | None, progress: Progress) -> xr.Dataset:
    """All stages in their order; numbers without labels."""
    rows, total = check_moments(rows, progress, digested=checkpoint is not None)
    kept = Checkpoint(checkpoint, {} if checkpoint is None else _problem(rows, total, config))
    decision = decide(rows, total, config, earlier=kept.choice)
    kept.choose(decision.choice)
    problem = Problem(rows, decision, config, progress)
    found = find_modes(problem, kept)
    n_modes = modes_to_keep(found.eigenvalues, config)
    warn_frozen(found.eigenvalues)
    psi = found.coordinates[:, :n_modes]
    lifted = found.lift[:, :n_modes] if found.lift is not None else _lift(rows, total.mean, psi, progress)
    return _numbers(found, n_modes, psi, lifted, total).assign_attrs(
        config.attrs() | decision.choice | found.attrs | {"version": version("manifold-observer")}
    )


def _problem(rows: Table, total: Moments, config: EmbedConfig) -> dict[str, Any]:
    """What a checkpoint must agree with: everything that the numbers of a pass depend on.

    Not the limit of passes: who follows the advice to raise it resumes after those that were made.
    """
    return {
        **{name: value for name, value in config.attrs().items() if name != "max_passes"},
        "shape": (rows.n_frames, rows.n_features),
        "frames": total.digest,
        "segment": rows.segment,
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


def _numbers(found: Found, n_modes: int, psi: Floats, lifted: Floats, total: Moments) -> xr.Dataset:
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


def _lift(rows: Table, mean: Floats, psi: Floats, progress: Progress) -> Floats:
    """Mean of centred features times coordinates, over all frames."""
    spans = blocks(rows.n_frames, max(1, ROWS_BYTES // (8 * rows.n_features)))
    parts = [task(_lift_sum, rows_of(rows.data, span), mean, psi[span[0] : span[1]]) for span in spans]
    total: Floats = sum(compute(parts, "lift", progress))
    return total / rows.n_frames


def _lift_sum(frames: Array, mean: Floats, psi: Floats) -> Floats:
    """One block's share of the lift."""
    return diffusion.lift_sum(np.asarray(frames, np.float64), mean, psi)


def _label(solved: xr.Dataset, frames: xr.DataArray, covariance: xr.DataArray | None) -> xr.Dataset:
    """Give the numbers the labels of the frames, and keep what an extension needs."""
    frames = frames.transpose("frame", "feature").rename("reference")
    coords = {name: c for name, c in frames.coords.items() if c.dims in (("frame",), ("feature",))}
    labelled = solved.assign_coords(coords).assign(reference=frames.astype(np.float64).drop_vars(frames.coords))
    if covariance is not None:
        labelled["reference_covariance"] = covariance.astype(np.float64).drop_vars(covariance.coords)
    labelled.attrs["covariance_from"] = "windows" if covariance is None else "given"
    labelled.attrs |= {f"frames_{k}": v for k, v in frames.attrs.items() if k in ("features", "frame_period")}
    return annotate(labelled)
