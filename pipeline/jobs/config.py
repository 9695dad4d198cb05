"""Options of a run: how recordings are opened, what describes a frame, how frames are embedded and observed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ..engine.config import EmbedConfig
from ..frames.opening import OpenConfig
from ..frames.settings import check_settings, flat, plain_numbers, setting
from ..observers.config import ObserverConfig

__all__ = ["FeatureConfig", "OpenConfig", "RunConfig"]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# As the functions of frames/features.py have them, which start slowly: a corpus with nothing to do need not wait.
FEATURE_OPTIONS: dict[str, tuple[str, ...]] = {
    "histogram": ("frame", "hop", "edges", "bins", "outside"),
    "stft": ("frame", "hop", "window"),
    "log_rms": ("frame", "hop", "floor"),
    "identity": (),
}


CHOSEN = ("condition_why", "axes", "shrinkage_target", "shrinkage_intensity", "foretold", "foretold_by_chance")
"""Attributes of an embedding that say what it chose by itself."""

PROMISED = (
    "residual_reached",
    "residual_from",
    "residual_at_most",
    "n_landmarks",
    "passes",
    "landmark_rounds",
    "expected_landmarks",
    "expected_passes",
    "expected_residual",
)
"""Attributes of an embedding that say what became of a residual that was asked for with landmarks."""


@dataclass(frozen=True)
class FeatureConfig:
    """What describes a frame: the name of the features and their options.

    Examples
    --------
    >>> FeatureConfig("stft", frame="23ms").options()
    {'frame': '23ms'}
    """

    name: str = setting("stft", choices=("histogram", "stft", "log_rms", "identity"), option="--features")
    """What describes a frame."""
    frame: int | float | str | None = setting(None, metavar="SAMPLES|DURATION")
    """Length of a frame, such as 60 or 23ms."""
    hop: int | float | str | None = setting(None, metavar="SAMPLES|DURATION")
    """From the start of one frame to the next; the length of a frame by default."""
    bins: int | None = setting(None, least=1)
    """Number of equal histogram bins; one per count by default."""
    edges: Sequence[float] | NDArray[np.float64] | None = None
    """Edges of the histogram bins, instead of their number."""
    outside: str | None = setting(None, choices=("raise", "clip"))
    """Samples outside the edges are refused (raise, the default), or counted in the end bins (clip)."""
    floor: float | None = None
    """Smallest level for log_rms."""
    window: str | None = setting(None, option="--stft-window")
    """Window function for stft; hann by default."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, before anything is read."""
        if self.name not in FEATURE_OPTIONS:
            raise ValueError(f"run: features must be one of {', '.join(FEATURE_OPTIONS)}; got {self.name!r}.")
        unknown = [name for name in self.options() if name not in FEATURE_OPTIONS[self.name]]
        if unknown:
            raise ValueError(f"run: {self.name} features have no {', '.join(unknown)}. Leave it out.")
        check_settings("run", self)
        if self.edges is not None:
            object.__setattr__(self, "edges", plain_numbers("run: edges", self.edges))

    def options(self) -> dict[str, Any]:
        """Options of the features that are given."""
        return {name: value for name, value in asdict(self).items() if name != "name" and value is not None}


@dataclass(frozen=True)
class RunConfig:
    """What a run does to its recordings.

    Examples
    --------
    >>> config = RunConfig(FeatureConfig("stft", frame="23ms"), embedding=EmbedConfig(n_modes=4))
    >>> config.embedding.n_modes, config.observer.gamma
    (4, 0.85)
    """

    features: FeatureConfig = field(default_factory=FeatureConfig)
    """What describes a frame."""
    opening: OpenConfig = field(default_factory=OpenConfig)
    """How recordings are opened."""
    embedding: EmbedConfig = field(default_factory=EmbedConfig)
    """How frames are embedded."""
    observer: ObserverConfig = field(default_factory=ObserverConfig)
    """How frames are observed."""
    smooth: bool = False
    """Also estimate every state from all frames, into /smoothed."""

    @property
    def calibrated(self) -> bool:
        """Whether some filter takes its dynamics from the frames."""
        reads = self.embedding.resolved().shrinkage != "none"
        ways = [self.observer.resolved(coordinates=reads)]
        if self.smooth:
            ways.append(self.observer.smoother().resolved(coordinates=reads, usual_gain="kalman"))
        return any(way.reading == "lift" and way.calibrated for way in ways)

    def flat(self) -> dict[str, Any]:
        """All settings that have a value, in one level, by their names on the command line.

        Examples
        --------
        >>> RunConfig(FeatureConfig("stft", frame="23ms")).flat()["frame"]
        '23ms'
        """
        return {"smooth": self.smooth} | flat([self.features, self.opening, self.embedding, self.observer])

    def to_json(self) -> str:
        """All settings as text, from which :meth:`from_json` makes the same; NumPy's values become plain.

        Examples
        --------
        >>> config = RunConfig(FeatureConfig("histogram", frame=60, edges=np.array([0.0, 0.5, 1.0])))
        >>> RunConfig.from_json(config.to_json()) == config
        True
        """
        return json.dumps(asdict(self), default=_from_numpy)

    def to_toml(self) -> str:
        """Settings that differ from the defaults, by their names on the command line, for ``run --config``.

        Examples
        --------
        >>> print(RunConfig(FeatureConfig("stft", frame="23ms"), embedding=EmbedConfig(window=11)).to_toml(), end="")
        frame = "23ms"
        window = 11
        """
        usual, lines = RunConfig().flat(), []
        for name, value in self.flat().items():
            if name not in usual or usual[name] != value:
                lines.append(f"{name.replace('_', '-')} = {_as_toml(value)}\n")
        return "".join(lines)

    @classmethod
    def from_json(cls, text: str) -> RunConfig:
        """Settings from what :meth:`to_json` gave, now or in an earlier version.

        Examples
        --------
        >>> old = '{"features": "stft", "feature_options": {"frame": 60}, "embed_options": {"n_modes": 2}}'
        >>> RunConfig.from_json(old).embedding.n_modes
        2
        """
        values = json.loads(text)
        if isinstance(values.get("features"), str):
            values = _of_version_0(values)
        return cls(
            FeatureConfig(**values["features"]),
            OpenConfig(**values["opening"]),
            EmbedConfig(**values["embedding"]),
            ObserverConfig(**values["observer"]),
            values["smooth"],
        )


def _of_version_0(values: dict[str, Any]) -> dict[str, Any]:
    """Settings as they were stored when options were dictionaries of what had been given."""
    return {
        "features": {"name": values["features"], **values.get("feature_options", {})},
        "opening": values.get("open_options", {}),
        "embedding": {"preset": "paper", **values.get("embed_options", {})},
        "observer": values.get("observe_options", {}),
        "smooth": values.get("smooth", False),
    }


def _as_toml(value: Any) -> str:
    """A value as TOML has it, which is as JSON: TOML has no pairs of escapes, and escapes one character more."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _from_numpy(value: Any) -> Any:
    """NumPy's arrays and numbers as JSON can hold them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"run: settings must be numbers, text and lists of them; got {value!r}.")
