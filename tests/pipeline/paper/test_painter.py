"""The picture of a demonstration is drawn beside the numbers, and is the one that is drawn here."""

import subprocess
import sys

import numpy as np
import pytest

from manifold_observer.pipeline.paper import painter
from manifold_observer.pipeline.paper.demo_picture import _BLUE, Shown, draw
from manifold_observer.pipeline.plot.style import COLOURS

WAIT = 60


@pytest.fixture
def shown():
    values = np.random.default_rng(0).normal(size=(60, 3))
    return Shown("sphere", values[:, :2], values, np.where(values[:, 0] > 1, np.nan, values[:, 0]), "angle")


@pytest.fixture
def picture(tmp_path):
    return tmp_path / "picture.png"


@pytest.fixture
def drawn_here(shown, tmp_path):
    draw(tmp_path / "here.png", shown)
    return (tmp_path / "here.png").read_bytes()


@pytest.fixture
def without_matplotlib(tmp_path, monkeypatch):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "matplotlib.py").write_text("raise ImportError('there is none')")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def test_painting__beside_gives_the_same_picture(shown, picture, drawn_here, monkeypatch, capfd):
    with painter.painting(picture, 2) as at_work:
        monkeypatch.setattr(painter, "draw", None)  # here, it cannot be
        at_work.begin(shown)
        assert at_work.end()
    assert picture.read_bytes() == drawn_here
    assert capfd.readouterr() == ("", "")


def test_painting__with_one_processor_starts_nothing(shown, picture, drawn_here, monkeypatch):
    monkeypatch.setattr(painter, "_started", None)
    with painter.painting(picture, 1) as at_work:
        at_work.begin(shown)
        assert at_work.end()
    assert picture.read_bytes() == drawn_here


@pytest.mark.parametrize("executable", [sys.executable, "/there/is/none"])
def test_painting__is_done_here_where_it_fails_beside(shown, picture, drawn_here, monkeypatch, executable):
    monkeypatch.setattr(sys, "executable", executable)
    with painter.painting(picture, 2) as at_work:
        if at_work._process is not None:
            at_work._process.kill()
            at_work._process.wait()
        at_work.begin(shown)
        assert at_work.end()
    assert picture.read_bytes() == drawn_here


@pytest.mark.parametrize("n_processors", [1, 2])
@pytest.mark.usefixtures("without_matplotlib")
def test_painting__without_matplotlib_says_so_and_nothing_else(shown, picture, capfd, n_processors):
    with painter.painting(picture, n_processors) as at_work:
        at_work.begin(shown)
        assert not at_work.end()
    assert not picture.exists()
    assert capfd.readouterr() == ("", "")


def test_painting__leaves_no_process_where_the_block_is_interrupted(picture):
    begun = []
    with pytest.raises(KeyboardInterrupt), painter.painting(picture, 2) as at_work:
        raise begun.append(at_work._process) or KeyboardInterrupt
    assert begun[0].returncode is not None


def test_painter__ends_silently_with_the_process_that_started_it(picture, capfd):
    process = painter._started(picture)
    process.stdin.close()
    assert process.wait(WAIT) == 1
    assert capfd.readouterr() == ("", "")


def test_painter__needs_no_xarray():
    words = "import sys; import manifold_observer.pipeline.paper.painter; print('xarray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, timeout=WAIT, check=True)
    assert done.stdout == "False\n"


def test_colours__are_those_of_other_pictures():
    assert COLOURS[0] == _BLUE
