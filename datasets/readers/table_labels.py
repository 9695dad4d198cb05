"""Columns of a table that are labels: numbers or words, kept beside the recording."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from .digits import is_integer
from .table_cells import TableOptions, reads
from .table_layout import Layout, Scan, open_rows

Cells = Sequence[str]
# Names that the recording itself has: a column of labels that is called so must not take its place.
_OWN = ("time", "channel", "recording")


def label_columns(path: str, layout: Layout, options: TableOptions, n_rows: int) -> dict[str, xr.Variable]:
    """Read some columns as coordinates along time.

    Parameters
    ----------
    path
        The file.
    layout
        How it is written.
    options
        ``labels`` names the columns.
    n_rows
        Rows of the recording; a file that still grows may have more.

    Returns
    -------
    Whole numbers, numbers or words, by the labels of the columns; ``time`` is called ``time_label``.
    """
    if not options.labels:
        return {}
    places = [layout.labels.index(label) for label in options.labels]
    columns: list[list[str]] = [[] for _ in places]
    with open_rows(path, layout) as file:
        for _, cells in Scan(path, layout, options.growing).rows(file):
            for column, place in zip(columns, places, strict=True):
                column.append(cells[place].strip())
    pairs = zip(options.labels, columns, strict=True)
    return {_named(label): xr.Variable("time", _values(layout, column[:n_rows])) for label, column in pairs}


def _named(label: str) -> str:
    """The name of a coordinate of labels."""
    return f"{label}_label" if label in _OWN else label


def _values(layout: Layout, cells: Cells) -> Any:
    """Cells of one column as what they all are."""
    if all(map(is_integer, cells)):
        return np.array([int(cell) for cell in cells])
    try:
        return np.array([reads(layout)(cell) for cell in cells])
    except ValueError:
        return np.array(cells)
