"""What every variable of a result is: dimensions, kind, unit and meaning, in one place."""

from __future__ import annotations

from typing import NamedTuple

import xarray as xr


class Variable(NamedTuple):
    """Dimensions, NumPy kind of the values, unit ("1" for none), meaning, and dimensions that it may have instead."""

    dims: tuple[str, ...]
    kind: str
    units: str
    long_name: str
    or_dims: tuple[str, ...] | None = None


VARIABLES: dict[str, Variable] = {
    "time": Variable(("frame",), "f", "s", "centre of the frame"),
    "segment": Variable(("frame",), "i", "1", "number of the gap-free stretch, grows at every gap"),
    "frames": Variable(("frame", "feature"), "f", "1", "feature vectors"),
    "eigenvalue": Variable(("mode",), "f", "1", "eigenvalue mu of the Markov matrix, trivial one left out"),
    "coordinate": Variable(("frame", "mode"), "f", "1", "diffusion coordinate psi, unit mean square"),
    "rate": Variable(("mode",), "f", "1", "decay per frame, -log(mu)"),
    "lift": Variable(("feature", "mode"), "f", "1", "mean of centred feature times psi"),
    "feature_mean": Variable(("feature",), "f", "1", "mean of the feature over the embedded frames"),
    "feature_variance": Variable(("feature",), "f", "1", "variance of the feature over the embedded frames"),
    "feature_scale": Variable(("feature",), "f", "1", "what conditioned features are divided by"),
    "feature_limit": Variable(("side", "feature"), "f", "1", "what plain features beyond it count as, below and above"),
    "axes": Variable(("feature", "axis"), "f", "1", "leading principal axes of the conditioned features"),
    "mean_covariance": Variable(("axis", "axis_1"), "f", "1", "mean local covariance of the frames along the axes"),
    "principal": Variable(("frame", "component"), "f", "1", "leading principal components of the conditioned features"),
    "principal_lift": Variable(("feature", "component"), "f", "1", "mean of centred feature times component"),
    "reading_mean": Variable(("reading",), "f", "1", "mean of what a state is read from, over the embedded frames"),
    "reading_deviation": Variable(("reading",), "f", "1", "standard deviation of what a state is read from"),
    "bank_mean": Variable(("bank",), "f", "1", "mean of every observer of the bank"),
    "bank_deviation": Variable(("bank",), "f", "1", "standard deviation of every observer of the bank"),
    "bank_weights": Variable(("bank", "reading"), "f", "1", "mixture of the bank that foretells the frames to come"),
    "bank_back_mean": Variable(("bank",), "f", "1", "mean of every observer that runs backwards"),
    "bank_back_deviation": Variable(("bank",), "f", "1", "standard deviation of every observer that runs backwards"),
    "bank_back_weights": Variable(("bank", "reading"), "f", "1", "mixture that foretells the frames before"),
    "bank_transition": Variable(
        ("bank", "bank_1"), "f", "1", "what a frame leaves of the filter of learnt transitions"
    ),
    "bank_drive": Variable(("bank", "reading"), "f", "1", "what the filter of learnt transitions takes of a frame"),
    "bank_start": Variable(("bank", "reading"), "f", "1", "what it takes of the first frame of a segment"),
    "bank_back_transition": Variable(("bank", "bank_1"), "f", "1", "the same of the filter that runs backwards"),
    "bank_back_drive": Variable(("bank", "reading"), "f", "1", "what the filter backwards takes of a frame"),
    "bank_back_start": Variable(("bank", "reading"), "f", "1", "what it takes of the last frame of a segment"),
    "transitions": Variable(("reading", "reading_1"), "f", "1", "learnt dynamics of the coordinates over a frame"),
    "bank_age": Variable(("age",), "i", "1", "frames since the start of a segment"),
    "state_error": Variable(("age", "reading"), "f", "1", "error variance of a state by frames since the start"),
    "mean_error": Variable(
        ("age", "age_1", "reading"),
        "f",
        "1",
        "error variance of the mean state, by frames since the start and to the end",
    ),
    "new_error": Variable(("reading",), "f", "1", "factor of the error variance of frames that were not embedded"),
    "calibrated_rate": Variable(("mode",), "f", "1", "decay per frame, in the time unit that the frames show"),
    "calibrated_rate_error": Variable(("mode",), "f", "1", "standard error of the calibrated rate"),
    "own_rate": Variable(("mode",), "f", "1", "decay per frame that the mode shows by itself"),
    "own_rate_error": Variable(("mode",), "f", "1", "standard error of the own rate, infinite at a bound"),
    "signal_variance": Variable(("mode",), "f", "1", "variance of the mode, without measurement noise"),
    "signal_variance_error": Variable(("mode",), "f", "1", "standard error of the signal variance"),
    "feature_noise": Variable(("feature",), "f", "1", "variance of the feature that the modes do not explain"),
    "measurement_noise": Variable(("mode", "mode_1"), "f", "1", "covariance of the noise of the modes as measured"),
    "measurement_noise_error": Variable(
        ("mode",), "f", "1", "standard error of the diagonal of the noise of the modes"
    ),
    "epsilon": Variable((), "f", "1", "scale of the kernel exp(-d / epsilon)"),
    "scale": Variable(("frame",), "f", "1", "local scale s, kernel exp(-d / sqrt(s_i s_j))"),
    "residual": Variable(("mode",), "f", "1", "norm of S v - mu v: certificate of the eigenpair"),
    "degree": Variable(("frame",), "f", "1", "row sum of the kernel"),
    "landmark": Variable(("landmark",), "i", "1", "number of an embedded frame from which the others were extended"),
    "kernel_sum": Variable(("frame",), "f", "1", "row sum of the affinities to the references, scaled as degree is"),
    "far": Variable(("frame",), "b", "1", "whether the frame is far from all references"),
    "outside": Variable(("frame",), "b", "1", "whether the frame lies outside the map"),
    "nearest": Variable(("frame",), "f", "1", "distance to the map, in the median one of frames that were held out"),
    "state_mean": Variable(("mode",), "f", "1", "mean state of the recording"),
    "feature_shift": Variable(("feature",), "f", "1", "mean feature of the recording, in deviations of the map's"),
    "held_out_share": Variable(("recording",), "f", "1", "share outside a map that was fitted without the recording"),
    "held_out_ratio": Variable(("recording",), "f", "1", "median distance to such a map, in that of all recordings"),
    "spectrum": Variable(("mode_found",), "f", "1", "eigenvalues looked at for the spectral gap"),
    "reference": Variable(("frame", "feature"), "f", "1", "the embedded frames, for an extension"),
    "reference_covariance": Variable(("frame", "feature", "feature_1"), "f", "1", "local covariances that were given"),
    "state": Variable(("frame", "mode"), "f", "1", "observer state, has seen the frames up to this one"),
    "carry": Variable(("mode",), "f", "1", "what a later call continues from", ("carried",)),
    "state_std": Variable(("frame", "mode"), "f", "1", "posterior standard deviation of the state"),
    "posterior_covariance": Variable(("mode", "mode_1"), "f", "1", "error covariance of the filtered state"),
    "reconstruction": Variable(("frame", "feature"), "f", "1", "features that the state stands for"),
    "innovation": Variable(("frame", "feature"), "f", "1", "features less what was predicted of them"),
    "innovation_size": Variable(("frame",), "f", "1", "innovation over the deviation of the features, all features"),
    "innovation_level": Variable(
        ("frame",), "f", "1", "recent innovation size over that of the embedded frames; 1 fits as it did"
    ),
    "refit_due": Variable(("frame",), "b", "1", "innovation level above all that the embedded frames had"),
    "correlation": Variable(("estimate", "component"), "f", "1", "correlation of read-out and truth"),
    "nrmse_db": Variable(("estimate", "component"), "f", "dB", "error over deviation of the truth"),
    "correlation_held_out": Variable(
        ("estimate", "component"), "f", "1", "correlation on contiguous blocks left out of the fit"
    ),
    "nrmse_db_held_out": Variable(
        ("estimate", "component"), "f", "dB", "error on contiguous blocks left out of the fit"
    ),
}

