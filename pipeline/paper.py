"""The paper's experiments by name, in the order of its section V."""

from __future__ import annotations

from .paper_circle import CIRCLE
from .paper_drift import DRIFT
from .paper_music import MUSIC
from .paper_sphere import EXTENSION, SET_UP, SPHERE
from .reproduction import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    "set-up": SET_UP,
    "sphere": SPHERE,
    "drift": DRIFT,
    "extension": EXTENSION,
    "circle": CIRCLE,
    "music": MUSIC,
}
