"""Which labels name a clock, in which unit: ``time (ms)``, ``t/ms``, ``Zeit``, ``epoch_us``."""

import re
import unicodedata

# Units of a clock of numbers, by how many there are in a second.
UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9, "min": 1 / 60, "h": 1 / 3600, "d": 1 / 86400}
_SPELT = {
    "s": "s|sec|secs|seconds?|sekunden?|secondes?|segundos?",
    "ms": "ms|msecs?|millis|milliseconds?|milli_seconds?|millisekunden?|millisecondes?|milisegundos?",
    "us": "us|usecs?|micros|microseconds?|micro_seconds?|mikrosekunden?|microsecondes?",
    "ns": "ns|nsecs?|nanos|nanoseconds?|nano_seconds?",
    "min": "min|mins|minutes?|minuten?",
    "h": "h|hr|hrs|hours?|stunden?|heures?",
    "d": "d|days?|tage?|jours?",
}
_UNIT = "|".join(f"(?P<{unit}>{words})" for unit, words in _SPELT.items())
# Without a word for time, these name a clock by themselves.
_ALONE = re.compile(
    r"(?:elapsed_)?(?:s|sec|secs|seconds?|sekunden?|secondes?|ms|msecs?|millis|milliseconds?|us|micros|usecs?|microseconds?|nanoseconds?)"
)
_WORDS = (
    "times?|ts|timestamps?|time_?stamps?|date_?times?|dates?|clock|elapsed(?:_times?)?|local_?times?|unix(?:_?times?)?|"
    "posix_?time|epoch(?:_?times?)?|zeit|zeiten|zeitstempel|zeitpunkt|uhrzeit|datum|datum_?zeit|temps|horodatage|heure|"
    "tiempo|fecha|hora|fecha_?hora|tempo|data_?ora|data_?hora|tijd|tijdstip|czas|aika|tid|tidspunkt|"
    "вре[мм]я|дата|时间|時間|时间戳|日時|시간"
)
_CLOCK = re.compile(
    rf"(?:(?:utc|gps|rel(?:ative)?|abs(?:olute)?|sample|recording|measurement|start|sensor|system|lsl|phone|device|unix|posix)_)?(?:{_WORDS}|t)"
    rf"(?:_(?:utc|gmt|local|unix|epoch|formatted|since_start|from_start|elapsed))?(?:_(?:in_)?(?P<unit>{_UNIT}))?(?:_(?:utc|gmt))?"
    r"(?:_(?:(?:utc|gmt)\+?\d*|\+\d+|hh_mm(?:_ss\w*)?|[ymd]+(?:_[ymdhs]+)*(?:_hh_mm\w*)?|iso\w*|local))?"
)
_SINCE = re.compile(rf"(?P<unit>{_UNIT})_since_.*")


def clock_unit(label: str) -> str | None:
    """Tell by its label whether a column is a clock.

    Parameters
    ----------
    label
        The column's label, such as "time", "Timestamp" or "time (ms)".

    Returns
    -------
    The clock's unit, a key of ``UNITS``, as the label states it, else "s"; None for no clock.

    Examples
    --------
    >>> clock_unit("Timestamp"), clock_unit("time [ms]"), clock_unit("T"), clock_unit("t/µs"), clock_unit("Zeit")
    ('s', 'ms', None, 'us', 's')
    """
    found = _found(label)
    return None if found is None else found or "s"


def told_unit(label: str) -> str | None:
    """The unit that the label of a clock states; None where it states none.

    Examples
    --------
    >>> told_unit("time_ms"), told_unit("time")
    ('ms', None)
    """
    return _found(label) or None


def ending_unit(label: str) -> str | None:
    """The unit at the end of any label, for one that the user names as the clock; None where there is none.

    Examples
    --------
    >>> ending_unit("frame time [ms]"), ending_unit("\u03bcs"), ending_unit("elapsed/h"), ending_unit("ch_h")
    ('ms', 'us', 'h', None)
    """
    marked = re.search(r"(?:[\[({/,]|\bin\b|^)\s*([^\W\d_]+)\s*[\])}]?\s*$", label.strip().strip("\"'"))
    if marked is not None and (unit := unit_of(marked[1])) is not None:
        return unit
    last = _plain(label).rpartition("_")[2]
    return unit_of(last) if len(last) > 1 else None


def unit_of(text: str) -> str | None:
    """A unit of time, however it is spelt, as a key of ``UNITS``; None for what is none.

    Examples
    --------
    >>> unit_of("Milliseconds"), unit_of("[s]"), unit_of("V")
    ('ms', 's', None)
    """
    return _named(re.fullmatch(rf"(?P<unit>{_UNIT})", _plain(text)))


def _found(label: str) -> str | None:
    """The unit of a clock's label; empty where it states none, None for what is no clock."""
    plain = _plain(label)
    if label.strip() == "T":
        return None
    if _ALONE.fullmatch(plain):
        return unit_of(plain.removeprefix("elapsed_"))
    match = _CLOCK.fullmatch(plain) or _SINCE.fullmatch(plain)
    return None if match is None else _named(match) or ""


def _named(match: re.Match[str] | None) -> str | None:
    """Which unit a pattern found."""
    return None if match is None else next((unit for unit in UNITS if match.groupdict().get(unit)), None)


def _plain(label: str) -> str:
    """A label in small letters, its words joined by one underscore, without quotes and brackets."""
    # NFKC makes one letter of the two mus: the Greek one.
    text = unicodedata.normalize("NFKC", label).strip().strip("\"'").replace("μ", "u").replace("Μ", "u")
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text) if not text.isupper() else text
    return re.sub(r"[\s\[\](){}<>/\\,;:|.\-_#]+", "_", text).strip("_").lower()
