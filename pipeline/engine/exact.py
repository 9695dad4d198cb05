"""The two ways to the coordinates: over all pairs of frames, or through landmarks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray

from manifold_observer.tasks.engine.kernel import Scale
from manifold_observer.tasks.engine.moments import Axes
from manifold_observer.tasks.engine.slab import Metric

from ..graph.compute import Progress, persist
from ..graph.spans import Span, blocks
from .blocks import Table, make_blocks
from .checkpoint import Checkpoint
from .config import EmbedConfig
from .cuts import EXACT_MEDIAN_FRAMES, tile_size
from .eigensolve import WIDTH, Solved, Warm, solve, wanted_modes
from .landmarks import Landmarked, embed_landmarks, near
from .memory import choose_home
from .tiledisk import require_space, tiles_bytes
from .tiling import (
    MatMat,
    Tiling,
    disk_product,
    distance_panels,
    find_scale,
    local_product,
    recomputed_product,
    resident_product,
    tiling,
)

Floats = NDArray[np.float64]
Attrs = dict[str, int | float | str]
# Largest residual, by where the tiles are: passes over recomputed tiles are dear.
TOLERANCES = {"local": 1e-10, "resident": 1e-6, "disk": 1e-4, "recomputed": 1e-4}


class Problem(NamedTuple):
    """Frames, metric, axes of the distances, form and precision of the tiles, options, progress."""

    table: Table
    metric: Metric
    axes: Axes
    form: str
    precision: str
    config: EmbedConfig
    progress: Progress

    @property
    def itemsize(self) -> int:
        """Bytes of a number of a tile."""
        return np.dtype(self.precision).itemsize

    @property
    def spans(self) -> list[Span]:
        """Frames of every block."""
        n = self.table.n_frames
        return blocks(n, self.config.tile or tile_size(n))


class Found(NamedTuple):
    """Eigenpairs by descending eigenvalue, row sums, scale, lift where it is known, attributes, landmarks to extend."""

    eigenvalues: Floats
    residuals: Floats
    coordinates: Floats
    degrees: Floats
    scale: Scale
    lift: Floats | None
    attrs: Attrs
    landmarks: NDArray[np.int64] | None = None


def exactly(problem: Problem, checkpoint: Checkpoint) -> Found:
    """Eigenpairs of the whole kernel, to the residual that the options say."""
    config, n = problem.config, problem.table.n_frames
    home = _home(problem, checkpoint)
    if home == "local":  # a matter of seconds
        checkpoint = Checkpoint(None, {})
    tiles, distances = _tiles(problem, home)
    scale, attrs = find_scale(tiles, distances, config, problem.progress)
    tolerance = config.residual_tolerance or TOLERANCES[home]
    warm = None
    if home != "local" and scale.local is None and not checkpoint.begun:
        n_near = max(WIDTH, wanted_modes(config, n))
        warm = Warm(*near(tiles.blocks, tiles.spans, scale, config.alpha, n_near, problem.progress))
    with _product(home, tiles, distances, scale, checkpoint, problem.progress) as matmat:
        del distances
        solved = solve(matmat, n, config, problem.progress, tolerance=tolerance, checkpoint=checkpoint, warm=warm)
    return _found(solved, scale, attrs | {"method": "exact", "home": home, "tile": _side(tiles)})


def through_landmarks(problem: Problem, checkpoint: Checkpoint) -> Found:
    """Eigenpairs through landmarks, with ``refine`` exact passes after them."""
    config, n = problem.config, problem.table.n_frames
    known = _landmarks(problem)
    attrs = known.attrs | {"method": "landmarks", "refine": config.refine}
    scale = Scale(known.epsilon)
    if config.refine == 0:
        return Found(
            known.eigenvalues,
            known.residuals,
            known.coordinates,
            known.degrees,
            scale,
            known.lift,
            attrs | {"passes": 0},
            known.numbers if config.landmark_route == "nystrom" else None,
        )
    home = _home(problem, checkpoint)
    tiles, distances = _tiles(problem, home)
    with _product(home, tiles, distances, scale, checkpoint, problem.progress) as matmat:
        solved = solve(
            matmat,
            n,
            config,
            problem.progress,
            tolerance=TOLERANCES[home],
            checkpoint=checkpoint,
            warm=Warm(known.coordinates, known.degrees),
            passes=config.refine,
        )
    attrs |= {"residual_from": "all frames", "home": home, "tile": _side(tiles)}
    return _found(solved, scale, attrs)


def _home(problem: Problem, checkpoint: Checkpoint) -> str:
    """Where tiles shall live; those that do not fit on a disk are refused before anything is computed."""
    home = choose_home(problem.table.n_frames, problem.itemsize, problem.config.home)
    if home == "disk":
        require_space(tiles_bytes(problem.spans, problem.itemsize), checkpoint.folder)
    return home


def _tiles(problem: Problem, home: str) -> tuple[Tiling, list[Delayed]]:
    """Blocks on the workers, and panels of distances, computed only where all of them are wanted twice."""
    n, config, spans = problem.table.n_frames, problem.config, problem.spans
    made = make_blocks(
        problem.table, problem.metric, problem.axes, spans, problem.form, problem.precision, problem.progress
    )
    tiles = tiling(made, spans, problem.precision)
    distances = distance_panels(tiles)
    looked_at = isinstance(config.epsilon, str) and n <= EXACT_MEDIAN_FRAMES
    if home in ("local", "resident") and looked_at:
        distances = persist(distances, "distances", problem.progress)
    return tiles, distances


@contextmanager
def _product(
    home: str, tiles: Tiling, distances: list[Delayed], scale: Scale, checkpoint: Checkpoint, progress: Progress
) -> Iterator[MatMat]:
    """Product with the kernel, its tiles in the home that was chosen; what lies on disk is gone at the end."""
    if home == "local":
        yield local_product(tiles, distances, scale, progress)
    elif home == "resident":
        yield resident_product(tiles, distances, scale, progress)
    elif home == "recomputed":
        yield recomputed_product(tiles, scale, progress)
    else:
        with checkpoint.tiles() as folder:
            yield disk_product(tiles, scale, folder, progress)


def _landmarks(problem: Problem) -> Landmarked:
    """Coordinates through landmarks: as many as wanted, or as one exact pass after them has vectors."""
    wanted = wanted_modes(problem.config, problem.table.n_frames)
    n_modes = max(WIDTH, wanted) if problem.config.refine else wanted
    return embed_landmarks(
        problem.table,
        problem.metric,
        problem.axes,
        problem.form,
        problem.precision,
        problem.config,
        n_modes,
        problem.progress,
    )


def _found(solved: Solved, scale: Scale, attrs: Attrs) -> Found:
    """What a solve found."""
    return Found(
        solved.eigenvalues,
        solved.residuals,
        solved.coordinates,
        solved.degrees,
        scale,
        None,
        attrs | {"passes": solved.passes},
    )


def _side(tiles: Tiling) -> int:
    """Frames on the side of a tile."""
    return tiles.spans[0][1] - tiles.spans[0][0]
