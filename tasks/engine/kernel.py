r"""One tile of modified Mahalanobis distances, and of the kernel.

Throughout: a *tile* (m, n) pairs a row block with a column block; ``frames`` z are centred features;
M is the *precision* C⁺ of a frame. The distance is already squared and symmetric,

.. math:: d(i, j) = \tfrac12 (z_i - z_j)^\top (C_i^{+} + C_j^{+}) (z_i - z_j).

Three exact forms turn it into matrix products; each has a block type that holds what its form needs,
and :func:`squared_distances` takes two blocks of one type. Nothing of shape (m, n, p) is ever formed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from manifold_observer.tasks.arrays import Array, Floats, Integers

# Bytes of the intermediate product of the factor form, and of what is finished together: one second-level cache.
_SCRATCH_BYTES = 2**20
# Windows that the window form multiplies together.
_BAND = 8
# Numbers of their product that are made at a time: they stay in cache.
_IMAGE_NUMBERS = 2**16 + 2**14
# Products of two halos are taken at once where they are at most this share of what the two sides need apart: both
# sides' Gram tiles are then there together.
_SHARED = 0.75
# Columns of a tile that a transpose is added to at a time.
_COLUMNS = 64
# A block with more rows of its halo a frame than this has windows that share few rows, as landmarks do.
_SPARSE = 2
BAND_COST = 4
"""Multiplications by a band of mixing matrices take the time of this many in a large product."""
GRAM_NUMBERS = 2**22
"""Numbers of a Gram tile that are made at a time for such a block."""


class QuadraticBlock(NamedTuple):
    """Row features ``[Φ(M) | Φ(z)]`` (n, 2q), q = (p + 1)(p + 2) / 2; a tile is one product."""

    features: Array


class FactorBlock(NamedTuple):
    """Frames (n, p), factors U (n, r, p) and the images ``U^T z`` (n, r) of the frames themselves."""

    frames: Array
    factors: Array
    images: Array


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


Block = QuadraticBlock | FactorBlock | WindowBlock


def quadratic_block(frames: Floats, precisions: Floats) -> QuadraticBlock:
    r"""Features whose inner products are distances.

    .. math:: (z_j - z_i)^\top M_i (z_j - z_i)
              = \langle M_i, z_j z_j^\top \rangle - 2 (M_i z_i) \cdot z_j + z_i^\top M_i z_i

    Parameters
    ----------
    frames
        Centred features, shape (n, p). Centring matters: the terms cancel.
    precisions
        Pseudo-inverse local covariances, shape (n, p, p).

    Returns
    -------
    The block; 2 (p + 1)(p + 2) / 2 numbers a frame.

    Notes
    -----
    O(n p^2) time and memory.

    Examples
    --------
    Two points one unit apart, the second twice as precise along the first axis:

    >>> points = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> block = quadratic_block(points, np.stack([np.eye(2), np.diag([4.0, 1.0])]))
    >>> squared_distances(block, block)
    array([[0. , 2.5],
           [2.5, 0. ]])
    """
    p = frames.shape[1]
    upper = np.triu_indices(p)
    twice = np.where(upper[0] == upper[1], 0.5, 1.0)  # half of M, off-diagonal entries counted twice
    images = np.einsum("npk,nk->np", precisions, frames)
    constant = 0.5 * np.einsum("np,np->n", images, frames)[:, None]
    metric = [precisions[:, upper[0], upper[1]] * twice, -images, constant]
    point = [frames[:, upper[0]] * frames[:, upper[1]], frames, np.ones_like(constant)]
    return QuadraticBlock(np.concatenate(metric + point, axis=1))


def factor_block(frames: Floats, factors: Floats) -> FactorBlock:
    """Block of the factor form from centred frames (n, p) and factors U (n, p, r)."""
    transposed = np.ascontiguousarray(np.swapaxes(factors, 1, 2))
    return FactorBlock(frames, transposed, np.einsum("nrp,np->nr", transposed, frames))


def window_block(halo: Floats, rows: Integers, starts: Integers, mixing: Floats, floor: Floats) -> WindowBlock:
    """Block of the window form from centred frames with halo (h, p) and what makes the factors."""
    window = mixing.shape[2]
    images = np.empty(mixing.shape[:2])
    for i, (row, start) in enumerate(zip(rows, starts, strict=True)):
        images[i] = mixing[i] @ (halo[start : start + window] @ halo[row])
    return WindowBlock(halo, rows, starts, mixing, floor, np.where(floor > 0, -1.0, 1.0), images)


def astype(block: Block, dtype: DTypeLike) -> Block:
    """The same block in another floating-point precision (row numbers stay integers)."""
    fields = (part if part.dtype.kind == "i" else np.ascontiguousarray(part, dtype) for part in block)
    return type(block)(*fields)


def take(block: Block, chosen: Integers | slice) -> Block:
    """The chosen frames of a block; of a slice only the halo of a window block is copied."""
    if isinstance(block, WindowBlock):
        return _take_windows(block, chosen)
    return type(block)(*(part[chosen] for part in block))


def join(blocks: Sequence[Block]) -> Block:
    """Several blocks of one form as one; halos are put one after the other.

    Examples
    --------
    >>> block = factor_block(np.array([[0.0]]), np.ones((1, 1, 1)))
    >>> n_frames(join([block, block]))
    2
    """
    first = blocks[0]
    if len(blocks) == 1:
        return first
    rank = max(_rank(block) for block in blocks)
    parts = [_padded(block, rank) for block in blocks]
    if isinstance(first, WindowBlock):
        offsets = np.cumsum([0, *(len(block[0]) for block in parts[:-1])])
        parts = [_moved(block, int(offset)) for block, offset in zip(parts, offsets, strict=True)]
    return type(first)(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _rank(block: Block) -> int:
    """Rows of a block's factors, 0 where it has none."""
    if isinstance(block, FactorBlock):
        return block.factors.shape[1]
    return block.mixing.shape[1] if isinstance(block, WindowBlock) else 0


