"""What an embedding will cost: the way, the home of its tiles, memory, tasks, passes and seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from manifold_observer.tasks.engine import forms, moments
from manifold_observer.tasks.engine import timing as calibrate
from manifold_observer.tasks.engine.covariance import DegenerateCovarianceError
from manifold_observer.tasks.engine.panel import DIAGONAL_FRAMES
from manifold_observer.tasks.engine.slab import Metric

from ..engine.blocks import Part, check_moments, degenerate, part_of, slab_of, table
from ..engine.condition import choose_conditioning
from ..engine.config import EmbedConfig
from ..engine.cuts import landmark_spans, panels, tile_size
from ..engine.decide import choose_form, choose_metric
from ..engine.eigensolve import WIDTH, wanted_modes
from ..engine.exact import TOLERANCES
from ..engine.memory import (
    EXACT_FRAMES,
    LOCAL_BYTES,
    Shape,
    choose_home,
    choose_method,
    exact_memory,
    landmark_memory,
    tile_bytes,
)
from ..frames.runs import require_features, task_memory
from ..graph.compute import compute, one_blas_thread, silent, task
from ..graph.limits import Memory, Workers, gib, require, workers

# Frames that the calibration looks at.
_SAMPLE_FRAMES = 4096
# Seconds that one task costs beside its work, and that one round trip costs.
_TASK_SECONDS, _TRIP_SECONDS = 0.006, 0.03
# A pass ends with its slowest worker.
_UNEVEN = 1.1


@dataclass(frozen=True)
class Plan:
    """A forecast, as :func:`plan` makes it; bytes are upper bounds, seconds an estimate.

    Examples
    --------
    >>> walk = np.random.default_rng(0).normal(size=(600, 4)).cumsum(axis=0)
    >>> print(str(plan(xr.DataArray(walk, dims=("frame", "feature")))).splitlines()[1])
    way      exact, tiles local, 12 passes
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
    reasons: tuple[str, ...]
    """Why this way and this home."""

    def as_dict(self) -> dict[str, Any]:
        """The forecast for machines."""
        return {**asdict(self), "reasons": list(self.reasons)}

    def __str__(self) -> str:
        """The forecast for people."""
        where = "" if self.home == "none" else f", tiles {self.home}, {self.passes} passes"
        lines = [
            f"{self.n_frames} frames of {self.n_features} features ({self.n_axes} axes) on {self.n_workers} workers",
            f"way      {self.method}{where}",
            f"tiles    {self.form} form, {self.precision}, {self.tile} frames a side",
            f"tasks    {self.tasks}, at most {gib(self.bytes_per_task)} each",
            f"memory   {gib(self.peak_worker_bytes)} a worker of {gib(self.worker_limit_bytes)}, "
            f"{gib(self.peak_caller_bytes)} here",
            f"time     about {_duration(self.seconds)}",
            *(f"because  {reason}" for reason in self.reasons),
        ]
        return "\n".join(lines)


