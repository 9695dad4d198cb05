"""Arrays of all frames that lie in parts on the workers: one layer of a graph, however many parts there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import getitem
from typing import Any, NamedTuple
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from numpy.typing import NDArray

from manifold_observer.tasks.arrays import aligned


class Of(NamedTuple):
    """Something within what a task keeps: ``task[places[0]][places[1]]`` and so on."""

    task: Delayed
    places: tuple[int, ...]


def array_of(
    parts: Sequence[Delayed | Of],
    lengths: Sequence[int],
    n_columns: int | None,
    function: Callable[..., NDArray[Any]],
    *arguments: Any,
    dtype: Any = np.float64,
) -> da.Array:
    """Rows that a function gives of every part, one part after the other, lazily.

    Parameters
    ----------
    parts
        Delayed values, such as :func:`~manifold_observer.pipeline.graph.compute.stream_kept` gives, or what is in them.
    lengths
        Rows of each.
    n_columns
        Columns of the rows; None for single numbers.
    function
        Called with a part and the arguments; of a module, since it travels.
    dtype
        Of what it gives.

    Returns
    -------
    Shape (rows, columns), or (rows,).

    Examples
    --------
    >>> from manifold_observer.pipeline.graph.compute import task
    >>> parts = [task(np.arange, 2), task(np.arange, 3)]
    >>> array_of(parts, [2, 3], None, np.negative, dtype=np.int64).compute()
    array([ 0, -1,  0, -1, -2])
    """
    name = f"kept-{uuid4().hex}"
    call, places = partial(_of_part, function, arguments), () if n_columns is None else (0,)
    graph: dict[Any, Any] = {}
    for number, part in enumerate(parts):
        whole, within = part if isinstance(part, Of) else (part, ())
        graph.update(whole.__dask_graph__())
        graph[(name, number, *places)] = (call, whole.__dask_keys__()[0], *within)
    chunks = (tuple(lengths),) if n_columns is None else (tuple(lengths), (n_columns,))
    layers = HighLevelGraph({name: graph}, {name: set()})
    return da.Array(layers, name, chunks, meta=np.empty((0,) * len(chunks), dtype))


def _of_part(
    function: Callable[..., NDArray[Any]], arguments: tuple[Any, ...], whole: Any, *places: int
) -> NDArray[Any]:
    """One block."""
    return function(aligned(reduce(getitem, places, whole)), *arguments)