def _moved(block: Block, offset: int) -> Block:
    """A window block whose halo begins at another row."""
    if not isinstance(block, WindowBlock):
        return block
    return block._replace(rows=block.rows + offset, starts=block.starts + offset)


def _padded(block: Block, rank: int) -> Block:
    """A block whose factors (or mixing) have ``rank`` rows, the first ones zero."""
    if isinstance(block, FactorBlock):
        more = rank - block.factors.shape[1]
        return block._replace(
            factors=np.pad(block.factors, ((0, 0), (more, 0), (0, 0))), images=np.pad(block.images, ((0, 0), (more, 0)))
        )
    if isinstance(block, WindowBlock):
        more = rank - block.mixing.shape[1]
        return block._replace(
            mixing=np.pad(block.mixing, ((0, 0), (more, 0), (0, 0))), images=np.pad(block.images, ((0, 0), (more, 0)))
        )
    return block


def n_frames(block: Block) -> int:
    """Frames in a block."""
    return len(block.rows) if isinstance(block, WindowBlock) else len(block[0])


def precision(block: Block) -> np.dtype[np.floating]:
    """Floating-point precision of a block."""
    return block.mixing.dtype if isinstance(block, WindowBlock) else block[0].dtype


def squared_distances(rows: Block, columns: Block, out: Array | None = None) -> Array:
    """Modified Mahalanobis distances of one tile, already squared.

    Parameters
    ----------
    rows
        Block of m frames.
    columns
        Block of n frames, of the same form and precision.
    out
        Memory of at least m n numbers to use for the tile, in the quadratic form.

    Returns
    -------
    Shape (m, n), without unit, at least 0: what rounding leaves below 0 is set to 0.

    Notes
    -----
    Multiplications a pair: 2q in the quadratic form, 2 p r in the factor form, p + 2 w r in the window
    form (p + w r + p r where the windows of one side share few rows). Memory: the tile twice, four times in the window
    form.

    Examples
    --------
    >>> points, factors = np.array([[0.0], [2.0]]), np.ones((2, 1, 1))
    >>> block = factor_block(points, factors)
    >>> squared_distances(block, block)
    array([[0., 4.],
           [4., 0.]])
    """
    distances = unclipped_distances(rows, columns, out)
    return np.maximum(distances, 0, out=distances)


def unclipped_distances(rows: Block, columns: Block, out: Array | None = None) -> Array:
    """As :func:`squared_distances`, with what rounding leaves below 0."""
    if isinstance(rows, QuadraticBlock) and isinstance(columns, QuadraticBlock):
        distances = _quadratic_tile(rows, columns, out)
    elif isinstance(rows, FactorBlock) and isinstance(columns, FactorBlock):
        distances = _factor_side(rows, columns.frames)
        _add_transposed(distances, _factor_side(columns, rows.frames))
        distances *= 0.5
    elif isinstance(rows, WindowBlock) and isinstance(columns, WindowBlock):
        distances = _window_tile(rows, columns)
    else:
        raise TypeError(f"squared_distances: both blocks must be of one form, got {type(rows)}, {type(columns)}")
    return distances


