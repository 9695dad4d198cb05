"""Hidden states of long recordings, computed on Dask.

>>> import manifold_observer.pipeline as mo
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .comparison.baselines import baselines
    from .comparison.scores import class_scores, scores
    from .embedding.embed import embed, generator_rates
    from .embedding.extend import extend
    from .embedding.plan import Plan, plan
    from .frames.features import histogram, identity, log_rms, stft
    from .frames.recording import open_recording
    from .jobs.run import read_embedding
    from .jobs.stream import open_stream
    from .observers.calibrate import calibrate
    from .observers.observe import observe
    from .observers.reconstruction import innovations, reconstruct
    from .observers.smooth import smooth

__all__ = [
    "Plan",
    "baselines",
    "calibrate",
    "class_scores",
    "embed",
    "extend",
    "generator_rates",
    "histogram",
    "identity",
    "innovations",
    "log_rms",
    "observe",
    "open_recording",
    "open_stream",
    "plan",
    "read_embedding",
    "reconstruct",
    "scores",
    "smooth",
    "stft",
]

# Where the public names are. They are imported when they are used: the command must hear an interrupt, and say what
# its options are, long before Dask is there.
_PLACES = {
    "Plan": "forecast",
    "baselines": "baselines",
    "calibrate": "dynamics",
    "class_scores": "scores",
    "embed": "diffusion",
    "extend": "extension",
    "generator_rates": "diffusion",
    "histogram": "features",
    "identity": "features",
    "innovations": "reconstruction",
    "log_rms": "features",
    "observe": "observer",
    "open_recording": "recording",
    "open_stream": "stream",
    "plan": "forecast",
    "read_embedding": "run",
    "reconstruct": "reconstruction",
    "scores": "scores",
    "smooth": "smoother",
    "stft": "features",
}


class _Public(ModuleType):
    """The type of this module: its public names are found on first use."""

    def __getattr__(self, name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f".{_PLACES[name]}", __name__), name)
        super().__setattr__(name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # Python puts a module that was imported into its package: scores.py would stand in the way of scores().
        if not (name in _PLACES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Public