def plan(frames: xr.DataArray, **options: Any) -> Plan:
    """Forecast what :func:`embed` will cost with the same options; it computes a short calibration.

    The first 4,096 frames are read, and a tile of them is timed on every worker at once, which takes
    about a second or two.

    Parameters
    ----------
    frames
        Dims ``(frame, feature)``, as for :func:`embed`.
    **options
        Options of :func:`embed`.

    Returns
    -------
    The forecast; ``print(plan)`` reads well.

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
    config = EmbedConfig(**options).resolved(given_covariances=covariance is not None)
    whole = table(frames, covariance, config.window, config.windows)
    few = slice(0, min(_SAMPLE_FRAMES, whole.n_frames))
    require_features(frames)
    before = task_memory(frames)
    with one_blas_thread():
        found = _plan(whole.n_frames, frames.isel(frame=few), _some(covariance, few), config)
    return found if before is None else _with_features(found, before)


def _with_features(found: Plan, before: Memory) -> Plan:
    """The forecast with the computation of its frames, which is over before the embedding begins."""
    return replace(
        found,
        bytes_per_task=max(found.bytes_per_task, before.task),
        peak_worker_bytes=max(found.peak_worker_bytes, before.worker),
        peak_caller_bytes=max(found.peak_caller_bytes, before.caller),
    )


def require_memory(n_frames: int, n_axes: int, choice: Mapping[str, Any], config: EmbedConfig, window: int) -> None:
    """Refuse an embedding that would not fit, and say what would; nothing is computed.

    Parameters
    ----------
    n_frames, n_axes
        Frames, and axes of the distances.
    choice
        Form and precision.
    config
        Options.
    window
        Frames of a window, 0 where covariances are given.

    Raises
    ------
    ValueError
        The predicted peak of a worker is above its limit.
    """
    there = workers()
    shape = _shape(n_frames, n_axes, str(choice["form"]), str(choice["precision"]), config, window)
    method = choose_method(n_frames, shape.itemsize, config)
    home = _home(shape, method, config)
    memory = _memory(shape, method, home, config, there)
    require(memory, there.limit, _what_fits(shape, method, home, config, there))


def _plan(n_frames: int, sample: xr.DataArray, covariance: xr.DataArray | None, config: EmbedConfig) -> Plan:
    """Forecast from a sample of the frames."""
    rows = table(sample, covariance, config.window, config.windows)
    here = [np.asarray(compute([x])[0]) if x is not None else None for x in (rows.data, rows.covariance)]
    rows = rows._replace(data=here[0], covariance=here[1])
    found = choose_conditioning(rows, str(sample.attrs.get("features", "")), config.condition, silent)
    rows, total = check_moments(rows._replace(conditioning=found.conditioning), silent)
    window = 0 if rows.covariance is not None else config.window
    metric, axes, _ = choose_metric(rows, total, window, config)
    choice = choose_form(rows, metric, axes, config)
    there = workers()
    shape = _shape(n_frames, axes.width, str(choice["form"]), str(choice["precision"]), config, window)
    method = choose_method(n_frames, shape.itemsize, config)
    home = _home(shape, method, config)
    memory = _memory(shape, method, home, config, there)
    require(memory, there.limit, _what_fits(shape, method, home, config, there))
    span = (0, min(shape.tile, rows.n_frames))
    part = part_of(rows, span, window)
    timed = compute(
        [
            task(_rates, axes, part, metric, shape.form, str(choice["precision"]), shape.width)
            for _ in range(there.number)
        ]
    )
    rates = calibrate.Rates(*(float(np.mean(column)) for column in zip(*timed, strict=True)))
    passes = _passes(method, home, config)
    n_panels = len(panels(-(-n_frames // shape.tile), shape.tile**2 * shape.itemsize))
    tasks = _tasks(n_frames, shape, method, passes, n_panels)
    return Plan(
        n_frames=n_frames,
        n_features=sample.sizes["feature"],
        n_axes=axes.width,
        n_workers=there.number,
        method=method,
        home=home,
        form=shape.form,
        precision=str(choice["precision"]),
        tile=shape.tile,
        tasks=tasks,
        passes=passes,
        bytes_per_task=memory.task,
        peak_worker_bytes=memory.worker,
        peak_caller_bytes=memory.caller,
        worker_limit_bytes=there.limit,
        seconds=round(_seconds(shape, rates, method, home, config, passes, tasks, there), 2),
        reasons=_reasons(shape, method, home, config, there),
    )


def _shape(n_frames: int, n_axes: int, form: str, precision: str, config: EmbedConfig, window: int) -> Shape:
    """Sizes of an embedding."""
    width = max(WIDTH, wanted_modes(config, n_frames) + 4) + 1
    tile = config.tile or tile_size(n_frames)
    return Shape(n_frames, n_axes, form, np.dtype(precision).itemsize, window, tile, width)


def _home(shape: Shape, method: str, config: EmbedConfig) -> str:
    """Where tiles live, if there are any."""
    if method == "landmarks" and not config.refine:
        return "none"
    return choose_home(shape.n_frames, shape.itemsize, config.home)


def _memory(shape: Shape, method: str, home: str, config: EmbedConfig, there: Workers) -> Memory:
    """Bounds of the chosen way; with refinement, of both."""
    streamed = landmark_memory(shape, min(config.landmarks, shape.n_frames), config.landmark_route)
    if home == "none":
        return streamed
    exact = exact_memory(shape, home, _passes(method, home, config), there.number)
    if method == "exact":
        return exact
    return Memory(*(max(pair) for pair in zip(streamed, exact, strict=True)))


def _passes(method: str, home: str, config: EmbedConfig) -> int:
    """Passes over the kernel, as measured: 1.15 a digit of the residual, or a digit and two from random vectors."""
    if method == "landmarks":
        return config.refine
    digits = -math.log10(config.residual_tolerance or TOLERANCES[home])
    warm = home != "local" and config.epsilon != "local"
    needed = round(1.15 * digits) if warm else math.ceil(digits - 1e-9) + 2
    return min(needed + (config.alpha != 0), config.max_passes)


def _tasks(n_frames: int, shape: Shape, method: str, passes: int, n_panels: int) -> int:
    """Tasks of all stages."""
    n_blocks = -(-n_frames // shape.tile)
    exact = 3 * n_blocks + 2 * n_panels + passes * (n_panels + n_blocks)
    streamed = 3 * len(landmark_spans(n_frames, shape.n_axes))
    return (exact if method == "exact" or passes else 0) + (streamed if method == "landmarks" else 0)


def _seconds(
    shape: Shape,
    rates: calibrate.Rates,
    method: str,
    home: str,
    config: EmbedConfig,
    passes: int,
    tasks: int,
    there: Workers,
) -> float:
    """Time of all stages."""
    n = shape.n_frames
    pairs, fused_pairs = (n * (n + diagonal) / 2 for diagonal in (shape.tile, DIAGONAL_FRAMES))
    overhead = tasks * _TASK_SECONDS + (passes + 8) * _TRIP_SECONDS
    blocks = n * rates.block / there.number
    making = max(rates.fused - rates.stored, 0.5 * rates.fused)
    m = min(config.landmarks if method == "landmarks" else 1000, n)
    strips = n * (m + 256) * making * _apart(shape, m) / there.number + 4e-10 * m**3
    multiplied = fused_pairs * rates.fused if home == "recomputed" else pairs * rates.stored
    per_pass = _UNEVEN * multiplied / there.number
    algebra = passes * (passes + 3) * n * shape.width**2 * 4e-10
    if home == "local":
        per_pass, algebra = n * n * shape.width * 1.5e-10, algebra + n * n * 4e-9
    once = pairs * making / there.number if home != "recomputed" else 0.0
    warm = strips if home != "local" and method == "exact" else 0.0
    exact = blocks + once + warm + passes * per_pass + algebra
    if method == "exact":
        return overhead + exact
    route = 3 if config.landmark_route == "diffusion" else 1
    return overhead + route * (blocks + strips) + (exact if config.refine else 0.0)


def _apart(shape: Shape, n_landmarks: int) -> float:
    """How many times as long a pair takes with landmarks, whose windows share few rows, than within a tile."""
    p, w = shape.n_axes, shape.window
    apart = forms.cost_apart(shape.form, p, shape.rank, w, min(w, shape.n_frames / n_landmarks))
    return max(1.0, apart / forms.cost(shape.form, p, shape.rank, w))


def _reasons(shape: Shape, method: str, home: str, config: EmbedConfig, there: Workers) -> tuple[str, ...]:
    """Why this way and this home."""
    tiles = tile_bytes(shape.n_frames, shape.itemsize)
    if config.method != "auto":
        first = f"method={config.method!r} was asked for"
    elif method == "landmarks":
        first = f"{shape.n_frames} frames are more than {EXACT_FRAMES}, and {gib(tiles)} of tiles do not fit"
    elif shape.n_frames <= EXACT_FRAMES:
        first = f"{shape.n_frames} frames are few enough ({EXACT_FRAMES}) for all pairs"
    else:
        first = f"{gib(tiles)} of tiles fit, or a local scale needs all pairs"
    if method == "landmarks" and not config.refine:
        return (first, f"every frame meets {min(config.landmarks, shape.n_frames)} landmarks")
    if config.home != "auto":
        return (first, f"home={config.home!r} was asked for")
    half = gib(there.total / 2)
    second = {
        "local": f"{gib(tiles)} of tiles are at most {gib(LOCAL_BYTES)}: they are brought here",
        "resident": f"{gib(tiles)} of tiles fit into half of the workers' memory, {half}",
        "recomputed": f"{gib(tiles)} of tiles do not fit into half of the workers' memory, {half}",
    }[home]
    return (first, second)


def _what_fits(shape: Shape, method: str, home: str, config: EmbedConfig, there: Workers) -> str:
    """The first of the gentler ways that would fit, in words."""
    gentler = exact_memory(shape, "recomputed", 4, there.number)
    if method == "exact" and home != "recomputed" and _fits(gentler, there):
        return "home='recomputed' would fit."
    for m in (config.landmarks, 2000, 1000, 500, 200):
        if m <= config.landmarks and _fits(landmark_memory(shape, m), there):
            return f"method='landmarks' with landmarks={m} would fit."
    return "Give the workers more memory, or take fewer features."


def _fits(memory: Memory, there: Workers) -> bool:
    """Whether a way fits into a worker."""
    return memory.worker <= there.limit


def _rates(axes: moments.Axes, part: Part, metric: Metric, form: str, precision: str, width: int) -> calibrate.Rates:
    """Calibration of one worker."""
    try:
        return calibrate.rates(slab_of(axes, part), metric, form, precision, width)
    except DegenerateCovarianceError as error:
        raise degenerate(error, metric, (0, int(part.rows.lengths.sum()))) from None


def _some(covariance: xr.DataArray | None, few: slice) -> xr.DataArray | None:
    """The same frames of given covariances."""
    return None if covariance is None else covariance.isel(frame=few)


def _duration(seconds: float) -> str:
    """Time for people."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
