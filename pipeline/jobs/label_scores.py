"""How well a result tells the labels that its frames were given."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ..comparison.scores import class_scores

_MOST_FRAMES = 20_000
_FEW_FRAMES = 10


def label_scores(tree: xr.DataTree) -> dict[str, Any] | None:
    """Score the state and the coordinates of a result by its labels; this computes.

    Parameters
    ----------
    tree
        As :func:`run` gave it.

    Returns
    -------
    Frames of every label, and the balanced accuracy with which nearest neighbours in other stretches of time tell
    the label; None where frames have no labels. At most 20,000 frames, evenly chosen, are looked at.

    Notes
    -----
    Labels of fewer than ten frames are left out. ``chance`` is what guessing reaches.
    """
    frames_of = tree["frames"].to_dataset()
    if "label" not in frames_of.coords:
        return None
    text = frames_of["label"].values.astype(object).astype(str)  # NumPy knows no way from one kind of text to the other
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


def in_words(scores: dict[str, Any]) -> str:
    """The scores for a person.

    Examples
    --------
    >>> in_words({"frames": {"a": 30, "b": 20}, "balanced_accuracy": {"state": 0.9}, "chance": 0.5})
    'labels: a 30, b 20 frames; told from state .90 (chance .50, balanced accuracy, held-out stretches)'
    """
    listed = sorted(scores["frames"].items(), key=lambda pair: -pair[1])
    more = f" and {len(listed) - 6} more" if len(listed) > 6 else ""
    counts = ", ".join(f"{name} {number}" for name, number in listed[:6]) + more
    if not scores["balanced_accuracy"]:
        return f"labels: {counts} frames; no two of them have {_FEW_FRAMES} frames, so that nothing is scored"
    told = ", ".join(f"{name} {_share(share)}" for name, share in scores["balanced_accuracy"].items())
    chance = _share(scores["chance"])
    return f"labels: {counts} frames; told from {told} (chance {chance}, balanced accuracy, held-out stretches)"


def _share(share: float) -> str:
    """A share without its nought."""
    return f"{share:.2f}".removeprefix("0")
