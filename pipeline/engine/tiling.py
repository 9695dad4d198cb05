"""The kernel matrix as panels of tiles, and its products with vectors.

A panel pairs two groups of blocks and works in its own rows: those of its blocks, one after the other.
Tiles have one of three homes behind the same product: resident on the workers, recomputed in every
pass, or on disk.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import dask
import numpy as np
from dask.delayed import Delayed

from manifold_observer.tasks.arrays import Array, Floats
from manifold_observer.tasks.engine import panel, tilefile
from manifold_observer.tasks.engine.kernel import Scale
from manifold_observer.tasks.engine.protocols import Block
from manifold_observer.tasks.engine.treesum import Node, fold

from ..graph.compute import compute, in_order_of, persist, task
from ..graph.placing import placed, places
from ..graph.progress import Progress
from ..graph.spans import Span
from ..graph.warn import warn
from .cuts import MANY_PANELS, PanelPlan, deal, panels
from .kernels import Panel, affinities_of, distances_of, kernel_of, made_affinities_of

MatMat = Callable[[Floats], Floats]
# Panels up to which vectors travel with the panels' tasks: tasks of their own cost more than the copies.
_FEW_PANELS = 32


class Tiling(NamedTuple):
    """Blocks of frames on the workers, the frames of each, panels, groups and units of blocks, precision of the tiles.

    Blocks and vectors are handed out by groups, and sums brought here by them. Units are the finest groups that panels
    have, halves where panels take those: each has a sum of its own.
    """

    blocks: list[Delayed]
    spans: list[Span]
    panels: list[PanelPlan]
    groups: list[Span]
    units: list[Span]
    precision: str

    @property
    def n_frames(self) -> int:
        """Frames in all."""
        return self.spans[-1][1]

    @property
    def many(self) -> bool:
        """Whether panels are so many that blocks are handed out, and shares added up, by the workers."""
        return len(self.panels) > MANY_PANELS

    @property
    def group_spans(self) -> list[Span]:
        """Frames of every group."""
        return [self.frames(*group) for group in self.groups]

    def frames(self, first: int, stop: int) -> Span:
        """Frames of some blocks that follow each other."""
        return self.spans[first][0], self.spans[stop - 1][1]

    def units_of(self, first: int, stop: int) -> range:
        """Units of some blocks."""
        size = self.units[0][1]
        return range(first // size, -(-stop // size))

    def groups_of(self, plan: PanelPlan) -> list[int]:
        """Groups that hold the sides of a panel."""
        return list(dict.fromkeys(side.first // self.groups[0][1] for side in plan.sides))

    def cut(self, plan: PanelPlan) -> Cut:
        """What a panel takes of its groups."""
        groups, sides = self.groups_of(plan), []
        for side in plan.sides:
            place = groups.index(side.first // self.groups[0][1])
            first = self.groups[groups[place]][0]
            start, stop = self.frames(side.first, side.stop)
            before = self.spans[first][0]
            sides.append(Taken(place, (side.first - first, side.stop - first), (start - before, stop - before)))
        return Cut(plan, tuple(sides))

    def rows(self, plan: PanelPlan) -> list[Span]:
        """Frames of a panel's blocks."""
        return [self.spans[number] for number in plan.blocks]

    def of(self, plan: PanelPlan, values: Array) -> Array:
        """The panel's own rows of an array over all frames."""
        return np.concatenate([values[start:stop] for start, stop in self.rows(plan)])


class Taken(NamedTuple):
    """One side of a panel in the groups that its task is given: which of them, and blocks and frames within it."""

    group: int
    blocks: Span
    frames: Span


@dataclass(frozen=True)
class Cut:
    """A panel, and what it takes of the groups that its task is given."""

    plan: PanelPlan
    sides: tuple[Taken, ...]

    def blocks(self, groups: list[list[Block]]) -> list[Block]:
        """Its blocks."""
        return [block for side in self.sides for block in groups[side.group][slice(*side.blocks)]]

    def rows(self, pieces: list[Floats]) -> Floats:
        """Its own rows of vectors."""
        return np.concatenate([pieces[side.group][slice(*side.frames)] for side in self.sides])


