"""Hidden states of long recordings, computed on Dask.

>>> import manifold_observer.pipeline as mo
"""

from .baselines import baselines
from .diffusion import embed, generator_rates
from .features import histogram, identity, log_rms, stft
from .forecast import Plan, plan
from .observer import observe
from .recording import open_recording
from .scores import class_scores, scores

__all__ = [
    "Plan",
    "baselines",
    "class_scores",
    "embed",
    "generator_rates",
    "histogram",
    "identity",
    "log_rms",
    "observe",
    "open_recording",
    "plan",
    "scores",
    "stft",
]
