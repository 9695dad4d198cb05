"""Clocks that are rounded, of every unit, and named by their columns or variables."""

import numpy as np

from .rows import (
    ABC,
    HOLED,
    NC,
    NOISE,
    NPY,
    RNG,
    SAMPLES,
    SECONDS,
    N,
    Row,
    exact,
    ms,
    saved,
    series,
    stored,
    text,
    timed,
)

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
