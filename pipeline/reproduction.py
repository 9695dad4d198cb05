"""The paper's experiments as independent pieces of work: run, kept, put together, drawn and judged.

An *experiment* is a list of *pieces* (a realisation each, one task), a way to join what they gave, pictures of it, and
*claims* of the paper with what was measured. Finished pieces stay on disk, so that a run that was interrupted goes on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import xarray as xr
from dask.delayed import Delayed

from .graph import Progress, as_done, one_blas_thread, silent, task
from .placement import check_parent
from .store import alone

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARK = "reproduction.json"


@dataclass(frozen=True)
class Piece:
    """One independent piece of work: ``function(**settings)`` gives a Dataset of numbers, within one task."""

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
    """A claim of the paper: where it is made, what was measured, whether it holds, and what would make it hold."""

    figure: str
    claim: str
    measured: str
    holds: bool
    remedy: str = ""


@dataclass(frozen=True)
class Experiment:
    """How one experiment is cut into pieces, put together, drawn and judged.

    ``pieces(quick)``; ``join`` the pieces' Datasets by name into one; ``draw`` it into pictures by name; ``judge`` it.
    """

    pieces: Callable[[bool], list[Piece]]
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
        Folder to write to: ``NAME.nc`` and ``NAME-PICTURE.png`` of every experiment, ``claims.md`` and
        ``claims.json``, and the finished pieces. The same call goes on where an earlier one was interrupted.
    quick
        Few realisations, to see whether everything works.
    progress
        Called with ("pieces", done, in all), over all experiments.

    Returns
    -------
    The claims of every experiment.

    Raises
    ------
    ValueError
        There is something else at ``out``, or another run is writing there.

    Examples
    --------
    >>> import tempfile
    >>> def draw_nothing(joined):
    ...     return {}
    >>> toy = Experiment(
    ...     lambda quick: [Piece("one", xr.Dataset, {"attrs": {"x": 2.0}})],
    ...     lambda parts: parts["one"], draw_nothing,
    ...     lambda joined: [Claim("1", "x is 2", str(joined.x), bool(joined.x == 2))],
    ... )
    >>> reproduce({"toy": toy}, Path(tempfile.mkdtemp()) / "out")["toy"][0].holds
    True
    """
    with _folder(out, quick):
        chosen = {name: experiment.pieces(quick) for name, experiment in experiments.items()}
        _run_pieces(chosen, out, progress)
        claims = {}
        for name, experiment in experiments.items():
            joined = experiment.join({piece.name: _read(_place(out, name, piece)) for piece in chosen[name]})
            _write(joined, out / f"{name}.nc")
            for picture, figure in experiment.draw(joined).items():
                _save(figure, out / f"{name}-{picture}.png")
            claims[name] = experiment.judge(joined)
        _write_claims(claims, out)
        return claims


def claims_table(claims: Mapping[str, Sequence[Claim]]) -> str:
    """Claims as a Markdown table.

    Examples
    --------
    >>> print(claims_table({"toy": [Claim("1", "it works", "yes", True)]}))
    | experiment | figure | claim | measured | holds |
    |---|---|---|---|---|
    | toy | 1 | it works | yes | yes |
    """
    lines = ["| experiment | figure | claim | measured | holds |", "|---|---|---|---|---|"]
    for name, rows in claims.items():
        for row in rows:
            verdict = "yes" if row.holds else f"no{': ' + row.remedy if row.remedy else ''}"
            lines.append(f"| {name} | {row.figure} | {row.claim} | {row.measured} | {verdict} |")
    return "\n".join(lines)


def join_realisations(parts: dict[str, xr.Dataset]) -> xr.Dataset:
    """All pieces along the dimension ``realisation``: the join of experiments whose pieces are that."""
    return xr.concat(list(parts.values()), "realisation")


def _run_pieces(chosen: Mapping[str, list[Piece]], out: Path, progress: Progress) -> None:
    """Compute what is not there yet, each written as soon as it is done."""
    everything = [(_place(out, name, piece), piece) for name, pieces in chosen.items() for piece in pieces]
    waiting = [(place, piece) for place, piece in everything if not _is_done(place, piece)]
    done = len(everything) - len(waiting)
    progress("pieces", done, len(everything))
    items: list[Delayed] = [task(_compute, piece.function, dict(piece.settings)) for _, piece in waiting]
    for number, result in as_done(items):
        place, piece = waiting[number]
        place.parent.mkdir(parents=True, exist_ok=True)
        _write(result.assign_attrs(fingerprint=piece.fingerprint), place)
        done += 1
        progress("pieces", done, len(everything))


def _compute(function: Callable[..., xr.Dataset], settings: dict[str, Any]) -> xr.Dataset:
    """One piece, whole within its task: there are enough of them to keep all workers busy."""
    with one_blas_thread(), dask.config.set(scheduler="synchronous"):
        return function(**settings).load()


def _place(out: Path, name: str, piece: Piece) -> Path:
    """Where the numbers of a piece lie."""
    return out / "pieces" / name / f"{piece.name}.nc"


def _is_done(place: Path, piece: Piece) -> bool:
    """Whether the numbers are there, and are those of these settings."""
    return place.exists() and bool(_read(place).attrs.get("fingerprint") == piece.fingerprint)


def _read(place: Path) -> xr.Dataset:
    """Read numbers back, whole."""
    with xr.open_dataset(place, engine="scipy") as dataset:
        return dataset.load()


def _write(dataset: xr.Dataset, place: Path) -> None:
    """Write numbers so that they are there whole or not at all."""
    partial = place.with_name(place.name + ".partial")
    dataset.to_netcdf(partial, engine="scipy")
    partial.replace(place)


def _save(figure: Figure, place: Path) -> None:
    """Write a picture."""
    figure.savefig(place, dpi=150)
    figure.clear()


def _write_claims(claims: Mapping[str, list[Claim]], out: Path) -> None:
    """The table for readers, and for machines."""
    rows = {name: [asdict(claim) for claim in own] for name, own in claims.items()}
    (out / "claims.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    (out / "claims.md").write_text(claims_table(claims) + "\n", encoding="utf-8")


@contextmanager
def _folder(out: Path, quick: bool) -> Iterator[None]:
    """Hold the folder alone; it is new, or an earlier run's."""
    if out.exists() and not (out / _MARK).exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"reproduce: {out} is not empty and no reproduction. Choose another name.")
    check_parent("reproduce", out)
    with alone(out):
        mark = {"version": version("manifold-observer"), "quick": quick}
        (out / _MARK).write_text(json.dumps(mark), encoding="utf-8")
        yield
