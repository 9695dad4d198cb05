"""The command is the same alone and as ``dask manifold-observer``, and costs nothing before it is run."""

import subprocess
import sys
from pathlib import Path

import pytest

from strategies import share

ALONE = [str(Path(sys.executable).parent / "manifold-observer")]
WITH_DASK = [sys.executable, "-m", "dask", "manifold-observer"]


def output(words, folder):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("module", ["entry", "commands"])
def test_entry__imports_nothing_that_is_slow(module):
    """The commands neither: what their options are is known without NumPy, so that --help need not wait for it."""
    script = (
        f"import sys, manifold_observer.pipeline.cli.{module};"
        "print(sorted({'numpy', 'xarray', 'dask', 'distributed', 'zarr', 'scipy', 'pandas'} & set(sys.modules)))"
    )
    assert output([sys.executable, "-c", script], None) == (0, "[]\n", "")


def test_dask__lists_the_command_by_its_name(tmp_path):
    code, text, err = output([sys.executable, "-m", "dask", "--help"], tmp_path)
    assert (code, err) == (0, "")
    listed = [line.split()[0] for line in text.partition("Commands:")[2].splitlines() if line]
    assert "manifold-observer" in listed
    assert "cli" not in listed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "message"),
    share(
        [
            (["run", "none.wav", "out.zarr"], 1, "Error: open_recording: none.wav does not exist."),
            (["run"], 2, "Error: Missing argument"),
            (["run", "none.wav", "out.zarr", "--loud"], 2, "Error: No such option '--loud'"),
            (["sing"], 2, "Error: No such command 'sing'."),
            (["run", "--", "-none.wav", "out.zarr"], 1, "Error: open_recording: -none.wav does not exist."),
        ],
        3,
    ),
)
def test_dask__has_the_errors_and_exit_codes_of_the_command(tmp_path, words, code, message):
    alone, with_dask = (output([*command, *words], tmp_path) for command in (ALONE, WITH_DASK))
    assert with_dask[:2] == alone[:2] == (code, "")
    assert with_dask[2].splitlines()[-1] == alone[2].splitlines()[-1]
    assert message in with_dask[2]
    assert "Traceback" not in with_dask[2]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_dask__help_names_the_command_as_it_was_called(tmp_path):
    code, text, err = output([*WITH_DASK, "--help"], tmp_path)
    assert (code, err) == (0, "")
    assert text.startswith("Usage: python -m dask manifold-observer [OPTIONS] COMMAND")
    assert output([*WITH_DASK, "--version"], tmp_path) == output([*ALONE, "--version"], tmp_path)