# Names of a result that are neither variables nor dimensions of one: labels must not hide them either.
_OTHERS = ("time", "channel", "frequency", "bin")
_TAKEN = {*VARIABLES, *_OTHERS, *(dim for known in VARIABLES.values() for dim in (*known.dims, *(known.or_dims or ())))}


def label_name(name: str) -> str:
    """Name of a coordinate of labels, which must not hide anything that a recording or a result has.

    Examples
    --------
    >>> label_name("stage"), label_name("segment"), label_name("state")
    ('stage', 'segment_label', 'state_label')
    """
    return f"{name}_label" if name in _TAKEN else name


def annotate(dataset: xr.Dataset) -> xr.Dataset:
    """Give every known variable its unit and meaning, and check its dimensions and kind.

    Parameters
    ----------
    dataset
        Variables and coordinates by their names in :data:`VARIABLES`; others are left alone.

    Returns
    -------
    The same values; attributes that are set already stay.

    Raises
    ------
    ValueError
        A variable has other dimensions or another kind than the registry says.

    Examples
    --------
    >>> annotate(xr.Dataset({"rate": ("mode", [0.5])})).rate.attrs["units"]
    '1'
    """
    for name in dataset.variables:
        known = VARIABLES.get(str(name))
        if known is None:
            continue
        found = dataset[name]
        if found.dims not in (known.dims, known.or_dims) or found.dtype.kind != known.kind:
            raise ValueError(
                f"annotate: {name} must have dims {known.dims} and kind {known.kind!r}; "
                f"got {found.dims} and {found.dtype.kind!r}."
            )
        found.attrs.setdefault("units", known.units)
        found.attrs.setdefault("long_name", known.long_name)
    return dataset
