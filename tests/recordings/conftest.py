"""What is not in the repository, for the tests in this folder; README.md says how to get it."""

import os
from pathlib import Path

import pytest

from manifold_observer.datasets.simulators.music import has_sampler

BESIDE = Path(__file__).parents[3] / "shared" / "recordings"
HOW = "needs what is not in the repository: tests/recordings/README.md says how to get it"


def given(there, what):
    """What a test needs, or the one reason to skip it."""
    if not there:
        pytest.skip(HOW)
    return what


@pytest.fixture
def recordings():
    """The folder of recordings."""
    folder = Path(os.environ.get("MANIFOLD_OBSERVER_RECORDINGS", BESIDE))
    return given((folder / "awkward").is_dir(), folder)


@pytest.fixture
def awkward(recordings):
    """Recordings of awkward kinds."""
    return recordings / "awkward"


@pytest.fixture
def sampler():
    """The sampler and its instruments."""
    return given(has_sampler(), None)
