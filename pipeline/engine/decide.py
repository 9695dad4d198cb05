"""How an embedding is computed: form, precision, method, home of the tiles and memory, decided once.

Who computes and who plans read the same :class:`Decision`: workers that come or go in between change nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.expected import LEAST
from manifold_observer.tasks.engine.moments import Axes, Moments, span_axes
from manifold_observer.tasks.engine.probe import Probe, candidates, probe_forms
from manifold_observer.tasks.engine.slab import Metric

from ..graph.compute import compute, task
from ..graph.limits import LAZY_FRAMES, Memory, Workers, fewer_threads, gib, require, workers
from ..graph.progress import Progress, silent
from ..graph.spans import Span
from .blocks import Part, Table, block_task, local_metric, part_of
from .config import MORE_AXES, USUAL_AXES, EmbedConfig
from .cuts import tile_size
from .eigensolve import NARROW, WIDTH, allowed_passes, block_width, wanted_modes
from .memory import (
    EXACT_FRAMES,
    LOCAL_BYTES,
    Shape,
    coordinate_bytes,
    exact_memory,
    landmark_memory,
    projected_memory,
    tile_bytes,
)
from .shrink import Shrunk, further, leading, shrink

_TOLERANCES = {"local": 1e-10, "resident": 1e-6, "disk": 1e-4, "recomputed": 1e-4}
# Below it coordinates are no nearer to the true ones: rounding of the tiles is all that is left.
_FINEST = {"float64": 0.0, "float32": 1e-8}
# Share of the memory that tiles may fill: beyond it a cluster spills, which is slower than recomputing.
_SHARE = 0.5
_PROBE_FRAMES = 128
_MARGIN = 0.5
# Single precision must be this much finer than the scale of the kernel.
_FLOAT32_SHARE = 2e-5


@dataclass(frozen=True)
class Decision:
    """How an embedding is computed."""

    distance: Distance
    """Metric, axes, form and precision."""
    float32_error: float
    """Error of the distance in single precision, as a probe found it."""
    method: str
    """"exact" or "landmarks"."""
    home: str
    """Where tiles live: "local", "resident", "recomputed", "disk", or "none" for landmarks alone."""
    tile: int
    """Frames on the side of a tile."""
    passes: int
    """Passes over the whole kernel, as expected."""
    memory: Memory
    """Bounds of a task, a worker and the caller."""
    workers: Workers
    """The workers that there were when it was taken."""
    lazy: bool = False
    """Whether coordinates stay on the workers, and are given as Dask arrays."""

    @property
    def choice(self) -> dict[str, Any]:
        """What the numbers depend on, as attributes; a solve that is resumed chooses it again."""
        return {
            "form": self.distance.form,
            "precision": self.distance.precision,
            "float32_error": self.float32_error,
            "axes": self.distance.axes.width,
        }


def decide(
    rows: Table,
    measured: Measured,
    config: EmbedConfig,
    *,
    earlier: dict[str, Any] | None = None,
    n_frames: int | None = None,
) -> Decision:
    """Decide how frames are embedded, or refuse what does not fit; it computes one task, where the frames are.

    Parameters
    ----------
    rows
        Frames, or some of them.
    measured
        Their metric and axes, as :func:`measure` chose them.
    config
        Options.
    earlier
        The ``choice`` of an earlier run, which is taken again.
    n_frames
        Frames of the embedding, where ``rows`` are only some of them.

    Returns
    -------
    The decision.

    Raises
    ------
    ValueError
        Some local covariances have no inverse, or the predicted peak of a worker is above its limit.
    """
    distance, error = _choose_distance(rows, measured, config, earlier)
    return settle(n_frames or rows.n_frames, distance, error, config)


def settle(n_frames: int, distance: Distance, float32_error: float, config: EmbedConfig) -> Decision:
    """The rest of the decision, which needs no frames; nothing is computed."""
    there = workers()
    shape = shape_of(n_frames, distance, config, there.threads)
    method = choose_method(n_frames, distance.itemsize, config, there)
    promised = method == "landmarks" and config.residual_tolerance is not None
    if promised:
        _check_promised(config)
    passes_sure = method == "exact" or (config.refine and not promised)
    home = choose_home(n_frames, distance.itemsize, config.home, there) if passes_sure else "none"
    passes = expected_passes(n_frames, method, home, distance.precision, config)
    # Exact passes, and those of a promise, have all vectors here.
    lazy = (
        home == "none"
        and not promised
        and (config.lazy == "always" or (config.lazy == "auto" and n_frames > LAZY_FRAMES))
    )
    memory = _bounds(shape, method, home, config, passes, there, lazy)
    require(memory, there.limit, _what_fits(shape, method, home, config, there))
    return Decision(distance, float32_error, method, home, shape.tile, passes, memory, there, lazy)


def _check_promised(config: EmbedConfig) -> None:
    """Landmarks whose number a residual decides are spread in time, and the kernel is projected on them."""
    for name, usual in (("landmark_choice", "uniform"), ("landmark_route", "nystrom")):
        if getattr(config, name) != usual:
            raise ValueError(
                f"embed: {name} must be {usual!r} where a residual_tolerance decides how many landmarks there are; got "
                f"{getattr(config, name)!r}. Leave out one of the two."
            )


def shape_of(n_frames: int, distance: Distance, config: EmbedConfig, threads: int = 1) -> Shape:
    """Sizes of an embedding on workers of so many threads."""
    width = block_width(wanted_modes(config, n_frames)) + 1
    return Shape(n_frames, distance, config.tile or tile_size(n_frames), width, threads)


def choose_method(n_frames: int, itemsize: int, config: EmbedConfig, there: Workers) -> str:
    """Exact as long as it is a matter of minutes or the tiles fit; landmarks beyond.

    Parameters
    ----------
    n_frames
        Frames of the embedding.
    itemsize
        Bytes of a number of a tile.
    config
        The method that was asked for, and the scale: a local one needs all pairs.
    there
        The workers.

    Returns
    -------
    ``"exact"`` or ``"landmarks"``.
    """
    if config.method != "auto":
        return config.method
    if n_frames <= EXACT_FRAMES or config.epsilon == "local":
        return "exact"
    return "exact" if tile_bytes(n_frames, itemsize) <= _SHARE * there.total else "landmarks"


def choose_home(n_frames: int, itemsize: int, wanted: str, there: Workers) -> str:
    """Where the tiles of a kernel live: local when small, resident where they fit, else recomputed in every pass.

    Parameters
    ----------
    n_frames
        Frames of the embedding.
    itemsize
        Bytes of a number.
    wanted
        ``"auto"``, or a home that is taken if it fits.
    there
        The workers.

    Returns
    -------
    ``"local"``, ``"resident"``, ``"recomputed"`` or ``"disk"``.

    Raises
    ------
    ValueError
        Resident tiles were asked for and do not fit; with the bytes on both sides, and what would fit.
    """
    if wanted == "local" or (wanted == "auto" and tile_bytes(n_frames, itemsize) <= LOCAL_BYTES):
        return "local"
    needed, room = tile_bytes(n_frames, itemsize), int(_SHARE * there.total)
    if needed <= room:
        return "resident" if wanted == "auto" else wanted
    if wanted == "resident":
        fits = int((2 * room / itemsize) ** 0.5)
        raise ValueError(
            f"embed: resident tiles must fit into half of the workers' memory; {n_frames} frames need "
            f"{gib(needed)} of {gib(room)}. About {fits} frames would fit: give home='recomputed', or more workers."
        )
    return "recomputed" if wanted == "auto" else wanted


def tolerance_of(home: str, precision: str, config: EmbedConfig) -> float:
    """Largest residual, relative to the largest eigenvalue: as asked, else by where the tiles are and how precise.

    Passes over recomputed tiles are dear.
    """
    return config.residual_tolerance or max(_TOLERANCES[home], _FINEST[precision])


def expected_passes(n_frames: int, method: str, home: str, precision: str, config: EmbedConfig) -> int:
    """Passes over the kernel, as measured.

    A digit of the residual takes 1.15 passes from landmarks, one from random vectors after two for a start, and 1.6
    where blocks are narrow.
    """
    if method == "landmarks":
        return 0 if config.residual_tolerance is not None else config.refine
    digits = -math.log10(tolerance_of(home, precision, config))
    if home == "local":
        needed = round(1.6 * digits)
    elif config.epsilon == "local":
        needed = math.ceil(digits - 1e-9) + 2
    else:
        needed = round(1.15 * digits)
    width = block_width(wanted_modes(config, n_frames), NARROW if home == "local" else WIDTH)
    return min(needed, allowed_passes(config, width)) + (config.alpha != 0)


def _bounds(
    shape: Shape, method: str, home: str, config: EmbedConfig, passes: int, there: Workers, lazy: bool
) -> Memory:
    """Bounds of the chosen way; with refinement, of both."""
    n = shape.n_frames
    kept = coordinate_bytes(n, wanted_modes(config, n), there.number, shape.n_axes) if lazy else None
    streamed = landmark_memory(shape, min(config.n_landmarks, n), config.landmark_route, kept)
    if method == "landmarks" and config.residual_tolerance is not None:  # the least: more are taken as they fit
        least = projected_memory(shape, min(LEAST, n))
        if not config.refine:
            return least
        home = choose_home(n, shape.itemsize, config.home, there)
        return larger(least, exact_memory(shape, home, config.refine, there.number))
    if home == "none":
        return streamed
    exact = exact_memory(shape, home, passes, there.number)
    return exact if method == "exact" else larger(streamed, exact)


def larger(one: Memory, other: Memory) -> Memory:
    """Bounds of two stages, one after the other."""
    return Memory(*(max(pair) for pair in zip(one, other, strict=True)))


def _what_fits(shape: Shape, method: str, home: str, config: EmbedConfig, there: Workers) -> str:
    """The first of the gentler ways that would fit, in words."""
    gentler = exact_memory(shape, "recomputed", 4, there.number)
    if method == "exact" and home != "recomputed" and gentler.worker <= there.limit:
        return "home='recomputed' would fit."
    if method == "landmarks" and config.refine and landmark_memory(shape, config.n_landmarks).worker <= there.limit:
        return "refine=0 would fit."
    # A local scale needs all pairs.
    for m in () if config.epsilon == "local" else (config.n_landmarks, 2000, 1000, 500, 200):
        if m <= config.n_landmarks and landmark_memory(shape, m).worker <= there.limit:
            return f"method='landmarks' with landmarks={m} would fit."
    return f"Give the workers more memory, or take fewer features{fewer_threads(there)}."


def _choose_distance(
    rows: Table, measured: Measured, config: EmbedConfig, earlier: dict[str, Any] | None
) -> tuple[Distance, float]:
    """The form and precision that a probe chooses, and the error that it found."""
    metric, axes = measured.metric, measured.axes
    if earlier:
        return Distance(metric, axes, str(earlier["form"]), str(earlier["precision"])), float(earlier["float32_error"])
    found = _probed(rows, metric, axes, config.form)
    form = fastest(found.seconds)
    return Distance(metric, axes, form, _precision(found, form, config)), found.float32_error[form]


class Measured(NamedTuple):
    """Metric and axes of the distances, and how covariances were found to be shrunk, if they are."""

    metric: Metric
    axes: Axes
    shrunk: Shrunk | None = None


def measure(rows: Table, total: Moments, config: EmbedConfig, progress: Progress = silent) -> Measured:
    """Axes of the distances, and how local covariances are inverted in them; it computes where they are shrunk.

    The axes are the leading ones, or all that the frames span. Given covariances may reach beyond it: their inverses
    must be taken in all features.
    """
    metric = local_metric(rows, total, config)
    if rows.covariance is not None:
        return Measured(metric, Axes(total.mean, None))
    if config.max_axes is None and config.shrinkage == "none":
        return Measured(metric, span_axes(total)._replace(conditioning=rows.conditioning))
    turned = leading(rows, total, _most_axes(rows, config))
    usual = turned.first(USUAL_AXES) if config.max_axes == "auto" else turned
    if config.shrinkage == "none":
        return Measured(metric, usual.axes)
    shrunk = shrink(rows, usual, config.window, config, progress)
    if config.max_axes == "auto" and turned.axes.width == MORE_AXES:
        beyond = further(rows, turned, config.window, shrunk, config)
        if not beyond.lasts:
            return Measured(metric._replace(shrinkage=shrunk.how), usual.axes, shrunk._replace(further=beyond))
        usual, shrunk = turned, shrink(rows, turned, config.window, config, progress, beyond)
    return Measured(metric._replace(shrinkage=shrunk.how), usual.axes, shrunk)


def _most_axes(rows: Table, config: EmbedConfig) -> int:
    """Axes that are looked at."""
    if config.max_axes == "auto":
        return MORE_AXES
    return int(config.max_axes or rows.n_features)


def _probed(rows: Table, metric: Metric, axes: Axes, form: str) -> Probe:
    """A small tile in every form that is not hopeless, timed where the frames are; it computes."""
    n = min(_PROBE_FRAMES, rows.n_frames)
    middle = (rows.n_frames - n) // 2
    spans = [(first, first + n) for first in (0, middle)]
    parts = [part_of(rows, span, metric.window) for span in spans]
    return compute([task(_probe, axes, parts, metric, form, spans)])[0]


def fastest(seconds: dict[str, float]) -> str:
    """The form to take: the first by counting, unless the probe finds another more than twice as fast.

    The margin keeps a busy moment from choosing another form, with another rounding, the next time.
    """
    expected = next(iter(seconds))
    best = min(seconds, key=lambda form: seconds[form])
    return best if seconds[best] < _MARGIN * seconds[expected] else expected


def _precision(found: Probe, form: str, config: EmbedConfig) -> str:
    """float32 where its error is far below the scale of the kernel."""
    if config.precision != "auto":
        return config.precision
    scale = config.epsilon if not isinstance(config.epsilon, str) else config.epsilon_factor * found.median
    share = 0.05 if config.epsilon == "local" else 1.0  # near neighbours lie far below the median
    return "float32" if found.float32_error[form] <= _FLOAT32_SHARE * share * scale else "float64"


def _probe(axes: Axes, parts: list[Part], metric: Metric, form: str, spans: list[Span]) -> Probe:
    """One timed tile a form."""
    names = candidates(metric, axes.width) if form == "auto" else [form]
    distances = {name: Distance(metric, axes, name, "float64") for name in names}
    first, second = zip(parts, spans, strict=True)
    return probe_forms({name: (block_task(own, *first), block_task(own, *second)) for name, own in distances.items()})
