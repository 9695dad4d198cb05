"""Settings of the one map of a corpus: what it is fitted on, and when frames count as outside of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..frames.settings import check_settings, setting

__all__ = ["MapConfig"]


@dataclass(frozen=True)
class MapConfig:
    """How one map is made for many recordings.

    Examples
    --------
    >>> MapConfig(frames=2000).allotment
    'equal'
    """

    frames: int = setting(6000, least=100)
    """Frames of the sample that the map is fitted on, of all recordings together."""
    stretch: int = setting(50, least=21)
    """Consecutive frames that are taken together: local covariances and filters need frames that follow each other."""
    allotment: str = setting("equal", choices=("equal", "proportional"))
    """As many frames from every recording (equal), or more from longer ones (proportional)."""
    standardise: str = setting("corpus", choices=("corpus", "recording"))
    """Whether sensors have one offset and gain in the whole corpus, or every recording is brought to mean 0 and
    standard deviation 1 channel by channel."""
    centred: bool = setting(True, option="--centred/--past")
    """Measure a frame by the frames on both sides of it, which a whole recording has, or by those before it alone."""
    level: float = 0.01
    """Share of frames held out of the map that count as outside of it."""
    most_outside: float = 0.1
    """Share of a recording outside the map above which a refit is due."""
    refit: str = setting("asked", choices=("asked", "due"))
    """Whether a corpus fits its map again where that is asked for (corpus run --refit), or also where it is due."""
    seed: int = setting(0, least=0)
    """Seed of the places of stretches."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        check_settings("map", self)
        for name in ("level", "most_outside"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
                raise ValueError(f"map: {name} must lie in (0, 1); got {value!r}.")

    def attrs(self) -> dict[str, Any]:
        """Settings as attributes of a map.

        Examples
        --------
        >>> MapConfig().attrs()["map_frames"]
        6000
        """
        return {
            f"map_{name}": int(value) if value is True or value is False else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def from_attrs(cls, attrs: dict[str, Any]) -> MapConfig:
        """Settings from the attributes of a map.

        Examples
        --------
        >>> MapConfig.from_attrs(MapConfig(frames=500, centred=False).attrs()) == MapConfig(frames=500, centred=False)
        True
        """
        values = {name: attrs[f"map_{name}"] for name in cls.__dataclass_fields__ if f"map_{name}" in attrs}
        return cls(**values | {"centred": bool(values.get("centred", True))})
