"""What docs/stores.md shows runs."""

import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from called import commands_in, parsed
from manifold_observer.pipeline.stores.address import place
from manifold_observer.pipeline.stores.zarrs import zarr_target

PAGE = Path(__file__).parents[3] / "docs" / "stores.md"


@pytest.mark.slow
def test_page__its_python_runs(bucket):
    walk = np.random.default_rng(0).normal(size=(150, 3)).cumsum(axis=0)
    dataset = xr.Dataset({"walk": (("time", "channel"), walk)})
    dataset.to_zarr(zarr_target(place(f"{bucket}/in/night.zarr")), zarr_format=3, consolidated=False)
    found = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block.replace("s3://lab", bucket), found)
    assert found["result"]["frames"].sizes["frame"] == 150
    assert found["places"] == [place(f"{bucket}/in/night.zarr")]
    assert found["embedding"].sizes["frame"] == 150


@pytest.mark.parametrize("words", commands_in(PAGE), ids=lambda words: words[1])
def test_page__its_commands_are_understood(words):
    assert {str(path).partition(":")[0] for path in parsed(words)["paths"]} == {"s3"}
