"""Options of the embedding, checked once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from ..frames.options import as_attributes
from ..frames.settings import among_attributes, check_settings, setting

if TYPE_CHECKING:
    from manifold_observer.tasks.engine.protocols import Form

Attrs = dict[str, int | float | str]
"""Attributes that every file format can hold."""
METHODS = ("auto", "exact", "landmarks")
CONDITIONS = ("auto", "none", "root", "log", "standard")
PRECISIONS = ("auto", "float32", "float64")
HOMES = ("auto", "local", "resident", "recomputed", "disk")
# Those of tasks/engine/forms, which a test compares: the help need not wait for NumPy.
FORM_NAMES = ("auto", "quadratic", "factor", "window")
LANDMARK_CHOICES = ("uniform", "kmeans++", "farthest")
LANDMARK_ROUTES = ("nystrom", "diffusion")
LAZY = ("auto", "always", "never")
SHRINKAGES = ("auto", "identity", "pooled", "none")
PRESETS = ("auto", "paper")
USUAL_AXES, MORE_AXES = 20, 40
"""Axes where nothing is said of them, and those that are tried where frames span so many."""
USUAL_LANDMARKS = 2000
"""Landmarks where nothing is said of them."""


@dataclass(frozen=True)
class Engine:
    """How the kernel and its eigenpairs are computed: time, memory and the error that is tolerated.

    Examples
    --------
    >>> Engine(method="landmarks", landmarks=500).landmarks
    500
    """

    method: str = setting("auto", choices=METHODS)
    """All pairs of frames (exact), or every frame against landmarks; auto takes exact up to 50,000 frames, or while the
    kernel fits into memory."""
    landmarks: int | None = setting(None, least=10)
    """Number of landmarks; 2,000 by default. With a residual_tolerance as many as it takes, and at most this many."""
    landmark_choice: str = setting("uniform", choices=LANDMARK_CHOICES)
    """How landmarks are chosen: uniformly in time, or spread over the features."""
    landmark_route: str = setting("nystrom", choices=LANDMARK_ROUTES)
    """Diffusion maps of the landmarks, extended to all frames (nystrom), or frames linked through the landmarks
    (diffusion)."""
    refine: int = setting(0, least=0)
    """Exact passes over the whole kernel after the landmarks; 1 or 2 give exact residuals."""
    form: str = setting("auto", choices=FORM_NAMES)
    """How distances are computed; all forms are exact and differ in rounding. auto times them."""
    precision: str = setting("auto", choices=PRECISIONS)
    """Floating-point precision of the kernel; auto takes float32 where a sampled check finds it accurate enough."""
    home: str = setting("auto", choices=HOMES)
    """Where the tiles of the kernel are kept: in this process (local), in the workers' memory (resident), on disk, or
    nowhere (recomputed in every pass); auto goes by memory."""
    lazy: str = setting("auto", choices=LAZY)
    """Whether numbers of every frame are Dask arrays: coordinates through landmarks alone then stay on the workers, the
    same to the bit. auto does so above half a million frames; not with a residual_tolerance."""
    tile: int | None = setting(None, least=1)
    """Frames along the side of a tile; chosen from the number of frames by default."""
    residual_tolerance: float | None = None
    """Largest residual of an eigenpair, relative to the largest eigenvalue; by default 1e-10 with local tiles (1e-8
    where they are in single precision, whose rounding is all that is left there), 1e-6 with resident ones, otherwise
    1e-4. With landmarks it decides how many, and how many exact passes follow; without it theirs is estimated,
    whatever it is."""
    max_passes: int = setting(60, least=1)
    """Largest number of passes over the kernel, counted in passes of 20 vectors: with local tiles, whose passes have
    as few as 8, up to 2.5 times as many."""
    max_core_hours: float = 24.0
    """Work beyond which a residual_tolerance with landmarks takes no more of them and no exact pass, counted in
    multiplications at 40 billion a second and core."""
    seed: int = setting(0, least=0)
    """Seed of start vectors and of sampled frames."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        check_settings("embed", self)
        within = self.residual_tolerance is None or 0 < self.residual_tolerance < 1
        _require(within, "residual_tolerance", "lie in (0, 1), or be None", self.residual_tolerance)
        hours = isinstance(self.max_core_hours, Real) and not isinstance(self.max_core_hours, bool)
        _require(hours and self.max_core_hours > 0, "max_core_hours", "be a number above 0", self.max_core_hours)


