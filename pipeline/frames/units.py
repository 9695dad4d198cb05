"""Units and channels of recordings that are joined: converted and put in order by name, else refused."""

from __future__ import annotations

import re
from collections.abc import Sequence

import xarray as xr

from .labels import channel_name, in_rows

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


def spelt_units(recording: xr.DataArray) -> str:
    """Unit of a recording, or those of all channels by their names, where they differ.

    Examples
    --------
    >>> labels = {"channel": ["b", "a"], "channel_units": ("channel", ["uV", "degC"])}
    >>> spelt_units(xr.DataArray([[1.0, 2.0]], dims=("time", "channel"), coords=labels, attrs={"units": "mixed"}))
    'a degC; b uV'
    """
    units = units_of(recording) or "unknown"
    if units != "mixed" or not {"channel", "channel_units"} <= set(recording.coords):
        return units
    pairs = zip(recording["channel"].values, recording["channel_units"].values, strict=True)
    return "; ".join(sorted(f"{channel_name(name)} {own}" for name, own in pairs))


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
    """Recordings in the units and the order of channels of the first that tells its own.

    Parameters
    ----------
    recordings
        In their order.
    what
        Begins the error.

    Raises
    ------
    ValueError
        Units that do not measure the same, or channels of other names.

    Examples
    --------
    >>> volts = [xr.DataArray([[1.0]], dims=("time", "channel"), attrs={"units": u}) for u in ("V", "mV")]
    >>> [float(each[0, 0]) for each in alike(volts, "run")]
    [1.0, 0.001]
    """
    units = next((own for own in map(units_of, recordings) if own is not None), None)
    _check_mixed(recordings, what)
    wanted = next((names for names in map(_names_of, recordings) if names is not None), None)
    return [in_units(_in_order_of(wanted, recording, what), units, what) for recording in recordings]


def _check_mixed(recordings: Sequence[xr.DataArray], what: str) -> None:
    """Channels of different units must have the same ones in every recording."""
    spelt = [(spelt_units(each), each) for each in recordings if units_of(each) == "mixed"]
    for units, recording in spelt[1:]:
        if units != spelt[0][0]:
            raise ValueError(
                f"{what}: recordings must have the same units channel by channel; got {spelt[0][0]} and {units} in "
                f"{recording.attrs.get('source', 'the next')}. Convert it, or correct its units."
            )


def _in_order_of(wanted: list[str] | None, recording: xr.DataArray, what: str) -> xr.DataArray:
    """A recording with its channels in the wanted order, where both have names."""
    names = _names_of(recording)
    if wanted is None or names is None or names == wanted:
        return recording
    if sorted(names) != sorted(wanted) or len(set(names)) < len(names):
        raise ValueError(
            f"{what}: recordings must have the same channels; got {', '.join(wanted[:9])} and "
            f"{', '.join(names[:9])} in {recording.attrs.get('source', 'the next')}. Choose recordings of the same "
            "sensors, or rename the channels that are the same."
        )
    return in_rows(recording.isel(channel=[names.index(name) for name in wanted]))


def _names_of(recording: xr.DataArray) -> list[str] | None:
    """Names of the channels; None where the file only numbers them."""
    if "channel" not in recording.coords:
        return None
    names = [channel_name(name).strip() for name in recording["channel"].values]
    numbered = [f"ch{k + 1}" for k in range(len(names))]
    return None if names == numbered else names