class Share(NamedTuple):
    """One panel's share of a product, and the ``errno`` that kept tiles from their files, 0 without trouble."""

    values: Floats
    trouble: int


class Term(NamedTuple):
    """Rows ``first`` to ``stop`` of a panel's share, and the node that they are sums over, None for the diagonal.

    The panel's number, or its place among those that a task is given.
    """

    panel: int
    first: int
    stop: int
    node: Node | None


@dataclass(frozen=True)
class Terms:
    """What the sums of a group are made of: numbers of panels, and for each unit rows of theirs."""

    panels: tuple[int, ...]
    units: tuple[tuple[Term, ...], ...]


def tiling(blocks: list[Delayed], spans: list[Span], precision: str, n_workers: int = 1) -> Tiling:
    """Deal blocks into panels for so many workers; nothing is computed."""
    side = spans[0][1] - spans[0][0]
    sizes = len(blocks), side * side * np.dtype(precision).itemsize, n_workers
    dealing = deal(*sizes)
    groups = [(group.first, group.stop) for group in dealing.groups(len(blocks))]
    return Tiling(blocks, spans, panels(*sizes), groups, dealing.units(len(blocks)), precision)


def distance_panels(tiles: Tiling) -> list[Delayed]:
    """Panels of distances, not yet computed."""
    return [task(distances_of, [tiles.blocks[number] for number in plan.blocks], plan) for plan in tiles.panels]


def kernel_panels(tiles: Tiling, distances: list[Delayed] | None, scale: Scale) -> list[Delayed]:
    """Panels of the kernel, not yet computed; from distances where they are kept, else with distances on the way."""
    scales = [_own_scale(tiles, plan, scale) for plan in tiles.panels]
    if distances is not None:
        return [task(affinities_of, part, own) for part, own in zip(distances, scales, strict=True)]
    return [
        task(kernel_of, [tiles.blocks[number] for number in plan.blocks], plan, own)
        for plan, own in zip(tiles.panels, scales, strict=True)
    ]


def local_product(
    tiles: Tiling, distances: list[Panel], scale: Scale, progress: Progress, over: Callable[..., Any] = map
) -> MatMat:
    """Product with a small kernel whose tiles are held here: a pass over it costs less than asking for one.

    ``distances`` become the kernel; ``over`` is a ``map``, such as that of a pool of threads.
    """
    progress("kernel", 0, len(distances))
    scales = [_own_scale(tiles, plan, scale) for plan in tiles.panels]
    held = [tile for part in over(made_affinities_of, distances, scales) for tile in part.tiles]
    progress("kernel", len(distances), len(distances))
    numbers = [pair for plan in tiles.panels for pair in plan.numbers]
    corners = [(tiles.spans[i][0], tiles.spans[j][0]) for i, j in numbers]
    return partial(panel.exact_product, held, corners, over=over)


def resident_product(tiles: Tiling, distances: list[Delayed] | None, scale: Scale, progress: Progress) -> MatMat:
    """Product with a kernel whose tiles are kept on the workers; they are computed here."""
    kept = persist(kernel_panels(tiles, distances, scale), "kernel", progress)

    def share(number: int, parts: list[Delayed]) -> Delayed:
        return task(_stored, kept[number], tiles.cut(tiles.panels[number]), parts)

    return _product(tiles, share, progress)


def recomputed_product(tiles: Tiling, scale: Scale, progress: Progress) -> MatMat:
    """Product with a kernel whose tiles are made anew in every pass."""
    groups = _blocks_of_groups(tiles, progress)

    def share(number: int, parts: list[Delayed]) -> Delayed:
        plan = tiles.panels[number]
        own = [groups[group] for group in tiles.groups_of(plan)]
        return task(_fused, own, tiles.cut(plan), _own_scale(tiles, plan, scale), parts)

    return _product(tiles, share, progress)


