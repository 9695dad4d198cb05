"""Leading axes of the features and the shrinkage of their local covariances, learnt from a sample of frames."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from dask.delayed import Delayed

from manifold_observer.tasks.arrays import Array, Floats, Integers
from manifold_observer.tasks.engine import foretelling, shrinkage
from manifold_observer.tasks.engine.foretelling import Foretold
from manifold_observer.tasks.engine.moments import Axes, Moments, leading_axes, signed
from manifold_observer.tasks.engine.shrinkage import Shrinkage, Spread
from manifold_observer.tasks.engine.slab import Slab

from ..graph.compute import compute, persist, task
from ..graph.progress import Progress, silent
from ..graph.slabs import rows_of
from ..graph.spans import Span
from ..graph.warn import warn
from .blocks import Part, Table, part_of, slab_of
from .config import USUAL_AXES, EmbedConfig
from .cuts import numbered_runs, sample_spans
from .eigensolve import USUAL_MODES

# Windows that give the intensity, in runs; all of them in shorter recordings.
_WINDOWS, _WINDOW_RUN = 20_480, 512
# Tasks that they are dealt into, at least: a task costs a cluster as much as hundreds of windows.
_TASKS = 16
# Frames on which the targets are compared, in runs of consecutive ones.
_COMPARED, _COMPARED_RUN = 2048, 512
# Bytes of the windows' frames along the axes up to which they are kept: they are wanted twice, and dear to read.
_KEPT_BYTES = 2**25
# Bytes of the frames from which the axes of wide features are taken.
_AXES_BYTES, _AXES_FRAMES, _AXES_RUN = 2**26, 4096, 64
_RIDGE = 0.01
# More axes are taken where their coordinates foretell so many times as much of what lies beyond the usual ones.
_KNOWN = 2.0
PRINCIPAL = 2
"""Principal components that a state has beside the diffusion coordinates."""


class Turned(NamedTuple):
    """Axes of the distances, and the variance of the frames along each (r,)."""

    axes: Axes
    variances: Floats

    def first(self, number: int) -> Turned:
        """The axes of largest variance alone."""
        basis = self.axes.basis
        few = self.axes if basis is None else self.axes._replace(basis=np.ascontiguousarray(basis[:, :number]))
        return Turned(few, self.variances[:number])


class Further(NamedTuple):
    """What is foretold of the axes beyond the usual ones: by coordinates in those, in more axes, and by chance.

    Chance is asked only where it might decide.
    """

    usual: float
    more: float
    by_chance: float | None

    @property
    def lasts(self) -> bool:
        """Whether what the further axes hold lasts, and the usual ones do not know it."""
        return self.more > _KNOWN * max(self.usual, self.by_chance or 0.0)

    def attrs(self) -> dict[str, float]:
        """Attributes of an embedding."""
        said = {"foretold_further": self.usual, "foretold_further_in_more_axes": self.more}
        return said if self.by_chance is None else said | {"foretold_further_by_chance": self.by_chance}


class Shrunk(NamedTuple):
    """The shrinkage that was taken, what every target foretold, and a scale where most frames are equal.

    ``coordinates`` of the frames on which targets are compared; ``further``: what is foretold beyond the usual axes,
    where that was asked.
    """

    how: Shrinkage
    said: dict[str, Foretold]
    scale: float | None
    coordinates: Floats
    further: Further | None = None

    @property
    def own(self) -> Foretold:
        """What the target that was taken foretold."""
        return self.said[self.how.target]

    def attrs(self) -> dict[str, float | str]:
        """Attributes of an embedding."""
        return {
            "shrinkage_target": self.how.target,
            "shrinkage_intensity": self.how.intensity,
            "shrinkage_ridge": self.how.ridge,
            "foretold": self.own.share,
            "foretold_by_chance": self.own.by_chance,
            **{f"foretold_{name}": found.share for name, found in self.said.items()},
            **({} if self.further is None else self.further.attrs()),
        }


def leading(rows: Table, total: Moments, most: int) -> Turned:
    """The leading principal axes of the conditioned frames, ``most`` at most; wide features are sampled.

    Parameters
    ----------
    rows
        Frames with their conditioning.
    total
        Moments of the conditioned features.
    most
        Axes at most.

    Returns
    -------
    Axes that the frames span, those of largest variance first, and their variances.
    """
    if total.scatter is None:
        size = max(min(_AXES_FRAMES, _AXES_BYTES // (8 * rows.n_features)), _AXES_RUN)
        spans = sample_spans(rows.n_frames, _AXES_RUN, size)
        whole = Axes(total.mean, None, rows.conditioning)
        values, basis = compute([task(_sampled_axes, whole, [rows_of(rows.data, span) for span in spans], most)])[0]
    else:
        values, basis = leading_axes(total.scatter / total.n, most)
    return Turned(Axes(total.mean, basis, rows.conditioning), values)


def shrink(
    rows: Table, turned: Turned, window: int, config: EmbedConfig, progress: Progress, further: Further | None = None
) -> Shrunk:
    """Learn how far local covariances are shrunk, and towards what; it computes.

    With ``config.shrinkage="auto"`` both targets are tried on a sample of frames, and the one is taken whose
    coordinates foretell more of the features; of those beyond the usual axes, where more axes were taken for these.
    """
    spans = sample_spans(rows.n_frames, _WINDOW_RUN, _WINDOWS)
    compared = sample_spans(rows.n_frames, _COMPARED_RUN, _COMPARED)
    ways = _ways(_slabs(rows, turned.axes, spans, window), turned, window, config, progress)
    sample = _Sample(
        _slabs(rows, turned.axes, compared, window), compared, [rows.segment[slice(*span)] for span in compared]
    )
    tasks: list[Delayed] = [task(_foretell, *sample, window, how) for how in ways.values()]
    found: dict[str, _Compared] = dict(zip(ways, compute(tasks, "covariances", progress), strict=True))
    said = {name: own.said for name, own in found.items()}
    shares = {name: own.beyond if further and further.lasts else own.said.share for name, own in found.items()}
    best = max(shares, key=lambda name: shares[name])
    return Shrunk(ways[best], said, found[best].scale, found[best].coordinates, further)


def _ways(
    slabs: list[Delayed], turned: Turned, window: int, config: EmbedConfig, progress: Progress = silent
) -> dict[str, Shrinkage]:
    """How covariances are shrunk towards each target, learnt from some runs of windows; it computes."""
    some = compute([task(_spreads, own, window) for own in slabs], "covariances", progress)
    spreads = list(itertools.chain.from_iterable(some))
    freedom = sum(one.freedom for one in spreads)
    width = turned.axes.width
    mean = sum((one.total for one in spreads), np.zeros((width, width))) / max(freedom, 1)
    ridge = _RIDGE * float(turned.variances.mean())
    names = shrinkage.TARGETS if config.shrinkage == "auto" else (config.shrinkage,)
    target = shrinkage.pooled(mean) if "pooled" in names else None
    apart = [] if target is None else [task(_apart, own, window, target) for own in slabs]
    light = [one._replace(total=mean[:0]) for one in spreads]  # sent where the distances are, which are many
    asked = compute([task(shrinkage.intensities, light, apart, width)])[0]
    return {name: Shrinkage(asked[name], ridge, window, mean, name) for name in names}


def further(rows: Table, wide: Turned, window: int, usual: Shrunk, config: EmbedConfig) -> Further:
    """What coordinates in the usual axes, and in all of ``wide``, foretell of the axes beyond; it computes.

    Both are judged on the frames on which the targets are compared. In all axes covariances are drawn towards a
    multiple of the identity: with the pooled target the axes of least variance weigh as much as any, and what windows
    that overlap share would be found in them.
    """
    compared = sample_spans(rows.n_frames, _COMPARED_RUN, _COMPARED)
    slabs = _slabs(rows, wide.axes, compared, window)
    segments = [rows.segment[slice(*span)] for span in compared]
    how = _ways(slabs, wide, window, replace(config, shrinkage="identity"))["identity"]
    known = usual.coordinates
    return Further(*compute([task(_foretell_further, slabs, compared, segments, window, how, known)])[0])


def warn_unforetold(said: Foretold) -> None:
    """Say where the coordinates hold no more of the future than chance."""
    if said.by_chance > 0 and said.share <= said.by_chance:
        warn(
            f"embed: the coordinates foretell {said.share:.1%} of the features a few frames later, and of frames in "
            f"random order up to {said.by_chance:.1%}: nothing that lasts from frame to frame was found. Take other "
            "features, or frames of another length."
        )


def equal_frames_scale(shrunk: Shrunk, epsilon_factor: float) -> float:
    """The scale where most frames are equal, as in long silences: their median distance would be 0."""
    warn(
        "embed: most frames are equal, so that the scale is the median distance of those that differ. Cut silences "
        "out, or give epsilon=."
    )
    return epsilon_factor * (shrunk.scale or 0.0)


class _Compared(NamedTuple):
    """What a target foretold, also beyond the usual axes; the scale where most frames are equal; and coordinates."""

    said: Foretold
    beyond: float
    scale: float | None
    coordinates: Floats


class _Sample(NamedTuple):
    """Some runs of frames on which the targets are compared, and the segments of their frames, span by span."""

    slabs: list[Delayed]
    spans: list[Span]
    segments: list[Integers]


def _sampled_axes(whole: Axes, frames: list[Array], most: int) -> tuple[Floats, Floats]:
    """Variances and axes from some frames, without their scatter where they are wider than many."""
    values = np.concatenate([whole.apply(np.asarray(block, np.float64)) for block in frames])
    if values.shape[1] <= len(values):
        return leading_axes(values.T @ values / len(values), most)
    variances, combinations = leading_axes(values @ values.T / len(values), most)
    basis = values.T @ combinations
    return variances, signed(basis / np.linalg.norm(basis, axis=0))


def _slabs(rows: Table, axes: Axes, spans: list[Span], window: int) -> list[Delayed]:
    """Frames of some spans along the axes, with the halo of their windows, a few a task; they are kept if small."""
    parts = [part_of(rows, span, window) for span in spans]
    step = max(1, len(parts) // _TASKS)
    made = [task(_along, axes, parts[first : first + step]) for first in range(0, len(parts), step)]
    size = 8 * axes.width * sum(stop - start + window for start, stop in spans)
    return persist(made, "") if size <= _KEPT_BYTES else made


def _along(axes: Axes, parts: list[Part]) -> list[Slab]:
    """Some runs of windows along the axes."""
    return [slab_of(axes, part) for part in parts]


def _spreads(slabs: list[Slab], window: int) -> list[Spread]:
    """Of some runs of windows."""
    return [shrinkage.spread(slab.frames, slab.starts, slab.widths_of(window)) for slab in slabs]


def _apart(slabs: list[Slab], window: int, target: Floats) -> Floats:
    """Of some runs of windows."""
    return np.concatenate([shrinkage.apart(slab.frames, slab.starts, slab.widths_of(window), target) for slab in slabs])


def _foretell(
    parts: list[list[Slab]], spans: list[Span], segments: list[Integers], window: int, how: Shrinkage
) -> _Compared:
    """What the coordinates of some runs foretell, where covariances are shrunk in one way."""
    slabs = list(itertools.chain.from_iterable(parts))
    run = numbered_runs(segments, spans)
    frames = np.concatenate([slab.frames[slab.rows] for slab in slabs])
    found = foretelling.coordinates(frames, _precisions(slabs, window, how), max(1, min(USUAL_MODES, len(run) - 2)))
    known = foretelling.both(frames, found.coordinates, PRINCIPAL)
    wider = frames.shape[1] > USUAL_AXES
    beyond = foretelling.foretold(known, frames, run, USUAL_AXES, frames.shape[1], 0).share if wider else 0.0
    said = foretelling.foretold(known, frames, run)
    return _Compared(said, beyond, found.scale if found.mostly_equal else None, found.coordinates)


def _foretell_further(
    parts: list[list[Slab]], spans: list[Span], segments: list[Integers], window: int, how: Shrinkage, usual: Floats
) -> Further:
    """What the usual coordinates, and those in all axes of the slabs, foretell of the axes beyond the usual ones."""
    slabs = list(itertools.chain.from_iterable(parts))
    run = numbered_runs(segments, spans)
    frames = np.concatenate([slab.frames[slab.rows] for slab in slabs])
    found = foretelling.coordinates(frames, _precisions(slabs, window, how), usual.shape[1])
    own, more = (foretelling.both(frames, known, PRINCIPAL) for known in (usual, found.coordinates))
    beyond = (frames, run, USUAL_AXES, frames.shape[1])
    shares = [foretelling.foretold(known, *beyond, orders=0).share for known in (own, more)]
    said = Further(shares[0], shares[1], None)
    # Random orders take as long as all before, and are wanted for what may be taken alone.
    return said._replace(by_chance=foretelling.foretold(more, *beyond).by_chance) if said.lasts else said


def _precisions(slabs: list[Slab], window: int, how: Shrinkage) -> Floats:
    """Inverse local covariances of some runs."""
    return np.concatenate(
        [shrinkage.precisions(slab.frames, slab.starts, slab.widths_of(window), how) for slab in slabs]
    )
