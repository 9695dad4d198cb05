"""A map that is fitted again keeps the orientation of the one before: order and signs of its coordinates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from manifold_observer.tasks.arrays import Floats, Integers
from manifold_observer.tasks.corpus.alignment import Alignment, alignment, explained

from ..embedding.read import known_coordinates, read
from ..frames.alike import frames_like
from ..frames.labels import MAKE_FRAMES, segment_of
from ..graph.warn import warn


class Oriented(NamedTuple):
    """An embedding with the orientation of an earlier one, and what became of the earlier coordinates."""

    embedding: xr.Dataset
    attrs: dict[str, Any]


def oriented(embedding: xr.Dataset, earlier: xr.Dataset, *, centred: bool) -> Oriented:
    """Give an embedding the order and signs of an earlier one; this computes.

    Parameters
    ----------
    embedding
        The new one, before anything is learnt from its coordinates.
    earlier
        The earlier one, with its frames, which are read by the new one.
    centred
        How new frames are measured.

    Returns
    -------
    The same embedding in another order and with other signs. Attributes: correlation of each coordinate with the
    earlier one, and the share of the earlier coordinates' variance that is linear in the new ones.

    Warns
    -----
    UserWarning
        The earlier map is of other features, so that nothing of it can be kept.
    """
    try:
        frames = frames_like("map: frames", embedding, _frames_of(earlier), MAKE_FRAMES)
    except ValueError as error:
        warn(f"map: the earlier map has other features, and its orientation is lost: {error}")
        return Oriented(embedding, {})
    nothing = np.zeros((0, embedding.sizes["axis"]))
    found = read(embedding, frames, np.full(frames.sizes["frame"], -1), nothing, centred=centred)
    near = ~found.far
    if np.count_nonzero(near) <= found.values.shape[1]:
        warn("map: no frames of the earlier map lie within the new one, so that its orientation is lost.")
        return Oriented(embedding, {})
    new, known = found.values[near], known_coordinates(earlier)[near]
    return _turned(embedding, earlier.sizes["mode"], new, known)


def _frames_of(embedding: xr.Dataset) -> xr.DataArray:
    """The frames of an embedding, with what they mean."""
    attrs = {
        str(name).removeprefix("frames_"): value
        for name, value in embedding.attrs.items()
        if str(name).startswith("frames_")
    }
    frames = embedding["reference"].assign_coords(segment=("frame", segment_of(embedding)))
    return frames.assign_attrs(attrs)


def _turned(embedding: xr.Dataset, n_modes: int, new: Floats, known: Floats) -> Oriented:
    """The embedding with coordinates and components matched with the earlier ones."""
    m = embedding.sizes["mode"]
    modes = alignment(known[:, :n_modes], new[:, :m])
    components = alignment(known[:, n_modes:], new[:, m:])
    turned = _components_turned(_modes_turned(embedding, modes), components)
    kept = np.concatenate([modes.correlations, components.correlations])
    attrs = {
        "map_alignment": [float(value) for value in np.nan_to_num(kept)],
        "map_alignment_explained": explained(known, new),
    }
    return Oriented(turned, attrs)


def _modes_turned(embedding: xr.Dataset, how: Alignment) -> xr.Dataset:
    """Diffusion coordinates in another order, with other signs; they stay numbered from 1."""
    turned = embedding.isel(mode=how.order).assign_coords(mode=embedding["mode"].values)
    return _signed(turned, ("coordinate", "lift"), "mode", how.signs)


def _components_turned(embedding: xr.Dataset, how: Alignment) -> xr.Dataset:
    """Principal components, and the axes that they lie along: distances do not depend on their order and signs."""
    width = embedding.sizes["axis"]
    order: Integers = np.concatenate([how.order, np.arange(len(how.order), width)])
    signs = np.concatenate([how.signs, np.ones(width - len(how.order))])
    turned = embedding.isel(component=how.order, axis=order, axis_1=order)
    turned = _signed(turned, ("principal", "principal_lift"), "component", how.signs)
    turned = _signed(turned, ("axes", "mean_covariance"), "axis", signs)
    return _signed(turned, ("mean_covariance",), "axis_1", signs)


def _signed(embedding: xr.Dataset, names: tuple[str, ...], dim: str, signs: Floats) -> xr.Dataset:
    """Some variables with other signs along a dimension."""
    factor = xr.DataArray(signs, dims=dim)
    there = [name for name in names if name in embedding]
    return embedding.assign(
        {
            name: (embedding[name] * factor).transpose(*embedding[name].dims).assign_attrs(embedding[name].attrs)
            for name in there
        }
    )
