"""Hypothesis profiles: "quick" at home, "ci" where time is cheap (HYPOTHESIS_PROFILE=ci); neither looks at a clock."""

import os

from hypothesis import HealthCheck, settings

no_clock = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=25, **no_clock)
settings.register_profile("ci", max_examples=300, print_blob=True, **no_clock)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
