"""The clock of evenly spaced samples."""

import xarray as xr
from xarray.indexes import RangeIndex


def uniform_time(n_samples: int, sampling_rate: float, long_name: str = "time") -> xr.Coordinates:
    """Make the time of evenly spaced samples, in s from 0, without storing it.

    Parameters
    ----------
    n_samples
        Number of samples.
    sampling_rate
        Samples per second, in Hz.
    long_name
        What the seconds count.

    Returns
    -------
    The lazy coordinate ``time``.

    Examples
    --------
    >>> uniform_time(4, 2.0)["time"].values
    array([0. , 0.5, 1. , 1.5])
    """
    index = RangeIndex.linspace(0, n_samples / sampling_rate, n_samples, endpoint=False, dim="time")
    time = xr.Coordinates.from_xindex(index)
    time["time"].attrs.update(units="s", long_name=long_name)
    return time
