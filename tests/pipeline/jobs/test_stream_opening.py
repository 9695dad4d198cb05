"""A result goes on with the options that its recordings were opened with: labels, gaps, segments that are left out."""

import numpy as np
import pytest
import xarray as xr
from kinds.rows import NOISE, STAGES, N, text

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.jobs.run import run
from manifold_observer.pipeline.jobs.stream import continue_run

pytestmark = pytest.mark.usefixtures("in_this_thread")

SECONDS = np.arange(N) + 40 * (np.arange(N) >= 300) + 40 * (np.arange(N) >= 310)
"""Two holes with a short segment of ten samples between them."""


def table(folder, n):
    """The first rows of a labelled recording with holes and values that stand for nothing."""
    columns = [np.where((np.arange(N) > 330) & (np.arange(N) < 340), -200, column) for column in NOISE.T]
    rows = [SECONDS, *columns, STAGES]
    (folder / "a.csv").write_text(text(["time (s)", "a", "b", "c", "stage"], *[row[:n] for row in rows]))
    return folder / "a.csv"


@pytest.mark.slow
def test_continue__opens_as_the_result_was_opened(tmp_path):
    opening = mo.OpenConfig(labels="stage", shortest_segment=20, missing=-200, gaps="nan")
    config = mo.RunConfig(mo.FeatureConfig("log_rms", frame=4), opening, mo.EmbedConfig(n_modes=2, window=5))
    run([table(tmp_path, 280)], tmp_path / "out.zarr", config)
    step = continue_run(tmp_path / "out.zarr", [table(tmp_path, N)], tmp_path / "parts")
    new = xr.open_zarr(step.part, group="frames", consolidated=False)
    whole = mo.log_rms(mo.open_recording(table(tmp_path, N), **opening.options()), frame=4)
    expected = whole.isel(frame=slice(70, None))
    assert step.added == expected.sizes["frame"] == len(range(280, 300, 4)) + 5 + 15
    np.testing.assert_array_equal(new["frames"], expected)
    assert new["stage"].values.tolist() == expected["stage"].values.tolist()
    np.testing.assert_allclose(new["time"], expected["time"])
    assert len(np.unique(new["segment"])) == 3
