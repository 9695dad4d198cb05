"""Hypothesis profiles: "quick" at home, "ci" where time is cheap (HYPOTHESIS_PROFILE=ci)."""

import os

from hypothesis import settings

settings.register_profile("quick", max_examples=25, deadline=None)
settings.register_profile("ci", max_examples=300, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
