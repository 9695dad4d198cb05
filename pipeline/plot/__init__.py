"""Pictures of results; Matplotlib is imported when the first one is drawn.

>>> import manifold_observer.pipeline as mo
>>> sorted(mo.plot.__all__)
['compare', 'map2d', 'map3d', 'report_figure', 'residuals', 'spectrum', 'states']
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
