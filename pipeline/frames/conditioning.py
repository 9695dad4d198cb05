"""Conditioned features: how an embedding transforms and scales plain ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from manifold_observer.tasks.engine.conditioning import Conditioning


def conditioning_of(embedding: xr.Dataset) -> Conditioning | None:
    """How an embedding conditions its features; None where it takes them as they are.

    Examples
    --------
    >>> conditioning_of(xr.Dataset({"feature_mean": ("feature", [0.0])})) is None
    True
    """
    if "feature_scale" not in embedding:
        return None
    attrs = embedding.attrs
    limits = np.asarray(embedding["feature_limit"].values) if "feature_limit" in embedding else None
    scale = np.asarray(embedding["feature_scale"].values)
    return Conditioning(str(attrs["transform"]), float(attrs["transform_floor"]), scale, limits)


def kept(conditioning: Conditioning | None) -> tuple[dict[str, Any], dict[str, float | str]]:
    """Variables and attributes by which an embedding keeps it."""
    if conditioning is None:
        return {}, {"transform": "none"}
    variables: dict[str, Any] = {"feature_scale": ("feature", conditioning.scale)}
    if conditioning.limits is not None:
        variables["feature_limit"] = (("side", "feature"), conditioning.limits)
    return variables, {
        "transform": conditioning.transform,
        "transform_floor": conditioning.floor,
    }
