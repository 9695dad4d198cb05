"""How well a result tells the labels that its frames were given."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..comparison.scores import class_scores

_MOST_FRAMES = 20_000
_MOST_LABELS = 200
_CLOCK = ("time", "segment")
_FEW_FRAMES = 10


def label_scores(tree: xr.DataTree) -> dict[str, dict[str, Any]]:
    """Score the state and the coordinates of a result by the labels of its frames; this computes.

    Parameters
    ----------
    tree
        As :func:`run` gave it.

    Returns
    -------
    By the name of the labels: the frames of each, and the balanced accuracy with which nearest neighbours in other
    stretches of time tell it. At most 20,000 frames, evenly chosen, are looked at.

    Notes
    -----
    Labels of fewer than ten frames are left out. ``chance`` is what guessing reaches.
    """
    along = {str(name): c for name, c in tree["frames"].to_dataset().coords.items() if c.dims == ("frame",)}
    # NumPy knows no way from one kind of text to the other.
    texts = {
        name: labels.values.astype(object).astype(str)
        for name, labels in along.items()
        if name not in _CLOCK and labels.dtype.kind in "biuUTO"
    }
    return {name: _scored(tree, text) for name, text in texts.items() if len(np.unique(text)) <= _MOST_LABELS}


def _scored(tree: xr.DataTree, text: NDArray[Any]) -> dict[str, Any]:
    """Scores by one kind of labels."""
    step = max(1, -(-len(text) // _MOST_FRAMES))
    names, codes, counts = np.unique(text[::step], return_inverse=True, return_counts=True)
    kept = [k for k, name in enumerate(names) if name and counts[k] >= _FEW_FRAMES]
    frames = {str(names[k]): int((text == names[k]).sum()) for k in range(len(names)) if names[k]}
    if len(kept) < 2:
        return {"frames": frames, "balanced_accuracy": {}, "chance": None}
    known = np.where(np.isin(codes, kept), codes, -1)
    groups = {
        "state": ("state", "state"),
        "coordinates": ("embedding", "coordinate"),
        "smoothed": ("smoothed", "state"),
    }
    there = {name: tree[group].to_dataset()[own] for name, (group, own) in groups.items() if group in tree.children}
    shares = {
        name: float(class_scores({name: values[::step]}, xr.DataArray(known, dims="frame")).balanced_accuracy.item())
        for name, values in there.items()
        if values.sizes["frame"] == len(text)
    }
    return {"frames": frames, "balanced_accuracy": shares, "chance": 1 / len(kept)}


def in_words(name: str, scores: dict[str, Any]) -> str:
    """The scores for a person.

    Examples
    --------
    >>> in_words("stage", {"frames": {"a": 30, "b": 20}, "balanced_accuracy": {"state": 0.9}, "chance": 0.5})
    'stage: a 30, b 20 frames; read from state .90 (chance .50, balanced accuracy, held-out stretches)'
    """
    listed = sorted(scores["frames"].items(), key=lambda pair: -pair[1])
    more = f" and {len(listed) - 6} more" if len(listed) > 6 else ""
    counts = ", ".join(f"{name} {number}" for name, number in listed[:6]) + more
    if not scores["balanced_accuracy"]:
        return f"{name}: {counts} frames; no two of them have {_FEW_FRAMES} frames, so that nothing is scored"
    told = ", ".join(f"{name} {_share(share)}" for name, share in scores["balanced_accuracy"].items())
    chance = _share(scores["chance"])
    return f"{name}: {counts} frames; read from {told} (chance {chance}, balanced accuracy, held-out stretches)"


def _share(share: float) -> str:
    """A share without its nought."""
    return f"{share:.2f}".removeprefix("0")
