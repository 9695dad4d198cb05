"""What loggers write."""

from .rows import ABC, NOISE, RNG, SAMPLES, N, Row, dated, text, timed

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
