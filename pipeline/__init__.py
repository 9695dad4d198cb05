"""Hidden states of long recordings, computed on Dask.

>>> import manifold_observer.pipeline as mo
"""

from .baselines import baselines
from .diffusion import embed, generator_rates
from .dynamics import calibrate
from .extension import extend
from .features import histogram, identity, log_rms, stft
from .forecast import Plan, plan
from .observer import observe
from .reconstruction import innovations, reconstruct
from .recording import open_recording
from .run import read_embedding
from .scores import class_scores, scores
from .smoother import smooth
from .stream import open_stream

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
