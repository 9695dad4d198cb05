"""Ways to a state: the project's own, by the settings that are touched.

A way takes a case and the number of frames that are embedded; frames after these are streamed through the embedding.
To compare another one, add it to ``WAYS`` (a name, and a function that gives an :class:`Answer`), or name settings of
``embed`` and ``observe`` on the command line of ``answers.py``.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import manifold_observer.pipeline as mo
from manifold_observer.tasks.observers import observer

from .case import Case, segments
from .prototype import Settings, estimate
from .rivals import GRID, smoothed

Array = NDArray[Any]


class Answer(NamedTuple):
    """What a way says of a case.

    ``state`` (n, m) of all frames; ``coordinates`` (embedded, m) that it started from, or None; ``poles`` (m,) that
    smooth a rival as much, or None where nothing is smoothed; ``warnings`` that the user would have seen.
    """

    state: Array
    coordinates: Array | None
    poles: Array | None
    warnings: list[str]


Way = Callable[[Case, int], Answer]


def engine(**settings: Any) -> Way:
    """The project's embedding and observer, with these settings touched and no other."""
    _check(settings)
    embedded = {key: value for key, value in settings.items() if key in _options(mo.embed)}
    observed = {key: value for key, value in settings.items() if key in _options(mo.observe)}

    def way(case: Case, n_embedded: int) -> Answer:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            return _answer(case, n_embedded, embedded, observed)._replace(
                warnings=sorted({str(warning.message) for warning in caught})
            )

    return way


def _answer(case: Case, n_embedded: int, embedded: dict[str, Any], observed: dict[str, Any]) -> Answer:
    """Embed the first frames, observe them, and continue through the others from the carry."""
    first, rest = case.frames.isel(frame=slice(n_embedded)), case.frames.isel(frame=slice(n_embedded, None))
    embedding = mo.embed(first, **embedded)
    result = mo.observe(embedding, first, **observed)
    states = [result["state"].values]
    if rest.sizes["frame"]:
        states.append(mo.observe(embedding, rest, carry=result["carry"], **observed)["state"].values)
    poles = _poles(result, embedding, first)
    return Answer(np.concatenate(states), _read_from(embedding, result), poles, [])


def _read_from(embedding: xr.Dataset, result: xr.Dataset) -> Array:
    """What a state is smoothed from, as many columns."""
    if result.attrs.get("reading") != "coordinates":
        return embedding["coordinate"].values
    return np.hstack([embedding[name].values for name in ("coordinate", "principal")])


def smoother(**settings: Any) -> Way:
    """The project's embedding and smoother; all frames are embedded, for a smoother has seen them all."""
    _check(settings)

    def way(case: Case, n_embedded: int) -> Answer:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            embedding = mo.embed(case.frames.isel(frame=slice(n_embedded)), **settings)
            result = mo.smooth(embedding, case.frames)
        known = _read_from(embedding, result)
        spans = [slice(s.start, min(s.stop, n_embedded)) for s in segments(case.frames) if s.start < n_embedded]
        poles = _alike(known, result["state"].values[:n_embedded], spans)
        return Answer(result["state"].values, known, poles, sorted({str(warning.message) for warning in caught}))

    return way


def _poles(result: xr.Dataset, embedding: xr.Dataset, frames: xr.DataArray) -> Array:
    """Poles of the paper's observer; of any other filter those of the grid that make its input as smooth as its state.

    A mode that is smoother than 0.98 makes it is given 0.98.
    """
    if result.attrs.get("gain") in ("paper", "unit") and "rates" in result.attrs:
        return observer.poles(np.array(result.attrs["rates"]), float(result.attrs["gamma"]))
    return _alike(_read_from(embedding, result), result["state"].values, segments(frames))


def _alike(inputs: Array, state: Array, spans: list[slice]) -> Array:
    """Poles of the grid that make the inputs as smooth as the state, a mode; more than 0.98 is given 0.98."""
    steps = np.array([_roughness(smoothed(inputs, spans, pole), spans) for pole in GRID])
    return np.array(GRID)[np.abs(steps - _roughness(state, spans)).argmin(axis=0)]


def _roughness(estimate: Array, spans: list[slice]) -> Array:
    """Mean square of the steps over the variance, a mode."""
    steps = np.concatenate([np.diff(estimate[span], axis=0) for span in spans])
    return np.mean(steps**2, axis=0) / np.maximum(estimate.var(axis=0), 1e-30)


def prototype(**settings: Any) -> Way:
    """The prototype of unsupervised defaults, with these settings touched."""
    touched = Settings(**settings)

    def way(case: Case, n_embedded: int) -> Answer:
        found = estimate(case, n_embedded, touched)
        spans = [slice(s.start, min(s.stop, n_embedded)) for s in segments(case.frames) if s.start < n_embedded]
        embedded = found.coordinates[:n_embedded]
        poles = _alike(embedded, found.state[:n_embedded], spans)
        said = ", ".join(f"{name} {share:.3f}" for name, share in found.said.items())
        told = f"shrunk to {found.target} by {found.intensity:.2f}; foretells {said}"
        return Answer(found.state, embedded, poles, [told])

    return way


def _options(function: Callable[..., Any]) -> set[str]:
    """Settings of a function."""
    return set(inspect.signature(function).parameters) - {"frames", "embedding", "carry", "covariance"}


def _check(settings: dict[str, Any]) -> None:
    """Every setting must be one of embed or observe."""
    known = _options(mo.embed) | _options(mo.observe)
    for name in settings:
        if name not in known:
            raise ValueError(f"answers: a setting must be one of {sorted(known)}; got {name!r}. Leave it out.")


WAYS: dict[str, Way] = {
    "default": engine(),
    "causal": engine(geometry=mo.Geometry(causal=True)),
    "smoother": smoother(),
    "paper": engine(preset="paper"),
    "paper eight": engine(preset="paper", n_modes=8),
    "prototype": prototype(),
    "prototype causal": prototype(causal=True),
    "prototype smoother": prototype(smoother=True),
}
"""By name: ``default`` touches nothing; ``eight`` asks for eight coordinates."""