class Scale(NamedTuple):
    """Scale of the kernel: one number, and where it is local the scale of every frame (n,)."""

    epsilon: float
    local: Floats | None = None

    def of(self, row: int, column: int, rows: Block, columns: Block) -> tuple[float, Floats | None, Floats | None]:
        """The number, and the local scales of two blocks that begin at ``row`` and ``column``."""
        if self.local is None:
            return self.epsilon, None, None
        ends = row + n_frames(rows), column + n_frames(columns)
        return self.epsilon, self.local[row : ends[0]], self.local[column : ends[1]]


def kernel_tile(
    rows: Block,
    columns: Block,
    epsilon: float,
    row_scales: Floats | None = None,
    column_scales: Floats | None = None,
    on_diagonal: bool = False,
    out: Array | None = None,
) -> Array:
    r"""Affinities of one tile, from its frames.

    Parameters
    ----------
    rows, columns
        Blocks of m and n frames, of one form and precision.
    epsilon
        Scale of the kernel :math:`\exp(-d / \varepsilon)`, not used where there are local scales.
    row_scales, column_scales
        Scales of the frames, shapes (m,) and (n,), for :math:`\exp(-d_{ij} / \sqrt{s_i s_j})`; or None.
    on_diagonal
        The tile lies on the diagonal of the matrix: it is made exactly symmetric, with ones on it.
    out
        Memory to use, as in :func:`squared_distances`.

    Returns
    -------
    Shape (m, n), between 0 and 1.

    Notes
    -----
    Memory: one tile, two where it is on the diagonal.

    Examples
    --------
    >>> block = factor_block(np.array([[0.0], [2.0]]), np.ones((2, 1, 1)))
    >>> kernel_tile(block, block, epsilon=4 / np.log(2), on_diagonal=True)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    tile = unclipped_distances(rows, columns, out)
    if on_diagonal:
        tile = symmetric(tile)
    if row_scales is None or column_scales is None:
        return to_affinities(tile, epsilon)
    return kernel_local(np.maximum(tile, 0, out=tile), row_scales, column_scales)


def to_affinities(tile: Array, epsilon: float) -> Array:
    """A tile of distances, of which rounding may have left some below 0, as affinities in its own memory.

    Some rows at a time: they stay in cache between the steps.

    Examples
    --------
    >>> to_affinities(np.array([[-1e-9, np.log(2.0)]]), 1.0)
    array([[1. , 0.5]])
    """
    for first in range(0, len(tile), step := _rows_at_a_time(tile.shape[1] * tile.itemsize)):
        rows = tile[first : first + step]
        kernel_from_distances(np.maximum(rows, 0, out=rows), epsilon, out=rows)
    return tile


def symmetric(tile: Array) -> Array:
    """A tile of distances on the diagonal made exactly symmetric, with an exact zero diagonal."""
    tile = (tile + tile.T) / 2
    np.fill_diagonal(tile, 0)
    return tile


def kernel_from_distances(distances: Array, epsilon: float, out: Array | None = None) -> Array:
    r"""Affinities :math:`K = \exp(-d / \varepsilon)` of one tile.

    Parameters
    ----------
    distances
        Squared distances, shape (m, n).
    epsilon
        Scale, in the unit of the distances, above 0.
    out
        Where to write; may be ``distances`` itself.

    Returns
    -------
    Shape (m, n), between 0 and 1.

    Examples
    --------
    >>> kernel_from_distances(np.array([[0.0, np.log(2.0)]]), 1.0)
    array([[1. , 0.5]])
    """
    scaled = np.multiply(distances, distances.dtype.type(-1 / epsilon), out=out)
    return np.exp(scaled, out=scaled)


def kernel_local(distances: Array, row_scales: Floats, column_scales: Floats) -> Array:
    r"""Affinities with a scale of each frame's own, :math:`\exp(-d_{ij} / \sqrt{s_i s_j})`."""
    inverse_rows = (-1 / np.sqrt(row_scales)).astype(distances.dtype)
    inverse_columns = (1 / np.sqrt(column_scales)).astype(distances.dtype)
    scaled = distances * inverse_rows[:, None] * inverse_columns
    return np.exp(scaled, out=scaled)


def _take_windows(block: WindowBlock, chosen: Integers | slice) -> WindowBlock:
    """Chosen frames of a window block, with just the rows of the halo that they use."""
    rows, starts = block.rows[chosen], block.starts[chosen]
    used, place = np.unique(
        np.concatenate([rows, (starts[:, None] + np.arange(block.mixing.shape[2])).ravel()]), return_inverse=True
    )
    if len(used) == len(block.halo):
        return WindowBlock(block.halo, *(part[chosen] for part in block[1:]))
    # A window's rows follow each other in the halo, and so they do among those that are used.
    first = place[len(rows) :: block.mixing.shape[2]]
    rest = (part[chosen] for part in block[3:])
    return WindowBlock(block.halo[used], place[: len(rows)], first, *rest)


