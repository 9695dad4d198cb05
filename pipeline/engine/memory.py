"""What memory an embedding needs: upper bounds, from sizes alone."""

from __future__ import annotations

from typing import NamedTuple

from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.landmarks import FRAMES_TOGETHER

from ..graph.limits import BASE_BYTES, CALLER_BYTES, Memory
from .blocks import KEEP_COMPUTED_BYTES
from .cuts import EXACT_MEDIAN_FRAMES, MANY_PANELS, deal, gather_rows, landmark_rows, link_rows

LOCAL_BYTES = 2**26
"""Tiles up to this size are brought to the caller: a pass over them costs less than a round trip."""
EXACT_FRAMES = 50_000
"""Frames up to which all pairs are a matter of minutes on two cores."""
# Resident panels that one of two workers was seen to hold, against its even share.
_UNEVEN = 1.35


class Shape(NamedTuple):
    """What the sizes depend on: frames, distance, frames on the side of a tile, vectors a pass, threads of a worker."""

    n_frames: int
    distance: Distance
    tile: int
    width: int
    threads: int = 1

    @property
    def n_blocks(self) -> int:
        """Blocks of all frames."""
        return -(-self.n_frames // self.tile)

    def at_once(self, n_tasks: int) -> int:
        """Tasks that a worker runs at once, at most, where a stage has so many beside those that make the blocks."""
        return min(self.threads, max(n_tasks, self.n_blocks))

    @property
    def n_axes(self) -> int:
        """Axes in which distances are taken."""
        return self.distance.axes.width

    @property
    def itemsize(self) -> int:
        """Bytes of a number of a tile."""
        return self.distance.itemsize

    @property
    def window(self) -> int:
        """Frames of a window, 1 where covariances are given."""
        return max(self.distance.window, 1)

    @property
    def frames_bytes(self) -> int:
        """Bytes of the frames that workers keep: along their axes, or as they were computed, where those are few."""
        n_features = len(self.distance.axes.mean)
        return max(8 * self.n_frames * self.n_axes, min(8 * self.n_frames * n_features, KEEP_COMPUTED_BYTES))

    def sparse_bytes(self, n_frames: int) -> int:
        """Bytes of a block of frames far apart, such as landmarks, each of which brings its own halo."""
        more = max(self.distance.kind.halo_rows(self.window) - 1, 0) * self.n_axes
        return self.block_bytes(n_frames) + n_frames * more * self.itemsize

    def block_bytes(self, n_frames: int) -> int:
        """Bytes of a block of some frames that follow each other."""
        p, w, form = self.n_axes, self.window, self.distance.kind
        return (n_frames * form.numbers(p, self.distance.rank, w) + form.halo_rows(w) * p) * self.itemsize

    def making_bytes(self, n_frames: int) -> int:
        """Bytes that making a block takes beside it: frames, windows, decompositions, float64 features."""
        p, w = self.n_axes, self.window
        double = self.block_bytes(n_frames) * 8 // self.itemsize
        return 8 * n_frames * (4 * p + self.distance.kind.making(p)) + 2 * double + 6 * 2**23 + 8 * 4 * n_frames * w


def tile_bytes(n_frames: int, itemsize: int) -> int:
    """Bytes of the upper triangle.

    Examples
    --------
    >>> tile_bytes(1000, 4)
    2000000
    """
    return n_frames * n_frames // 2 * itemsize


def exact_memory(shape: Shape, home: str, passes: int, n_workers: int) -> Memory:
    """Bound the memory of the exact way.

    A worker may come to hold the blocks of all frames, and a third more tiles than its even share.

    Parameters
    ----------
    shape
        Sizes.
    home
        Where tiles live.
    passes
        Passes over the kernel; the caller keeps two blocks of vectors of each.
    n_workers
        Workers.

    Returns
    -------
    The bounds.
    """
    n, side = shape.n_frames, min(shape.tile, shape.n_frames)
    tile = side * side * shape.itemsize
    dealing = deal(shape.n_blocks, tile, n_workers)
    units, largest = len(dealing.units(shape.n_blocks)), 2**dealing.level
    n_panels = dealing.panels(shape.n_blocks)
    panel = tile * largest**2
    vectors = 2 * largest * side * shape.width
    many = n_panels > MANY_PANELS
    summing = 2 * units * vectors * shape.itemsize if many else 0
    keeps = home in ("local", "resident")
    copies = 2 if keeps and n <= EXACT_MEDIAN_FRAMES else 1
    share = int(_UNEVEN * tile_bytes(n, shape.itemsize) / n_workers)
    kept = copies * (min(share, tile_bytes(n, shape.itemsize)) + 2 * panel) if keeps else 0
    tiles = 3 * tile + shape.itemsize * shape.distance.kind.beside(side * side, apart=False)
    summed = (8 + (3 + dealing.level) * shape.itemsize) * vectors  # one sum a level may wait for its sibling
    multiplying = tiles + (panel if keeps else 0) + 2 * shape.block_bytes(side) + summed
    task = max(shape.making_bytes(side), multiplying, summing)
    worker = BASE_BYTES + shape.block_bytes(n) + kept + shape.at_once(n_panels) * task + shape.frames_bytes
    krylov = 8 * n * shape.width * (2 * passes + 6)
    gathered = 8 * n * shape.width * (2 if many else units + 1)
    whole = 2 * tile_bytes(n, shape.itemsize) if home == "local" else 0
    return Memory(task, worker, CALLER_BYTES + krylov + gathered + whole + 16 * n * shape.n_axes)


def landmark_memory(shape: Shape, n_landmarks: int, route: str = "nystrom", kept: int | None = None) -> Memory:
    """Bound the memory of the way through landmarks; what does not grow with the frames, and their coordinates.

    Parameters
    ----------
    shape
        Sizes.
    n_landmarks
        Landmarks m.
    route
        ``"nystrom"`` or ``"diffusion"``, which also adds up m x m links over long spans.
    kept
        Bytes of the coordinates that a worker keeps, as :func:`coordinate_bytes` has them; None where they come here.

    Returns
    -------
    The bounds.
    """
    n, p, met = shape.n_frames, shape.n_axes, n_landmarks + 256
    block = min(FRAMES_TOGETHER, n)
    strips = block * met * (2 * shape.itemsize + 8) + shape.itemsize * shape.distance.kind.beside(
        block * met, apart=True
    )
    making = shape.making_bytes(block) + shape.block_bytes(block)
    carrying = _slab_bytes(landmark_rows(n, p), p) + making + strips
    solving = n_landmarks**2 * (2 * shape.itemsize + 5 * 8)
    solving += shape.itemsize * shape.distance.kind.beside(n_landmarks**2, apart=True)
    gathering = _slab_bytes(gather_rows(n, p), p) + shape.making_bytes(min(gather_rows(n, p), met))
    gathering += 2 * shape.sparse_bytes(met)
    linking = _slab_bytes(link_rows(n, p), p) + making + strips + 3 * 8 * n_landmarks**2
    many = max(carrying, gathering, linking if route == "diffusion" else 0)
    always = 2 * shape.sparse_bytes(met) + 2**26 + (kept or 0)
    caller = CALLER_BYTES + 2**26 + (8 * n * (6 * shape.width + 8) if kept is None else 0)
    at_once = shape.at_once(-(-n // landmark_rows(n, p)))
    return Memory(max(many, solving), BASE_BYTES + always + max(at_once * many, solving), caller)


def coordinate_bytes(n_frames: int, n_modes: int, n_workers: int, n_axes: int = 0) -> int:
    """Bytes that a worker keeps of all frames, a third more than its even share.

    Those are coordinates and row sums, and, where the axes are given, what every span passing landmarks adds up to.

    Examples
    --------
    >>> coordinate_bytes(1000, 4, 2), coordinate_bytes(1_000_000, 4, 2), coordinate_bytes(1_000_000, 4, 2, 30)
    (27000, 27000000, 28905120)
    """
    numbers = n_frames * (n_modes + 1)
    if n_axes:
        numbers += -(-n_frames // landmark_rows(n_frames, n_axes)) * (n_modes + 1) * (n_axes + 258)
    return int(_UNEVEN * 8 * numbers / n_workers)


def projected_memory(shape: Shape, n_landmarks: int) -> Memory:
    """Bound the memory of landmarks whose number a residual decides: decompositions of them, or one block's strips.

    What is kept on the workers beside, if there is room for it, is not in it.
    """
    n, side, met = shape.n_frames, min(shape.tile, shape.n_frames), n_landmarks + 256
    pieces = min(FRAMES_TOGETHER, side) * met * (3 * shape.itemsize + 8)
    made = shape.making_bytes(side) + 2 * shape.block_bytes(side) + side * met * shape.itemsize + pieces
    carrying = _slab_bytes(max(link_rows(n, shape.n_axes), side), shape.n_axes) + made + 3 * 8 * n_landmarks**2
    solving = (4 * (4 + 2) + 6) * 8 * n_landmarks**2
    many = max(carrying, _slab_bytes(gather_rows(n, shape.n_axes), shape.n_axes) + 2 * shape.sparse_bytes(met))
    kept = 2 * shape.sparse_bytes(2 * n_landmarks + 256) + 8 * 4 * n_landmarks**2 + 2**26
    caller = CALLER_BYTES + 8 * n * (6 * shape.width + 8) + 3 * 8 * n_landmarks**2 + 2**26
    at_once = shape.at_once(-(-n // landmark_rows(n, shape.n_axes)))
    return Memory(max(many, solving), BASE_BYTES + kept + max(at_once * many, solving), caller)


def strip_bytes(shape: Shape, n_met: int) -> int:
    """Bytes of the blocks of all frames and of their affinities to some others, on all workers together.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> kind = SimpleNamespace(numbers=lambda *_: 12, halo_rows=lambda _: 0)
    >>> axes = SimpleNamespace(width=3)
    >>> narrow = SimpleNamespace(axes=axes, itemsize=4, kind=kind, rank=3, window=21)
    >>> strip_bytes(Shape(1000, narrow, 512, 21), 8)
    80000
    """
    return shape.block_bytes(shape.n_frames) + shape.n_frames * n_met * shape.itemsize


def _slab_bytes(rows: int, n_axes: int) -> int:
    """Bytes that reading a slab takes: as it is stored, decoded and centred."""
    return 3 * 8 * rows * n_axes + 2**25
