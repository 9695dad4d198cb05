"""What programs export."""

from .rows import ABC, NOISE, SAMPLES, N, Row, dated, exact, text, timed

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
