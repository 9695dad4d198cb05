"""What an embedding will do and cost: method, home of the tiles, memory, tasks, passes and seconds."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from manifold_observer.tasks.engine import forms, timing
from manifold_observer.tasks.engine.covariance import DegenerateCovarianceError
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.expected import Expected
from manifold_observer.tasks.engine.panel import DIAGONAL_FRAMES

from ..engine.blocks import Part, Table, check_moments, degenerate, part_of, slab_of, table
from ..engine.condition import choose_conditioning, is_scaled
from ..engine.config import EmbedConfig, Engine, Geometry
from ..engine.cuts import deal, landmark_spans, sample_spans
from ..engine.decide import Decision, decide, measure, shape_of
from ..engine.diagnosis import check_values
from ..engine.eigensolve import NARROW, block_width, wanted_modes
from ..engine.foresight import foresee_of_runs, in_words
from ..engine.memory import EXACT_FRAMES, LOCAL_BYTES, Shape, tile_bytes
from ..engine.passing import spans_a_task
from ..engine.problem import Problem
from ..engine.promise import with_passes
from ..frames.given import takes_frames
from ..frames.runs import require_features
from ..frames.segments import short_segments
from ..graph.card import card
from ..graph.compute import compute, one_blas_thread, task
from ..graph.deprecated import moved_into
from ..graph.durations import duration
from ..graph.limits import Memory, gib
from ..graph.progress import silent
from ..graph.slabs import ROWS_BYTES
from ..graph.spans import Span, blocks

# Frames that are looked at.
_SAMPLE_FRAMES = 4096
# Frames elsewhere that are looked at, in runs: a fault in one of them is named before hours are spent.
_SPREAD_FRAMES, _SPREAD_RUN = 8192, 512
# Seconds that one task costs beside its work, and that one round trip costs.
_TASK_SECONDS, _TRIP_SECONDS = 0.006, 0.03
# Seconds of a multiplication that links landmarks, in single precision.
_LINK_SECONDS = 2.5e-11
# A pass ends with its slowest worker.
_UNEVEN = 1.1


@dataclass(frozen=True, repr=False)
class Plan:
    """What an embedding will cost, as :func:`plan` finds it; bytes are upper bounds, seconds an estimate.

    Examples
    --------
    >>> walk = np.random.default_rng(0).normal(size=(600, 4)).cumsum(axis=0)
    >>> print(str(plan(xr.DataArray(walk, dims=("frame", "feature")))).splitlines()[1])
    way      exact, tiles local, 13 passes
    """

    n_frames: int
    """Frames to embed."""
    n_features: int
    """Features of a frame."""
    n_axes: int
    """Directions that the sampled frames span, in which distances are taken."""
    n_workers: int
    """Workers of the cluster."""
    method: str
    """"exact" or "landmarks"."""
    home: str
    """Where tiles live: "local", "resident", "recomputed", "disk", or "none" for landmarks alone."""
    form: str
    """Form of the distance."""
    precision: str
    """Floating-point precision of the tiles."""
    tile: int
    """Frames on the side of a tile."""
    tasks: int
    """Tasks in all."""
    passes: int
    """Passes over the whole kernel."""
    bytes_per_task: int
    """Largest task, beside what it is given."""
    peak_worker_bytes: int
    """Peak of a worker."""
    peak_caller_bytes: int
    """Peak of the process that calls."""
    worker_limit_bytes: int
    """Memory limit of a worker."""
    seconds: float
    """Predicted time of embed."""
    landmarks: int
    """Landmarks that all frames meet; 0 without any."""
    residual: float | None
    """Largest residual that is expected, relative to the largest eigenvalue; None where nothing promises one."""
    reasons: tuple[str, ...]
    """Why this way and this home."""

    def as_dict(self) -> dict[str, Any]:
        """The plan for machines."""
        return {**asdict(self), "reasons": list(self.reasons)}

    def __str__(self) -> str:
        """The plan for people."""
        return "\n".join([self._title(), *(f"{name:<8} {value}" for name, value in self._rows())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return card(f"Plan: {self._title()}", self._rows())

    def _title(self) -> str:
        """What is embedded, and on what."""
        workers = "1 worker" if self.n_workers == 1 else f"{self.n_workers} workers"
        return f"{self.n_frames} frames of {self.n_features} features ({self.n_axes} axes) on {workers}"

    def _rows(self) -> list[tuple[str, str]]:
        """What it will do and cost, and why."""
        where = "" if self.home == "none" else f", tiles {self.home}, {self.passes} passes"
        memory = f"{gib(self.peak_worker_bytes)} a worker of {gib(self.worker_limit_bytes)}"
        return [
            ("way", f"{self.method}{where}"),
            ("tiles", f"{self.form} form, {self.precision}, {self.tile} frames a side"),
            ("tasks", f"{self.tasks}, at most {gib(self.bytes_per_task)} each"),
            ("memory", f"{memory}, {gib(self.peak_caller_bytes)} here"),
            ("time", f"about {duration(self.seconds)}"),
            *(("because", reason) for reason in self.reasons),
        ]


@moved_into("engine", Engine)
@moved_into("geometry", Geometry)
@takes_frames
def plan(frames: xr.DataArray, **options: Any) -> Plan:
    """Plan what :func:`embed` will do with the same options, and what it will cost; it times a few tiles.

    The first 4,096 frames are read, and a tile of them is timed on every worker at once, which takes
    about a second or two. They are checked as :func:`embed` checks all, and so are 8,192 others.

    Parameters
    ----------
    frames
        Dims ``(frame, feature)``, as for :func:`embed`.
    **options
        Options of :func:`embed`.

    Returns
    -------
    The plan, which prints as a few lines of text.

    Raises
    ------
    ValueError
        As :func:`embed`, and where the plan does not fit into the workers' memory.

    Examples
    --------
    >>> walk = np.random.default_rng(0).normal(size=(600, 4)).cumsum(axis=0)
    >>> found = plan(xr.DataArray(walk, dims=("frame", "feature")), n_modes=2)
    >>> found.method, found.home, found.peak_worker_bytes < 2**30
    ('exact', 'local', True)
    """
    covariance = options.pop("covariance", None)
    for unused in ("progress", "checkpoint"):
        options.pop(unused, None)
    config = EmbedConfig.of(**options).resolved(given_covariances=covariance is not None)
    rows = table(frames, covariance, config)
    before = require_features(frames)
    with one_blas_thread():
        check_moments(rows, silent, spans=_looked_at(rows))
        found = _plan(_sampled(rows, config.window), rows, config)
    return found if before is None else _with_features(found, before)


def _with_features(found: Plan, before: Memory) -> Plan:
    """The plan with the computation of its frames, which is over before the embedding begins."""
    return replace(
        found,
        bytes_per_task=max(found.bytes_per_task, before.task),
        peak_worker_bytes=max(found.peak_worker_bytes, before.worker),
        peak_caller_bytes=max(found.peak_caller_bytes, before.caller),
    )


def _looked_at(rows: Table) -> list[Span]:
    """Frames that are checked: all where they are few or here, in the blocks in which :func:`embed` checks them."""
    if isinstance(rows.data, np.ndarray) or rows.n_frames <= _SPREAD_FRAMES:
        return blocks(rows.n_frames, max(1, ROWS_BYTES // (8 * rows.n_features)))
    return sample_spans(rows.n_frames, _SPREAD_RUN, _SPREAD_FRAMES)


def _sampled(rows: Table, window: int) -> Table:
    """The first frames, computed; a segment that they leave without a whole window is left out."""
    n = min(max(_SAMPLE_FRAMES, window), rows.n_frames)
    cut = short_segments(rows.segment[:n], window) if rows.covariance is None and rows.windows == "whole" else []
    few = slice(0, cut[0][0] if cut else n)
    data, covariance = (
        None if values is None else np.asarray(compute([values[few]])[0]) for values in (rows.data, rows.covariance)
    )
    return rows._replace(data=data, segment=rows.segment[few], covariance=covariance)


def _plan(rows: Table, whole: Table, config: EmbedConfig) -> Plan:
    """Plan from a sample of the frames."""
    n_frames = whole.n_frames
    rows, total = check_moments(choose_conditioning(rows, config.condition, silent).rows, silent)
    if not is_scaled(rows):
        check_values(rows, total)
    decision = decide(rows, measure(rows, total, config), config, n_frames=n_frames)
    shape = shape_of(n_frames, decision.distance, config, decision.workers.threads)
    foreseen = None
    if decision.method == "landmarks" and config.residual_tolerance is not None:
        problem = Problem(whole._replace(conditioning=rows.conditioning), decision, config, silent)
        foreseen = foresee_of_runs(problem).expected
        decision = with_passes(problem, foreseen)
    tasks = _tasks(shape, decision, whole)
    seconds = _seconds(shape, _timed(rows, shape, decision.workers.number), decision, config, tasks, foreseen)
    return Plan(
        n_frames=n_frames,
        n_features=rows.n_features,
        n_axes=shape.n_axes,
        n_workers=decision.workers.number,
        method=decision.method,
        home=decision.home,
        form=decision.distance.form,
        precision=decision.distance.precision,
        tile=decision.tile,
        tasks=tasks,
        passes=decision.passes,
        bytes_per_task=decision.memory.task,
        peak_worker_bytes=decision.memory.worker,
        peak_caller_bytes=decision.memory.caller,
        worker_limit_bytes=decision.workers.limit,
        seconds=round(seconds, 2),
        landmarks=_landmarks(shape, decision, config, foreseen),
        residual=foreseen.residual if foreseen else config.residual_tolerance,
        reasons=_reasons(shape, decision, config, foreseen),
    )


def _timed(rows: Table, shape: Shape, n_workers: int) -> timing.Rates:
    """A tile of the sample, timed on every worker at once."""
    span = (0, min(shape.tile, rows.n_frames))
    part = part_of(rows, span, shape.distance.window)
    found = compute([task(_rates, shape.distance, part, shape.width) for _ in range(n_workers)])
    return timing.Rates(
        block=float(np.mean([rates.block for rates in found])),
        fused=float(np.mean([rates.fused for rates in found])),
        stored=float(np.mean([rates.stored for rates in found])),
    )


def _tasks(shape: Shape, decision: Decision, whole: Table) -> int:
    """Tasks of all stages."""
    n_blocks = -(-shape.n_frames // shape.tile)
    dealing = deal(n_blocks, shape.tile**2 * shape.itemsize, decision.workers.number)
    n_panels = dealing.panels(n_blocks)
    a_pass = 0 if decision.home == "local" else n_panels + 2 * len(dealing.groups(n_blocks))
    exact = 3 * n_blocks + 2 * n_panels + decision.passes * a_pass
    if decision.method == "exact":
        return exact
    spans = len(landmark_spans(shape.n_frames, shape.n_axes))
    return (exact if decision.passes else 0) + 2 * -(-spans // spans_a_task(whole, spans, decision.workers))


def _landmarks(shape: Shape, decision: Decision, config: EmbedConfig, foreseen: Expected | None) -> int:
    """Landmarks that all frames meet, other than for the start of exact passes."""
    if decision.method != "landmarks":
        return 0
    return foreseen.landmarks if foreseen else min(config.n_landmarks, shape.n_frames)


def _seconds(
    shape: Shape,
    rates: timing.Rates,
    decision: Decision,
    config: EmbedConfig,
    tasks: int,
    foreseen: Expected | None = None,
) -> float:
    """Time of all stages."""
    n, number = shape.n_frames, decision.workers.number
    trips = 8 + (0 if decision.home == "local" else decision.passes)
    overhead = tasks * _TASK_SECONDS + trips * _TRIP_SECONDS
    if decision.home == "local" and decision.method == "exact":  # narrow blocks
        shape = shape._replace(width=block_width(wanted_modes(config, n), NARROW) + 1)
    blocks = n * rates.block / number
    m = _landmarks(shape, decision, config, foreseen) or min(1000, n)
    strips = n * (m + 256) * _making(rates) * _apart(shape, m) / number + 4e-10 * m**3
    if decision.method == "exact":
        return overhead + _exact_seconds(shape, rates, decision, blocks, 0.0 if decision.home == "local" else strips)
    if foreseen:
        links = n * m * m * _LINK_SECONDS / number
        passes = _exact_seconds(shape, rates, decision, 0.0, 0.0) if decision.passes else 0.0
        return overhead + blocks + 2 * strips + links + 60 * _LINK_SECONDS * m**3 + passes
    route = 3 if config.landmark_route == "diffusion" else 1
    refined = _exact_seconds(shape, rates, decision, blocks, 0.0) if config.refine else 0.0
    return overhead + route * (blocks + strips) + refined


def _making(rates: timing.Rates) -> float:
    """Time to make a pair's affinity."""
    return max(rates.fused - rates.stored, 0.5 * rates.fused)


