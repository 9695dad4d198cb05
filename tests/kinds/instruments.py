"""What instruments write, and files that are disguised as others."""

import numpy as np

from .rows import NOISE, SAMPLES, N, Row, dated, exact, text, timed

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
