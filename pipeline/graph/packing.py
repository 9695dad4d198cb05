"""A task's function and arguments, and how they travel: small ones as one piece, which the scheduler never opens."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from manifold_observer.tasks.arrays import aligned, like

from .slabs import Reading

# Bytes up to which arguments are one piece. Dask sends every array, of whatever size, as a frame of its own,
# and the scheduler opens and sends them anew: 60 arrays of a few numbers a task were most of its work.
_PIECE_BYTES = 2**16


class _Place(NamedTuple):
    """Where the input of that number goes."""

    number: int


class Call:
    """A function and its arguments, with places for the inputs of its task.

    Examples
    --------
    >>> again = pickle.loads(pickle.dumps(Call(max, (1, 2))))
    >>> again(), pickle.dumps(again) == pickle.dumps(Call(max, (1, 2)))
    (2, True)
    """

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...] | bytes) -> None:
        self.function = function
        self.arguments = arguments
        self.__name__ = function.__name__

    def __call__(self, *inputs: Any) -> Any:
        """What the function gives of the arguments, with the inputs in their places."""
        arguments = pickle.loads(self.arguments) if isinstance(self.arguments, bytes) else self.arguments
        return self.function(*(aligned(_filled(argument, inputs)) for argument in arguments))

    def __reduce__(self) -> tuple[type[Call], tuple[Any, ...]]:
        return Call, (self.function, self.arguments if isinstance(self.arguments, bytes) else _packed(self.arguments))


def _packed(arguments: tuple[Any, ...]) -> tuple[Any, ...] | bytes:
    """Arguments as one piece, where they are small; those that only Dask knows how to send are left to it."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        rest = pickle.dumps(arguments, protocol=5, buffer_callback=buffers.append)
        if len(rest) + sum(buffer.raw().nbytes for buffer in buffers) > _PIECE_BYTES:
            return arguments
        packed = pickle.dumps(arguments, protocol=4)  # arrays of protocol 5 could not be written to
    except Exception:  # whatever it was, Dask says it in its own words
        return arguments
    return arguments if b"__main__" in packed else packed


def with_places(value: Any, inputs: list[Any]) -> Any:
    """A value with places for what is delayed in it, which is added to the inputs."""
    if isinstance(value, list | tuple):
        return like(value, [with_places(part, inputs) for part in value])
    if not hasattr(type(value), "__dask_graph__"):  # dask.is_dask_collection costs a millisecond
        return value
    inputs.append(value)
    return _Place(len(inputs) - 1)


def _filled(value: Any, inputs: Sequence[Any]) -> Any:
    """The value that :func:`with_places` was given, computed."""
    if isinstance(value, _Place):
        return inputs[value.number]
    if isinstance(value, Reading):
        return value.read()
    if isinstance(value, list | tuple):
        return like(value, [_filled(part, inputs) for part in value])
    return value
