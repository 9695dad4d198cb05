"""Files that were changed at random: the recording that is there, or one sentence; never a foreign error."""

import re
import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given
from hypothesis import strategies as st
from kinds.loggers import ACTIGRAPH, OPENBCI, TOA5
from kinds.rows import BLOCKS, NOISE, SAMPLES, STAGES, N, dated, labelled, ms, stored, text, timed

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.recording import clock
from strategies import examples

TABLES = [
    timed("time (ms)", ms(256)),
    timed("Zeit", SAMPLES, below="s,V,V,V\n"),
    timed("date", dated(SAMPLES)),
    timed("date", dated(SAMPLES * 60, "%d.%m.%Y %H:%M"), mark=";"),
    labelled("stage", STAGES),
    labelled("class", BLOCKS, clock=False),
    text([], [f'"{d}"' for d in dated(SAMPLES * 60)], SAMPLES, *NOISE.T[:2], above=TOA5),
    text([], *NOISE.T, above=ACTIGRAPH),
    text(["Sample Index", "EXG 0", "Timestamp"], SAMPLES % 256, NOISE[:, 0], SAMPLES // 7, above=OPENBCI),
    text([], *NOISE.T, above="1599065118.00,1599065118.00,1599065118.00\n32.0,32.0,32.0\n"),
    text([], SAMPLES, *NOISE.T, mark=" ", above="# t a b c\n"),
    timed("time_s", SAMPLES, mark="|", above="sep=|\nmade,by hand\n\n"),
]
BITS = [
    *"\"'#%;,.|:-+ \t\0\n\r\ufeff",
    "nan",
    "inf",
    "-1e400",
    "1e9",
    "2020-01-01",
    "12:00",
    "TOA5",
    "sep=;",
    "é",
    "𝟙",
    "[ms]",
    "time",
    "class",
]
SENTENCE = re.compile(r"(?:csv|npy|open_recording|recording|log_rms): .*\.", re.DOTALL)


@st.composite
def changed(draw):
    """A table with a few changes near its beginning, or anywhere."""
    lines = draw(st.sampled_from(TABLES)).split("\n")
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, min(len(lines) - 1, draw(st.sampled_from([3, 15, N])))))
        place, bit = draw(st.integers(0, len(lines[at]))), draw(st.sampled_from(BITS))
        how = draw(st.sampled_from(["insert", "replace", "drop", "repeat", "swap", "cell"]))
        other = draw(st.integers(0, len(lines) - 1))
        if how == "insert":
            lines[at] = lines[at][:place] + bit + lines[at][place:]
        elif how == "replace":
            lines[at] = lines[at][:place] + bit + lines[at][place + 1 :]
        elif how == "drop":
            del lines[at]
            lines = lines or [""]
        elif how == "repeat":
            lines.insert(at, lines[at])
        elif how == "swap":
            other = min(other, len(lines) - 1)
            lines[at], lines[other] = lines[other], lines[at]
        else:
            cells = re.split(r"([,;| ])", lines[at])
            cells[draw(st.integers(0, len(cells) - 1))] = bit
            lines[at] = "".join(cells)
    return "\n".join(lines)


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "time_unit": st.sampled_from(["s", "ms", "µs", "h", "parsec"]),
        "time_format": st.sampled_from(["%d.%m.%Y %H:%M", "%Y", "%q", "%"]),
        "timezone": st.sampled_from(["UTC", "Europe/Berlin", "+01:00", "Mars", "../x", ""]),
        "order": st.sampled_from(["refuse", "sort"]),
        "duplicates": st.sampled_from(["first", "last", "spread"]),
        "gaps": st.sampled_from(["clock", "nan", "10s", "1us"]),
        "rates": st.just("mean"),
        "shortest_segment": st.sampled_from([1, 20, "5s", "1h"]),
        "labels": st.sampled_from(["stage", "class", "a", "none"]),
        "drop_channels": st.sampled_from(["stage", "b", "none", ["a", "b"]]),
        "channels": st.sampled_from(["all", "a", ["b", "a"], "time (ms)"]),
        "time_column": st.sampled_from(["time (ms)", "Zeit", "a", "none"]),
        "missing": st.sampled_from([-200, ["0.5", "W"], "é", ""]),
        "skip_rows": st.integers(0, 12),
        "comment": st.sampled_from(["#", "!", "1"]),
        "units_row": st.booleans(),
        "delimiter": st.sampled_from([",", "tab", ";", "space", "", "ab"]),
        "encoding": st.sampled_from(["utf-8", "cp1252", "utf-16", "klingon"]),
        "decimal": st.sampled_from([",", ".", "x"]),
        "sampling_rate": st.sampled_from([1.0, 256.0, -1.0]),
        "time_dim": st.just("rows"),
        "group": st.just("night"),
    },
)