def _quadratic_tile(rows: QuadraticBlock, columns: QuadraticBlock, out: Array | None) -> Array:
    """Both halves of the distance in one product."""
    shape = len(rows.features), len(columns.features)
    place = None if out is None else out.reshape(-1)[: shape[0] * shape[1]].reshape(shape)
    half = rows.features.shape[1] // 2
    swapped = np.concatenate([columns.features[:, half:], columns.features[:, :half]], axis=1)
    return np.matmul(rows.features, swapped.T, out=place)


def _factor_side(rows: FactorBlock | WindowBlock, frames: Array) -> Array:
    """``|U_i^T z_j - U_i^T z_i|^2``, a few rows at a time so that the product stays in cache."""
    (m, r), n = rows.images.shape, len(frames)
    tile = np.empty((m, n), frames.dtype)
    step = _rows_at_a_time(r * n * tile.itemsize)
    buffer = np.empty((step * r, n), tile.dtype)
    for first in range(0, m, step):
        some = slice(first, min(first + step, m))
        stacked = _some_factors(rows, some).reshape(-1, frames.shape[1])
        images = np.matmul(stacked, frames.T, out=buffer[: len(stacked)]).reshape(-1, r, n)
        images -= rows.images[some, :, None]
        np.einsum("irn,irn->in", images, images, out=tile[some])
    return tile


def _some_factors(rows: FactorBlock | WindowBlock, some: slice) -> Array:
    """Factors (k, r, p) of a few frames."""
    if isinstance(rows, FactorBlock):
        return rows.factors[some]
    mixing = rows.mixing[some]
    return np.matmul(mixing, rows.halo[rows.starts[some, None] + np.arange(mixing.shape[2])])


def _window_tile(rows: WindowBlock, columns: WindowBlock) -> Array:
    """Half the sum of both sides; the plain squared distance serves the floors of both."""
    if _is_sparse(rows) or _is_sparse(columns):
        return _sparse_tile(rows, columns)
    grams = _grams(rows, columns)
    gram = next(grams)
    tile = _window_side(rows, gram)
    if rows.floor.any() or columns.floor.any():
        _add_floors(tile, gram[rows.rows], rows, columns)
    del gram
    _add_transposed(tile, _window_side(columns, next(grams)))
    tile *= 0.5
    return tile


def _is_sparse(block: WindowBlock) -> bool:
    """Whether the windows of a block share few rows, so that a Gram tile would be many times the tile itself."""
    return len(block.halo) > _SPARSE * len(block.rows)


def _sparse_tile(rows: WindowBlock, columns: WindowBlock) -> Array:
    """A tile of which one side is sparse: each side is made by itself, in little memory beside the tile."""
    frames = [block.halo[block.rows] for block in (rows, columns)]
    tile = _side_alone(rows, frames[1])
    if rows.floor.any() or columns.floor.any():
        _add_floors(tile, frames[0] @ frames[1].T, rows, columns)
    _add_transposed(tile, _side_alone(columns, frames[0]))
    tile *= 0.5
    return tile


def _side_alone(rows: WindowBlock, frames: Array) -> Array:
    """One side of a tile, by factors or by Gram tiles, whichever is less work."""
    if _is_sparse(rows) and _factors_are_less_work(rows):
        tile = _factor_side(rows, frames)
        tile *= rows.signs[:, None]
        return tile
    n = len(rows.rows)
    step = max(_BAND, GRAM_NUMBERS * n // (len(rows.halo) * max(len(frames), 1)))
    if step >= n:
        return _window_side(rows, _gram(rows.halo, frames))
    tile = np.empty((n, len(frames)), frames.dtype)
    for first in range(0, n, step):
        piece = _take_windows(rows, slice(first, first + step))
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
    _add_transposed(back[:k], _columns(gram.T, rows.rows).T)
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


def _add_transposed(tile: Array, other: Array) -> None:
    """Add the transpose of ``other`` (n, m) to a tile (m, n), some columns at a time.

    NumPy walks along the rows of one of the two and jumps from row to row of the other: whole, that costs three
    times as much.
    """
    for first in range(0, len(other), _COLUMNS):
        tile[:, first : first + _COLUMNS] += other[first : first + _COLUMNS].T


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


def _rows_at_a_time(bytes_per_row: int) -> int:
    """Rows whose intermediate product fits in the scratch space."""
    return max(1, _SCRATCH_BYTES // max(bytes_per_row, 1))