def _exact_seconds(shape: Shape, rates: timing.Rates, decision: Decision, blocks: float, warm: float) -> float:
    """Time of passes over the whole kernel, with that of the blocks and of the landmarks to start from."""
    n, passes, number = shape.n_frames, decision.passes, decision.workers.number
    pairs, fused_pairs = (n * (n + diagonal) / 2 for diagonal in (shape.tile, DIAGONAL_FRAMES))
    multiplied = fused_pairs * rates.fused if decision.home == "recomputed" else pairs * rates.stored
    per_pass = _UNEVEN * multiplied / number
    algebra = passes * (passes + 3) * n * shape.width**2 * 4e-10
    if decision.home == "local":
        per_pass = n * n * shape.width * 1.5e-10
    once = pairs * _making(rates) / number if decision.home != "recomputed" else 0.0
    return blocks + once + warm + passes * per_pass + algebra


def _apart(shape: Shape, n_landmarks: int) -> float:
    """How many times as long a pair takes with landmarks, whose windows share few rows, than within a tile."""
    form, p, rank, w = shape.distance.form, shape.n_axes, shape.distance.rank, shape.window
    apart = forms.cost_apart(form, p, rank, w, min(w, shape.n_frames / n_landmarks))
    return max(1.0, apart / forms.cost(form, p, rank, w))


