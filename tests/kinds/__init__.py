"""Users' files by kind: what each holds, with which options it is opened, and the value or the sentence that is right.

A row makes its own file. ``want`` has what must be found: ``rate``, ``channels``, ``segments``, ``times`` (the first),
``labels``, ``start``, ``values`` (the first row), ``frames``; or ``sentence``, a pattern of the refusal.
"""

from .clocks import CLOCKS, NAMED, UNITS
from .dates import DATES, ORDER
from .exports import EXPORTS
from .instruments import DISGUISED, INSTRUMENTS
from .labels import LABELS, SERIAL
from .loggers import LOGGERS
from .stored import STORED

TABLES = [*CLOCKS, *UNITS, *SERIAL, *DATES, *ORDER, *LABELS, *LOGGERS, *EXPORTS, *INSTRUMENTS, *DISGUISED]

ROWS = [*TABLES, *STORED, *NAMED]


def make(row, folder):
    """The file of a row."""
    path = folder / f"made{row.suffix}"
    if callable(row.make):
        row.make(path)
    else:
        path.write_bytes(row.make if isinstance(row.make, bytes) else row.make.encode())
    return path