@dataclass(frozen=True)
class Geometry:
    """How frames come to lie apart from each other: what their features go through, and their local covariances.

    Examples
    --------
    >>> Geometry(condition="root", max_axes=10).shrinkage
    'auto'
    """

    condition: str = setting("auto", choices=CONDITIONS)
    """What features go through first: by their kind (auto), nothing (none), a square root, a logarithm, or a division
    by their standard deviations (standard)."""
    max_axes: int | str | None = setting("auto", choices=("auto",), least=1)
    """Leading principal axes of the features in which distances are taken, at most; auto takes 20, or 40 where what
    those beyond 20 hold lasts."""
    shrinkage: str = setting("auto", choices=SHRINKAGES)
    """What local covariances are drawn towards: a multiple of the identity, the pooled covariance, whichever lets the
    coordinates foretell more of the features (auto), or nothing (none)."""
    causal: bool = setting(False, option="--causal/--centred")
    """Take local covariances from the frames before a frame alone."""
    regularization: float = 0.0
    """Ridge added to local covariances, in squared feature units, instead of a rank and a tolerance."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        check_settings("embed", self)
        number = isinstance(self.regularization, Real) and not isinstance(self.regularization, bool)
        _require(number, "regularization", "be a number", self.regularization)
        _require(0 <= self.regularization < math.inf, "regularization", "be at least 0", self.regularization)
        if self.causal and self.shrinkage == "none":
            raise ValueError(
                "embed: causal windows grow from a single frame on, and need shrunk covariances; got shrinkage='none'. "
                "Leave shrinkage= out."
            )


@dataclass(frozen=True)
class EmbedConfig(Engine, Geometry):
    """How frames are embedded: what changes the answer, and the engine that computes it.

    Examples
    --------
    >>> EmbedConfig(n_modes=4, seed=1).engine.seed
    1
    """

    n_modes: int | None = setting(None, least=1)
    """Number of diffusion coordinates; six by default, or with the preset paper those before the spectral gap."""
    window: int = setting(21, least=2, unit="frames")
    """Frames in the window of a local covariance."""
    preset: str = setting("auto", choices=PRESETS)
    """Defaults made for real recordings (auto), or the method as printed (paper): features as they are, in all their
    directions, with local covariances that are not shrunk."""
    rank: int | None = setting(None, least=1)
    """Largest number of eigenvalues of a local covariance to keep; all above the tolerance by default."""
    tolerance: float = 1e-3
    """Eigenvalues of a local covariance at or below this fraction of its largest are dropped."""
    epsilon: float | str = setting("median", choices=("median", "local"))
    """Scale of the kernel: the median distance, local scales, or a number in units of the distance."""
    epsilon_factor: float = 1.0
    """Factor on the median or on the local scales."""
    neighbours: int = setting(16, least=1)
    """Local scales are the distance to this nearest neighbour."""
    alpha: float = 0.0
    """Density normalisation: 0 graph Laplacian, 1/2 Fokker-Planck, 1 Laplace-Beltrami."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        Engine.__post_init__(self)
        Geometry.__post_init__(self)
        for name in ("tolerance", "epsilon_factor", "alpha"):
            value = getattr(self, name)
            _require(isinstance(value, Real) and not isinstance(value, bool), name, "be a number", value)
        _require(1e-12 <= self.tolerance < 1, "tolerance", "lie in [1e-12, 1)", self.tolerance)
        named = self.epsilon in ("median", "local")
        number = not isinstance(self.epsilon, str) and 0 < self.epsilon < math.inf
        _require(named or number, "epsilon", "be 'median', 'local' or a number above 0", self.epsilon)
        _require(0 < self.epsilon_factor < math.inf, "epsilon_factor", "be above 0", self.epsilon_factor)
        _require(0 <= self.alpha <= 1, "alpha", "lie in [0, 1]", self.alpha)
        self._check_together()

    def _check_together(self) -> None:
        """Refuse settings that exclude each other."""
        if self.rank is not None and self.regularization:
            raise ValueError(
                f"embed: rank and regularization must not be given together, since a ridge leaves nothing to drop; got "
                f"{self.rank} and {self.regularization}. Give one of them."
            )
        if self.method == "landmarks" and self.epsilon == "local":
            raise ValueError(
                "embed: epsilon='local' needs neighbours among all frames, so method must not be 'landmarks'; got "
                "'landmarks'. Give epsilon='median' or a number, or engine=Engine(method='exact')."
            )
        if self.landmark_route == "diffusion" and self.alpha:
            raise ValueError(
                "embed: alpha must be 0 with landmark_route='diffusion', which has no density normalisation; got "
                f"{self.alpha}. Give alpha=0, or engine=Engine(landmark_route='nystrom')."
            )

    @classmethod
    def of(cls, engine: Engine | None = None, geometry: Geometry | None = None, **options: Any) -> EmbedConfig:
        """The settings that :func:`embed` was called with.

        Examples
        --------
        >>> EmbedConfig.of(Engine(seed=1), n_modes=4) == EmbedConfig(n_modes=4, seed=1)
        True
        """
        return cls(**_values(Engine, engine or Engine()), **_values(Geometry, geometry or Geometry()), **options)

    @property
    def n_landmarks(self) -> int:
        """Landmarks where no residual decides about them."""
        return USUAL_LANDMARKS if self.landmarks is None else self.landmarks

    @property
    def engine(self) -> Engine:
        """The settings that are the engine's."""
        return Engine(**_values(Engine, self))

    @property
    def geometry(self) -> Geometry:
        """The settings that are the geometry's."""
        return Geometry(**_values(Geometry, self))

    def options(self) -> dict[str, Any]:
        """Options of :func:`embed` and :func:`plan`.

        Examples
        --------
        >>> config = EmbedConfig(n_modes=4, seed=1)
        >>> EmbedConfig.of(**config.options()) == config
        True
        """
        grouped = _values(Engine, self) | _values(Geometry, self)
        own = {name: value for name, value in asdict(self).items() if name not in grouped}
        return own | {"engine": self.engine, "geometry": self.geometry}

    def resolved(self, *, given_covariances: bool = False) -> EmbedConfig:
        """The same with what the preset, other options and given covariances decide written out."""
        if self.preset == "paper" or given_covariances:
            return replace(self, condition="none", max_axes=None, shrinkage="none", causal=False)
        cut = self.rank is not None or self.regularization or self.tolerance != EmbedConfig.tolerance
        windowed = self.form != "auto" and _forms()[self.form].needs_windows
        if self.shrinkage == "auto" and (cut or windowed):
            return replace(self, shrinkage="none")
        return self

    @property
    def windows(self) -> str:
        """How windows lie: shrunk covariances need no whole ones."""
        if self.causal:
            return "causal"
        return "whole" if self.shrinkage == "none" else "shrinking"

    def attrs(self) -> Attrs:
        """Settings as attributes that every file format can hold."""
        return as_attributes(asdict(self))

    @classmethod
    def from_attrs(cls, attrs: Mapping[Any, Any]) -> EmbedConfig:
        """Settings from the attributes of an embedding; those that are missing have their default.

        Examples
        --------
        >>> config = EmbedConfig(n_modes=4, epsilon=2.5)
        >>> EmbedConfig.from_attrs(config.attrs() | {"version": "0.1.0"}) == config
        True
        """
        return cls(**among_attributes(cls, attrs))


def _forms() -> Mapping[str, Form]:
    """The forms of the distance."""
    from manifold_observer.tasks.engine.forms import FORMS  # noqa: PLC0415 - NumPy starts slowly; --help need not wait

    return FORMS


def _values(kind: type[Any], config: Any) -> dict[str, Any]:
    """The settings of one group alone."""
    return {own.name: getattr(config, own.name) for own in fields(kind)}


def _require(holds: bool, name: str, constraint: str, value: object) -> None:
    """Raise the one sentence where a constraint of embed does not hold."""
    if not holds:
        raise ValueError(f"embed: {name} must {constraint}; got {value!r}.")
