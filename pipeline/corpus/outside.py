"""How far from a map frames lie that it was fitted without, and what a recording outside of it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from manifold_observer.tasks.arrays import Floats, Integers
from manifold_observer.tasks.corpus import outside as tasks
from manifold_observer.tasks.corpus.outside import Reach

from ..embedding.read import read
from ..embedding.references import reference_numbers
from ..frames.labels import segment_of
from ..frames.segments import restarts
from .map_config import MapConfig

# Recordings are held out in so many groups, each by itself where they are fewer.
_FOLDS = 8


@dataclass(frozen=True)
class Outside:
    """How far a recording lies outside a map.

    Examples
    --------
    >>> Outside(0.37, 2.5, True).attrs()["outside_share"]
    0.37
    """

    share: float
    """Share of its frames that lie outside."""
    ratio: float
    """Median distance to the map, in that of held-out frames."""
    refit_due: bool

    def attrs(self) -> dict[str, Any]:
        """As attributes of a result."""
        return {
            "outside_share": self.share,
            "outside_distance_ratio": self.ratio,
            "outside_refit_due": int(self.refit_due),
        }


def learn_reach(embedding: xr.Dataset, recording: Integers, n_recordings: int, how: MapConfig) -> Reach:
    """How far frames of recordings lie from a map that is fitted without them; this computes.

    Groups of recordings are left out of the references in turn and read as new ones. Nothing of the same recording is
    then near them, as nothing will be near the frames of one that comes later.

    Parameters
    ----------
    embedding
        With its frames.
    recording
        Number of the recording of every embedded frame.
    n_recordings
        How many there are.
    how
        The level, and how new frames are measured.
    """
    fold, nearest = _folds(embedding, recording), np.full(len(recording), np.nan)
    references = reference_numbers(embedding)
    for number in range(int(fold.max()) + 1):
        others, own = references[fold[references] != number], np.flatnonzero(fold == number)
        if len(others) > 1 and len(own):
            nearest[own] = _nearest(embedding, others, own, how.centred)
    return tasks.reach_of(nearest, recording, n_recordings, how.level)


def _folds(embedding: xr.Dataset, recording: Integers) -> Integers:
    """Group of every frame: by its recording, or of one recording alone by its stretch."""
    owner = recording if len(np.unique(recording)) > 1 else np.cumsum(restarts(segment_of(embedding))) - 1
    return np.unique(owner, return_inverse=True)[1] % _FOLDS


def _nearest(embedding: xr.Dataset, others: Integers, own: Integers, centred: bool) -> Floats:
    """Distances of some embedded frames to the nearest of some others, as if the former were new."""
    segment = segment_of(embedding)[own]
    frames = embedding["reference"].isel(frame=own).drop_vars("landmark", errors="ignore")
    frames = frames.assign_coords(segment=("frame", segment))
    fewer = embedding.drop_vars("landmark", errors="ignore").assign_coords(landmark=others)
    nothing = np.zeros((0, embedding.sizes["axis"]))
    return read(fewer, frames, np.full(len(own), -1), nothing, centred=centred).nearest


def outside_of(nearest: Floats, reach: Reach, how: MapConfig, *, sampled: bool = False) -> Outside:
    """How far a recording lies outside a map, from the nearest distances of its frames.

    A refit is due where many of its frames lie outside, or where all of them are farther off than those of recordings
    that were held out, as when a sensor has another gain. It would change nothing for a recording that the map was
    fitted on (``sampled``).
    """
    share = float(np.mean(tasks.outside(nearest, reach.limit)))
    ratio = tasks.distance_ratio(nearest, reach.median)
    beyond = share > how.most_outside or ratio > tasks.ratio_limit(reach.ratios)
    return Outside(share, ratio, beyond and not sampled)


def in_words(name: str, found: Outside) -> str | None:
    """The sentence of a recording that lies outside; None for others.

    Examples
    --------
    >>> in_words("night_07", Outside(0.37, 2.51, True)).partition(" (")[0]
    '37 % of the frames of night_07 lie outside the map'
    >>> in_words("night_08", Outside(0.01, 1.0, False)) is None
    True
    """
    if not found.refit_due:
        return None
    share = f"{100 * found.share:.0f} %"
    return (
        f"{share} of the frames of {name} lie outside the map (median distance {found.ratio:.1f} times that of "
        "held-out frames): their states are extrapolated. Refit the map with such recordings in it (corpus run "
        "--refit, or mo.fit_map(..., earlier=))."
    )
