"""Channels of one file that differ in their sampling rates: refused, chosen, or held."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .contract import refusal
from .sampled import Samples

HOLD = "hold"


class Channel(NamedTuple):
    """One channel: its ``label``, its ``number`` in the file, and its ``samples`` in a common period."""

    label: str
    number: int
    samples: int


def chosen_channels(
    reader: str, path: str, labels: Sequence[str], channels: Sequence[str] | None, dropped: Sequence[str]
) -> list[int]:
    """Numbers of the channels that are wanted.

    Parameters
    ----------
    reader, path
        For the error.
    labels
        Of all channels, each once.
    channels
        Labels to take, in this order; None for all.
    dropped
        Labels to leave out.

    Raises
    ------
    ValueError
        A label that is not there, or none is left.

    Examples
    --------
    >>> chosen_channels("edf", "a.edf", ["Fz", "Cz", "Pz"], None, ["Cz"])
    [0, 2]
    """
    known = {label: number for number, label in enumerate(labels)}
    for label in (*(channels or ()), *dropped):
        if label not in known:
            raise refusal(reader, path, "have the channels that are named", repr(label), f"It has {listed(labels, 99)}")
    numbers = [known[label] for label in (labels if channels is None else channels) if label not in dropped]
    if not numbers:
        raise refusal(reader, path, "keep a channel", f"none of {listed(labels)}", "Leave out fewer")
    return numbers


def of_rate(
    reader: str, path: str, channels: Sequence[Channel], period: float, rates: str | float | None
) -> list[Channel]:
    """Channels of one rate, or of rates that divide the highest.

    Parameters
    ----------
    reader, path
        For the error.
    channels
        Those that are wanted.
    period
        Seconds in which each has its samples.
    rates
        None refuses several rates; a number takes the channels of that rate in Hz; "hold" keeps all.

    Raises
    ------
    ValueError
        Several rates, none that is asked for, or some that do not divide the highest.

    Examples
    --------
    >>> pair = [Channel("EEG", 0, 100), Channel("Temp", 1, 1)]
    >>> [channel.label for channel in of_rate("edf", "a.edf", pair, 1.0, 100)]
    ['EEG']
    """
    most = max(channel.samples for channel in channels)
    if not most:
        raise refusal(reader, path, "hold samples", "none in any channel", "Export it again")
    if rates == HOLD:
        odd = [channel.label for channel in channels if not channel.samples or most % channel.samples]
        if odd:
            must = f"have rates that divide the highest, {_hz(most, period)}, for rates='hold'"
            raise refusal(reader, path, must, f"others in {listed(odd)}", "Choose one rate, or channels=")
        return [*channels]
    if rates is not None:
        wanted = _rate(reader, rates)
        kept = [channel for channel in channels if np.isclose(channel.samples / period, wanted, rtol=1e-6)]
        if not kept:
            raise refusal(reader, path, f"have channels of {rates} Hz", _by_rate(channels, period), "Name one of these")
        return kept
    if any(channel.samples != most for channel in channels):
        remedy = f"Choose one with rates={most / period:.10g}, repeat slow samples with rates='hold', or name channels="
        raise refusal(reader, path, "have one sampling rate", _by_rate(channels, period), remedy)
    return [*channels]


def held(samples: Samples, repeat: int) -> Samples:
    """Samples of a slow channel, each repeated up to the next.

    Examples
    --------
    >>> held(np.array([1, 2]), 2)
    array([1, 1, 2, 2])
    """
    return np.repeat(samples, repeat) if repeat > 1 else samples


def listed(names: Sequence[str], most: int = 9) -> str:
    """Some names, and how many more there are.

    Examples
    --------
    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _rate(reader: str, rates: str | float) -> float:
    """A rate, which the command line gives as text."""
    try:
        return float(rates)
    except ValueError:
        raise ValueError(f"{reader}: rates must be 'hold' or a number of Hz; got {rates!r}.") from None


def _by_rate(channels: Sequence[Channel], period: float) -> str:
    """The rates that there are, and whose they are."""
    groups: dict[int, list[str]] = {}
    for channel in channels:
        groups.setdefault(channel.samples, []).append(channel.label)
    ordered = sorted(groups.items(), reverse=True)
    return "; ".join(f"{_hz(samples, period)}: {listed(labels, 3)}" for samples, labels in ordered)


def _hz(samples: int, period: float) -> str:
    """A rate in words."""
    return f"{samples / period:.10g} Hz"
