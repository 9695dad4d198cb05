"""What an error came from, and whether its text was written for users."""

from __future__ import annotations

from collections.abc import Iterator

FORESEEN = ValueError | OSError | RuntimeError | TypeError | ImportError | EOFError
"""Kinds of errors whose text was written for users; others are faults of the program."""


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those that it came from, also where its sentence hides them.

    Examples
    --------
    >>> try:
    ...     try:
    ...         raise OSError("no room")
    ...     except OSError:
    ...         raise ValueError("store: out.zarr cannot be written.") from None
    ... except ValueError as error:
    ...     [type(one).__name__ for one in causes(error)]
    ['ValueError', 'OSError']
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