def disk_product(tiles: Tiling, scale: Scale, folder: Path, progress: Progress) -> MatMat:
    """Product with a kernel whose tiles lie in files, written in the first pass.

    All workers should see the folder. Tiles that cannot be kept there are made again in every pass, with one warning.
    """
    told: list[int] = []
    groups = _blocks_of_groups(tiles, progress)

    def heard(trouble: int) -> None:
        if trouble and not told:
            told.append(trouble)
            _warn_of_tiles(folder, trouble)

    def share(number: int, parts: list[Delayed]) -> Delayed:
        plan = tiles.panels[number]
        own = [groups[group] for group in tiles.groups_of(plan)]
        path = str(folder / f"panel-{number:05d}")
        return task(_from_disk, path, own, tiles.cut(plan), _own_scale(tiles, plan, scale), parts)

    return _product(tiles, share, progress, heard)


def _warn_of_tiles(folder: Path, trouble: int) -> None:
    """Say why tiles are not kept, and what would help."""
    why = os.strerror(trouble)
    if trouble == errno.ENOENT:
        why = "a worker does not find the folder. Give checkpoint= on a disk that all workers share"
    warn(
        f"embed: tiles could not be kept in {folder}: {why}. They are made again in every pass, as with "
        "home='recomputed'."
    )


def _blocks_of_groups(tiles: Tiling, progress: Progress) -> list[Any]:
    """Lists of the blocks of every group; where panels are many, one task a group, which is all that panels ask for."""
    lists = [tiles.blocks[first:stop] for first, stop in tiles.groups]
    return persist([task(_together, blocks) for blocks in lists], "blocks", progress) if tiles.many else lists


def _product(
    tiles: Tiling,
    share: Callable[[int, list[Delayed]], Delayed],
    progress: Progress,
    heard: Callable[[int], object] = abs,
) -> MatMat:
    """Sum the panels' shares in one fixed tree, wherever and whenever they were made.

    ``heard`` is called with the trouble of every sum. Vectors, the panels' sums and their sums are in the precision of
    the tiles. A few panels are added up here, many by the workers: a caller would receive more than it could.
    """
    terms = _terms(tiles)

    def matmat(x: Floats) -> Floats:
        narrow = x.astype(tiles.precision)
        pieces = [narrow[slice(*frames)] for frames in tiles.group_spans]
        if tiles.many:
            with places():
                found = compute(_sums(terms, _shares(tiles, share, _sent(pieces))), "pass", progress)
        else:
            sent = _sent(pieces) if len(tiles.panels) > _FEW_PANELS else pieces
            made = compute(_shares(tiles, share, sent), "pass", progress)
            found = [_sum(own, [made[panel] for panel in own.panels]) for own in terms]
        y = np.empty_like(x)
        for frames, total in zip(tiles.group_spans, found, strict=True):
            heard(total.trouble)
            y[slice(*frames)] = total.values
        return y

    return matmat


def _sent(pieces: list[Floats]) -> list[Delayed]:
    """Pieces of vectors as tasks of their own."""
    made = []
    for number, piece in enumerate(pieces):
        with placed(number, len(pieces)):
            made.append(dask.delayed(piece, pure=False))
    return made


