"""Options of the embedding, checked once."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from numbers import Real

from manifold_observer.tasks.engine.forms import FORMS

from ..frames.conditioning import CONDITIONS
from ..frames.options import as_attributes, check_choice, is_whole

Attrs = dict[str, int | float | str]
"""Attributes that every file format can hold."""
METHODS = ("auto", "exact", "landmarks")
PRECISIONS = ("auto", "float32", "float64")
HOMES = ("auto", "local", "resident", "recomputed", "disk")
LANDMARK_CHOICES = ("uniform", "kmeans++", "farthest")
LANDMARK_ROUTES = ("nystrom", "diffusion")
SHRINKAGES = ("auto", "identity", "pooled", "none")
PRESETS = ("auto", "paper")


@dataclass(frozen=True)
class EmbedConfig:
    """How frames are embedded."""

    n_modes: int | None = None
    """Coordinates; None takes six, or with the preset "paper" those before the spectral gap."""
    window: int = 21
    """Frames of a local covariance."""
    preset: str = "auto"
    """"auto", or "paper": features as they are, all their directions, covariances that are not shrunk."""
    condition: str = "auto"
    """What features go through: "auto" by their kind, "none", "root", "log", or "standard" (deviation)."""
    axes: int | None = 20
    """Leading principal axes of the features in which distances are taken, at most; None takes all."""
    shrinkage: str = "auto"
    """Target of shrunk local covariances: "identity", "pooled", "auto" by what foretells more, or "none"."""
    causal: bool = False
    """Whether a local covariance sees the frames before its frame alone."""
    rank: int | None = None
    """Eigenvalues of a local covariance that are kept at most; None keeps all above the tolerance."""
    tolerance: float = 1e-3
    """Eigenvalues of a local covariance at or below this fraction of its largest are cut."""
    regularization: float = 0.0
    """Ridge added to local covariances, in squared feature units; in place of rank and tolerance."""
    epsilon: float | str = "median"
    """Scale of the kernel: "median", "local", or a number in units of the distance."""
    epsilon_factor: float = 1.0
    """Factor on the median, or on the local scales."""
    neighbours: int = 16
    """Which nearest neighbour gives the local scale."""
    alpha: float = 0.0
    """Density normalisation: 0 graph Laplacian, 1/2 Fokker-Planck, 1 Laplace-Beltrami."""
    method: str = "auto"
    """"exact", "landmarks", or "auto"."""
    precision: str = "auto"
    """Floating-point precision of the tiles: "float32", "float64", or "auto"."""
    form: str = "auto"
    """Form of the distance: "quadratic", "factor", "window", or "auto" by a timed probe."""
    home: str = "auto"
    """Where tiles live: "local", "resident", "recomputed", "disk", or "auto" by memory."""
    tile: int | None = None
    """Frames on the side of a tile; None chooses by the number of frames."""
    residual_tolerance: float | None = None
    """Largest residual of an eigenpair; None chooses by the tiles' home."""
    landmarks: int = 2000
    """Frames that stand for all where the method is "landmarks"."""
    landmark_choice: str = "uniform"
    """How landmarks are chosen: "uniform" in time, "kmeans++" or "farthest" points."""
    landmark_route: str = "nystrom"
    """How landmarks carry over: "nystrom" or "diffusion"."""
    refine: int = 0
    """Exact passes over the whole kernel after the landmarks."""
    max_passes: int = 60
    """Products with the kernel matrix at most."""
    seed: int = 0
    """Of the start vectors and of samples."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        _require(self.n_modes is None or is_whole(self.n_modes, 1), "n_modes", "be at least 1, or None", self.n_modes)
        _require(is_whole(self.window, 2), "window", "be at least 2 frames", self.window)
        _require(self.rank is None or is_whole(self.rank, 1), "rank", "be at least 1, or None", self.rank)
        for name in ("tolerance", "regularization", "epsilon_factor", "alpha"):
            value = getattr(self, name)
            _require(isinstance(value, Real) and not isinstance(value, bool), name, "be a number", value)
        _require(1e-12 <= self.tolerance < 1, "tolerance", "lie in [1e-12, 1)", self.tolerance)
        _require(0 <= self.regularization < math.inf, "regularization", "be at least 0", self.regularization)
        named = self.epsilon in ("median", "local")
        number = not isinstance(self.epsilon, str) and 0 < self.epsilon < math.inf
        _require(named or number, "epsilon", "be 'median', 'local' or a number above 0", self.epsilon)
        _require(0 < self.epsilon_factor < math.inf, "epsilon_factor", "be above 0", self.epsilon_factor)
        _require(is_whole(self.neighbours, 1), "neighbours", "be at least 1", self.neighbours)
        _require(0 <= self.alpha <= 1, "alpha", "lie in [0, 1]", self.alpha)
        check_choice("embed", "preset", self.preset, PRESETS)
        check_choice("embed", "condition", self.condition, CONDITIONS)
        check_choice("embed", "shrinkage", self.shrinkage, SHRINKAGES)
        _require(self.axes is None or is_whole(self.axes, 1), "axes", "be at least 1, or None", self.axes)
        check_choice("embed", "method", self.method, METHODS)
        check_choice("embed", "precision", self.precision, PRECISIONS)
        check_choice("embed", "form", self.form, ("auto", *FORMS))
        check_choice("embed", "home", self.home, HOMES)
        _require(is_whole(self.landmarks, 10), "landmarks", "be at least 10", self.landmarks)
        check_choice("embed", "landmark_choice", self.landmark_choice, LANDMARK_CHOICES)
        check_choice("embed", "landmark_route", self.landmark_route, LANDMARK_ROUTES)
        _require(is_whole(self.refine, 0), "refine", "be at least 0", self.refine)
        _require(self.tile is None or is_whole(self.tile, 1), "tile", "be at least 1, or None", self.tile)
        within = self.residual_tolerance is None or 0 < self.residual_tolerance < 1
        _require(within, "residual_tolerance", "lie in (0, 1), or be None", self.residual_tolerance)
        _require(is_whole(self.max_passes, 1), "max_passes", "be at least 1", self.max_passes)
        _require(is_whole(self.seed, 0), "seed", "be at least 0", self.seed)
        self._check_together()

    def _check_together(self) -> None:
        """Refuse options that exclude each other."""
        if self.causal and self.shrinkage == "none":
            raise ValueError(
                "embed: causal windows grow from a single frame on, and need shrunk covariances; got shrinkage='none'. "
                "Leave shrinkage= out."
            )
        if self.rank is not None and self.regularization:
            raise ValueError(
                f"embed: rank and regularization exclude each other, a ridge leaves nothing to cut; got {self.rank} "
                f"and {self.regularization}. Give one of them."
            )
        if self.method == "landmarks" and self.epsilon == "local":
            raise ValueError(
                "embed: epsilon='local' needs the neighbours among all frames, which landmarks do not have; got "
                "method='landmarks'. Give epsilon='median' or a number, or method='exact'."
            )
        if self.landmark_route == "diffusion" and self.alpha:
            raise ValueError(
                "embed: landmark_route='diffusion' has no density normalisation, alpha must be 0 with it; got "
                f"{self.alpha}. Give alpha=0, or landmark_route='nystrom'."
            )

    def resolved(self, *, given_covariances: bool = False) -> EmbedConfig:
        """The same with what the preset, other options and given covariances decide written out."""
        if self.preset == "paper" or given_covariances:
            return replace(self, condition="none", axes=None, shrinkage="none", causal=False)
        cut = self.rank is not None or self.regularization or self.tolerance != EmbedConfig.tolerance
        windowed = self.form != "auto" and FORMS[self.form].needs_windows
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


def _require(holds: bool, name: str, constraint: str, value: object) -> None:
    """Raise the one sentence where a constraint of embed does not hold."""
    if not holds:
        raise ValueError(f"embed: {name} must {constraint}; got {value!r}.")
