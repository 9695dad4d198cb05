r"""The window form: factors that are never stored, :math:`U_i^\top = A_i W_i`, from products of frames with frames.

Frames' inner products are one Gram tile that all windows share. The form of wide features, as spectra are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from manifold_observer.tasks.arrays import Array, Floats, Integers
from manifold_observer.tasks.engine.cache import add_transposed
from manifold_observer.tasks.engine.factor import factor_side
from manifold_observer.tasks.engine.protocols import Form
from manifold_observer.tasks.engine.slab import Metric, Slab, mixing

# Windows that the window form multiplies together.
_BAND = 8
# Numbers of their product that are made at a time: they stay in cache.
_IMAGE_NUMBERS = 2**16 + 2**14
# Products of two halos are taken at once where they are at most this share of what the two sides need apart: both
# sides' Gram tiles are then there together.
_SHARED = 0.75
# A block with more rows of its halo a frame than this has windows that share few rows, as landmarks do.
_SPARSE = 2
BAND_COST = 4
"""Multiplications by a band of mixing matrices take the time of this many in a large product."""
GRAM_NUMBERS = 2**22
"""Numbers of a Gram tile that are made at a time for such a block."""


class WindowBlock(NamedTuple):
    """Frames with halo (h, p); per frame its row in it, first window row, mixing (n, r, w), floor (n,).

    ``signs`` (n,) is -1 where the spanned part is subtracted from the floor, else 1; ``images`` (n, r) are
    the frames' own, ``A_i W_i z_i``.
    """

    halo: Array
    rows: Integers
    starts: Integers
    mixing: Array
    floor: Array
    signs: Array
    images: Array

    @property
    def n_frames(self) -> int:
        """Frames in the block."""
        return len(self.rows)

    @property
    def precision(self) -> np.dtype[np.floating]:
        """Floating-point precision of the block."""
        return self.mixing.dtype

    def astype(self, dtype: DTypeLike) -> WindowBlock:
        """The same block in another precision; row numbers stay integers."""
        return WindowBlock(*(part if part.dtype.kind == "i" else np.ascontiguousarray(part, dtype) for part in self))

    def take(self, chosen: Integers | slice) -> WindowBlock:
        """The chosen frames, with just the rows of the halo that their windows use."""
        rows, starts = self.rows[chosen], self.starts[chosen]
        windows = (starts[:, None] + np.arange(self.mixing.shape[2])).ravel()
        used, place = np.unique(np.concatenate([rows, windows]), return_inverse=True)
        some = self._replace(
            rows=rows,
            starts=starts,
            mixing=self.mixing[chosen],
            floor=self.floor[chosen],
            signs=self.signs[chosen],
            images=self.images[chosen],
        )
        if len(used) == len(self.halo):
            return some
        # A window's rows follow each other in the halo, and so they do among those that are used.
        first = place[len(rows) :: self.mixing.shape[2]]
        return some._replace(halo=self.halo[used], rows=place[: len(rows)], starts=first)

    def join(self, others: Sequence[WindowBlock]) -> WindowBlock:
        """The block and others; halos are put one after the other."""
        blocks = (self, *others)
        rank = max(block.mixing.shape[1] for block in blocks)
        offsets = np.cumsum([0, *(len(block.halo) for block in blocks[:-1])])
        parts = [block.padded(rank, int(offset)) for block, offset in zip(blocks, offsets, strict=True)]
        return WindowBlock(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def padded(self, rank: int, offset: int) -> WindowBlock:
        """The block with ``rank`` rows a mixing matrix, the first ones zero, and its halo from row ``offset`` on."""
        more = rank - self.mixing.shape[1]
        return self._replace(
            rows=self.rows + offset,
            starts=self.starts + offset,
            mixing=np.pad(self.mixing, ((0, 0), (more, 0), (0, 0))),
            images=np.pad(self.images, ((0, 0), (more, 0))),
        )

    def factors(self, some: slice) -> Array:
        """Factors (k, r, p) of a few frames, made for once."""
        own = self.mixing[some]
        return np.matmul(own, self.halo[self.starts[some, None] + np.arange(own.shape[2])])

    def distances(self, columns: WindowBlock, out: Array | None = None) -> Array:
        """Half the sum of both sides; the plain squared distance serves the floors of both. ``out`` does not serve."""
        if _is_sparse(self) or _is_sparse(columns):
            return _sparse_tile(self, columns)
        grams = _grams(self, columns)
        gram = next(grams)
        tile = _window_side(self, gram)
        if self.floor.any() or columns.floor.any():
            _add_floors(tile, gram[self.rows], self, columns)
        del gram
        add_transposed(tile, _window_side(columns, next(grams)))
        tile *= 0.5
        return tile


class Window(Form):
    """The form of wide features: p + 2 w r multiplications a pair, and no factor in memory."""

    name = "window"
    needs_windows = True

    def block(self, slab: Slab, metric: Metric) -> WindowBlock:
        """The block of a slab's own frames."""
        return window_block(slab.frames, slab.rows, slab.starts, *mixing(slab, metric))

    def points(self, frames: Floats) -> WindowBlock:
        """Block of centred frames (m, p) without covariances: their mixing matrices are zero."""
        n, rows = len(frames), np.arange(len(frames))
        return window_block(frames, rows, rows, np.zeros((n, 1, 1)), np.zeros(n))

    def multiplications(self, n_features: int, rank: int, window: int) -> int:
        """Multiplications a pair of frames."""
        return n_features + 2 * rank * window

    def multiplications_apart(self, n_features: int, rank: int, window: int, rows: float) -> float:
        """One side by Gram tiles that windows share, the other by factors or by Gram tiles of its own."""
        alone = min(rank * n_features, rows * n_features + BAND_COST * rank * (window + 1))
        return n_features + rank * window + alone

    def reduced(self, rank: int) -> int:
        """Intermediate numbers a pair that are squared and added up."""
        return 2 * rank

    def numbers(self, n_features: int, rank: int, window: int) -> int:
        """Numbers that a block holds for each frame."""
        return n_features + rank * (window + 1) + 4

    def halo_rows(self, window: int) -> int:
        """A window."""
        return window

    def beside(self, pairs: int, apart: bool) -> int:
        """Both sides' Gram tiles; apart, the tile's other side, a Gram tile and a piece of the other."""
        return 3 * pairs + GRAM_NUMBERS if apart else 2 * pairs


