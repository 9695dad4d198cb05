"""What the paper says of music, piece by piece, tested over realisations.

Throughout: ``scores`` holds ``accuracy``, ``silhouette`` and the like of every estimate, dims ``(realisation, ...)``.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.comparison import verdicts

from .verdict import Statement

Floats = NDArray[np.float64]
_FIGURE = "V-C"
_CLEARLY = 0.15
_TOLD = 0.95
_NAMES = {"diffusion_maps": "diffusion maps", "smoothed_pca": "smoothed PCA", "pca": "PCA"}


def judge_piece(what: str, scores: xr.Dataset) -> list[Statement]:
    """All statements of one kind of piece; none of a rapid run where there is none."""
    return [
        *(_reads_better(what, scores, label) for label in ("note", "instrument")),
        *(_reads_better_with_more(what, scores, label) for label in ("note", "instrument")),
        *(_recurs(what, scores, label) for label in ("note", "instrument")),
        *(
            _groups(what, scores, label, than)
            for label in ("note", "instrument")
            for than in ("diffusion_maps", "smoothed_pca", "pca")
        ),
        *_rapid_run(what, scores),
        _threshold(what, scores),
    ]


def _reads_better(what: str, scores: xr.Dataset, label: str) -> Statement:
    """Nearest neighbours read the label better from the observer than from diffusion maps."""
    accuracy = scores["accuracy"].sel(label=label)
    return _against(f"{what}: {label}s are read better from the observer than from diffusion maps", accuracy)


def _reads_better_with_more(what: str, scores: xr.Dataset, label: str) -> Statement:
    """The same with six coordinates."""
    accuracy = scores["many_accuracy"].sel(label=label).rename(pair="estimate")
    claim = f"{what}: {label}s are read better from six coordinates of the observer than from six of diffusion maps"
    return _against(claim, accuracy)


def _recurs(what: str, scores: xr.Dataset, label: str) -> Statement:
    """The same note is at the same place whenever it is played, which late labels are not."""
    own, null = (
        scores[name].sel(label=label, estimate="observer").values for name in ("silhouette", "silhouette_null")
    )
    return Statement(
        _FIGURE,
        f"{what}: recurring {label}s group together",
        f"silhouette {own.mean():.3f}, of late labels {null.mean():.3f}",
        "the same labels, late by a third of the piece",
        verdicts.exceeds(own, null),
    )


def _groups(what: str, scores: xr.Dataset, label: str, than: str) -> Statement:
    """Silhouettes against those of another estimate."""
    claim = f"{what}: {label}s are more separable (silhouette) by the observer than by {_NAMES[than]}"
    return _against(claim, scores["silhouette"].sel(label=label), than)


def _rapid_run(what: str, scores: xr.Dataset) -> list[Statement]:
    """Notes shorter than a window of covariances are not separated; no claim where there is no run."""
    pace = scores["pace_accuracy"]
    if bool(pace.sel(pace="rapid").isnull().any()):
        return []
    slow, rapid = (pace.sel(estimate="observer", pace=speed).values for speed in ("slow", "rapid"))
    plain_slow, plain = (pace.sel(estimate="pca", pace=speed).values for speed in ("slow", "rapid"))
    measured = (
        f"accuracy of notes in the run {rapid.mean():.2f}, of slow notes {slow.mean():.2f}; "
        f"PCA {plain.mean():.2f}, {plain_slow.mean():.2f}"
    )
    return [
        Statement(
            _FIGURE,
            f"{what}: notes of a rapid run are read worse than slow ones",
            measured,
            f"a loss of {_CLEARLY}",
            verdicts.exceeds(slow, rapid, _CLEARLY),
        ),
        Statement(
            _FIGURE,
            f"{what}: the observer loses more by the run than the sound does",
            measured,
            "the loss of PCA",
            verdicts.exceeds(slow - rapid, plain_slow - plain),
        ),
    ]


def _threshold(what: str, scores: xr.Dataset) -> Statement:
    """One coordinate tells the instruments."""
    area = scores["threshold_area"]
    own, maps = (area.sel(estimate=name).values for name in ("observer", "diffusion_maps"))
    return Statement(
        _FIGURE,
        f"{what}: a threshold on the first coordinate tells the instruments, ROC area above {_TOLD}",
        f"area {own.mean():.3f}; diffusion maps {maps.mean():.3f}",
        f"an area of {_TOLD}",
        verdicts.exceeds(own, _TOLD),
    )


def _against(claim: str, values: xr.DataArray, than: str = "diffusion_maps") -> Statement:
    """The observer against another estimate, realisation by realisation."""
    own, other = (values.sel(estimate=name).values for name in ("observer", than))
    measured = f"{own.mean():.3f} against {other.mean():.3f} ({int((own > other).sum())} of {len(own)} above)"
    return Statement(_FIGURE, claim, measured, _NAMES[than], verdicts.exceeds(own, other))
