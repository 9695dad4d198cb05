"""The paper's experiments as independent units of work: run, kept, put together, drawn and judged.

An *experiment* is a list of *works* (a realisation each, one task), a way to join what they gave, pictures of it, and
*claims* of the paper with what was measured. Finished works stay on disk, so that a run that was stopped resumes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import xarray as xr
from dask.delayed import Delayed

from manifold_observer.tasks import atomic

from ..engine.ownership import check_folder, claim, is_partial, remove_files
from ..graph.compute import as_done, one_blas_thread, task
from ..graph.progress import Progress, silent
from ..graph.warn import warn
from ..jobs.placement import check_parent
from ..jobs.store import alone
from . import sealed
from .index import index_html
from .pictures import Rendered, rendered
from .sealed import DamagedError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARK = "manifold-observer-reproduction"
_WHAT = "reproduce: the output"
# Pictures for slides and for print take as long again as those for the screen.
_ENDINGS_OF = {True: ("png",), False: ("png", "svg", "pdf")}
_ENDINGS = (".nc", ".png", ".svg", ".pdf", "claims.json", "claims.md", "index.html")


@dataclass(frozen=True)
class Work:
    """One independent unit of work: ``function(**settings)`` gives a Dataset of numbers, within one task."""

    name: str
    function: Callable[..., xr.Dataset]
    settings: Mapping[str, Any]

    @property
    def fingerprint(self) -> str:
        """What the numbers depend on."""
        made_of = [self.function.__module__, self.function.__name__, dict(self.settings), version("manifold-observer")]
        return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: where it is made, what was measured, whether it holds, and what would make it hold.

    ``null`` says what it was tested against, ``test`` gives the difference with its 95 % interval and p; the number
    ``p`` is that of the test, corrected for all tests of the experiment.
    """

    figure: str
    claim: str
    measured: str
    holds: bool
    remedy: str = ""
    null: str = ""
    test: str = ""
    p: float | None = None


@dataclass(frozen=True)
class Experiment:
    """How one experiment is cut into works, put together, drawn and judged.

    ``works(quick)``; ``join`` the works' Datasets by name into one; ``draw`` it into pictures by name; ``judge`` it.
    """

    works: Callable[[bool], list[Work]]
    join: Callable[[dict[str, xr.Dataset]], xr.Dataset]
    draw: Callable[[xr.Dataset], dict[str, Figure]]
    judge: Callable[[xr.Dataset], list[Claim]]


def reproduce(
    experiments: Mapping[str, Experiment], out: Path, *, quick: bool = False, progress: Progress = silent
) -> dict[str, list[Claim]]:
    """Run experiments, and write their numbers, pictures and the table of claims; this computes.

    Parameters
    ----------
    experiments
        By name.
    out
        Folder to write to: ``NAME.nc`` and ``NAME-PICTURE.png``, ``.svg`` and ``.pdf`` of every experiment,
        ``claims.md`` and ``claims.json``, ``index.html``, which shows all,
        and the finished works. The same call resumes where an earlier one was stopped.
    quick
        Few realisations and no pictures but PNG, to see whether everything works.
    progress
        Called with ("works", done, in all), over all experiments.

    Returns
    -------
    The claims of every experiment.

    Raises
    ------
    ValueError
        There is something else at ``out``, or another run is writing there.
    OSError
        The disk is full, say; the same call resumes.

    Examples
    --------
    >>> import tempfile
    >>> def draw_nothing(joined):
    ...     return {}
    >>> toy = Experiment(
    ...     lambda quick: [Work("one", xr.Dataset, {"attrs": {"x": 2.0}})],
    ...     lambda parts: parts["one"], draw_nothing,
    ...     lambda joined: [Claim("1", "x is 2", str(joined.x), bool(joined.x == 2))],
    ... )
    >>> reproduce({"toy": toy}, Path(tempfile.mkdtemp()) / "out")["toy"][0].holds
    True
    """
    with _folder(out):
        drawn: dict[str, dict[str, Figure]] = {}
        chosen = {name: experiment.works(quick) for name, experiment in experiments.items()}
        _run_works(chosen, out, progress)
        claims = {}
        for name, experiment in experiments.items():
            joined = experiment.join({work.name: _read(_place(out, name, work)) for work in chosen[name]})
            with _resumable(out):
                sealed.write(joined, out / f"{name}.nc")
            drawn[name] = {f"{name}-{picture}": figure for picture, figure in experiment.draw(joined).items()}
            claims[name] = experiment.judge(joined)
        _write_claims(claims, out)
        _write_pictures(drawn, claims, out, _ENDINGS_OF[quick])
        return claims


