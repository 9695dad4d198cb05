"""Where observers start anew, as the few places that there are: nothing as long as the recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from manifold_observer.tasks.arrays import Booleans, Integers

from ..frames.labels import segments_of
from ..frames.segments import Segments, at, restarts
from ..graph.spans import Span

BRIDGED = 5
"""Gaps of fewer frames than this do not make a filter start anew: a logger that skips a second forgets nothing."""
LEARNT_FROM, LEARNT_RUN = 2**20, 2**16
"""Frames that dynamics are learnt from at most, and those of them that follow each other."""
LONG_AGO = 2**62
"""Age of a frame of which nobody knows when its filter started."""


class Starts(NamedTuple):
    """Frames at which filters start anew, among n that follow each other.

    ``places`` ascend; ``before`` is how many frames since its start are behind the first frame, where it is no start.
    """

    n: int
    places: Integers
    before: int = LONG_AGO

    @classmethod
    def of(cls, anew: Booleans, before: int = LONG_AGO) -> Starts:
        """Those that are marked.

        Examples
        --------
        >>> Starts.of(np.array([True, False, True])).places
        array([0, 2])
        """
        return cls(len(anew), np.flatnonzero(anew), before)

    def mask(self) -> Booleans:
        """True at every start, shape (n,)."""
        marked = np.zeros(self.n, bool)
        marked[self.places] = True
        return marked

    def ages(self) -> Integers:
        """Frames before each frame since its filter started, shape (n,).

        Examples
        --------
        >>> Starts(4, np.array([2]), before=7).ages()
        array([7, 8, 0, 1])
        """
        numbers, firsts = np.arange(self.n), np.full(self.n, -self.before)
        firsts[self.places] = self.places
        return numbers - np.maximum.accumulate(firsts)

    def cut(self, span: Span) -> Starts:
        """Those of some of the frames.

        Examples
        --------
        >>> Starts(6, np.array([0, 4])).cut((2, 6))
        Starts(n=4, places=array([2]), before=2)
        """
        low, high = np.searchsorted(self.places, span).tolist()
        behind = self.before + span[0] if low == 0 else span[0] - int(self.places[low - 1])
        return Starts(span[1] - span[0], self.places[low:high] - span[0], behind)

    def first_of(self, anew: bool) -> Starts:
        """The same, but that the first frame is a start or not."""
        rest = self.places[self.places > 0]
        return self._replace(places=np.concatenate([np.zeros(int(anew), np.int64), rest]))

    def reversed(self) -> Starts:
        """Where filters start that run over the same frames from the last to the first.

        Examples
        --------
        >>> Starts(5, np.array([0, 3])).reversed().places
        array([0, 2])
        """
        rest = self.n - self.places[self.places > 0][::-1]
        return Starts(self.n, np.concatenate([np.zeros(1, np.int64), rest]))

    @property
    def next_age(self) -> int:
        """Age that a frame after the last one would have."""
        return self.before + self.n if not len(self.places) else self.n - int(self.places[-1])


def begun(labelled: xr.DataArray | xr.Dataset) -> Starts:
    """Where observers start anew, among frames or embedded ones: at every segment, but for short pauses.

    Fewer than ``BRIDGED`` missing frames are a short pause, if it is known how long it was.

    Examples
    --------
    >>> labels = {"time": ("frame", [0.0, 1.0, 4.0, 20.0]), "segment": ("frame", [0, 0, 1, 2])}
    >>> begun(xr.DataArray(np.zeros(4), dims="frame", coords=labels, attrs={"frame_period": 1.0})).places
    array([0, 3])
    """
    segments = segments_of(labelled)
    n, places, later = len(segments), segments.firsts, segments.firsts[1:]
    if "time" in labelled.coords and len(later):
        steps = at(labelled["time"], later) - at(labelled["time"], later - 1)
        short = (steps > 0) & (steps < (BRIDGED + 1) * _period(labelled))
        unknown = np.isin(at(labelled["time"], later), np.atleast_1d(labelled["time"].attrs.get("unknown_pauses", [])))
        places = np.concatenate([places[:1], later[unknown | ~short]])
    return Starts(n, places)


def apart(segments: Segments, spans: Sequence[Span]) -> Integers:
    """Segments of the frames of some spans, of which no two share one.

    Examples
    --------
    >>> apart(Segments.of([np.array([0, 0, 0, 1])]), [(0, 2), (2, 4)])
    array([1, 1, 2, 3])
    """
    if len(spans) == 1:
        return np.asarray(segments[slice(*spans[0])])
    own = [np.cumsum(restarts(segments[slice(*span)])) for span in spans]
    before = np.cumsum([0, *(int(numbers[-1]) for numbers in own[:-1])])
    return np.concatenate([first + numbers for first, numbers in zip(before, own, strict=True)])


def _period(labelled: xr.DataArray | xr.Dataset) -> float:
    """Seconds between two frames."""
    for name in ("frame_period", "frames_frame_period"):
        if name in labelled.attrs:
            return float(labelled.attrs[name])
    times: NDArray[np.float64] = labelled["time"].values.astype(np.float64)
    return float(np.median(np.diff(times)))
