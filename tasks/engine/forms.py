"""The forms of the distance by name. All are exact, behind one protocol: another is a file of its own and a name here.

:mod:`.quadratic` for narrow features, :mod:`.factor` for given covariances of small rank, :mod:`.window` for wide
features.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from manifold_observer.tasks.arrays import Integers
from manifold_observer.tasks.engine.factor import Factor
from manifold_observer.tasks.engine.protocols import Block, Form
from manifold_observer.tasks.engine.quadratic import Quadratic
from manifold_observer.tasks.engine.slab import Metric, Slab
from manifold_observer.tasks.engine.window import Window

# Multiplications that reducing one intermediate number takes the time of.
_REDUCTION = 60

FORMS: dict[str, Form] = {form.name: form for form in (Quadratic(), Factor(), Window())}
"""The forms by their names."""


def join(blocks: Sequence[Block]) -> Block:
    """Several blocks of one form as one.

    Examples
    --------
    >>> from manifold_observer.tasks.engine.factor import factor_block
    >>> block = factor_block(np.array([[0.0]]), np.ones((1, 1, 1)))
    >>> join([block, block]).n_frames
    2
    """
    first, *others = blocks
    return first.join(others) if others else first


def take(block: Block, chosen: Integers | slice) -> Block:
    """The chosen frames of a block."""
    return block.take(chosen)


def build_block(slab: Slab, metric: Metric, form: str, dtype: DTypeLike = np.float64) -> Block:
    """The block that one form of the distance needs.

    Parameters
    ----------
    slab
        Centred frames with halo.
    metric
        Window and inversion.
    form
        ``"quadratic"``, ``"factor"`` or ``"window"`` (the last needs windows).
    dtype
        Precision of the result; everything before it is float64.

    Returns
    -------
    Block of ``len(slab.rows)`` frames.

    Raises
    ------
    DegenerateCovarianceError
        Some covariances are zero or not finite and there is no ridge.
    """
    return FORMS[form].block(slab, metric).astype(dtype)


def cost(form: str, n_features: int, rank: int, window: int) -> int:
    """Cost of a pair of frames, in multiplications of a plain product of matrices.

    The factor and window forms also subtract, square and add up each of their 2 r intermediate numbers:
    about 60 multiplications' worth, as measured for 20 <= p <= 513. What is far behind need not be timed.

    Examples
    --------
    >>> [cost(form, 513, 20, 21) for form in FORMS]
    [264710, 22920, 3753]
    """
    kind = FORMS[form]
    return kind.multiplications(n_features, rank, window) + kind.reduced(rank) * _REDUCTION


def cost_apart(form: str, n_features: int, rank: int, window: int, rows: float) -> float:
    """As :func:`cost`, with one side's frames far apart: ``rows`` rows of halo for each.

    Examples
    --------
    Landmarks whose windows share nothing, against frames that follow each other:

    >>> round(cost_apart("window", 513, 20, 21, 21) / cost("window", 513, 20, 21), 1)
    3.6
    """
    kind = FORMS[form]
    return kind.multiplications_apart(n_features, rank, window, rows) + kind.reduced(rank) * _REDUCTION
