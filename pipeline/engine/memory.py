"""What memory an embedding needs and what there is; the way and the home of tiles that fit."""

from __future__ import annotations

from typing import NamedTuple

from manifold_observer.tasks.engine.forms import FORMS
from manifold_observer.tasks.engine.landmarks import FRAMES_TOGETHER
from manifold_observer.tasks.engine.protocols import Form

from ..graph.limits import BASE_BYTES, CALLER_BYTES, Memory, gib, workers
from .config import EmbedConfig
from .cuts import EXACT_MEDIAN_FRAMES, gather_rows, landmark_rows, link_rows, panel_groups

# Share of the memory that tiles may fill: beyond it a cluster spills, which is slower than recomputing.
_SHARE = 0.5
LOCAL_BYTES = 2**26
"""Tiles up to this size are brought to the caller: a pass over them costs less than a round trip."""
EXACT_FRAMES = 50_000
"""Frames up to which all pairs are a matter of minutes on two cores."""
# Resident panels that one of two workers was seen to hold, against its even share.
_UNEVEN = 1.35


class Shape(NamedTuple):
    """What the sizes depend on: frames, axes, form, bytes of a number, window, frames of a tile, vectors a pass."""

    n_frames: int
    n_axes: int
    form: str
    itemsize: int
    window: int
    tile: int
    width: int

    @property
    def kind(self) -> Form:
        """The form itself."""
        return FORMS[self.form]

    @property
    def rank(self) -> int:
        """Largest rank of a local covariance."""
        return min(self.n_axes, self.window - 1) if self.window else self.n_axes

    def sparse_bytes(self, n_frames: int) -> int:
        """Bytes of a block of frames far apart, such as landmarks, each of which brings its own halo."""
        more = max(self.kind.halo_rows(max(self.window, 1)) - 1, 0) * self.n_axes
        return self.block_bytes(n_frames) + n_frames * more * self.itemsize

    def block_bytes(self, n_frames: int) -> int:
        """Bytes of a block of some frames that follow each other."""
        p, w = self.n_axes, max(self.window, 1)
        numbers = n_frames * self.kind.numbers(p, self.rank, w) + self.kind.halo_rows(w) * p
        return numbers * self.itemsize

    def making_bytes(self, n_frames: int) -> int:
        """Bytes that making a block takes beside it: frames, windows, decompositions, float64 features."""
        p, w = self.n_axes, max(self.window, 1)
        double = self.block_bytes(n_frames) * 8 // self.itemsize
        return 8 * n_frames * (4 * p + self.kind.making(p)) + 2 * double + 6 * 2**23 + 8 * 4 * n_frames * w


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
    groups = panel_groups(-(-n // side), tile)
    panel = tile * max(len(group) for group in groups) ** 2
    vectors = 2 * max(len(group) for group in groups) * side * shape.width * 8
    keeps = home in ("local", "resident")
    copies = 2 if keeps and n <= EXACT_MEDIAN_FRAMES else 1
    share = int(_UNEVEN * tile_bytes(n, shape.itemsize) / n_workers)
    kept = copies * (min(share, tile_bytes(n, shape.itemsize)) + 2 * panel) if keeps else 0
    tiles = 3 * tile + shape.itemsize * shape.kind.beside(side * side, apart=False)
    task = max(shape.making_bytes(side), tiles + (panel if keeps else 0) + 2 * shape.block_bytes(side) + 4 * vectors)
    worker = BASE_BYTES + shape.block_bytes(n) + kept + task + 8 * n * shape.n_axes
    krylov = 8 * n * shape.width * (2 * passes + 6)
    gathered = 8 * n * shape.width * (len(groups) + 1)
    whole = n * n * (8 + shape.itemsize) if home == "local" else 0
    return Memory(task, worker, CALLER_BYTES + krylov + gathered + whole + 16 * n * shape.n_axes)


def landmark_memory(shape: Shape, n_landmarks: int, route: str = "nystrom") -> Memory:
    """Bound the memory of the way through landmarks; a worker's does not grow with the frames.

    Parameters
    ----------
    shape
        Sizes.
    n_landmarks
        Landmarks m.
    route
        ``"nystrom"`` or ``"diffusion"``, which also adds up m x m links over long spans.

    Returns
    -------
    The bounds.
    """
    n, p, met = shape.n_frames, shape.n_axes, n_landmarks + 256
    block = min(FRAMES_TOGETHER, n)
    strips = block * met * (2 * shape.itemsize + 8) + shape.itemsize * shape.kind.beside(block * met, apart=True)
    making = shape.making_bytes(block) + shape.block_bytes(block)
    carrying = _slab_bytes(landmark_rows(n, p), p) + making + strips
    solving = n_landmarks**2 * (2 * shape.itemsize + 5 * 8)
    solving += shape.itemsize * shape.kind.beside(n_landmarks**2, apart=True)
    gathering = _slab_bytes(gather_rows(n, p), p) + shape.making_bytes(min(gather_rows(n, p), met))
    gathering += 2 * shape.sparse_bytes(met)
    linking = _slab_bytes(link_rows(n, p), p) + making + strips + 3 * 8 * n_landmarks**2
    task = max(carrying, solving, gathering, linking if route == "diffusion" else 0)
    kept = 2 * shape.sparse_bytes(met) + 2**26
    caller = CALLER_BYTES + 8 * n * (6 * shape.width + 8) + 2**26
    return Memory(task, BASE_BYTES + kept + task, caller)


def _slab_bytes(rows: int, n_axes: int) -> int:
    """Bytes that reading a slab takes: as it is stored, decoded and centred."""
    return 3 * 8 * rows * n_axes + 2**25


def choose_method(n_frames: int, itemsize: int, config: EmbedConfig) -> str:
    """Exact as long as it is a matter of minutes or the tiles fit; landmarks beyond.

    Parameters
    ----------
    n_frames
        Frames of the embedding.
    itemsize
        Bytes of a number of a tile.
    config
        The method that was asked for, and the scale: a local one needs all pairs.

    Returns
    -------
    ``"exact"`` or ``"landmarks"``.
    """
    if config.method != "auto":
        return config.method
    if n_frames <= EXACT_FRAMES or config.epsilon == "local":
        return "exact"
    return "exact" if tile_bytes(n_frames, itemsize) <= _SHARE * workers().total else "landmarks"


def choose_home(n_frames: int, itemsize: int, wanted: str) -> str:
    """Where the tiles of a kernel live: local when small, resident where they fit, else recomputed in every pass.

    Parameters
    ----------
    n_frames
        Frames of the embedding.
    itemsize
        Bytes of a number.
    wanted
        ``"auto"``, or a home that is taken if it fits.

    Returns
    -------
    ``"local"``, ``"resident"``, ``"recomputed"`` or ``"disk"``.

    Raises
    ------
    ValueError
        Resident tiles were asked for and do not fit; with the bytes on both sides, and what would fit.
    """
    if wanted == "local" or (wanted == "auto" and tile_bytes(n_frames, itemsize) <= LOCAL_BYTES):
        return "local"
    needed, there = tile_bytes(n_frames, itemsize), int(_SHARE * workers().total)
    if needed <= there:
        return "resident" if wanted == "auto" else wanted
    if wanted == "resident":
        fits = int((2 * there / itemsize) ** 0.5)
        raise ValueError(
            f"embed: resident tiles must fit into half of the workers' memory; {n_frames} frames need "
            f"{gib(needed)} of {gib(there)}. About {fits} frames would fit: give home='recomputed', or more workers."
        )
    return "recomputed" if wanted == "auto" else wanted
