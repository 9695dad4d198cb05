"""Modules that are loaded at once are no garbage: nobody looks for any among them, and it is looked for afterwards."""

import gc
import subprocess
import sys

import pytest

from manifold_observer.pipeline.graph.loading import loading

MANY = """
import gc
from manifold_observer.pipeline.graph.loading import leave_at_once, loading
looked = []
gc.callbacks.append(lambda phase, told: looked.append(phase))
with loading():
    import xarray
within, kept = len(looked), gc.get_freeze_count()
gc.callbacks.clear()
class Garbage:
    def __del__(self):
        print("collected")
one = Garbage()
one.itself = one
del one
gc.collect()
print(within, kept > 50_000, gc.isenabled())
"""


def test_loading__looks_at_nothing_while_modules_come_and_at_later_garbage_as_ever():
    told = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.splitlines() == ["collected", "0 True True"]


def test_loading__keeps_nothing_where_nothing_came():
    before = gc.get_freeze_count()
    with loading():
        pass
    assert gc.get_freeze_count() == before
    assert gc.isenabled()


@pytest.mark.parametrize("enabled", [True, False])
def test_loading__leaves_collections_as_they_were_when_an_import_fails(enabled):
    if not enabled:
        gc.disable()
    try:
        with pytest.raises(ImportError), loading():
            raise ImportError
        assert gc.isenabled() == enabled
    finally:
        gc.enable()


LEAVING = """
import atexit, gc
from manifold_observer.pipeline.graph.loading import leave_at_once
atexit.register(lambda: print(gc.get_freeze_count() > 0))  # what was registered first comes last
leave_at_once()
"""


def test_leave_at_once__nothing_is_left_to_look_at():
    told = subprocess.run([sys.executable, "-c", LEAVING], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout == "True\n"
