"""Units of recordings that are joined: converted where they differ by a power of ten, else refused."""

from __future__ import annotations

import re
from collections.abc import Sequence

import xarray as xr

UNKNOWN = ("", "unknown", "none")
"""What stands where a file does not tell a unit: it goes with any."""

_POWERS = {"p": -12, "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9}
_NAMES = {"pico": "p", "nano": "n", "micro": "u", "milli": "m", "": "", "kilo": "k", "mega": "M", "giga": "G"}
_BASES = "V|A|s|Hz|Pa|T|W|N|g|m|J|K|S|Ohm|F"
_SYMBOL = re.compile(rf"([pnumkMG]?)({_BASES})")
_WORDS = {"volt": "V", "ampere": "A", "second": "s", "sec": "s", "hertz": "Hz", "pascal": "Pa", "tesla": "T"}
_WORD = re.compile(rf"(pico|nano|micro|milli|kilo|mega|giga|)({'|'.join(_WORDS)})s?")
# Beside powers of ten of a second.
_SECONDS = {"min": 60.0, "minute": 60.0, "minutes": 60.0, "h": 3600.0, "hour": 3600.0, "hours": 3600.0, "msec": 1e-3}
_SECONDS |= {"usec": 1e-6, "nsec": 1e-9, "d": 86400.0, "day": 86400.0, "days": 86400.0}


def units_of(recording: xr.DataArray) -> str | None:
    """Unit of a recording's values, None where it is not told.

    Examples
    --------
    >>> units_of(xr.DataArray(0.0, attrs={"units": "mV"})), units_of(xr.DataArray(0.0, attrs={"units": "unknown"}))
    ('mV', None)
    """
    units = str(recording.attrs.get("units", "")).strip()
    return None if units.lower() in UNKNOWN else units


def power_of_ten(units: str) -> tuple[int, str] | None:
    """The power of ten and the base of a unit; None for one that is not known here.

    Examples
    --------
    >>> power_of_ten("mV"), power_of_ten("µV"), power_of_ten("microvolts"), power_of_ten("counts")
    ((-3, 'V'), (-6, 'V'), (-6, 'V'), None)
    """
    plain = units.strip().replace("µ", "u").replace("μ", "u").replace("Ω", "Ohm").replace("Ω", "Ohm")
    if found := _SYMBOL.fullmatch(plain):
        return _POWERS[found[1]], found[2]
    if found := _WORD.fullmatch(plain.lower()):
        return _POWERS[_NAMES[found[1]]], _WORDS[found[2]]
    return None


def seconds_in(units: str) -> float | None:
    """Seconds in a unit of time; None for what is none.

    Examples
    --------
    >>> seconds_in("ms"), seconds_in("minutes"), seconds_in("V")
    (0.001, 60.0, None)
    """
    if units.strip().lower() in _SECONDS:
        return _SECONDS[units.strip().lower()]
    found = power_of_ten(units)
    return 10.0 ** found[0] if found and found[1] == "s" else None


def in_units(recording: xr.DataArray, units: str | None, what: str) -> xr.DataArray:
    """A recording in the units of another, lazily.

    Parameters
    ----------
    recording
        Dims ``(time, channel)``, with the attribute ``units`` where it is known.
    units
        Of what it joins; None where they are not told.
    what
        Begins the error.

    Returns
    -------
    The very recording, where the units are the same or one of them is not told; else multiplied or divided
    by a power of ten.

    Raises
    ------
    ValueError
        The units do not measure the same.

    Examples
    --------
    >>> in_units(xr.DataArray([1.5], attrs={"units": "mV"}), "uV", "run").values
    array([1500.])
    """
    own = units_of(recording)
    if own is None or units is None or own == units:
        return recording
    found, wanted = power_of_ten(own), power_of_ten(units)
    if found is None or wanted is None or found[1] != wanted[1]:
        raise ValueError(
            f"{what}: recordings must be in units of the same quantity; got {units!r} and {own!r} in "
            f"{recording.attrs.get('source', 'the next')}. Convert it, or correct its attribute 'units'."
        )
    power = found[0] - wanted[0]
    if power == 0:  # another spelling
        return recording.assign_attrs(units=units)
    # 10.0 ** -3 is not exact: dividing by a whole power rounds once.
    scaled = recording * 10.0**power if power >= 0 else recording / 10.0**-power
    return scaled.assign_attrs({**recording.attrs, "units": units})


def alike(recordings: Sequence[xr.DataArray], what: str) -> list[xr.DataArray]:
    """Recordings in the units of the first that tells its own; channels of other names are refused.

    Parameters
    ----------
    recordings
        In their order.
    what
        Begins the error.

    Raises
    ------
    ValueError
        Units that do not measure the same, or channels of other names or in another order.

    Examples
    --------
    >>> volts = [xr.DataArray([[1.0]], dims=("time", "channel"), attrs={"units": u}) for u in ("V", "mV")]
    >>> [float(each[0, 0]) for each in alike(volts, "run")]
    [1.0, 0.001]
    """
    units = next((own for own in map(units_of, recordings) if own is not None), None)
    _check_channels(recordings, what)
    return [in_units(recording, units, what) for recording in recordings]


def _check_channels(recordings: Sequence[xr.DataArray], what: str) -> None:
    """Channels must bear the same names in the same order, where a file names them."""
    named = [(recording, _names_of(recording)) for recording in recordings]
    told = [(recording, names) for recording, names in named if names is not None]
    for recording, names in told[1:]:
        if names != told[0][1]:
            raise ValueError(
                f"{what}: recordings must have the same channels in the same order; got {', '.join(told[0][1][:9])} "
                f"and {', '.join(names[:9])} in {recording.attrs.get('source', 'the next')}. Choose recordings "
                "of the same sensors, or rename their channels."
            )


def _names_of(recording: xr.DataArray) -> list[str] | None:
    """Names of the channels; None where the file only numbers them."""
    if "channel" not in recording.coords:
        return None
    names = [str(name) for name in recording["channel"].values]
    numbered = [f"ch{k + 1}" for k in range(len(names))]
    return None if names == numbered else names
