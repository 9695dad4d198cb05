"""Rates of the hidden diffusion, from those of the Markov chain and the bursts that covariances were measured in."""

from __future__ import annotations

import xarray as xr

from manifold_observer.tasks.engine import diffusion


def generator_rates(embedding: xr.Dataset, burst_duration: float) -> xr.DataArray:
    r"""Decay rates of the hidden diffusion in 1/s, from an embedding with burst covariances.

    .. math:: -\lambda = \log \mu / (\varepsilon\, \delta t)

    at alpha = 0 (twice that at alpha = 1/2), with :math:`\delta t` the duration of a burst.

    Take alpha = 1/2 where the potential of the diffusion is not known to be quadratic. At alpha = 0 the kernel sees
    twice the potential: of a quadratic one all rates double, which the formula takes back, but of no other. In a double
    well the rates .75, 6.0 and 11.7 come out as .24, 4.0 and 7.2 at alpha = 0, and as .72, 6.1 and 12.1 at alpha = 1/2.

    Parameters
    ----------
    embedding
        As :func:`embed` made it, with a kernel of one scale.
    burst_duration
        Seconds over which the local covariances were measured. For features that are means over a
        burst of length T it is about T / 3.

    Returns
    -------
    Dims ``(mode,)``, 1/s, at least 0.

    Raises
    ------
    ValueError
        The scale is local, alpha is neither 0 nor 1/2, or the duration is not above 0.

    Examples
    --------
    >>> toy = xr.Dataset({"rate": ("mode", [0.02]), "epsilon": 2.0}, attrs={"alpha": 0.0})
    >>> generator_rates(toy, burst_duration=0.01).values
    array([1.])
    """
    if "scale" in embedding:
        raise ValueError("generator_rates: the kernel must have one scale; got epsilon='local'. Embed with 'median'.")
    if not burst_duration > 0:
        raise ValueError(f"generator_rates: burst_duration must be above 0 seconds; got {burst_duration}.")
    alpha = float(embedding.attrs["alpha"])
    if alpha not in (0.0, 0.5):
        raise ValueError(f"generator_rates: alpha must be 0 or 0.5; got {alpha}. Embed with alpha=0.5.")
    rates = diffusion.generator_rates(embedding["rate"].values, float(embedding["epsilon"]), alpha, burst_duration)
    return xr.DataArray(
        rates,
        dims="mode",
        coords={"mode": embedding["mode"]} if "mode" in embedding.coords else None,
        name="generator_rate",
        attrs={"units": "1/s", "long_name": "decay rate of the hidden diffusion"},
    )
