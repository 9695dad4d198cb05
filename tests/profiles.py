"""Which profile of the tests runs, by HYPOTHESIS_PROFILE: conftest.py says what they are."""

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")
QUICK = PROFILE == "quick"
