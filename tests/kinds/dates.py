"""Date-times as programs write them, and clocks that are out of order."""

import numpy as np

from .rows import ABC, HOLED, NOISE, SAMPLES, N, Row, dated, text, timed

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
