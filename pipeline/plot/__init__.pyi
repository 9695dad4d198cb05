from .compare import compare as compare
from .figure import report_figure as report_figure
from .maps import map2d as map2d
from .maps import map3d as map3d
from .residuals import residuals as residuals
from .spectrum import spectrum as spectrum
from .states import states as states