def _shares(tiles: Tiling, share: Callable[[int, list[Any]], Delayed], pieces: Sequence[Any]) -> list[Delayed]:
    """What every panel gives, not yet computed; neighbours, which need the same blocks, are for the same worker."""
    sizes = [plan.n_tiles for plan in tiles.panels]
    before, total = itertools.accumulate(sizes, initial=0), sum(sizes)
    shares = []
    for number, (plan, done) in enumerate(zip(tiles.panels, before, strict=False)):
        with in_order_of(number), placed(done + plan.n_tiles // 2, total):
            shares.append(share(number, [pieces[group] for group in tiles.groups_of(plan)]))
    return shares


def _sums(terms: list[Terms], shares: list[Delayed]) -> list[Delayed]:
    """Sums of the panels' shares on the workers."""
    sums = []
    for number, own in enumerate(terms):
        with in_order_of(-1), placed(number, len(terms)):  # before whatever comes next
            sums.append(task(_sum, own, [shares[panel] for panel in own.panels]))
    return sums


def _terms(tiles: Tiling) -> list[Terms]:
    """For each group what is added up for its units: rows of panels, and the nodes that they are the sums over."""
    terms: list[list[Term]] = [[] for _ in tiles.units]
    for number, plan in enumerate(tiles.panels):
        nodes = {unit: side.node for side in plan.sides for unit in tiles.units_of(side.first, side.stop)}
        row = 0
        for unit, node in nodes.items():
            first, stop = tiles.frames(*tiles.units[unit])
            terms[unit].append(Term(number, row, row + stop - first, node))
            row += stop - first
    return [_together_of([terms[unit] for unit in tiles.units_of(*group)]) for group in tiles.groups]


def _together_of(units: list[list[Term]]) -> Terms:
    """Terms of some units by the places of their panels among those of all."""
    numbers = tuple(sorted({term.panel for own in units for term in own}))
    places = {number: place for place, number in enumerate(numbers)}
    return Terms(numbers, tuple(tuple(term._replace(panel=places[term.panel]) for term in own) for own in units))


def _own_scale(tiles: Tiling, plan: PanelPlan, scale: Scale) -> Scale:
    """The scale in a panel's own rows."""
    return scale if scale.local is None else Scale(scale.epsilon, tiles.of(plan, scale.local))


def _together(blocks: list[Block]) -> list[Block]:
    """The blocks of a group."""
    return blocks


def _stored(part: Panel, cut: Cut, x: list[Floats]) -> Floats:
    """One panel's share of a product, from its tiles."""
    own = cut.rows(x)
    return panel.stored_product(part.tiles, part.corners, own, cut.plan.numbers).astype(own.dtype, copy=False)


def _fused(groups: list[list[Block]], cut: Cut, how: Scale, x: list[Floats]) -> Floats:
    """One panel's share of a product, its tiles made on the way."""
    own, blocks, plan = cut.rows(x), cut.blocks(groups), cut.plan
    corners = plan.corners(block.n_frames for block in blocks)
    return panel.fused_product(blocks, plan.tiles, corners, how, own, plan.numbers).astype(own.dtype, copy=False)


def _from_disk(path: str, groups: list[list[Block]], cut: Cut, how: Scale, x: list[Floats]) -> Share:
    """One panel's share of a product, its tiles from files that are made where they are missing."""
    errors: list[OSError] = []
    blocks = cut.blocks(groups)
    corners = cut.plan.corners(block.n_frames for block in blocks)
    found = tilefile.read_or_make(path, blocks, cut.plan.tiles, corners, how, errors.append)
    return Share(_stored(Panel(found, corners), cut, x), (errors[0].errno or errno.EIO) if errors else 0)


def _sum(terms: Terms, shares: list[Floats | Share]) -> Share:
    """Sums of the panels' shares for the units of one group; and the first trouble of any."""
    made = [share if isinstance(share, Share) else Share(share, 0) for share in shares]
    trouble = next((share.trouble for share in made if share.trouble), 0)
    return Share(np.concatenate([_unit_sum(own, made) for own in terms.units]), trouble)


def _unit_sum(terms: Sequence[Term], shares: list[Share]) -> Floats:
    """Sum of the panels' shares for one unit, the diagonal last."""
    rows = {term.node: shares[term.panel].values[term.first : term.stop] for term in terms}
    diagonal = rows.pop(None)
    total = fold({node: own for node, own in rows.items() if node is not None})
    return diagonal if total is None else total + diagonal
