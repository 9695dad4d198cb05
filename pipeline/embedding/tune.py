"""Which settings of the embedding suit a recording, without any label: a scan on a sample of its frames."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from manifold_observer.tasks.arrays import Floats, Integers, standardised
from manifold_observer.tasks.engine import foretelling
from manifold_observer.tasks.engine.conditioning import conditioned
from manifold_observer.tasks.engine.foretelling import Foretold, Nearby

from ..engine.config import EmbedConfig
from ..engine.cuts import run_numbers, sample_spans
from ..frames.conditioning import conditioning_of
from ..frames.given import takes_frames
from ..frames.labels import MAKE_FRAMES, frame_labels, in_order, segment_of
from ..graph.card import card
from ..graph.progress import Progress, silent
from .embed import embed
from .read import known_coordinates

CANDIDATES: dict[str, dict[str, Any]] = {
    "default": {},
    "window of 11": {"window": 11},
    "window of 41": {"window": 41},
    "half the scale": {"epsilon_factor": 0.5},
    "twice the scale": {"epsilon_factor": 2.0},
}
"""What is tried, by name: options that differ from the ones given."""
# Frames of the sample, and of each of its runs.
_FRAMES, _RUN = 2048, 512


@dataclass(frozen=True)
class Tuned:
    """What a scan found.

    Examples
    --------
    >>> found = Tuned(EmbedConfig(window=11), "window of 11", {"default": Foretold(0.2, 0.01),
    ...                                                        "window of 11": Foretold(0.3, 0.01)})
    >>> print(found)
      default                        foretells 20.0%, in random order at most 1.0%
    > window of 11                   foretells 30.0%, in random order at most 1.0%
    """

    config: EmbedConfig
    """The settings to take."""
    name: str
    """Their name in the scan."""
    said: Mapping[str, Foretold]
    """What every candidate foretells of the features a few frames later, and in random order at most."""

    @property
    def table(self) -> xr.Dataset:
        """The scan: ``foretold(candidate)`` and ``foretold_by_chance(candidate)``, shares of variance."""
        names = np.array([*self.said], object)
        shares = {
            "foretold": ("candidate", [found.share for found in self.said.values()]),
            "foretold_by_chance": ("candidate", [found.by_chance for found in self.said.values()]),
        }
        return xr.Dataset(shares, coords={"candidate": names}, attrs={"chosen": self.name})

    def __str__(self) -> str:
        """The scan as text."""
        return "\n".join(
            f"{'>' if name == self.name else ' '} {name:30} foretells {found.share:.1%}, in random order at most "
            f"{found.by_chance:.1%}"
            for name, found in self.said.items()
        )

    def _repr_html_(self) -> str:
        rows = [
            (name, f"foretells {one.share:.1%}, in random order at most {one.by_chance:.1%}")
            for name, one in self.said.items()
        ]
        return card("Settings that were tried", rows, f"Chosen: {self.name}")


@takes_frames
def tune(
    frames: xr.DataArray,
    config: EmbedConfig | None = None,
    candidates: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    progress: Progress = silent,
) -> Tuned:
    """Try settings of the embedding on a sample of the frames, and say which coordinates foretell most; this computes.

    A candidate embeds at most 2,048 frames, in runs of 512. What counts is the share of the features' variance four
    and eight frames later that is foretold by what followed the ten frames whose coordinates and principal components
    are nearest, frames of other blocks of the sample. The features are the leading components as the first candidate
    conditions them, for all candidates.

    Parameters
    ----------
    frames
        Dims ``(frame, feature)``, as for :func:`embed`.
    config
        Settings that all candidates share; the defaults when absent.
    candidates
        Options of :class:`EmbedConfig` by name, those that differ; windows and scales when absent. The first is kept
        unless another foretells a tenth more, and more by 1.64 standard errors over twentieths of the sample.
    progress
        Called with (stage, candidates done, candidates in all).

    Returns
    -------
    The settings to take, as ``config``, and the scan, as ``table``; ``print`` shows it.

    Raises
    ------
    ValueError
        Bad options, or frames that no candidate can embed.

    Examples
    --------
    >>> rng, time = np.random.default_rng(0), np.arange(600)
    >>> slow = np.sin(2 * np.pi * time / 200)[:, None] * [1.0, 0.5, -1.0]
    >>> frames = xr.DataArray(slow + 0.1 * rng.normal(size=(600, 3)), dims=("frame", "feature"))
    >>> found = tune(frames, candidates={"default": {}, "window of 11": {"window": 11}})
    >>> bool((found.table.foretold > 10 * found.table.foretold_by_chance).all())
    True
    """
    frames = in_order("tune: frames", frames, ("frame", "feature"), MAKE_FRAMES)
    shared = config or EmbedConfig()
    tried = {name: replace(shared, **options) for name, options in (candidates or CANDIDATES).items()}
    sample, run = _sampled(frames)
    said: dict[str, Nearby] = {}
    target: Floats | None = None
    for done, (name, own) in enumerate(tried.items()):
        progress("tune", done, len(tried))
        found = _embedded(sample, own)
        if found is None:
            continue
        target = _leading(found, sample) if target is None else target
        said[name] = foretelling.nearby(standardised(known_coordinates(found)), target, run)
    progress("tune", len(tried), len(tried))
    if not said:
        raise ValueError(
            "tune: no candidate could embed the sampled frames. Embed them with mo.embed to see what is wrong."
        )
    first, *others = said
    better = [name for name in others if foretelling.surely_more(said[name], said[first])]
    shares = {name: found.foretold for name, found in said.items()}
    chosen = max(better, key=lambda name: shares[name].share, default=first)
    return Tuned(tried[chosen], chosen, shares)


def _sampled(frames: xr.DataArray) -> tuple[xr.DataArray, Integers]:
    """Runs of consecutive frames, computed, each a segment of its own at least; and the run of every frame."""
    spans = sample_spans(frames.sizes["frame"], _RUN, _FRAMES)
    numbers = run_numbers(segment_of(frames), spans)
    rows = np.concatenate([np.arange(*span) for span in spans])
    some = frames.isel(frame=rows).compute()
    labels = {name: c for name, c in frame_labels(some).items() if name != "segment"}
    return some.assign_coords({**labels, "segment": ("frame", numbers)}), numbers


def _embedded(sample: xr.DataArray, config: EmbedConfig) -> xr.Dataset | None:
    """The sample embedded with some settings; None where they do not suit it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the scan says how good it is
        try:
            return embed(sample, **config.options())
        except (ValueError, RuntimeError):
            return None


def _leading(embedding: xr.Dataset, sample: xr.DataArray) -> Floats:
    """Leading principal components of the features, as the embedding conditions them."""
    values = conditioned(sample.values.astype(np.float64), conditioning_of(embedding))
    values = values - values.mean(axis=0)
    directions = np.linalg.svd(values, full_matrices=False)[2]
    return values @ directions[:8].T
