"""Columns that are labels, and columns that are none."""

import numpy as np

from .rows import ABC, BLOCKS, NOISE, RNG, SAMPLES, STAGES, N, Row, dated, exact, labelled, text, timed

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
    Row(
        "label kept",
        "called state",
        labelled("state", STAGES),
        {"channels": ABC, "labels": {"state_label": STAGES}},
        {"labels": "state"},
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
