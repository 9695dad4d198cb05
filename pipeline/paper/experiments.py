"""The paper's experiments by name, in the order of its section V."""

from __future__ import annotations

from .circle import CIRCLE
from .drift import DRIFT
from .experiment import Experiment
from .music import MUSIC
from .printed import PRINTED_CIRCLE, PRINTED_SPHERE
from .sphere import EXTENSION, SET_UP, SPHERE
from .theory import THEORY

EXPERIMENTS: dict[str, Experiment] = {
    "set-up": SET_UP,
    "sphere": SPHERE,
    "drift": DRIFT,
    "extension": EXTENSION,
    "circle": CIRCLE,
    "music": MUSIC,
    "printed-sphere": PRINTED_SPHERE,
    "printed-circle": PRINTED_CIRCLE,
    "theory": THEORY,
}
