"""The paper's experiments by name, in the order of its section V."""

from __future__ import annotations

from .circle import CIRCLE
from .drift import DRIFT
from .experiment import Experiment
from .music import MUSIC
from .sphere import EXTENSION, SET_UP, SPHERE

EXPERIMENTS: dict[str, Experiment] = {
    "set-up": SET_UP,
    "sphere": SPHERE,
    "drift": DRIFT,
    "extension": EXTENSION,
    "circle": CIRCLE,
    "music": MUSIC,
}
