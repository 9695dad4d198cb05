"""What is on the page: values as they are, gaps, facts in words; and where pages may be written."""

import base64
import json
import re

import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.cli.commands import cli
from manifold_observer.pipeline.jobs.records import keep_record, recalled
from manifold_observer.pipeline.reports import states
from manifold_observer.pipeline.reports.data import packed, time_axis
from manifold_observer.pipeline.reports.html import MARK


def content(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1]), text


def bytes_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def unpacked(cell):
    if "i2" in cell:
        whole = np.frombuffer(base64.b64decode(cell["i2"]), "<i2").astype(float)
        return np.where(whole == -32768, np.nan, cell["low"] + (whole + 32767) * cell["step"])
    ((kind, text),) = cell.items()
    return np.frombuffer(base64.b64decode(text), {"f4": "<f4", "f8": "<f8", "u1": "u1", "i4": "<i4"}[kind])


def test_report__states_on_the_page_are_those_of_the_result_with_gaps(shown):
    out, page = shown
    told, _ = content(page)
    state = mo.load(out)["state"].to_dataset()
    drawn = [panel for panel in told["panels"] if panel["title"].startswith("State ")]
    assert len(drawn) == state.sizes["mode"]
    for k, panel in enumerate(drawn):
        (line,) = panel["series"]
        y, t = unpacked(told["arrays"][line["y"]]), unpacked(told["arrays"][line["t"]])
        assert np.isnan(y).sum() == 1  # the gap
        np.testing.assert_array_equal(y[~np.isnan(y)], state["state"].values[:, k].astype("f4"))
        np.testing.assert_array_equal(t[~np.isnan(y)], state["time"].values)
        low, high = (unpacked(told["arrays"][line[name]]) for name in ("low", "high"))
        width = 1.96 * state["state_std"].values[:, k]
        np.testing.assert_allclose((high - low)[~np.isnan(y)] / 2, width, atol=2e-4 * np.ptp(high[~np.isnan(y)]))


def test_report__says_how_it_was_made(shown):
    _, text = content(shown[1])
    for words in ("2 stretches without a gap", "The largest gap", "How settings were chosen", "Warnings", "Versions"):
        assert words in text
    command = re.search(r"<pre><code>(.*?)</code></pre>", text, re.DOTALL)[1]
    assert command.startswith("manifold-observer run")
    assert "--features identity" in command
    assert "--n-modes 3" in command
    assert "&lt;u&gt;activity" in command
    assert text.rstrip().endswith(MARK)
    assert not re.search(r'(src|href)="(?!data:)', text)


def test_report__long_results_are_drawn_with_few_points_that_have_the_extremes(shown, tmp_path, monkeypatch):
    monkeypatch.setattr(states, "_STATE_POINTS", 40)
    monkeypatch.setattr(states, "_MOST_DOTS", 30)
    told, text = content(mo.report(shown[0], tmp_path / "few.html"))
    state = mo.load(shown[0])["state"].to_dataset()
    panel = next(panel for panel in told["panels"] if panel["title"].startswith("State 1"))
    y = unpacked(told["arrays"][panel["series"][0]["y"]])
    assert len(y) < 60
    assert np.nanmax(y) == np.float32(state["state"][:, 0].max())
    assert np.nanmin(y) == np.float32(state["state"][:, 0].min())
    assert "Lines go through the least and the largest value of every 12 frames" in text
    assert "Shown are 30 of 240 frames" in text
    assert len(unpacked(told["arrays"][told["points"]["time"]])) == 30


def test_report__goes_on_without_the_recording(shown, tmp_path):
    told, text = content(mo.report(shown[0], tmp_path / "gone.html", recordings=[tmp_path / "nowhere.csv"]))
    assert "could not be opened" in text
    assert not any(panel.get("height") == 70 for panel in told["panels"] if panel["kind"] == "lines")
    assert any(panel["title"].startswith("State 1") for panel in told["panels"])


