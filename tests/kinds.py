"""Users' files by kind: what each holds, with which options it is opened, and the value or the sentence that is right.

A row makes its own file. ``want`` has what must be found: ``rate``, ``channels``, ``segments``, ``times`` (the first),
``labels``, ``start``, ``values`` (the first row), ``frames``; or ``sentence``, a pattern of the refusal.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

N = 400
RNG = np.random.default_rng(7)
NOISE = np.round(RNG.normal(size=(N, 3)).cumsum(axis=0) % 7 + RNG.normal(size=(N, 3)), 4)
BLOCKS = (np.arange(N) // 50) % 2
STAGES = np.array(["W", "N1", "N2", "R"])[(np.arange(N) // 40) % 4]
SAMPLES = np.arange(N)


@dataclass(frozen=True)
class Row:
    """One kind of file."""

    kind: str
    name: str
    make: Any
    want: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    suffix: str = ".csv"

    @property
    def id(self):
        asked = ",".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.kind}: {self.name}" + (f" [{asked}]" if asked else "")


def text(header, *columns, mark=",", above="", below="", end="\n"):
    """A table with these columns."""
    cells = [[*map(str, column)] for column in columns]
    lines = [mark.join(row) for row in zip(*cells, strict=True)]
    top = mark.join(header) + end if header else ""
    return above + top + below + end.join(lines) + end


def timed(label, clock, **more):
    """A table of a clock and three noisy channels."""
    return text([label, "a", "b", "c"], clock, *NOISE[: len(clock)].T, **more)


def exact(values):
    """Numbers as they read back."""
    return [repr(float(value)) for value in values]


def ms(rate, samples=SAMPLES):
    """A clock rounded to milliseconds."""
    return np.floor(samples * 1000 / rate + 0.2).astype(int)


def dated(seconds, written="%Y-%m-%d %H:%M:%S", first="2021-03-05T10:00:00"):
    """Date-times."""
    moments = (np.datetime64(first, "ms") + (np.asarray(seconds) * 1000).astype("timedelta64[ms]")).tolist()
    return [moment.strftime(written) for moment in moments]


HOLED = np.r_[0:250, 290:440]
ABC = ["a", "b", "c"]
E = "\n"

CLOCKS = [
    *[
        Row("rounded clock", f"{rate} Hz in ms", timed("time_ms", ms(rate)), {"rate": rate, "segments": [(0, N)]})
        for rate in (100, 128, 250, 256, 300, 360, 400, 500, 512, 600, 700)
    ],
    *[
        Row(
            "rounded clock",
            f"{rate} Hz in ms with a hole",
            timed("time (ms)", ms(rate, HOLED)),
            {"rate": rate, "segments": [(0, 250), (250, N)]},
        )
        for rate in (256, 360, 700)
    ],
    Row(
        "rounded clock",
        "0.95 Hz in s",
        timed("time (s)", np.floor(SAMPLES / 0.95).astype(int)),
        {"near": 0.95, "segments": [(0, N)]},
    ),
    Row(
        "regular clock",
        "1 Hz with a lost row",
        timed("time (s)", np.delete(np.arange(N + 1), 200)),
        {"rate": 1.0, "segments": [(0, 200), (200, N)]},
    ),
    Row(
        "regular clock",
        "44056 Hz",
        timed("time (s)", exact(SAMPLES / 44056)),
        {"rate": 44056, "segments": [(0, N)]},
    ),
    Row(
        "jitter",
        "a fifth of a period",
        timed("time (s)", np.sort(np.round((SAMPLES + 0.2 * RNG.uniform(-1, 1, N)) / 100, 6))),
        {"near": 100, "segments": [(0, N)]},
    ),
    Row(
        "two rates",
        "1 Hz, then 4 Hz",
        timed("time (s)", np.r_[0:200, 200 + np.arange(200) / 4]),
        {"sentence": r"must run at one rate.*rates='mean'"},
    ),
    Row(
        "two rates",
        "1 Hz, then 4 Hz",
        timed("time (s)", np.r_[0:200, 200 + np.arange(200) / 4]),
        {"rate_is": True},
        {"rates": "mean"},
    ),
    Row(
        "events",
        "irregular times",
        timed("time (s)", np.round(RNG.exponential(1, N).cumsum(), 3)),
        {"sentence": "must run at one rate"},
    ),
    Row("given rate", "fits", timed("time (ms)", ms(256)), {"rate": 256, "segments": [(0, N)]}, {"sampling_rate": 256}),
    Row(
        "given rate",
        "with a hole",
        timed("time (ms)", ms(256, HOLED)),
        {"rate": 256, "segments": [(0, 250), (250, N)]},
        {"sampling_rate": 256},
    ),
    Row(
        "given rate",
        "does not fit",
        timed("time (ms)", ms(256)),
        {"sentence": "must fit the clock.*got 250 Hz.*256 Hz"},
        {"sampling_rate": 250},
    ),
    Row(
        "given rate",
        "asked to forget the clock",
        timed("time (ms)", ms(256)),
        {"rate": 250, "segments": [(0, N)]},
        {"sampling_rate": 250, "gaps": "ignore"},
    ),
]

UNITS = [
    *[
        Row("unit in the label", label, timed(label, values), {"rate": 100, "segments": [(0, N)], "channels": ABC})
        for label, values in [
            *[
                (label, SAMPLES * 10)
                for label in (
                    "time (ms)",
                    "time[ms]",
                    "time_ms",
                    "t/ms",
                    "t / ms",
                    "millis",
                    "Time, ms".replace(",", ""),
                    "Zeit [ms]",
                    "Zeit in ms",
                    "Temps (ms)",
                    "epoch_ms",
                    "TIME(MS)",
                    '"time (ms)"',
                    "Timestamp [milliseconds]",
                    "elapsed_ms",
                    "milliseconds",
                )
            ],
            *[(label, SAMPLES * 10_000) for label in ("time (µs)", "time (μs)", "time_us", "t/us", "micros")],
            *[(label, SAMPLES * 10**7) for label in ("time (ns)", "timestamp_ns")],
            *[
                (label, exact(SAMPLES / 100))
                for label in (
                    "time",
                    "Zeit",
                    "Temps",
                    "seconds",
                    "t",
                    "epoch",
                    "time [s]",
                    "Time (sec)",
                    "unix_time",
                    "tiempo",
                    "tempo",
                    "Zeit (s)",
                )
            ],
        ]
    ],
    *[
        Row("unit in the label", label, timed(label, values), {"rate": 1 / 60, "segments": [(0, N)]})
        for label, values in [
            ("time (min)", SAMPLES),
            ("time [minutes]", SAMPLES),
            ("time_h", exact(SAMPLES / 60)),
        ]
    ],
    Row(
        "unit below the label",
        "ms",
        timed("time", SAMPLES * 10, below="ms,V,V,V\n"),
        {"rate": 100, "channels": ABC, "units": "V"},
    ),
    Row(
        "unit below the label",
        "brackets",
        timed("Zeit", SAMPLES * 10, below="[ms],[mV],[mV],[mV]\n"),
        {"rate": 100, "units": "mV"},
    ),
    Row(
        "unit below the label",
        "unknown",
        timed("time", SAMPLES, below="one,two,three,four\n"),
        {"sentence": "units_row=True"},
    ),
    Row(
        "unit not told",
        "ms that are whole",
        timed("time", SAMPLES * 4),
        {"frames": "100ms", "sentence": "at least 2 samples.*time_unit='ms'"},
    ),
    Row(
        "unit not told",
        "frames of a second",
        timed("time", SAMPLES),
        {"frames": "1s", "sentence": "'time' states no unit.*time_unit='ms'"},
    ),
    Row("unit not told", "told by the user", timed("time", SAMPLES * 4), {"rate": 250}, {"time_unit": "ms"}),
    Row(
        "unit not told",
        "milliseconds since 1970",
        timed("timestamp", 1_600_000_000_000 + SAMPLES * 4),
        {"sentence": "time_unit='ms'"},
    ),
    Row(
        "unit that is none",
        "frames",
        timed("time (frames)", SAMPLES),
        {"sentence": r"'time \(frames\)' (counts the rows|rises).*time_column|'time \(frames\)' counts the rows"},
    ),
    Row(
        "clock without a name",
        "seconds",
        timed("x", exact(SAMPLES / 100)),
        {"sentence": "'x' rises from row to row.*time_column='x'"},
    ),
    Row(
        "clock without a name",
        "told",
        timed("x", exact(SAMPLES / 100)),
        {"rate": 100, "channels": ABC},
        {"time_column": "x", "time_unit": "s"},
    ),
    Row("clock without a name", "row numbers", timed("nr", SAMPLES), {"sentence": "'nr' looks like a row number"}),
    Row(
        "clock without a name",
        "no header",
        text([], SAMPLES * 10, *NOISE.T),
        {"sentence": "'ch1' rises from row to row"},
    ),
    Row(
        "no rate",
        "frames of a second",
        text(ABC, *NOISE.T),
        {"frames": "1s", "sentence": "no sampling rate.*sampling_rate="},
    ),
]

BERLIN = [f"2020-10-25 0{h}:{m:02d}:00" for h in (1, 2, 2, 3) for m in range(60)]
DATES = [
    Row("dates", "ISO", timed("date", dated(SAMPLES)), {"rate": 1, "start": "2021-03-05T10:00:00", "channels": ABC}),
    Row(
        "dates",
        "with an offset",
        timed("date", [f"{d}+01:00" for d in dated(SAMPLES)]),
        {"rate": 1, "start": "2021-03-05T09:00:00Z"},
    ),
    Row(
        "dates",
        "offsets that change",
        timed("date", [f"{d}+0{1 + (k < 200)}:00" for k, d in enumerate(dated(SAMPLES + 3600.0 * (SAMPLES < 200)))]),
        {"rate": 1, "segments": [(0, N)]},
    ),
    Row(
        "dates",
        "dd.mm.",
        timed("date", dated(SAMPLES * 60, "%d.%m.%Y %H:%M")),
        {"sentence": r"time_format='%d\.%m\.%Y %H:%M'"},
    ),
    Row(
        "dates",
        "dd.mm.",
        timed("date", dated(SAMPLES * 60, "%d.%m.%Y %H:%M")),
        {"rate": 1 / 60, "start": "2021-03-05T10:00:00"},
        {"time_format": "%d.%m.%Y %H:%M"},
    ),
    Row(
        "dates",
        "dd/mm or mm/dd",
        timed("date", dated(SAMPLES * 60, "%d/%m/%Y %H:%M")),
        {"sentence": r"time_format='%d/%m/%Y %H:%M' or time_format='%m/%d/%Y"},
    ),
    Row(
        "dates",
        "date and time of day",
        text(["date", "time", *ABC], dated(SAMPLES, "%Y-%m-%d"), dated(SAMPLES, "%H:%M:%S"), *NOISE.T),
        {"rate": 1, "start": "2021-03-05T10:00:00", "channels": ABC},
    ),
    Row(
        "summer time",
        "put back",
        timed("date", [*BERLIN, *dated(np.arange(1, 161) * 60, first="2020-10-25T03:59:00")]),
        {"sentence": "goes backwards.*timezone="},
    ),
    Row(
        "summer time",
        "put back",
        timed("date", [*BERLIN, *dated(np.arange(1, 161) * 60, first="2020-10-25T03:59:00")]),
        {"rate": 1 / 60, "segments": [(0, N)], "start": "2020-10-24T23:00:00Z"},
        {"timezone": "Europe/Berlin"},
    ),
    Row(
        "summer time",
        "comes twice, told once",
        timed("date", BERLIN[:120]),
        {"sentence": r"comes twice in Europe/Berlin.*timezone='\+01:00'"},
        {"timezone": "Europe/Berlin"},
    ),
    Row(
        "summer time",
        "told by an offset",
        timed("date", BERLIN[:120]),
        {"rate": 1 / 60, "start": "2020-10-25T00:00:00Z"},
        {"timezone": "+01:00"},
    ),
    Row(
        "summer time",
        "a time that does not exist",
        timed("date", dated(SAMPLES * 60, first="2021-03-28T01:00:00")),
        {"sentence": "does not exist in Europe/Berlin"},
        {"timezone": "Europe/Berlin"},
    ),
    Row(
        "summer time",
        "no such zone",
        timed("date", dated(SAMPLES)),
        {"sentence": "must be the name of a zone"},
        {"timezone": "Berlin Mean"},
    ),
]

SHUFFLED = np.r_[0:100, 150:200, 100:150, 200:N]
TWICE = np.sort(np.r_[0:390, [17] * 10])
ORDER = [
    Row("not in order", "shuffled", timed("time (s)", SHUFFLED), {"sentence": "goes backwards.*order='sort'"}),
    Row(
        "not in order",
        "sorted",
        timed("time (s)", SHUFFLED),
        {"rate": 1, "segments": [(0, N)], "opened": "sorted 100 samples"},
        {"order": "sort"},
    ),
    Row(
        "not in order",
        "dates",
        timed("date", dated(SHUFFLED)),
        {"rate": 1, "segments": [(0, N)], "start": "2021-03-05T10:00:00"},
        {"order": "sort"},
    ),
    Row("repeats", "ten", timed("time (s)", TWICE), {"sentence": "repeats.*duplicates='first'"}),
    Row(
        "repeats",
        "the first",
        timed("time (s)", TWICE),
        {"rate": 1, "n": 390, "opened": "left out 10"},
        {"duplicates": "first"},
    ),
    Row("repeats", "the last", timed("time (s)", TWICE), {"rate": 1, "n": 390}, {"duplicates": "last"}),
    Row(
        "repeats",
        "ten rows a second",
        timed("date", dated(SAMPLES // 10)),
        {"rate": 10, "segments": [(0, N)]},
        {"duplicates": "spread"},
    ),
    Row("gaps", "hole", timed("time (s)", HOLED), {"rate": 1, "segments": [(0, 250), (250, N)]}),
    Row(
        "gaps",
        "hole by a duration",
        timed("time (s)", HOLED),
        {"segments": [(0, N)]},
        {"gaps": "1min", "rates": "mean"},
    ),
    Row(
        "gaps",
        "NaN",
        text(
            ["time (s)", *ABC], SAMPLES, *[np.where((SAMPLES > 99) & (SAMPLES < 120), "", column) for column in NOISE.T]
        ),
        {"segments": [(0, 100), (120, N)], "opened": "took 20 samples"},
        {"gaps": "nan"},
    ),
    Row(
        "gaps",
        "value that stands for nothing",
        text(
            ["time (s)", *ABC],
            SAMPLES,
            *[np.where((SAMPLES > 99) & (SAMPLES < 120), -200, column) for column in NOISE.T],
        ),
        {"segments": [(0, 100), (120, N)]},
        {"gaps": "nan", "missing": -200},
    ),
    Row(
        "gaps",
        "word that stands for nothing",
        text(["time (s)", *ABC], SAMPLES, *[np.where(SAMPLES == 7, "ERR", column) for column in NOISE.T]),
        {"sentence": r"got 'ERR' in column 'a' at line 9.*missing=\['ERR'\]"},
    ),
    Row(
        "gaps",
        "word that stands for nothing",
        text(["time (s)", *ABC], SAMPLES, *[np.where(SAMPLES == 7, "ERR", column) for column in NOISE.T]),
        {"segments": [(0, 7), (8, N)]},
        {"gaps": "nan", "missing": "ERR"},
    ),
    Row(
        "gaps",
        "short segments",
        timed("time (s)", np.r_[0:250, 290:295, 300:445]),
        {"segments": [(0, 250), (255, N)], "opened": "left out 5 samples"},
        {"shortest_segment": 21},
    ),
    Row(
        "gaps",
        "short segments by a duration",
        timed("time (s)", np.r_[0:250, 290:295, 300:445]),
        {"segments": [(0, 250), (255, N)]},
        {"shortest_segment": "20s"},
    ),
    Row(
        "gaps",
        "all too short",
        timed("time (s)", SAMPLES),
        {"sentence": "shortest_segment must leave some segment"},
        {"shortest_segment": "1h"},
    ),
]


def labelled(name, column, clock=True):
    """Noise with a column that may be a label."""
    times = [SAMPLES] if clock else []
    return text([*(["time (s)"] if clock else []), *ABC, name], *times, *NOISE.T, column)


LABELS = [
    Row(
        "clock without a name",
        "of events",
        text(["onset", "a"], np.round(RNG.exponential(1, N).cumsum(), 3), NOISE[:, 0]),
        {"sentence": "'onset' rises from row to row"},
    ),
    *[
        Row("label", name, labelled(name, BLOCKS), {"sentence": rf"'{name}' looks like a label.*labels=\['{name}'\]"})
        for name in (
            "class",
            "Label",
            "anomaly",
            "event",
            "target",
            "state",
            "stage",
            "sleep_stage",
            "is_anomaly",
            "Occupancy",
            "eyeDetection",
            "changepoint",
            "marker",
            "ground_truth",
            "gesture",
        )
    ],
    *[
        Row("flag", name, labelled(name, BLOCKS), {"sentence": f"'{name}' looks like a flag"})
        for name in ("qc", "quality", "temp_qc", "status", "valid", "Flag")
    ],
    Row("label by its values", "binary", labelled("d", BLOCKS), {"sentence": "'d' has only the values 0, 1"}),
    Row(
        "label by its values",
        "binary as floats",
        labelled("d", BLOCKS * 1.0),
        {"sentence": "'d' has only the values 0, 1"},
    ),
    Row(
        "label by its values",
        "three classes",
        labelled("d", (SAMPLES // 30) % 3),
        {"sentence": "'d' has only the values 0, 1, 2"},
    ),
    Row("label by its values", "constant", labelled("d", np.full(N, 3.5)), {"sentence": "'d' has only the value 3.5"}),
    Row("label by its values", "no value", labelled("d", [""] * N), {"sentence": "'d' holds no value"}),
    Row(
        "label by its values",
        "without a clock",
        labelled("d", BLOCKS, clock=False),
        {"sentence": "'d' has only the values 0, 1"},
    ),
    Row("label by its values", "words", labelled("d", STAGES), {"sentence": r"got 'W' in column 'd'.*labels=\['d'\]"}),
    Row(
        "label kept",
        "numbers",
        labelled("class", BLOCKS),
        {"channels": ABC, "labels": {"class": BLOCKS}},
        {"labels": "class"},
    ),
    Row(
        "label kept",
        "words",
        labelled("stage", STAGES),
        {"channels": ABC, "labels": {"stage": STAGES}},
        {"labels": ["stage"]},
    ),
    Row(
        "label kept",
        "called segment",
        labelled("segment", BLOCKS),
        {"channels": ABC, "labels": {"segment_label": BLOCKS}, "segments": [(0, N)]},
        {"labels": "segment"},
    ),
    Row("label left out", "", labelled("class", BLOCKS), {"channels": ABC}, {"drop_channels": "class"}),
    Row("label left out", "by choice", labelled("class", BLOCKS), {"channels": ["c", "a"]}, {"channels": ["c", "a"]}),
    Row(
        "label taken",
        "by the user's word",
        labelled("class", BLOCKS),
        {"channels": [*ABC, "class"]},
        {"channels": "all"},
    ),
    Row(
        "label taken",
        "by name",
        labelled("class", BLOCKS),
        {"channels": ["a", "class"]},
        {"channels": ["a", "class"]},
    ),
    Row("label misspelt", "", labelled("class", BLOCKS), {"sentence": "'clas' where there are"}, {"labels": "clas"}),
    Row("no label", "a float called state", labelled("state", NOISE[:, 0] * 2), {"channels": [*ABC, "state"]}),
    Row(
        "no label",
        "spike counts",
        text([f"n{k}" for k in range(6)], *RNG.poisson([0.02, 0.1, 0.5, 1, 3, 8], (N, 6)).T),
        {"channels": [f"n{k}" for k in range(6)]},
    ),
    Row(
        "no label",
        "spike counts, one dead",
        text([f"n{k}" for k in range(4)], *RNG.poisson([0, 0.1, 0.5, 3], (N, 4)).T),
        {"channels": [f"n{k}" for k in range(4)]},
    ),
    Row("no label", "counts of a converter", text(ABC, *RNG.integers(-900, 900, (3, N))), {"channels": ABC}),
    Row("no label", "ramps", text(ABC, SAMPLES, SAMPLES + 3, SAMPLES * 2), {"channels": ABC}),
    Row(
        "label among counts",
        "",
        text([*ABC, "d"], *RNG.integers(-900, 900, (3, N)), BLOCKS),
        {"sentence": "'d' has only the values 0, 1"},
    ),
]

SERIAL = [
    Row(
        "seconds since 1970",
        "256 Hz in microseconds",
        timed("timestamp", [f"{1.6e9 + k / 256:.6f}" for k in SAMPLES]),
        {"rate": 256, "segments": [(0, N)]},
    ),
    Row(
        "seconds since 1970",
        "in ms",
        timed("timestamp", 1_600_000_000_000 + SAMPLES * 4),
        {"rate": 250, "segments": [(0, N)]},
        {"time_unit": "ms"},
    ),
    Row(
        "seconds since 1970",
        "in us",
        timed("timestamp_us", 1_600_000_000_000_000 + SAMPLES * 4000),
        {"rate": 250, "segments": [(0, N)]},
    ),
    Row(
        "time of day",
        "past midnight",
        timed("time", dated(SAMPLES * 600, "%H:%M:%S")),
        {"rate": 1 / 600, "segments": [(0, N)], "start": None},
        {"time_format": "%H:%M:%S"},
    ),
    Row(
        "time of day",
        "minutes and seconds",
        timed("time", [f"{k // 60:02d}:{k % 60:02d}" for k in SAMPLES]),
        {"sentence": "time_format='%H:%M' or time_format='%M:%S'"},
    ),
    Row(
        "dates",
        "two digits of a year",
        timed("date", dated(SAMPLES * 60, "%d.%m.%y %H:%M")),
        {"sentence": "time_format='%d.%m.%y %H:%M'"},
    ),
    Row(
        "dates",
        "AM and PM",
        timed("date", dated(SAMPLES * 60, "%m/%d/%Y %I:%M:%S %p")),
        {"rate": 1 / 60},
        {"time_format": "%m/%d/%Y %I:%M:%S %p"},
    ),
    Row(
        "unit below the label",
        "of an accelerometer",
        text(["t", "a", "b"], SAMPLES * 20, *NOISE.T[:2], below="ms,m/(s^2),m/(s^2)\n"),
        {"rate": 50, "units": "m/(s^2)"},
    ),
    Row(
        "dates as numbers",
        "days of a spreadsheet",
        timed("Date", exact(44_000 + SAMPLES / 1440)),
        {"sentence": "time_unit='d'"},
    ),
    Row(
        "dates as numbers",
        "days under timestamp",
        timed("timestamp", exact(44_000 + SAMPLES / 1440)),
        {"sentence": "time_unit='d'"},
    ),
    Row(
        "dates as numbers", "told", timed("Date", exact(44_000 + SAMPLES / 1440)), {"near": 1 / 60}, {"time_unit": "d"}
    ),
    Row("dates as numbers", "epochs of sleep", timed("epoch", SAMPLES), {"sentence": "count epochs"}),
    Row(
        "unit not told",
        "is printed",
        timed("time", SAMPLES),
        {"rate": 1, "opened": "'time', which states no unit, as seconds"},
    ),
    Row(
        "dates",
        "format in the label",
        timed("Time [hh:mm:ss]", dated(SAMPLES, "%H:%M:%S")),
        {"sentence": "time_format='%H:%M:%S'"},
    ),
    Row("dates", "zone in the label", timed("Timestamp (UTC+1)", dated(SAMPLES)), {"rate": 1, "channels": ABC}),
    Row(
        "label by its values",
        "notes",
        labelled("d", 40 + (SAMPLES // 12) % 30),
        {"sentence": "'d' has only whole values that last"},
    ),
]
TOA5 = (
    '"TOA5","CR1000","CR1000","1234","CR1000.Std.01","CPU:p.CR1","12345","Table1"\n"TIMESTAMP","RECORD","volts","air"\n'
    '"TS","RN","Volts","Deg C"\n"","","Avg","Smp"\n'
)
ACTIGRAPH = (
    "------------ Data File Created By ActiGraph GT3X+ ActiLife v6.13.3 Firmware v3.2.1 date format M/d/yyyy at 30 Hz  "
    "Filter Normal -----------\nSerial Number: MOS2E\nStart Time 13:00:00\nStart Date 6/30/2017\n"
    "Epoch Period (hh:mm:ss) 00:00:00\nDownload Time 14:08:51\nDownload Date 7/5/2017\nCurrent Memory Address: 0\n"
    "Current Battery Voltage: 4.22     Mode = 12\n--------------------------------------------------\n"
)
OPENBCI = (
    "%OpenBCI Raw EXG Data\n%Number of channels = 3\n%Sample Rate = 250 Hz\n%Board = OpenBCI_GUI$BoardCytonSerial\n"
)
LOGGERS = [
    Row(
        "logger",
        "TOA5",
        text([], [f'"{d}"' for d in dated(SAMPLES * 60)], SAMPLES, *NOISE.T[:2], above=TOA5),
        {"rate": 1 / 60, "channels": ["volts", "air"], "start": "2021-03-05T10:00:00"},
    ),
    Row(
        "logger",
        "E4, three axes",
        text(
            [],
            *RNG.integers(-60, 60, (3, N)),
            above="1599065118.000000, 1599065118.000000, 1599065118.000000\n32.000000, 32.000000, 32.000000\n",
        ),
        {"rate": 32, "n": N, "start": "2020-09-02T16:45:18Z"},
    ),
    Row("logger", "E4, one column", text([], NOISE[:, 0], above="1599065118.00\n4.000000\n"), {"rate": 4, "n": N}),
    Row(
        "logger",
        "ActiGraph",
        text(["Accelerometer X", "Accelerometer Y", "Accelerometer Z"], *NOISE.T, above=ACTIGRAPH),
        {"rate": 30, "n": N, "start": "2017-06-30T13:00:00"},
    ),
    Row("logger", "ActiGraph without header", text([], *NOISE.T, above=ACTIGRAPH), {"rate": 30, "n": N}),
    Row(
        "logger",
        "ActiGraph, epochs",
        text(
            ["Axis1", "Axis2", "Axis3"],
            *RNG.poisson(30, (3, N)),
            above=ACTIGRAPH.replace("at 30 Hz ", "").replace("ss) 00:00:00", "ss) 00:00:10"),
        ),
        {"rate": 0.1, "n": N},
    ),
    Row(
        "logger",
        "OpenBCI",
        text(
            ["Sample Index", " EXG 0", " EXG 1", " EXG 2", " Timestamp", " Timestamp (Formatted)"],
            SAMPLES % 256,
            *NOISE.T,
            [f"1597163434.{k:04d}" for k in SAMPLES // 7],
            dated(SAMPLES / 250),
            above=OPENBCI,
        ),
        {"rate": 250, "channels": ["EXG 0", "EXG 1", "EXG 2"]},
    ),
    Row(
        "logger",
        "OpenBCI, older",
        text([], SAMPLES % 256, *NOISE.T, dated(SAMPLES / 250, "%H:%M:%S"), mark=", ", above=OPENBCI),
        {"rate": 250, "n": N, "channels": ["ch1", "ch2", "ch3"]},
    ),
    Row(
        "above the table",
        "preamble",
        timed("time (s)", SAMPLES, above="Device: X3\nSubject,12\n\n"),
        {"rate": 1, "channels": ABC, "opened": "skipped 3 lines"},
    ),
    Row(
        "above the table",
        "comments",
        timed("time (s)", SAMPLES, above="# by hand\n# 2021\n"),
        {"rate": 1, "channels": ABC},
    ),
    Row(
        "above the table",
        "percent signs",
        timed("time (s)", SAMPLES, above="% by hand\n"),
        {"rate": 1, "channels": ABC},
    ),
    Row(
        "above the table",
        "header in a comment",
        text([], SAMPLES, *NOISE.T, above="# saved\n# t,a,b,c\n"),
        {"rate": 1, "channels": ABC},
    ),
    Row(
        "above the table",
        "as numpy.savetxt writes it",
        text([], SAMPLES, *NOISE.T, mark=" ", above="# t a b c\n"),
        {"rate": 1, "channels": ABC},
        suffix=".txt",
    ),
    Row(
        "above the table",
        "separator for Excel",
        timed("time (s)", SAMPLES, mark=";", above="sep=;\n"),
        {"rate": 1, "channels": ABC},
    ),
    Row(
        "above the table",
        "as wide as the table",
        timed("time (s)", SAMPLES, above="a,1,2,3\n"),
        {"sentence": "skip_rows=|'time"},
    ),
    Row(
        "above the table",
        "told",
        timed("time (s)", SAMPLES, above="a,1,2,3\n"),
        {"rate": 1, "channels": ABC},
        {"skip_rows": 1},
    ),
    Row(
        "comments",
        "between rows",
        timed("time (s)", SAMPLES).replace("\n100,", "\n! battery\n100,"),
        {"sentence": "line 102.*comment="},
    ),
    Row(
        "comments",
        "told",
        timed("time (s)", SAMPLES).replace("\n100,", "\n! battery\n100,"),
        {"rate": 1, "n": N},
        {"comment": "!"},
    ),
    Row("separator", "blanks", timed("time_s", SAMPLES, mark="   "), {"rate": 1, "channels": ABC}, suffix=".txt"),
    Row("separator", "bars", timed("time_s", SAMPLES, mark="|"), {"rate": 1, "channels": ABC}),
    Row("separator", "told", timed("time_s", SAMPLES, mark=":"), {"rate": 1, "channels": ABC}, {"delimiter": ":"}),
    Row(
        "encoding",
        "told",
        timed("Zeit (s)", SAMPLES).replace("a,b", "ä,b").encode("cp1252"),
        {"rate": 1, "channels": ["ä", "b", "c"]},
        {"encoding": "cp1252"},
    ),
    Row(
        "encoding",
        "Latin 1",
        timed("Zeit (s)", SAMPLES).replace("a,b", "ä,b").encode("cp1252"),
        {"sentence": "encoding='cp1252'"},
    ),
]

LABCHART = (
    "Interval=\t0.005 s\nExcelDateTime=\t4.43e+004\t05/03/2021 10:00:00\nTimeFormat=\tStartOfBlock\nDateFormat=\t\n"
    "ChannelTitle=\ta\tb\tc\nRange=\t10.000 V\t10.000 V\t10.000 V\n"
)
BIOPAC = "walk.acq\n2 msec/sample\n3 channels\na\nmV\nb\nmV\nc\nmV\n"
SHIMMER = '"sep=\t"\nShimmer_Timestamp_CAL\tX_CAL\tY_CAL\nms\tm/(s^2)\tm/(s^2)\n'
STATION = "\t\tTemp\tOut\n Date\tTime\tOut\tHum\n"
EXCEL_DAYS = [f"{45356.604166667 + k * 5 / 86400:.9f}" for k in SAMPLES]

EXPORTS = [
    Row(
        "export",
        "LabChart",
        text([], exact(SAMPLES / 200), *NOISE.T, mark="\t", above=LABCHART),
        {"rate": 200, "channels": ABC},
    ),
    Row(
        "export",
        "LabChart without times",
        text([], *NOISE.T, mark="\t", above=LABCHART),
        {"rate": 200, "channels": ABC},
        suffix=".txt",
    ),
    Row(
        "export",
        "AcqKnowledge, minutes",
        text(
            [],
            [f"{k * 0.002 / 60:.9g}" for k in SAMPLES],
            *NOISE.T,
            mark="\t",
            above=BIOPAC + "min\tCH1\tCH2\tCH3\t\n\t400\t400\t400\t\n",
            end="\t\n",
        ),
        {"near": 500, "channels": ABC, "units": "mV"},
        suffix=".txt",
    ),
    Row(
        "export",
        "AcqKnowledge without times",
        text([], *NOISE.T, mark="\t", above=BIOPAC + "CH1\tCH2\tCH3\n400\t400\t400\n"),
        {"rate": 500, "channels": ABC, "n": N},
        suffix=".txt",
    ),
    Row(
        "export",
        "pandas with its index",
        timed(",time (s)", [f"{k},{k / 50}" for k in SAMPLES]),
        {"rate": 50, "channels": ABC, "opened": "left out 'ch1'"},
    ),
    Row(
        "export",
        "pandas with dates for its index",
        timed("", dated(SAMPLES)),
        {"rate": 1, "channels": ABC, "start": "2021-03-05T10:00:00"},
    ),
    Row(
        "export",
        "pandas without names",
        text(["0", "1", "2"], *NOISE.T),
        {"n": N, "channels": ["0", "1", "2"], "opened": "first row for names"},
    ),
    Row(
        "export",
        "pandas with names in two rows",
        timed("time", SAMPLES, below=",left,right,\n"),
        {"rate": 1, "channels": ["a left", "b right", "c"]},
    ),
    Row(
        "export",
        "write.csv of R",
        timed('"","time (s)"', [f'"{k + 1}",{k / 50}' for k in SAMPLES]),
        {"rate": 50, "channels": ABC},
    ),
    Row(
        "export",
        "write.table of R",
        timed("time_s", [f"{k + 1} {k / 50}" for k in SAMPLES], mark=" "),
        {"rate": 50, "channels": ABC},
        suffix=".txt",
    ),
    Row(
        "export",
        "delimiter at the end of rows alone",
        text(["time_s", "a"], SAMPLES, [f"{x}," for x in NOISE[:, 0]]),
        {"rate": 1, "channels": ["a"]},
    ),
    Row(
        "export",
        "Shimmer",
        SHIMMER + text([], exact(SAMPLES * 20), *NOISE.T[:2], mark="\t", end="\t\n"),
        {"sentence": "time_column='Shimmer_Timestamp_CAL'"},
    ),
    Row(
        "export",
        "Shimmer, its clock named",
        SHIMMER + text([], exact(SAMPLES * 20), *NOISE.T[:2], mark="\t", end="\t\n"),
        {"rate": 50, "channels": ["X_CAL", "Y_CAL"], "units": "m/(s^2)"},
        {"time_column": "Shimmer_Timestamp_CAL"},
    ),
    Row(
        "export",
        "phone",
        text(["Phone timestamp", "a"], dated(SAMPLES / 50, "%Y-%m-%dT%H:%M:%S.%f"), NOISE[:, 0]),
        {"rate": 50, "channels": ["a"]},
    ),
    Row(
        "export",
        "InfluxDB",
        text(
            ["", "result", "_start", "_time", "_value", "_field"],
            [""] * N,
            ["_result"] * N,
            ["2021-03-05T09:00:00Z"] * N,
            dated(SAMPLES * 10, "%Y-%m-%dT%H:%M:%SZ"),
            NOISE[:, 0],
            ["x"] * N,
            above="#group,false\n#datatype,string\n",
        ),
        {"sentence": r"drop_channels=\['result', '_start', '_field'\]|drop_channels=\['_start'"},
    ),
    Row(
        "export",
        "ROS",
        text(["%time", "seq", "frame_id", "x"], SAMPLES, SAMPLES + 7, ["imu"] * N, NOISE[:, 0]),
        {"rate": 1, "channels": ["x"]},
        {"drop_channels": ["seq", "frame_id"]},
    ),
    Row(
        "export",
        "weather station",
        text([], dated(SAMPLES * 1800, "%m/%d/%y\t%I:%Mp"), *NOISE.T[:2], mark="\t", above=STATION),
        {"sentence": "time_format="},
        suffix=".txt",
    ),
    Row(
        "export",
        "weather station, told",
        text(
            [],
            [cell.removesuffix("M").lower() for cell in dated(SAMPLES * 1800, "%m/%d/%y\t%I:%M%p")],
            *NOISE.T[:2],
            mark="\t",
            above=STATION,
        ),
        {"rate": 1 / 1800, "channels": ["Temp Out", "Out Hum"], "start": "2021-03-05T10:00:00"},
        {"time_format": "%m/%d/%y %I:%M%p"},
        suffix=".txt",
    ),
    Row(
        "export",
        "units in cells",
        text(["time", "temp"], SAMPLES, [f"{x} °C" for x in NOISE[:, 0]]),
        {"sentence": "numbers alone"},
    ),
    Row(
        "export",
        "names in cells",
        text([], [f"ax:{x}" for x in NOISE[:, 0]], [f"ay:{x}" for x in NOISE[:, 1]]),
        {"sentence": "numbers alone"},
        suffix=".txt",
    ),
    Row(
        "export",
        "several columns of words",
        text(["time", "a", "b", "c"], SAMPLES, NOISE[:, 0], ["x"] * N, ["y"] * N),
        {"sentence": r"drop_channels=\['b', 'c'\]"},
    ),
    Row(
        "export",
        "means below the rows",
        timed("time_s", SAMPLES) + "Mean,1,2,3\n",
        {"sentence": "line 402.*remove that line"},
    ),
    Row(
        "clock by its cells",
        "dates without a header",
        text([], dated(SAMPLES), *NOISE.T),
        {"rate": 1, "n": N, "start": "2021-03-05T10:00:00"},
    ),
    Row(
        "clock by its cells",
        "unknown name, German",
        text(["Datum/Uhrzeit", "a"], dated(SAMPLES * 60, "%d.%m.%Y %H:%M"), NOISE[:, 0]),
        {"sentence": "time_format='%d.%m.%Y %H:%M'"},
    ),
    Row(
        "clock by its cells",
        "beside a clock",
        text(["time", "sent", "a"], SAMPLES, dated(SAMPLES), NOISE[:, 0]),
        {"sentence": "time_column='sent'.*drop_channels="},
    ),
    Row(
        "clock that is named",
        "unit in brackets",
        text(["frame clock [ms]", "a"], SAMPLES * 4, NOISE[:, 0]),
        {"rate": 250},
        {"time_column": "frame clock [ms]"},
    ),
    Row(
        "clock that is named",
        "unit after a slash",
        text(["Messpunkt / min", "a"], SAMPLES, NOISE[:, 0]),
        {"rate": 1 / 60},
        {"time_column": "Messpunkt / min"},
    ),
    Row(
        "clock that is named",
        "unit as its last word",
        text(["Verlauf_ms", "a"], SAMPLES * 4, NOISE[:, 0]),
        {"rate": 250},
        {"time_column": "Verlauf_ms"},
    ),
    Row(
        "clock that is named",
        "a letter that is no unit",
        text(["ch_h", "a"], SAMPLES * 4, NOISE[:, 0]),
        {"rate": 0.25},
        {"time_column": "ch_h"},
    ),
    Row(
        "dates as numbers",
        "days of a spreadsheet called time",
        timed("Time", EXCEL_DAYS),
        {"sentence": "time_unit='d'"},
    ),
    Row(
        "dates as numbers",
        "days of a spreadsheet called time, told",
        timed("Time", EXCEL_DAYS),
        {"near": 0.2},
        {"time_unit": "d"},
    ),
    Row(
        "dates as numbers",
        "days of MATLAB called t, by the hour",
        timed("t", [f"{739316 + k / 24:.9f}" for k in SAMPLES]),
        {"sentence": "time_unit='d'"},
    ),
    Row("dates as numbers", "seconds of the day", timed("time", exact(45000 + SAMPLES / 100)), {"rate": 100}),
    Row(
        "dates as numbers",
        "milliseconds since 1970 name their unit",
        timed("timestamp", 1709649000000 + SAMPLES * 10),
        {"sentence": "time_unit='ms',"},
    ),
    Row(
        "dates as numbers",
        "nanoseconds since 1970 name their unit",
        timed("timestamp", 1709649000000000000 + SAMPLES * 10_000_000),
        {"sentence": "time_unit='ns',"},
    ),
    Row(
        "dates in two digits",
        "year first",
        timed("date", dated(SAMPLES * 86400, "%y-%m-%d")),
        {"sentence": "'%d-%m-%y' or time_format='%y-%m-%d'"},
    ),
    Row(
        "time of day",
        "minutes and tenths",
        timed("Time", [f"{k // 600:02d}:{k / 10 % 60:04.1f}" for k in SAMPLES]),
        {"sentence": "'%M:%S.%f'"},
    ),
    Row(
        "decimal commas",
        "between commas, one column",
        text([], [f"{k % 3},{k * 7 % 1000:04d}" for k in SAMPLES]),
        {"sentence": "decimal=','"},
        suffix=".txt",
    ),
    Row(
        "decimal commas",
        "between commas, told",
        text([], [f"{k % 3},{k * 7 % 1000:04d}" for k in SAMPLES]),
        {"n": N, "values": [0.0]},
        {"decimal": ",", "delimiter": ";"},
        suffix=".txt",
    ),
    Row(
        "decimal commas",
        "counts of a fixed width",
        text(["a", "b"], SAMPLES % 10, SAMPLES % 10),
        {"n": N},
        {"channels": "all"},
    ),
    Row(
        "groups of digits",
        "narrow spaces",
        text(["t", "a"], SAMPLES, [f"1\u202f{100 + k},5" for k in SAMPLES], mark=";"),
        {"rate": 1, "values": [1100.5]},
        {"thousands": "\u202f"},
    ),
    *[
        Row(
            "nothing",
            cell,
            text(["time_s", "a", "b"], SAMPLES, [cell, *NOISE[1:, 0]], NOISE[:, 1]),
            {"rate": 1, "n": N},
        )
        for cell in ("#DIV/0!", "1.#QNAN", "-nan(ind)", "<NA>", "#NV")
    ],
    Row(
        "numbers",
        "exponents of Fortran",
        text(["time_s", "a"], SAMPLES, [f"{x:.5E}".replace("E", "D") for x in NOISE[:, 0]]),
        {"rate": 1, "channels": ["a"]},
    ),
    Row(
        "encoding",
        "Japanese",
        timed("Zeit (s)", SAMPLES).replace("a,b", "温度,b").encode("cp932"),
        {"sentence": "encoding='cp932'"},
    ),
    Row(
        "encoding",
        "UTF-16 without its mark",
        timed("t", SAMPLES).encode("utf-16-le"),
        {"sentence": "encoding='utf-16-le'"},
    ),
]

MICROS = (2**32 - 5000 + SAMPLES * 1000) % 2**32
FOUR = np.repeat([0.1, 0.5, 0.9, 0.2], N // 4)

LABVIEW = "LabVIEW Measurement\t\nSeparator\tTab\n***End_of_Header***\t\n\t\n"

INSTRUMENTS = [
    Row(
        "instrument",
        "PicoScope, a blank line above the rows",
        text(["Time", "a", "b"], exact(SAMPLES / 50), *NOISE.T[:2], below="(ms),(V),(V)\n\n"),
        {"rate": 50_000, "channels": ["a", "b"], "units": "V"},
    ),
    Row(
        "instrument",
        "LabVIEW, empty cells above",
        text(["X_Value", "a", "b", "Comment"], exact(SAMPLES / 1000), *NOISE.T[:2], [""] * N, mark="\t", above=LABVIEW),
        {"rate": 1000, "channels": ["a", "b"]},
        {"time_column": "X_Value", "drop_channels": "Comment"},
        suffix=".txt",
    ),
    Row(
        "instrument",
        "OptiTrack, names that are units",
        text(
            ["Frame", "Time (Seconds)", "X", "Y"],
            SAMPLES,
            exact(SAMPLES / 120),
            *NOISE.T[:2],
            above="Format Version,1.23,Take Name,t,Rate,120\n\n,,A,A\n,,b,c\n",
        ),
        {"near": 120, "channels": ["A b X", "A c Y"]},
        {"drop_channels": "Frame"},
    ),
    Row(
        "instrument",
        "NOAA buoy, units in a comment",
        text([], SAMPLES, NOISE[:, 0], NOISE[:, 1], mark=" ", above="#TIME WSPD WTMP\n#s m/s degC\n"),
        {"rate": 1, "channels": ["WSPD", "WTMP"]},
        suffix=".txt",
    ),
]

DISGUISED = [
    Row(
        "label in disguise",
        "few fractions that last",
        text(["t", "a", "b", "klass"], SAMPLES, *NOISE.T[:2], FOUR),
        {"sentence": r"labels=\['klass'\]"},
    ),
    Row(
        "label in disguise",
        "fractions in fine steps",
        text(
            ["t", "a", "b", "temp"], SAMPLES, *NOISE.T[:2], [f"{25 + k // 40 % 5 + k // 80 * 0.1:.1f}" for k in SAMPLES]
        ),
        {"rate": 1, "channels": ["a", "b", "temp"]},
    ),
    Row(
        "counter in disguise",
        "steps",
        text(["t", "a", "b", "walked"], SAMPLES, *NOISE.T[:2], SAMPLES // 3),
        {"sentence": "'walked' rises or stays.*drop_channels="},
    ),
    Row(
        "counter in disguise",
        "a clock is not replaced",
        text(["t", "a", "b", "lat"], SAMPLES, *NOISE.T[:2], 52 + SAMPLES / 1e6),
        {"sentence": r"'lat' rises from row to row\. Leave them out"},
    ),
    Row(
        "clock that begins anew",
        "counter of 32 bits",
        text(["micros", "a"], MICROS, NOISE[:, 0]),
        {"near": 1000, "segments": [(0, N)], "opened": "32 bits"},
    ),
    Row(
        "clock that begins anew",
        "two recordings",
        timed("t", exact(SAMPLES % 200 / 100)),
        {"sentence": "split the table at that line"},
    ),
    Row(
        "duration",
        "more hours than a day",
        timed("elapsed", [f"{k // 6:02d}:{k % 6 * 10:02d}:00" for k in SAMPLES]),
        {"rate": 1 / 600, "segments": [(0, N)]},
        {"time_format": "%H:%M:%S"},
    ),
    Row(
        "duration",
        "more minutes than an hour",
        timed("elapsed", [f"{k // 4:02d}:{k % 4 * 15:02d}" for k in SAMPLES]),
        {"rate": 1 / 15, "segments": [(0, N)]},
        {"time_format": "%M:%S"},
    ),
    Row(
        "dates",
        "days and months told by the rows below",
        timed("date", dated(SAMPLES * 86400, "%m/%d/%Y")),
        {"sentence": "Give time_format='%m/%d/%Y', name"},
    ),
    Row(
        "dates",
        "as ctime writes them",
        timed("date", dated(SAMPLES, "%a %b %d %H:%M:%S %Y")),
        {"sentence": "time_format='%a %b %d"},
    ),
    Row(
        "dates",
        "with the letters of a zone",
        timed("time", dated(SAMPLES, "%Y-%m-%d %H:%M:%S CET")),
        {"sentence": "CET' and timezone='CET'"},
    ),
    Row(
        "dates",
        "with the letters of a zone, told",
        timed("time", dated(SAMPLES, "%Y-%m-%d %H:%M:%S CET")),
        {"rate": 1, "start": "2021-03-05T09:00:00Z"},
        {"time_format": "%Y-%m-%d %H:%M:%S CET", "timezone": "CET"},
    ),
    Row(
        "dates as numbers",
        "years",
        timed("decimal_year", exact(1990 + SAMPLES / 12)),
        {"sentence": "got years"},
        {"time_column": "decimal_year"},
    ),
]

TABLES = [*CLOCKS, *UNITS, *SERIAL, *DATES, *ORDER, *LABELS, *LOGGERS, *EXPORTS, *INSTRUMENTS, *DISGUISED]


def stored(values=NOISE, dims=("time", "channel"), clock=None, attrs=None, channel=None, **clock_attrs):
    """What writes a NetCDF 3 file."""

    def write(path):
        coords = {} if clock is None else {dims[0]: (dims[0], clock, clock_attrs)}
        if channel is not None:
            coords["channel"] = channel
        xr.Dataset({"volts": (dims, values, attrs or {})}, coords=coords).to_netcdf(path, engine="scipy")

    return write


def series(**variables):
    """What writes one variable a channel."""

    def write(path):
        xr.Dataset({name: ("time", values) for name, values in variables.items()}).to_netcdf(path, engine="scipy")

    return write


def saved(values):
    """What writes a NumPy array."""
    return lambda path: np.save(path, values)


SECONDS = SAMPLES / 100
NC, NPY = {"suffix": ".nc"}, {"suffix": ".npy"}
STORED = [
    *[
        Row(
            "unit of a coordinate",
            units,
            stored(clock=SECONDS * factor, units=units),
            {"rate": 100, "segments": [(0, N)], "times": [0.0, 0.01]},
            **NC,
        )
        for units, factor in [
            ("s", 1),
            ("ms", 1e3),
            ("us", 1e6),
            ("µs", 1e6),
            ("seconds", 1),
            ("milliseconds", 1e3),
            ("msec", 1e3),
        ]
    ],
    Row("unit of a coordinate", "min", stored(clock=SAMPLES * 1.0, units="min"), {"rate": 1 / 60}, **NC),
    Row("unit of a coordinate", "hours", stored(clock=SAMPLES * 1.0, units="hours"), {"rate": 1 / 3600}, **NC),
    Row("unit of a coordinate", "none", stored(clock=SECONDS), {"rate": 100}, **NC),
    Row("unit of a coordinate", "none, in ms", stored(clock=SECONDS * 1000), {"rate": 100}, {"time_unit": "ms"}, **NC),
    Row(
        "unit of a coordinate",
        "none, in ms",
        stored(clock=SECONDS * 1000),
        {"frames": "1s", "sentence": "time_unit='ms'"},
        **NC,
    ),
    Row(
        "unit of a coordinate",
        "furlongs",
        stored(clock=SECONDS, units="furlong"),
        {"sentence": "'furlong'.*time_unit="},
        **NC,
    ),
    Row(
        "calendar",
        "noleap",
        stored(clock=SAMPLES * 1.0, units="days since 2000-01-01", calendar="noleap"),
        {"rate": 1 / 86400, "segments": [(0, N)]},
        **NC,
    ),
    Row(
        "calendar",
        "360_day",
        stored(clock=SAMPLES * 1.0, units="hours since 2000-01-01", calendar="360_day"),
        {"rate": 1 / 3600, "segments": [(0, N)]},
        **NC,
    ),
    Row(
        "calendar",
        "the year 9000",
        stored(clock=SAMPLES * 1.0, units="days since 9000-01-01"),
        {"rate": 1 / 86400},
        **NC,
    ),
    *[
        Row(
            "dates of a coordinate",
            name,
            stored(clock=np.datetime64("2021-03-05T10:00") + seconds.astype("m8[s]")),
            want,
            options,
            **NC,
        )
        for name, seconds, want, options in [
            ("regular", SAMPLES, {"rate": 1, "segments": [(0, N)]}, {}),
            ("with a hole", HOLED, {"rate": 1, "segments": [(0, 250), (250, N)]}, {}),
            ("shuffled", SHUFFLED, {"sentence": "order='sort'"}, {}),
            ("sorted", SHUFFLED, {"rate": 1, "opened": "sorted 100"}, {"order": "sort"}),
            ("that repeat", TWICE, {"sentence": "10 repeats.*duplicates='first'"}, {}),
            ("first of each", TWICE, {"rate": 1, "n": 390}, {"duplicates": "first"}),
            ("ten a second", SAMPLES // 10, {"near": 10}, {"duplicates": "spread"}),
            ("local", SAMPLES, {"rate": 1, "start": "2021-03-05T09:00"}, {"timezone": "Europe/Berlin"}),
        ]
    ],
    Row(
        "options that do not apply",
        "unit of date-times",
        stored(clock=np.datetime64("2021-03-05T10:00") + SAMPLES.astype("m8[s]")),
        {"sentence": "time_unit is for a stored clock of numbers"},
        {"time_unit": "ms"},
        **NC,
    ),
    Row(
        "options that do not apply",
        "decimal mark of NetCDF",
        stored(),
        {"sentence": "decimal goes with CSV tables"},
        {"decimal": ","},
        **NC,
    ),
    Row(
        "options that do not apply",
        "zone without dates",
        stored(clock=SECONDS, units="s"),
        {"sentence": "timezone is for date-times"},
        {"timezone": "UTC"},
        **NC,
    ),
    Row(
        "options that do not apply",
        "unit without a clock",
        stored(),
        {"sentence": "time_unit is for a stored clock"},
        {"time_unit": "ms"},
        **NC,
    ),
    Row(
        "options that do not apply",
        "unit of dates",
        timed("date", dated(SAMPLES)),
        {"sentence": "Leave time_unit= out"},
        {"time_unit": "ms"},
    ),
    Row(
        "options that do not apply",
        "no such column",
        stored(channel=ABC, clock=SECONDS, units="s"),
        {"sentence": "time_column must name"},
        {"time_column": "x"},
        **NC,
    ),
    Row(
        "options that do not apply",
        "group of a table",
        timed("date", dated(SAMPLES)),
        {"sentence": "group is for NetCDF"},
        {"group": "a"},
    ),
    Row(
        "single precision",
        "clock",
        stored(clock=(3600 + SAMPLES / 250).astype(np.float32), units="s"),
        {"rate": 250, "segments": [(0, N)]},
        **NC,
    ),
    Row(
        "stale rate",
        "older than the clock",
        stored(clock=SECONDS, attrs={"sampling_rate": 1000.0}),
        {"rate": 100, "warns": "says 1000 Hz.*runs at 100 Hz"},
        **NC,
    ),
    Row("stale rate", "fits", stored(clock=SECONDS, attrs={"sampling_rate": 100.0}), {"rate": 100}, **NC),
    Row(
        "stale rate",
        "text",
        stored(attrs={"sampling_rate": "250 Hz"}),
        {"sentence": "sampling_rate must be one number"},
        **NC,
    ),
    Row(
        "stale rate",
        "several",
        stored(attrs={"sampling_rate": [250.0, 500.0]}),
        {"sentence": "sampling_rate must be one number"},
        **NC,
    ),
    Row("stale rate", "an array of one", stored(attrs={"sampling_rate": [250.0]}), {"rate": 250}, **NC),
    Row(
        "given rate",
        "does not fit",
        stored(clock=SECONDS, units="s"),
        {"sentence": "must fit the clock"},
        {"sampling_rate": 250},
        **NC,
    ),
    Row(
        "given rate",
        "keeps a hole",
        stored(clock=HOLED / 100, units="s"),
        {"rate": 100, "segments": [(0, 250), (250, N)]},
        {"sampling_rate": 100},
        **NC,
    ),
    Row("time dimension", "samples", stored(dims=("samples", "channel")), {"sentence": "time_dim='samples'"}, **NC),
    Row(
        "time dimension",
        "samples",
        stored(dims=("samples", "channel")),
        {"rate": 250, "n": N},
        {"time_dim": "samples", "sampling_rate": 250},
        **NC,
    ),
    Row(
        "time dimension",
        "its own clock",
        stored(dims=("t", "channel"), clock=SECONDS, units="s"),
        {"rate": 100, "n": N},
        {"time_dim": "t"},
        **NC,
    ),
    Row(
        "time dimension",
        "that only counts",
        stored(dims=("samples", "channel"), clock=SAMPLES),
        {"known": False, "n": N},
        {"time_dim": "samples"},
        **NC,
    ),
    Row(
        "time dimension",
        "misspelt",
        stored(dims=("samples", "channel")),
        {"sentence": "time_dim must name a dimension.*'samples'"},
        {"time_dim": "sample"},
        **NC,
    ),
    Row(
        "names",
        "padded bytes",
        stored(channel=np.array([b"C3  ", b"Cz", b"C4 "], "S4")),
        {"channels": ["C3", "Cz", "C4"]},
        **NC,
    ),
    Row(
        "names",
        "alike when stripped",
        stored(channel=np.array([b"C3  ", b" C3", b"C4 "], "S4")),
        {"channels": ["C3", "C3_2", "C4"]},
        **NC,
    ),
    Row(
        "label",
        "channel called class",
        stored(np.c_[NOISE, BLOCKS], channel=[*ABC, "class"]),
        {"sentence": r"'class' looks like a label.*labels=\['class'\]"},
        **NC,
    ),
    Row(
        "label kept",
        "channel",
        stored(np.c_[NOISE, BLOCKS], channel=[*ABC, "class"]),
        {"channels": ABC, "labels": {"class": BLOCKS}},
        {"labels": "class"},
        **NC,
    ),
    Row(
        "label left out",
        "channel",
        stored(np.c_[NOISE, BLOCKS], channel=[*ABC, "class"]),
        {"channels": ABC},
        {"drop_channels": "class"},
        **NC,
    ),
    Row(
        "channels",
        "in another order",
        stored(channel=ABC),
        {"channels": ["c", "a"], "values": [NOISE[0, 2], NOISE[0, 0]]},
        {"channels": ["c", "a"]},
        **NC,
    ),
    Row(
        "label",
        "variable",
        series(left=NOISE[:, 0], right=NOISE[:, 1], stage=BLOCKS.astype("i2")),
        {"sentence": "'stage' looks like a label"},
        **NC,
    ),
    Row(
        "flag",
        "variable",
        series(heat=NOISE[:, 0], load=NOISE[:, 1], heat_qc=BLOCKS.astype("i1")),
        {"sentence": "'heat_qc' looks like a flag"},
        **NC,
    ),
    Row(
        "label kept",
        "variable",
        series(left=NOISE[:, 0], right=NOISE[:, 1], stage=BLOCKS.astype("i2")),
        {"channels": ["left", "right"], "labels": {"stage": BLOCKS}},
        {"labels": "stage"},
        **NC,
    ),
    Row(
        "clock among variables",
        "",
        series(left=NOISE[:, 0], right=NOISE[:, 1], timestamp=SECONDS),
        {"sentence": "'timestamp' looks like a clock.*time_column='timestamp'"},
        **NC,
    ),
    Row(
        "clock among variables",
        "told",
        series(left=NOISE[:, 0], right=NOISE[:, 1], timestamp=SECONDS),
        {"rate": 100, "channels": ["left", "right"]},
        {"time_column": "timestamp", "time_unit": "s"},
        **NC,
    ),
    Row(
        "values for nothing",
        "-999",
        stored(np.where(SAMPLES[:, None] == 9, -999.0, NOISE), clock=SECONDS, units="s"),
        {"segments": [(0, 9), (10, N)]},
        {"missing": -999, "gaps": "nan"},
        **NC,
    ),
    Row(
        "label by its values",
        "last column",
        saved(np.c_[NOISE, BLOCKS]),
        {"sentence": "has only the values 0, 1"},
        **NPY,
    ),
    Row(
        "clock among columns",
        "first column",
        saved(np.c_[SECONDS, NOISE]),
        {"sentence": "rises from row to row"},
        **NPY,
    ),
    Row(
        "clock among columns",
        "told",
        saved(np.c_[SECONDS, NOISE]),
        {"rate": 100, "n": N},
        {"time_column": "ch1", "time_unit": "s"},
        **NPY,
    ),
    Row("no label", "counts", saved(RNG.poisson([0.02, 0.5, 3], (N, 3))), {"n": N}, **NPY),
    Row("no rate", "frames of a second", saved(NOISE), {"frames": "1s", "sentence": "no sampling rate"}, **NPY),
    Row(
        "options of tables",
        "",
        saved(NOISE),
        {"sentence": "time_format goes with CSV tables"},
        {"time_format": "%Y"},
        **NPY,
    ),
]

STORED += [
    Row(
        "variables",
        "two of three",
        series(left=NOISE[:, 0], right=NOISE[:, 1], heat=NOISE[:, 2]),
        {"channels": ["heat", "left"]},
        {"variable": "heat,left"},
        **NC,
    ),
    Row(
        "variables",
        "misspelt",
        series(left=NOISE[:, 0], right=NOISE[:, 1]),
        {"sentence": "has no variable 'left,write'"},
        {"variable": "left,write"},
        **NC,
    ),
]

NAMED = [
    Row(
        "clock that is named",
        "unit in its name",
        series(volts=NOISE[:, 0], elapsed_ms=SAMPLES * 4.0),
        {"rate": 250, "channels": ["volts"]},
        {"time_column": "elapsed_ms"},
        **NC,
    ),
    Row(
        "clock that is named",
        "a letter in its name",
        series(volts=NOISE[:, 0], clock_h=SAMPLES * 4.0),
        {"rate": 0.25},
        {"time_column": "clock_h"},
        **NC,
    ),
    Row(
        "dimensions",
        "a grid",
        stored(NOISE.reshape(N, 3, 1), ("time", "lat", "lon"), SECONDS, units="s"),
        {"sentence": r"stack \['lat', 'lon'\] into one"},
        **NC,
    ),
    Row("array", "complex", saved(NOISE + 1j), {"sentence": r"array\.view\(float\)"}, **NPY),
    Row("array", "fields", saved(np.zeros(9, [("t", float), ("x", float)])), {"sentence": "columns of a table"}, **NPY),
    Row("array", "date-times", saved(np.arange(9).astype("M8[s]")), {"sentence": "It is a clock"}, **NPY),
]

ROWS = [*TABLES, *STORED, *NAMED]


def make(row, folder):
    """The file of a row."""
    path = folder / f"made{row.suffix}"
    if callable(row.make):
        row.make(path)
    else:
        path.write_bytes(row.make if isinstance(row.make, bytes) else row.make.encode())
    return path