def window_block(halo: Floats, rows: Integers, starts: Integers, mixing: Floats, floor: Floats) -> WindowBlock:
    """Block of the window form from centred frames with halo (h, p) and what makes the factors.

    Examples
    --------
    Two frames that share a window of two, with the factor 1 as the difference of its frames:

    >>> frames, mixing = np.array([[-1.0], [1.0]]), np.tile([-0.5, 0.5], (2, 1, 1))
    >>> block = window_block(frames, np.arange(2), np.zeros(2, int), mixing, np.zeros(2))
    >>> block.distances(block)
    array([[0., 4.],
           [4., 0.]])
    """
    window = mixing.shape[2]
    images = np.empty(mixing.shape[:2])
    for i, (row, start) in enumerate(zip(rows, starts, strict=True)):
        images[i] = mixing[i] @ (halo[start : start + window] @ halo[row])
    return WindowBlock(halo, rows, starts, mixing, floor, np.where(floor > 0, -1.0, 1.0), images)


def _is_sparse(block: WindowBlock) -> bool:
    """Whether the windows of a block share few rows, so that a Gram tile would be many times the tile itself."""
    return len(block.halo) > _SPARSE * len(block.rows)


def _sparse_tile(rows: WindowBlock, columns: WindowBlock) -> Array:
    """A tile of which one side is sparse: each side is made by itself, in little memory beside the tile."""
    frames = [block.halo[block.rows] for block in (rows, columns)]
    tile = _side_alone(rows, frames[1])
    if rows.floor.any() or columns.floor.any():
        _add_floors(tile, frames[0] @ frames[1].T, rows, columns)
    add_transposed(tile, _side_alone(columns, frames[0]))
    tile *= 0.5
    return tile