def test_report__takes_labels_of_a_file_or_an_array(shown, tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("start,stop,label\n0,30,calm\n30,100,wild\n", encoding="utf-8")
    done = CliRunner().invoke(
        cli, ["report", str(shown[0]), str(tmp_path / "a.html"), "--labels", str(labels), "--json"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["bytes"] == (tmp_path / "a.html").stat().st_size
    told, _ = content(tmp_path / "a.html")
    assert [one["name"] for one in told["points"]["colourings"]] == ["time", "<u>activity", "label"]
    state = mo.load(shown[0])["state"].to_dataset()
    number = xr.DataArray(np.arange(240.0) / 7, dims="frame", name="speed")
    told, _ = content(mo.report(shown[0], tmp_path / "b.html", labels=number))
    (speed,) = [one for one in told["points"]["colourings"] if one["name"] == "speed"]
    np.testing.assert_array_equal(unpacked(told["arrays"][speed["values"]]), number)
    assert state.sizes["frame"] == 240


def test_report__replaces_nothing_but_an_earlier_report(shown, tmp_path):
    mine = tmp_path / "thesis.html"
    mine.write_text("<html>years of work</html>")
    with pytest.raises(ValueError, match="must be an earlier report or nothing"):
        mo.report(shown[0], mine)
    assert mine.read_text() == "<html>years of work</html>"
    with pytest.raises(ValueError, match=r"must end in \.html"):
        mo.report(shown[0], tmp_path / "page.pdf")
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        mo.report(shown[0], tmp_path / "nowhere" / "page.html")
    with pytest.raises(FileNotFoundError, match=r"gone\.zarr does not exist"):
        mo.report(tmp_path / "gone.zarr", tmp_path / "page.html")
    again = mo.report(shown[0], tmp_path / "page.html")
    assert mo.report(shown[0], again) == again
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "thesis.html"]


@pytest.mark.parametrize("values", [[0.0, 1.0, np.nan, -2.0], [3.0, 3.0], [np.nan], [1e300, -1e300]])
def test_packed__steps_are_a_65000th_of_the_range(values):
    found = unpacked(packed(values, "i2"))
    span = np.nan_to_num(np.nanmax(values) - np.nanmin(values)) if not np.isnan(values).all() else 0.0
    np.testing.assert_allclose(found, values, atol=span / 65_000)


def test_time_axis__keeps_dates_to_the_millisecond():
    dates = np.datetime64("2020-03-09T10:14:33.25", "ns") + np.arange(3) * np.timedelta64(1, "s")
    axis = time_axis(dates)
    assert axis.start == "2020-03-09T10:14:33.250"
    np.testing.assert_allclose(axis.numbers(dates), [0, 1, 2])


@pytest.mark.slow
def test_report__tells_cost_and_warnings_of_the_run_that_this_machine_made(shown, tmp_path):
    """They lie beside no result and in none: two runs that take other times have the same bytes."""
    words = [str(shown[0].parent / "a<b>&'$x$.csv"), "--features", "identity", "--labels", "<u>activity"]
    for name in ("one", "two"):
        done = CliRunner().invoke(cli, ["run", *words, str(tmp_path / f"{name}.zarr"), "--n-modes", "3"])
        assert done.exit_code == 0, done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.zarr", "two.zarr"]
    assert bytes_of(tmp_path / "one.zarr") == bytes_of(tmp_path / "two.zarr")
    (tmp_path / "one.zarr").rename(tmp_path / "moved.zarr")
    _, text = content(mo.report(tmp_path / "moved.zarr", tmp_path / "a.html"))
    for stage in ("features", "embed", "observe", "total"):
        assert re.search(rf"<td>{stage}</td><td>\d+\.\d s</td>", text), stage
    record = {"seconds": {"embed": 12.34}, "warnings": ["embed: <b>look out</b>"]}
    _, text = content(mo.report(tmp_path / "moved.zarr", tmp_path / "a.html", record=record))
    assert "<td>embed</td><td>12.3 s</td>" in text
    assert "embed: &lt;b&gt;look out&lt;/b&gt;" in text
    keep_record(tmp_path / "nowhere.zarr", record)
    assert recalled(tmp_path / "nowhere.zarr") == {}