def claims_table(claims: Mapping[str, Sequence[Claim]]) -> str:
    """Claims as a Markdown table.

    Examples
    --------
    >>> print(claims_table({"toy": [Claim("1", "it works", "yes", True)]}))
    | experiment | figure | claim | measured | null | difference [95 % interval], p | holds |
    |---|---|---|---|---|---|---|
    | toy | 1 | it works | yes |  |  | yes |
    """
    head = "| experiment | figure | claim | measured | null | difference [95 % interval], p | holds |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for name, rows in claims.items():
        for row in rows:
            verdict = "yes" if row.holds else f"no{': ' + row.remedy if row.remedy else ''}"
            cells = (name, row.figure, row.claim, row.measured, row.null, row.test, verdict)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def join_realisations(parts: dict[str, xr.Dataset]) -> xr.Dataset:
    """All works along the dimension ``realisation``: the join of experiments whose works are that."""
    return xr.concat(list(parts.values()), "realisation")


def _run_works(chosen: Mapping[str, list[Work]], out: Path, progress: Progress) -> None:
    """Compute what is not there yet, each written as soon as it is done."""
    _make_folders(out, chosen)
    everything = [(_place(out, name, work), work) for name, works in chosen.items() for work in works]
    waiting = [(place, work) for place, work in everything if not _is_done(place, work)]
    done = len(everything) - len(waiting)
    progress("works", done, len(everything))
    items: list[Delayed] = [task(_compute, work.function, dict(work.settings)) for _, work in waiting]
    for number, result in as_done(items):
        place, work = waiting[number]
        with _resumable(out):
            sealed.write(result.assign_attrs(fingerprint=work.fingerprint), place)
        done += 1
        progress("works", done, len(everything))


def _compute(function: Callable[..., xr.Dataset], settings: dict[str, Any]) -> xr.Dataset:
    """One work, whole within its task: there are enough of them to keep all workers busy."""
    with one_blas_thread(), dask.config.set(scheduler=dask.get):
        return function(**settings).load()


def _place(out: Path, name: str, work: Work) -> Path:
    """Where the numbers of a work lie."""
    return out / "works" / name / f"{work.name}.nc"


def _make_folders(out: Path, names: Iterable[str]) -> None:
    """Folders for the works, within ``out`` itself; what a killed run had begun to write is removed."""
    for folder in (out / "works", *(out / "works" / name for name in names)):
        if folder.is_symlink():
            raise ValueError(f"reproduce: {folder} must be a folder itself; got a symbolic link. Remove the link.")
        with _resumable(out):
            folder.mkdir(exist_ok=True)
        remove_files(folder, lambda name: is_partial(name, lambda final: final.endswith(".nc")))


def _is_done(place: Path, work: Work) -> bool:
    """Whether the numbers are there, and are those of these settings."""
    if not os.path.lexists(place):
        return False
    try:
        return bool(sealed.read(place).attrs.get("fingerprint") == work.fingerprint)
    except DamagedError as error:
        warn(f"reproduce: {place} cannot be used: {error}; it is computed again.")
        return False


def _read(place: Path) -> xr.Dataset:
    """The numbers of a work that has been computed."""
    try:
        return sealed.read(place)
    except DamagedError as error:
        raise ValueError(f"reproduce: {place} cannot be used: {error}. The same command computes it again.") from None


def _write_pictures(
    drawn: Mapping[str, Mapping[str, Figure]], claims: Mapping[str, Sequence[Claim]], out: Path, endings: Sequence[str]
) -> None:
    """Every picture in some formats, and the page that shows them."""
    pictures: dict[str, dict[str, Rendered]] = {name: {} for name in drawn}
    for name, figures in drawn.items():
        for stem, figure in figures.items():
            picture = pictures[name][stem] = rendered(figure, endings)
            for ending, content in picture.content.items():
                with _resumable(out):
                    atomic.write(out / f"{stem}.{ending}", content)
    with _resumable(out):
        atomic.write(out / "index.html", index_html(pictures, claims).encode())


def _write_claims(claims: Mapping[str, list[Claim]], out: Path) -> None:
    """The table for readers, and for machines."""
    rows = {name: [asdict(claim) for claim in own] for name, own in claims.items()}
    with _resumable(out):
        atomic.write(out / "claims.json", json.dumps(rows, indent=1).encode())
        atomic.write(out / "claims.md", f"{claims_table(claims)}\n".encode())


@contextmanager
def _folder(out: Path) -> Iterator[None]:
    """Hold the folder alone; it is new, or an earlier run's."""
    check_folder(_WHAT, out, _MARK)
    check_parent("reproduce", out)
    with _resumable(out):
        claim(_WHAT, out, _MARK)  # before the lock, which may put files of its own there
    with alone(out):
        remove_files(out, lambda name: is_partial(name, lambda final: final.endswith(_ENDINGS)))
        yield


@contextmanager
def _resumable(out: Path) -> Iterator[None]:
    """Writes within the block that fail, on a full disk say, end in how to resume."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise OSError(
            f"reproduce: {out} could not be written: {why}. What is finished is kept; the same command resumes once "
            "this is mended."
        ) from error
