"""Users' files of every kind: the right value, or one sentence with an option that exists."""

import re
import warnings

import numpy as np
import pytest
from kinds import ROWS, make

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.opening import OPTIONS
from manifold_observer.pipeline.frames.recording import clock, start_time
from strategies import share


def opened(row, folder):
    """The recording of a row, its clock, and what was warned of."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        recording = mo.open_recording(make(row, folder), **row.options)
        ticks = clock(recording)
        if "frames" in row.want:
            mo.log_rms(recording, frame=row.want["frames"])
    return recording, ticks, " ".join(str(one.message) for one in warned)


@pytest.mark.parametrize("row", share(ROWS, 3), ids=lambda row: row.id)
def test_kind__is_right_or_refused_in_one_sentence(row, tmp_path):
    if "sentence" in row.want:
        with pytest.raises((ValueError, TypeError), match=row.want["sentence"]) as refused:
            opened(row, tmp_path)
        check_sentence(str(refused.value))
        return
    check(row.want, *opened(row, tmp_path))


def check_sentence(text):
    """One line, whose advice names options that there are."""
    assert "\n" not in text
    assert text.endswith(".")
    named = re.findall(r"(?<![\w.])([a-z_]+)=", text)
    assert set(named) <= {*OPTIONS, "frame"}, named


def check(want, recording, ticks, warned):
    """What is wanted is found."""
    found = {
        "channels": [str(name) for name in recording["channel"].values] if "channel" in recording.coords else None,
        "segments": ticks.segments,
        "start": start_time(recording),
        "n": recording.sizes["time"],
        "units": recording.attrs.get("units"),
        "known": ticks.known,
    }
    for name, value in found.items():
        assert want.get(name, value) == value, name
    if "rate" in want:
        assert ticks.sampling_rate == pytest.approx(want["rate"], rel=1e-9)
    if "near" in want:
        assert ticks.sampling_rate == pytest.approx(want["near"], rel=1e-3)
    for name, values in want.get("labels", {}).items():
        np.testing.assert_array_equal(recording[name].values, values)
        assert recording[name].dims == ("time",)
    if "values" in want:
        np.testing.assert_array_equal(recording[0].values, want["values"])
    if "times" in want:
        np.testing.assert_allclose(recording["time"].values[: len(want["times"])], want["times"])
    assert want.get("opened", "") in recording.attrs.get("opened", "")
    assert re.search(want.get("warns", "^$"), warned)
