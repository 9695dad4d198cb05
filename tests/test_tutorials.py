"""The tutorials run from the first cell to the last, and what is stored of them is small and in order."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from strategies import share

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


def outputs_of(notebook):
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_tutorials__are_there():
    assert {path.stem for path in NOTEBOOKS} == {"music", "spikes", "eeg", "sensors", "million"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", share(reversed(NOTEBOOKS), len(NOTEBOOKS)), ids=lambda path: path.stem)
def test_tutorials__run(path, tmp_path, monkeypatch):
    monkeypatch.setenv("TUTORIAL_QUICK", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(path, as_version=4)
    stored = [len(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = outputs_of(notebook)
    assert not [output for output in outputs if output.output_type == "error"]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    assert [len(cell.outputs) for cell in notebook.cells if cell.cell_type == "code"] == stored


@each
def test_tutorials__are_stored_with_the_outputs_of_one_whole_run(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert path.stat().st_size < 300_000
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert sum("image/png" in output.get("data", {}) for output in outputs_of(notebook)) >= 2
    assert not [output for output in outputs_of(notebook) if output.output_type == "error"]
    assert not [output.text for output in outputs_of(notebook) if output.get("name") == "stderr"]
    assert not re.search(r"/home/|/work/|/root/|\b10\.\d+\.\d+|192\.\d+\.\d", path.read_text(encoding="utf-8"))


@each
def test_tutorials__call_what_is_public(path):
    import manifold_observer.pipeline as mo  # noqa: PLC0415 - the processes that only hand out tests need none

    text = "".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
    assert set(re.findall(r"\bmo\.(\w+)", text)) <= set(mo.__all__)
