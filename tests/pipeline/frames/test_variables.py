"""One registry says what a variable is."""

import numpy as np
import pytest
import xarray as xr

from manifold_observer.pipeline.frames.variables import VARIABLES, annotate


@pytest.mark.parametrize("name", VARIABLES)
def test_registry__every_variable_has_unit_and_meaning(name):
    variable = VARIABLES[name]
    assert variable.units
    assert variable.long_name
    assert variable.kind in "fib"


def test_annotate__gives_unit_and_meaning():
    dataset = annotate(xr.Dataset({"rate": ("mode", [0.5])}, coords={"time": ("frame", [1.0])}))
    assert dataset["rate"].attrs == {"units": "1", "long_name": "decay per frame, -log(mu)"}
    assert dataset["time"].attrs["units"] == "s"


def test_annotate__keeps_attributes_that_are_set():
    frames = xr.DataArray(np.zeros((2, 1)), dims=("frame", "feature"), attrs={"units": "mV", "features": "identity"})
    attrs = annotate(xr.Dataset({"frames": frames}))["frames"].attrs
    assert attrs == {"units": "mV", "features": "identity", "long_name": "feature vectors"}


def test_annotate__leaves_others_alone():
    assert annotate(xr.Dataset({"mine": ("anything", [1])}))["mine"].attrs == {}


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        (("frame", [0.5]), r"rate must have dims \('mode',\) and kind 'f'; got \('frame',\)"),
        (("mode", [1]), "got .* and 'i'"),
    ],
)
def test_annotate__refuses_other_dims_or_kinds(variable, message):
    with pytest.raises(ValueError, match=message):
        annotate(xr.Dataset({"rate": variable}))
