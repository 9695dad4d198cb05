"""Dask's report is one page that needs no network; asking for it where it cannot be costs one sentence."""

import re
import shutil

import dask
import pytest

from manifold_observer.pipeline.watch import report
from manifold_observer.pipeline.watch.report import check_report, reported

WORDS = ("run", "a.npy", "out.zarr", "--features", "identity", "--n-modes", 2)


def work(client):
    return sum(dask.delayed(pow)(number, 2) for number in range(8)).compute(scheduler=client)


@pytest.mark.slow
def test_report__is_one_page_and_a_second_one_replaces_it(tmp_path, workers_here):
    pytest.importorskip("bokeh")
    file = tmp_path / "night.html"
    with workers_here(1) as (_, client):
        for code in ("first", "second"):
            check_report(file)
            with reported(client, file, f"manifold-observer run {code}"):
                assert work(client) == 140
    page = file.read_text()
    assert page.lstrip().startswith("<!DOCTYPE html>")
    assert "manifold-observer run second" in page
    assert "pow" in page  # the tasks that ran
    assert not re.search(r'<script[^>]+src="http|<link rel="stylesheet"[^>]+href="http', page)
    assert [path.name for path in tmp_path.iterdir()] == ["night.html"]


def test_report__that_cannot_be_written_costs_no_result(tmp_path, workers_here):
    pytest.importorskip("bokeh")
    (tmp_path / "folder").mkdir()
    told = pytest.warns(UserWarning, match=r"performance-report: .*night.html could not be written \(FileNotFoundError")
    with workers_here(1) as (_, client), told, reported(client, tmp_path / "folder" / "night.html", "run"):
        shutil.rmtree(tmp_path / "folder")


def test_report__a_file_of_somebody_else_stays_as_it_is(tmp_path):
    pytest.importorskip("bokeh")
    file = tmp_path / "page.html"
    file.write_text("<html>mine</html>")
    with pytest.raises(ValueError, match=r"performance-report: .*page.html must be a file that this option wrote"):
        check_report(file)
    assert file.read_text() == "<html>mine</html>"


def test_report__without_bokeh_names_the_extra(console, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "find_spec", lambda _: None)
    code, out, err = console(*WORDS, "--performance-report", tmp_path / "a.html")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "pip install bokeh" in err


@pytest.mark.parametrize("option", ["--performance-report", "--metrics"])
def test_command__without_a_cluster_is_wrong_usage(console, tmp_path, option):
    value = [tmp_path / "a.html"] if option == "--performance-report" else []
    code, _, err = console(*WORDS, "--cluster", "none", option, *value)
    assert code == 2
    assert "tell of a Dask cluster; name one by --cluster" in err
