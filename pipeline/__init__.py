"""Hidden states of long recordings, computed on Dask.

>>> import manifold_observer.pipeline as mo

Nothing but this file is read by that import: each name is imported when it is first used. The names stand in
``__init__.pyi``.
"""

from importlib.metadata import version

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = version("manifold-observer")
