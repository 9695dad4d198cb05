"""Eigenpairs of the normalised kernel, from its products with vectors alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manifold_observer.tasks.arrays import Floats
from manifold_observer.tasks.engine import diffusion, lanczos

from ..graph.progress import Progress
from ..graph.warn import warn
from .checkpoint import Begun, Checkpoint
from .config import EmbedConfig
from .tiling import MatMat

# Vectors that one pass over the kernel multiplies: more than the multiplicity of any cluster.
WIDTH = 20
# The same where passes are cheap: what many vectors cost is more than what the passes do that they spare.
NARROW = 8
# Vectors beside the wanted ones, at least, that a block has: as many as may be turned towards others at first.
SPARE = 4
# Modes looked at for the spectral gap.
GAP_MODES = 10
# Modes where no number is asked for: those that a state needs beside two principal components.
USUAL_MODES = 6
# A first eigenvalue above this follows single frames or pieces, not a slow coordinate.
_FROZEN = 0.98


class Warm(NamedTuple):
    """Coordinates (N, k) near the wanted ones, and row sums (N,) near the true ones, to start from."""

    coordinates: Floats
    degrees: Floats


class Solved(NamedTuple):
    """Eigenvalues (k,), residuals (k,), coordinates (N, k), row sums (N,), passes that were made."""

    eigenvalues: Floats
    residuals: Floats
    coordinates: Floats
    degrees: Floats
    passes: int


def wanted_modes(config: EmbedConfig, n: int) -> int:
    """Modes to solve for: those asked for, or as many as the spectral gap is looked for among."""
    return min(config.n_modes or (GAP_MODES if config.preset == "paper" else USUAL_MODES), n - 2)


def block_width(wanted: int, least: int = WIDTH) -> int:
    """Vectors that a block has, of which so many are wanted."""
    return max(least, wanted + SPARE)


def allowed_passes(config: EmbedConfig, width: int) -> int:
    """Passes with blocks of so many vectors that ``max_passes`` allows: it counts those of 20 vectors.

    Examples
    --------
    >>> [allowed_passes(EmbedConfig(max_passes=10), width) for width in (8, 14, 20, 30)]
    [25, 14, 10, 10]
    """
    return config.max_passes * WIDTH // min(width, WIDTH)


def solve(
    matmat: MatMat,
    n: int,
    config: EmbedConfig,
    progress: Progress,
    *,
    tolerance: float,
    checkpoint: Checkpoint,
    warm: Warm | None = None,
    passes: int | None = None,
    most: int | None = None,
    width: int = WIDTH,
) -> Solved:
    """Block Lanczos; with ``passes`` so many and no more, else until the residuals are small.

    Parameters
    ----------
    matmat
        Product of the kernel with vectors (n, b); one pass.
    n
        Frames.
    config
        Modes, alpha, seed, most passes.
    progress
        Where to report.
    tolerance
        Largest residual, relative to the largest eigenvalue.
    checkpoint
        Where passes are kept; what is kept there already is not made again.
    warm
        Where to start; random vectors otherwise.
    passes
        Passes to make, whatever the residuals.
    most
        Passes after which the residuals are taken as they are, if they are not small before.
    width
        Vectors a pass, at least: many where a pass is dear, few where it is not.

    Returns
    -------
    As many modes as :func:`wanted_modes` says; the residuals are exact either way.

    Raises
    ------
    RuntimeError
        The passes that :func:`allowed_passes` gives were not enough.
    """
    wanted = wanted_modes(config, n)
    width = block_width(wanted, width)
    begun = checkpoint.load() or _first_pass(matmat, n, config, width, warm, checkpoint)
    operator = lanczos.Normalised(begun.degrees, config.alpha, begun.density_degrees)

    def on_pass(krylov: lanczos.Krylov, pairs: lanczos.RitzPairs) -> None:
        checkpoint.save(krylov, begun.degrees, begun.density_degrees)
        worst = float(pairs.residuals.max())
        total = passes or lanczos.expected_passes(krylov.passes, worst, tolerance)
        progress("eigensolve", krylov.passes, total)

    try:
        pairs, state = lanczos.largest_eigenpairs(
            lambda x: operator.apply(matmat, x),
            begun.krylov,
            wanted,
            tolerance=tolerance if passes is None else 0.0,
            max_passes=passes or most or allowed_passes(config, width),
            on_pass=on_pass,
            enough=passes is not None or most is not None,
        )
    except lanczos.NotConvergedError as error:
        counted = f" (which counts passes of {WIDTH} vectors)" if width < WIDTH else ""
        raise RuntimeError(
            f"embed: the eigensolve did not converge: {error}. Give more than max_passes={config.max_passes}{counted}, "
            "a larger residual_tolerance=, or another epsilon=."
        ) from None
    psi = diffusion.coordinates(operator.deflated(pairs.vectors), operator.scaling, config.alpha, begun.degrees)
    made = state.passes + (config.alpha != 0)
    return Solved(pairs.values, pairs.residuals, psi, begun.degrees, made)


def modes_to_keep(eigenvalues: Floats, config: EmbedConfig) -> int:
    """Number of modes to keep; all must have a logarithm.

    Raises
    ------
    ValueError
        Fewer eigenvalues are above 0 than modes are wanted.
    """
    positive = int(np.count_nonzero(eigenvalues > diffusion.SMALLEST_EIGENVALUE))
    if positive == 0:
        raise ValueError("embed: no eigenvalue beside the trivial one is above 0. Give another epsilon=.")
    if config.n_modes is None:
        return diffusion.spectral_gap(eigenvalues) if config.preset == "paper" else min(USUAL_MODES, positive)
    if config.n_modes > positive:
        raise ValueError(
            f"embed: n_modes must be at most {positive}, the number of eigenvalues above 0; got {config.n_modes}. "
            "Ask for fewer modes, or give another epsilon=."
        )
    return config.n_modes


def warn_frozen(eigenvalues: Floats) -> None:
    """A spectrum that hardly decays makes an observer that hardly moves."""
    if eigenvalues[0] > _FROZEN:
        pieces = int(np.count_nonzero(eigenvalues > 1 - 1e-9)) + 1
        what = f"the frames fall into {pieces} or more pieces" if pieces > 1 else "the dynamics look frozen"
        warn(
            f"embed: the first eigenvalue is {eigenvalues[0]:.4f}: {what} at this scale. Try epsilon='local', or a "
            "larger epsilon_factor=."
        )


def _first_pass(
    matmat: MatMat, n: int, config: EmbedConfig, width: int, warm: Warm | None, checkpoint: Checkpoint
) -> Begun:
    """Row sums of the kernel, and the first block in the same pass."""
    width = min(width, n)
    start = lanczos.random_block(n, width, config.seed)
    if warm is not None:
        near = warm.coordinates[:, :width] * (warm.degrees**-config.alpha)[:, None]
        start[:, : near.shape[1]] = near
    images = matmat(np.column_stack([np.ones(n), start]))
    degrees, images = images[:, 0], images[:, 1:]
    _check_degrees(degrees)
    weighted = None if config.alpha == 0 else matmat(degrees[:, None] ** -config.alpha)[:, 0]
    operator = lanczos.Normalised(degrees, config.alpha, weighted)
    krylov = lanczos.first_pass(operator, start, images)
    checkpoint.save(krylov, degrees, weighted)
    return Begun(krylov, degrees, weighted)


def _check_degrees(degrees: Floats) -> None:
    """Row sums must be numbers; frames without any neighbour are told."""
    if not np.isfinite(degrees).all():
        frame = int(np.argmin(np.isfinite(degrees)))
        raise ValueError(
            f"embed: the kernel of frame {frame} is not finite. Give precision='float64', or a ridge with "
            "regularization=."
        )
    alone = diffusion.isolated(degrees)
    if len(alone) == len(degrees):
        raise ValueError(
            "embed: no frame has a neighbour at this scale, the kernel is the identity. Give a larger epsilon=, "
            "or epsilon='median'."
        )
    if len(alone):
        warn(
            f"embed: {len(alone)} of {len(degrees)} frames have no neighbour at this scale (the first is frame "
            f"{alone[0]}), and may own a coordinate each; epsilon='local' gives each frame a scale of its own."
        )
