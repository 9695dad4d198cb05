"""Fixtures of the commands."""

import pytest


@pytest.fixture
def call(in_this_process, console):
    """The console, with commands that compute in this process."""
    return console
