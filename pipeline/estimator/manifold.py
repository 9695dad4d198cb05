"""Embedding and observer as an estimator of scikit-learn: arrays in, arrays out."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "ManifoldObserver needs scikit-learn, which is not installed. Install it with: pip install scikit-learn"
    ) from error

from ..embedding.embed import embed
from ..observers.observe import observe
from ..observers.reconstruction import innovations, reconstruct

Floats = NDArray[np.float64]

NEW_FRAMES = ("apart", "continue")
"""How new frames are read: as a recording of their own, or as what follows the frames of the fit."""

EXPECTED_FAILED_CHECKS = {
    "check_methods_sample_order_invariance": "rows are frames in time: another order is another recording",
    "check_methods_subset_invariance": "a state is read from the rows before it, which a subset lacks",
}
"""Checks of scikit-learn that an observer of a time series cannot pass, and why: for ``check_estimator``."""


class ManifoldObserver(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Diffusion maps and observer for pipelines and model selection of scikit-learn: rows are frames, in time order.

    Rows must stand in the order of time, a period apart. Give scalers no other order, split with ``TimeSeriesSplit``,
    and never shuffle.

    Parameters
    ----------
    n_modes, window, epsilon, epsilon_factor, alpha, preset
        As for :func:`embed`.
    gain, dynamics
        As for :func:`observe`.
    new_frames
        ``"apart"`` reads the rows that :meth:`transform` is given, where they are not those of the fit, as a recording
        of their own, so that a call never depends on the one before. ``"continue"`` reads them as what follows the
        rows of the fit without a gap: right for the later part of a recording, as ``TimeSeriesSplit`` cuts it.

    Attributes
    ----------
    embedding_
        The Dataset that :func:`embed` gave.
    carry_
        The carry of :func:`observe` after the last row of the fit.
    n_features_in_, feature_names_in_
        As usual.

    Notes
    -----
    :meth:`transform` of the rows of the fit gives ``observe(embed(X), X).state``; it knows them by their values.
    A state depends on the rows before it. That is why row-by-row checks of ``check_estimator`` cannot pass: see
    :data:`EXPECTED_FAILED_CHECKS`.

    Examples
    --------
    >>> wave = np.sin(np.arange(400)[:, None] / [20, 25, 31]) + 0.1 * np.random.default_rng(0).normal(size=(400, 3))
    >>> states = ManifoldObserver(n_modes=2).fit(wave[:300])
    >>> states.transform(wave[300:]).shape, list(states.get_feature_names_out())[:2]
    ((100, 4), ['coordinate1', 'coordinate2'])
    """

    def __init__(
        self,
        n_modes: int | None = None,
        *,
        window: int = 21,
        epsilon: float | str = "median",
        epsilon_factor: float = 1.0,
        alpha: float = 0.0,
        preset: str = "auto",
        gain: str = "auto",
        dynamics: str = "auto",
        new_frames: str = "apart",
    ) -> None:
        self.n_modes = n_modes
        self.window = window
        self.epsilon = epsilon
        self.epsilon_factor = epsilon_factor
        self.alpha = alpha
        self.preset = preset
        self.gain = gain
        self.dynamics = dynamics
        self.new_frames = new_frames

    def fit(self, X: ArrayLike | xr.DataArray, y: Any = None, *, segment: ArrayLike | None = None) -> ManifoldObserver:
        """Embed the rows; this computes.

        Parameters
        ----------
        X
            Shape (frames, features), or a DataArray ``(frame, feature)`` whose ``segment`` and ``time`` count.
        y
            Not used.
        segment
            Number of the gap-free stretch of every row, shape (frames,); one stretch by default.

        Returns
        -------
        The estimator.
        """
        if self.new_frames not in NEW_FRAMES:
            raise ValueError(f"ManifoldObserver: new_frames must be 'apart' or 'continue'; got {self.new_frames!r}.")
        frames = self._frames(X, segment, fitting=True)
        self.embedding_ = embed(
            frames,
            self.n_modes,
            self.window,
            epsilon=self.epsilon,
            alpha=self.alpha,
            epsilon_factor=self.epsilon_factor,
            preset=self.preset,
        ).compute()
        self.carry_ = self._observed(frames)["carry"]
        return self

    def transform(self, X: ArrayLike | xr.DataArray, *, segment: ArrayLike | None = None) -> Floats:
        """States of rows; this computes.

        Parameters
        ----------
        X, segment
            As for :meth:`fit`.

        Returns
        -------
        Shape (frames, states), each from the rows up to it; the columns are :meth:`get_feature_names_out`.
        """
        check_is_fitted(self)
        return np.asarray(self._read(self._frames(X, segment))["state"].values)

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """Features that states stand for, shape (frames, features)."""
        check_is_fitted(self)
        states = np.asarray(X, np.float64)
        return np.asarray(reconstruct(self.embedding_, xr.DataArray(states, dims=("frame", "mode"))).values)

    def score(self, X: ArrayLike | xr.DataArray, y: Any = None, *, segment: ArrayLike | None = None) -> float:
        """Share of the features' variance that the states of the rows before predict: larger is better, no labels.

        Parameters
        ----------
        X, segment
            As for :meth:`fit`.
        y
            Not used.

        Returns
        -------
        1 less the mean square of the innovations in units of the features' deviations; below 0 where the mean of the
        fit would predict better.
        """
        check_is_fitted(self)
        frames = self._frames(X, segment)
        size = innovations(self.embedding_, frames, self._read(frames), self._carry(frames))["innovation_size"]
        return 1.0 - float(np.square(size.values).mean())

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the states: what each is read from."""
        check_is_fitted(self)
        n_modes = self.embedding_.sizes["mode"]
        names = [f"coordinate{number}" for number in range(1, n_modes + 1)]
        n_components = self._n_states() - n_modes
        return np.array([*names, *(f"component{number}" for number in range(1, n_components + 1))], object)

    def _n_states(self) -> int:
        """States of a frame."""
        return self.embedding_.sizes["mode"] + self.embedding_.sizes.get("component", 0)

    def _frames(self, X: Any, segment: Any, *, fitting: bool = False) -> xr.DataArray:
        """Rows as labelled frames, after scikit-learn's checks."""
        values = validate_data(self, _rows(X), reset=fitting, dtype=np.float64, ensure_min_samples=3 if fitting else 1)
        frames = xr.DataArray(values, dims=("frame", "feature"))
        if isinstance(X, xr.DataArray):
            labels = {name: X[name] for name in ("time", "segment") if name in X.coords and X[name].dims == ("frame",)}
            frames = frames.assign_coords(labels).assign_attrs(X.attrs)
        if segment is None:
            return frames
        numbers = np.asarray(segment)
        if numbers.shape != (len(values),):
            raise ValueError(
                f"ManifoldObserver: segment must hold a number for each of {len(values)} rows; got shape "
                f"{numbers.shape}."
            )
        return frames.assign_coords(segment=("frame", numbers))

    def _observed(self, frames: xr.DataArray, carry: xr.DataArray | None = None) -> xr.Dataset:
        """Observe frames."""
        return observe(self.embedding_, frames, gain=self.gain, dynamics=self.dynamics, carry=carry).compute()

    def _read(self, frames: xr.DataArray) -> xr.Dataset:
        """States of frames, after the fit's where that is asked for."""
        return self._observed(frames, self._carry(frames))

    def _carry(self, frames: xr.DataArray) -> xr.DataArray | None:
        """The carry to go on from; none for the rows of the fit, and for those that are read apart."""
        known = self.embedding_["reference"]
        same = frames.shape == known.shape and np.array_equal(frames.values, known.values)
        return None if same or self.new_frames == "apart" else self.carry_


def _rows(X: Any) -> Any:
    """A labelled array with its rows first; anything else as it is."""
    if not isinstance(X, xr.DataArray):
        return X
    return X.transpose("frame", "feature").values if set(X.dims) == {"frame", "feature"} else X.values