def _reasons(
    shape: Shape, decision: Decision, config: EmbedConfig, foreseen: Expected | None = None
) -> tuple[str, ...]:
    """Why this method and this home, and what a residual takes."""
    promised = (in_words(foreseen, config.residual_tolerance),) if foreseen and config.residual_tolerance else ()
    return _why_method(shape, decision, config), *(promised or (_why_home(shape, decision, config),))


def _why_method(shape: Shape, decision: Decision, config: EmbedConfig) -> str:
    """Why all pairs, or landmarks."""
    tiles = tile_bytes(shape.n_frames, shape.itemsize)
    if config.method != "auto":
        return f"method={config.method!r} was asked for"
    if decision.method == "landmarks":
        return f"{shape.n_frames} frames are more than {EXACT_FRAMES}, and {gib(tiles)} of tiles do not fit"
    if shape.n_frames <= EXACT_FRAMES:
        return f"{shape.n_frames} frames are few enough ({EXACT_FRAMES}) for all pairs"
    return f"{gib(tiles)} of tiles fit, or a local scale needs all pairs"


def _why_home(shape: Shape, decision: Decision, config: EmbedConfig) -> str:
    """Why tiles live where they do."""
    if decision.home == "none":
        return f"every frame meets {min(config.n_landmarks, shape.n_frames)} landmarks"
    if config.home != "auto":
        return f"home={config.home!r} was asked for"
    tiles, half = gib(tile_bytes(shape.n_frames, shape.itemsize)), gib(decision.workers.total / 2)
    return {
        "local": f"{tiles} of tiles are at most {gib(LOCAL_BYTES)}: they are brought here",
        "resident": f"{tiles} of tiles fit into half of the workers' memory, {half}",
        "recomputed": f"{tiles} of tiles do not fit into half of the workers' memory, {half}",
    }[decision.home]


def _rates(distance: Distance, part: Part, width: int) -> timing.Rates:
    """Timings of one worker."""
    try:
        return timing.rates(slab_of(distance.axes, part), distance, width)
    except DegenerateCovarianceError as error:
        raise degenerate(error, distance.window, (0, int(part.reach.rows.lengths.sum()))) from None
