"""Where a command computes, and how it reports: its options, and the session that they ask for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

from .reading import ByteCount, Whole

if TYPE_CHECKING:
    from ..jobs.progress import Stages

AS_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object on standard output.")
_OVERWRITE = click.Option(["--overwrite"], is_flag=True, help="Replace an earlier result.")
_CLUSTER = (
    click.Option(
        ["--cluster"],
        default="local",
        show_default=True,
        metavar="auto|local|none|ADDRESS",
        help="Where to compute: on a cluster of this machine's cores (local), in this process (none), whichever of the "
        "two is faster (auto), or at the address of a scheduler.",
    ),
    click.Option(["--workers"], type=Whole(1), help="Processes of the local cluster; one per core by default."),
    click.Option(
        ["--memory"],
        type=ByteCount(),
        help="Memory limit of all workers of the local cluster together, such as 4GiB; what is free by default.",
    ),
    AS_JSON,
)


def computing(command: click.Command) -> click.Command:
    """Give a command the options that say where it computes and how it reports."""
    command.params += _CLUSTER
    return command


def writing(command: click.Command) -> click.Command:
    """Give a command those options, and ``--overwrite``."""
    command.params.append(_OVERWRITE)
    return computing(command)


def paying(n_frames: int) -> str:
    """The cluster that pays: none as long as the kernel is small enough for this process.

    Examples
    --------
    >>> paying(1_000), paying(100_000)
    ('none', 'local')
    """
    from ..engine.memory import LOCAL_BYTES, tile_bytes  # noqa: PLC0415 - Dask starts slowly; --help need not wait

    return "none" if tile_bytes(n_frames, 4) <= LOCAL_BYTES else "local"


@contextmanager
def session(cluster: str, workers: int | None, memory: int | None = None, *, bar: bool = True) -> Iterator[Stages]:
    """Run a block on a cluster, or in this process, timed, with a progress bar where there is a terminal."""
    from ..jobs.progress import Stages  # noqa: PLC0415

    stages = Stages(sys.stderr if bar else None)
    with stages("total"), stages.bar(), ExitStack() as stack:
        with stages("cluster"):
            stack.enter_context(connected(cluster, workers, memory))
        yield stages


@contextmanager
def connected(cluster: str, workers: int | None, memory: int | None) -> Iterator[None]:
    """Compute on a cluster for the length of a block, or in this process."""
    import dask  # noqa: PLC0415

    if cluster == "none":
        with dask.config.set({"manifold-observer.memory": memory} if memory is not None else {}):
            yield
        return
    from ..clusters.cluster import connect  # noqa: PLC0415

    with connect("local" if cluster == "auto" else cluster, n_workers=workers, memory=memory):
        yield