def _side_alone(rows: WindowBlock, frames: Array) -> Array:
    """One side of a tile, by factors or by Gram tiles, whichever is less work."""
    if _is_sparse(rows) and _factors_are_less_work(rows):
        tile = factor_side(rows.images, rows.factors, frames)
        tile *= rows.signs[:, None]
        return tile
    n = len(rows.rows)
    step = max(_BAND, GRAM_NUMBERS * n // (len(rows.halo) * max(len(frames), 1)))
    if step >= n:
        return _window_side(rows, _gram(rows.halo, frames))
    tile = np.empty((n, len(frames)), frames.dtype)
    for first in range(0, n, step):
        piece = rows.take(slice(first, first + step))
        tile[first : first + step] = _window_side(piece, _gram(piece.halo, frames))
    return tile


def _factors_are_less_work(rows: WindowBlock) -> bool:
    """Whether products of the factors with frames cost less than those of the halo, and then of the mixing matrices."""
    (n, r, window), p = rows.mixing.shape, rows.halo.shape[1]
    return n * r * p < len(rows.halo) * p + BAND_COST * n * r * (window + 1)


def _add_floors(tile: Array, products: Array, rows: WindowBlock, columns: WindowBlock) -> None:
    """Add the plain squared distance times the floors of both, from the frames' inner products, which it spends."""
    plain = np.multiply(products, -2, out=products)
    plain += np.square(rows.halo[rows.rows]).sum(1)[:, None]
    plain += np.square(columns.halo[columns.rows]).sum(1)
    tile += plain * rows.floor[:, None]
    plain *= columns.floor
    tile += plain


def _grams(rows: WindowBlock, columns: WindowBlock) -> Iterator[Array]:
    """Products of the row halo with the column frames, then the other way round; a row to spare in each.

    Where most rows of the halos are frames, all their products are taken at once, which halves the work.
    """
    h, k, m, n = len(rows.halo), len(columns.halo), len(rows.rows), len(columns.rows)
    if h * k > _SHARED * (h * n + m * k):
        yield _gram(rows.halo, columns.halo[columns.rows])
        yield _gram(columns.halo, rows.halo[rows.rows])
        return
    gram = _gram(rows.halo, columns.halo)
    yield _columns(gram, columns.rows)
    back = np.zeros((k + 1, m), gram.dtype)
    add_transposed(back[:k], _columns(gram.T, rows.rows).T)
    del gram
    yield back


def _gram(left: Array, right: Array) -> Array:
    """Inner products of all rows, and one row more for :func:`_window_side`."""
    gram = np.empty((len(left) + 1, len(right)), left.dtype)
    np.matmul(left, right.T, out=gram[:-1])
    return gram


def _columns(gram: Array, chosen: Integers) -> Array:
    """Some columns; those that follow each other are not copied."""
    first = int(chosen[0])
    if np.array_equal(chosen, np.arange(first, first + len(chosen))):
        return gram[:, first : first + len(chosen)]
    return np.take(gram, chosen, axis=1)


def _window_side(rows: WindowBlock, gram: Array) -> Array:
    """``sign_i |A_i (W_i z_j - W_i z_i)|^2`` from one Gram tile that all windows share; its last row is lent.

    Neighbours' windows overlap: a few are multiplied together, as one band of mixing matrices. The frames' own
    images are subtracted in the same product: the Gram row past the band lends its place to a row of ones.
    """
    n, r = gram.shape[1], rows.mixing.shape[1]
    tile = np.empty((len(rows.rows), n), gram.dtype)
    buffer = np.empty(max(_IMAGE_NUMBERS, _BAND * r), gram.dtype)
    for some in _bands(rows.starts, rows.mixing.shape[2]):
        band, low = _band(rows.mixing[some], rows.starts[some], rows.images[some])
        past = low + band.shape[1] - 1
        lent = gram[past].copy()
        gram[past] = 1
        step = len(buffer) // len(band)
        for first in range(0, n, step):
            strip = gram[low : past + 1, first : first + step]
            width = strip.shape[1]
            images = np.matmul(band, strip, out=buffer[: len(band) * width].reshape(-1, width)).reshape(-1, r, width)
            np.einsum("irn,irn->in", images, images, out=tile[some, first : first + step])
        gram[past] = lent
    tile *= rows.signs[:, None]
    return tile


def _bands(starts: Integers, window: int) -> Iterator[slice]:
    """Frames whose windows overlap by half, some at a time; a frame far from others alone."""
    first, near = 0, max(window // 2, _BAND)
    for frame in range(1, len(starts)):
        if frame - first == _BAND or abs(starts[frame] - starts[first]) >= near:
            yield slice(first, frame)
            first = frame
    yield slice(first, len(starts))


def _band(mixing: Array, starts: Integers, images: Array) -> tuple[Array, int]:
    """Mixing matrices of a few frames (k r, rows of the halo + 1) side by side, less the images; the first such row."""
    k, r, window = mixing.shape
    low = int(starts.min())
    band = np.zeros((k, r, int(starts.max()) + window - low + 1), mixing.dtype)
    for number, start in enumerate(starts - low):
        band[number, :, start : start + window] = mixing[number]
    band[:, :, -1] = -images
    return band.reshape(k * r, -1), low
