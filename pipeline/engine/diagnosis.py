"""Why nothing can come of some frames, in words: outliers, fill values, offsets, numbers beyond float64, alternation.

All is told from what the pass over the moments saw; only where a number lies far from all others a second pass looks
for its frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manifold_observer.tasks.engine.conditioning import conditioned
from manifold_observer.tasks.engine.values import MOST, Values, alternate

from ..graph.compute import compute, task
from ..graph.slabs import ROWS_BYTES, rows_of
from ..graph.spans import blocks
from ..graph.warn import warn

if TYPE_CHECKING:
    from manifold_observer.tasks.engine.moments import Moments

    from .blocks import Table

# Distances from the median over the spread: of outliers that are worth a word, of fill values, and of numbers beside
# which all others are rounding.
_FAR, _FAR_FILL, _BEYOND = 100.0, 20.0, 1e6
# What programs store where there is nothing; larger ones are refused, for nothing measured is as large.
_FILLS = (999.0, 9999.0, 99999.0, 999999.0, 1e19, 1e20, 9.96921e36, 9.969209968386869e36, 1e30, 1e34, 1e35, 1e36, 1e37)
_NO_MEASUREMENT = 1e19
# Shares of frames that are still outliers, or fill values; at least so many frames are.
_FEW, _FEW_FILLS, _ANY = 0.01, 0.25, 3
# Of levels over the median: those of fill values at least, and those that no converter has; and levels of no signal.
_FILL_LEVEL, _OUTLYING_LEVEL, _NO_LEVEL = 5.0, 1e6, 1e16
# Least number of steps of its dtype in which a feature varies.
_STEPS = 64
_SMALLEST = 1e-150
# float64 holds all whole numbers up to this one.
_WHOLE = 2.0**53


class _Found(NamedTuple):
    """Frames in which a feature lies far off: how many, the farthest, its distance, and its number there."""

    number: int
    frame: int
    distance: float
    value: float


def check_spread(rows: Table, total: Moments, equal: float) -> None:
    """Refuse frames that do not differ, or do not in their squares.

    Parameters
    ----------
    rows
        The frames.
    total
        What the pass over them saw.
    equal
        Variance below this share of the squared mean is rounding.

    Raises
    ------
    ValueError
        All are equal, too small, or vary less than the steps of float64 about their offset.
    """
    if (total.squares > equal * total.n * np.square(total.mean)).any() or total.values is None:
        return
    seen = total.values
    width = seen.greatest - seen.least
    k = int(np.argmax(width / np.maximum(np.abs(seen.greatest), np.finfo(float).tiny)))
    largest = max(np.abs(seen.least).max(), np.abs(seen.greatest).max())
    whole = np.dtype(rows.data.dtype).kind in "iu" and largest > _WHOLE
    if not width.any() and not whole:
        raise ValueError(
            f"embed: all {total.n} frames are equal, so that there is nothing to embed. "
            "Check the recording (a dead channel?) and the features."
        )
    if largest < _SMALLEST:
        raise ValueError(
            f"embed: features must be above {_SMALLEST:g}, for the squares of smaller numbers are 0; got numbers "
            f"up to {largest:g}. Multiply the recording by a constant, or give another unit."
        )
    raise _lost(rows, seen, k, np.spacing(np.abs(seen.greatest[k])), "float64")


def check_values(rows: Table, total: Moments) -> None:
    """Refuse or name what spoils an embedding: numbers far off, steps of a dtype, alternation.

    Parameters
    ----------
    rows
        The frames, as they are stored or transformed.
    total
        What the pass over them saw.

    Raises
    ------
    ValueError
        Nothing can come of them.

    Warns
    -----
    UserWarning
        Something may own a coordinate.
    """
    if total.values is None:
        return
    (_check_levels if rows.kind == "log_rms" and rows.conditioning is None else _check_far)(rows, total.values)
    _check_steps(rows, total.values)
    if alternate(total.values):
        raise ValueError(
            "embed: neighbouring frames must resemble each other; got frames that alternate: every second one is alike "
            "(a period of 2 frames; are two channels interleaved?). Take every second frame, or longer frames."
        )


def too_large(rows_names: NDArray[Any] | None, feature: int, value: float, frame: int) -> ValueError:
    """Build the error of a number whose square is infinite."""
    return ValueError(
        f"embed: features must be below {MOST:g}, for the squares of larger numbers are infinite; got {value:g} in "
        f"feature {_name(rows_names, feature)} of frame {frame}. If it stands for nothing, open the recording with "
        f"missing={value:g}; else divide by a constant."
    )


def _check_far(rows: Table, seen: Values) -> None:
    """Numbers that lie far from all others."""
    scale = np.where(seen.spread > 0, seen.spread, np.maximum(np.abs(seen.centre), 1.0))
    far = seen.reach / scale
    k = int(np.argmax(far))
    if far[k] <= _FAR_FILL:
        return
    found = _locate(rows, k, seen.centre[k], np.sqrt(seen.reach[k] * scale[k]))
    is_fill = any(abs(abs(found.value) - fill) <= 1e-5 * fill for fill in _FILLS)
    share = _FEW_FILLS if is_fill else _FEW
    if found.number > max(_ANY, share * rows.n_frames) or not (is_fill or far[k] > _FAR):
        return
    told = (
        f"{found.value:g} in feature {_name(rows.names, k)} of frame {found.frame} ({found.number} such "
        f"frame{'s' if found.number > 1 else ''}), {far[k]:.2g} times as far from the median as the quartiles are apart"
    )
    if is_fill:
        remedy = f"Open the recording with missing={found.value:.7g} and gaps='nan', so that such samples are left out."
    else:
        remedy = "Leave such samples out: mark them as NaN, or give missing=, and open the recording with gaps='nan'."
    if far[k] > _BEYOND or (is_fill and abs(found.value) >= _NO_MEASUREMENT):
        kind = "fill values" if is_fill else "outliers beside which all else is rounding"
        raise ValueError(f"embed: features must be free of {kind}; got {told}. {remedy}")
    if rows.covariance is not None:
        return  # the metric is not that of the frames, and kernels tell of frames that nothing reaches
    kind = "a fill value" if is_fill else "an outlier"
    warn(f"embed: {told}, looks like {kind}, and may own a coordinate. {remedy}")


def _check_levels(rows: Table, seen: Values) -> None:
    """Levels in logarithms that no instrument has beside the others, or that are those of fill values."""
    # A channel that is mostly silent has its least level for a median, beside which all sound is loud.
    quiet = np.median([block[0] for block in seen.quartiles], axis=0) <= seen.least
    above = np.where(quiet, 0.0, seen.greatest - seen.centre)
    k = int(np.argmax(above))
    level = float(np.exp(min(seen.greatest[k], 300.0)))
    is_fill = any(abs(level - fill) <= 1e-5 * fill for fill in _FILLS) and above[k] > np.log(_FILL_LEVEL)
    if not is_fill and above[k] <= np.log(_OUTLYING_LEVEL):
        return
    found = _locate(rows, k, seen.centre[k], above[k] - np.log(_FILL_LEVEL) / 2)
    if found.number > max(_ANY, (_FEW_FILLS if is_fill else _FEW) * rows.n_frames):
        return
    told = (
        f"a level of {level:.7g} in feature {_name(rows.names, k)} of frame {found.frame} ({found.number} such "
        f"frame{'s' if found.number > 1 else ''}), {np.exp(min(above[k], 300.0)):.2g} times the median"
    )
    remedy = (
        "Open the recording with missing= what stands for nothing, and gaps='nan', so that such samples are left out."
    )
    if level > _NO_LEVEL:
        raise ValueError(f"embed: features must be free of fill values; got {told}. {remedy}")
    warn(f"embed: {told}, looks like {'a fill value' if is_fill else 'an outlier'}, and may own a coordinate. {remedy}")


def _check_steps(rows: Table, seen: Values) -> None:
    """Features that vary by a few steps of their dtype: an offset has taken the digits."""
    dtype = np.dtype(rows.data.dtype)
    if rows.conditioning is not None or dtype.kind not in "fiu":
        return
    kind = dtype if dtype.kind == "f" else np.dtype(np.float64)
    width = seen.greatest - seen.least
    largest = np.maximum(np.abs(seen.greatest), np.abs(seen.least))
    steps = np.spacing(largest.astype(kind)).astype(float)
    lost = (width > 0) & (width < _STEPS * steps) & (width < 1e-3 * largest)
    if not lost.any():
        return
    k = int(np.argmax(lost))
    error = _lost(rows, seen, k, steps[k], str(kind))
    # A dead feature that rounding moves is no reason to refuse the others.
    if lost[width > 0].all():
        raise error
    warn(str(error))


def _lost(rows: Table, seen: Values, k: int, step: float, kind: str) -> ValueError:
    """Build the error of an offset in which digits are lost."""
    original = np.dtype(rows.data.dtype)
    why = f" ({original} has more digits than float64)" if original.itemsize == 8 and original.kind in "iu" else ""
    return ValueError(
        f"embed: features must vary by more than {_STEPS} steps of {kind}; got numbers from {seen.least[k]:.9g} to "
        f"{seen.greatest[k]:.9g} in feature {_name(rows.names, k)}, where {kind} has steps of {step:g}{why}. Subtract "
        "the offset in the precision of the source, or leave the feature out (is it a clock or a counter?)."
    )


def _locate(rows: Table, feature: int, centre: float, least: float) -> _Found:
    """Frames in which a feature lies far off; it computes a pass over the frames."""
    spans = blocks(rows.n_frames, max(1, ROWS_BYTES // (8 * rows.n_features)))
    asked = (rows.conditioning, feature, centre, least)
    parts = compute([task(_far_frames, rows_of(rows.data, span), span[0], *asked) for span in spans])
    farthest = max(parts, key=lambda part: part.distance)
    return farthest._replace(number=sum(part.number for part in parts))


def _far_frames(rows: Any, first: int, conditioning: Any, feature: int, centre: float, least: float) -> _Found:
    """One task of :func:`_locate`: numbers as they are stored, distances as they are transformed."""
    plain = np.asarray(rows, np.float64)
    distance = np.abs(conditioned(plain, conditioning)[:, feature] - centre)
    k = int(np.argmax(distance))
    return _Found(int((distance >= least).sum()), first + k, float(distance[k]), float(plain[k, feature]))


def _name(names: NDArray[Any] | None, k: int) -> str:
    """A feature by its name, or by its number."""
    return repr(str(names[k])) if names is not None else str(k)
