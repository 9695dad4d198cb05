from .comparison.baselines import baselines as baselines
from .comparison.scores import class_scores as class_scores
from .comparison.scores import scores as scores
from .embedding.embed import embed as embed
from .embedding.extend import extend as extend
from .embedding.plan import Plan as Plan
from .embedding.plan import plan as plan
from .frames.features import histogram as histogram
from .frames.features import identity as identity
from .frames.features import log_rms as log_rms
from .frames.features import stft as stft
from .frames.recording import open_recording as open_recording
from .jobs.run import RunConfig as RunConfig
from .jobs.run import read_embedding as read_embedding
from .jobs.run import run as run
from .jobs.stream import continue_run as continue_run
from .jobs.stream import extend_result as extend_result
from .jobs.stream import follow as follow
from .jobs.stream import open_stream as open_stream
from .observers.calibrate import calibrate as calibrate
from .observers.observe import observe as observe
from .observers.rates import generator_rates as generator_rates
from .observers.reconstruction import innovations as innovations
from .observers.reconstruction import reconstruct as reconstruct
from .observers.smooth import smooth as smooth

__version__: str