def outcome(path, options):
    """What is opened is whole; what is refused is one sentence of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            recording = mo.open_recording(path, **options)
            ticks = clock(recording)
        except (ValueError, TypeError) as error:
            refused = str(error)
        else:
            refused = ""
    if refused:
        assert "\n" not in refused
        assert SENTENCE.fullmatch(refused)
        return
    assert recording.dims == ("time", "channel")
    assert recording.values.shape == (recording.sizes["time"], recording.sizes["channel"])
    assert ticks.sampling_rate > 0
    assert ticks.segments
    assert (np.diff(ticks.at(np.arange(recording.sizes["time"]))) > 0).all()
    if "channel" in recording.coords:
        assert recording["channel"].to_index().is_unique


@pytest.mark.slow
@examples(120)
@given(table=changed(), options=st.one_of(st.just({}), OPTIONS))
def test_tables__changed_at_random_are_read_or_refused_in_one_sentence(tmp_path_factory, table, options):
    path = tmp_path_factory.mktemp("changed") / "a.csv"
    path.write_bytes(table.encode())
    outcome(path, options)


ODD_RATES = st.one_of(
    st.none(), st.sampled_from([100.0, 99.0, 0.0, -1.0, np.nan, np.inf, "100", "100 Hz", [100.0], [1.0, 2.0]])
)


@st.composite
def clocks(draw):
    """A clock with its attributes: many are none."""
    seconds = SAMPLES / 100 * draw(st.sampled_from([1, 1e3, 1e6, 1 / 60]))
    if draw(st.booleans()):
        at = draw(st.integers(1, N - 1))
        seconds[at:] += draw(st.sampled_from([0.5, 100.0, -3.0, np.nan]))
    dtype = draw(st.sampled_from(["f8", "f4", "i4"]))
    attrs = {
        "units": draw(
            st.sampled_from(
                [
                    "s",
                    "ms",
                    "µs",
                    "min",
                    "V",
                    "",
                    "1",
                    "seconds since 2000-01-01",
                    "days since 0001-01-01",
                    "fortnights since 2000-01-01",
                    "s since",
                    "Sekunden",
                ]
            )
        )
    }
    if draw(st.booleans()):
        attrs["calendar"] = draw(st.sampled_from(["noleap", "360_day", "standard", "martian"]))
    with np.errstate(invalid="ignore"):
        return seconds.astype(dtype), attrs


@examples(60)
@given(
    made=clocks(),
    rate=ODD_RATES,
    names=st.lists(st.sampled_from(["a", "a ", "class", "time", "", "b\0", "é"]), min_size=3, max_size=3),
    options=st.one_of(st.just({}), OPTIONS),
)
def test_stored__changed_at_random_are_read_or_refused_in_one_sentence(tmp_path_factory, made, rate, names, options):
    path = tmp_path_factory.mktemp("changed") / "a.nc"
    seconds, attrs = made
    channel = np.array([name.encode() for name in names], "S4")
    try:
        stored(clock=seconds, channel=channel, attrs={} if rate is None else {"sampling_rate": rate}, **attrs)(path)
    except (ValueError, TypeError, OverflowError):
        assume(False)
    outcome(path, options)


@pytest.mark.parametrize(
    "values", [NOISE, np.c_[NOISE, BLOCKS], np.c_[SAMPLES, NOISE], np.full((N, 3), np.nan), BLOCKS, np.zeros((3, 2))]
)
@pytest.mark.parametrize(
    "options",
    [{}, {"gaps": "nan"}, {"labels": "ch4"}, {"time_column": "ch1"}, {"channels": ["ch2"]}, {"order": "sort"}],
)
def test_arrays__are_read_or_refused_in_one_sentence(tmp_path, values, options):
    np.save(tmp_path / "a.npy", values)
    outcome(tmp_path / "a.npy", options)


def test_groups__are_named(tmp_path):
    made = xr.Dataset({"volts": (("time", "channel"), NOISE)}, attrs={"sampling_rate": 250.0})
    made.to_zarr(tmp_path / "a.zarr", group="night/eeg", consolidated=False)
    with pytest.raises(ValueError, match="Name the group that holds it, as in group='night"):
        mo.open_recording(tmp_path / "a.zarr")
    with pytest.raises(ValueError, match="group must name a group in"):
        mo.open_recording(tmp_path / "a.zarr", group="day")
    with pytest.raises(ValueError, match="group must name a group in"):
        mo.open_recording(tmp_path / "a.zarr", group="../a.zarr")
    recording = mo.open_recording(tmp_path / "a.zarr", group="night/eeg")
    np.testing.assert_array_equal(recording, NOISE)
    pytest.importorskip("h5py")
    made.to_netcdf(tmp_path / "a.nc", group="night/eeg", engine="h5netcdf")
    with pytest.raises(ValueError, match="Name the group that holds it, as in group='night"):
        mo.open_recording(tmp_path / "a.nc")
    np.testing.assert_array_equal(mo.open_recording(tmp_path / "a.nc", group="night/eeg"), NOISE)
    with pytest.raises(ValueError, match="group"):
        mo.open_recording(tmp_path / "a.nc", group="day")
