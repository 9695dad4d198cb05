"""What the demonstrations simulate: options of the simulators, with the defaults of a demonstration."""

from __future__ import annotations

from dataclasses import dataclass

from ..frames.settings import setting


@dataclass(frozen=True)
class Sphere:
    """Simulation: a point wanders over a sphere, seen by three counting sensors (section V-A of the paper)."""

    seed: int = setting(1, least=0)
    """Seed of the simulation."""
    drift_rate: float = setting(0.008, option="--drift-rate -c")
    """Drift rate c of the angles."""
    noise: float = 0.1
    """Rate of the sensors' dark counts."""
    n_samples: int = setting(240_000, least=1, option="--samples")
    """Length of the recording; a frame has 60 samples."""

    @property
    def about_frames(self) -> int:
        """About how many frames it makes."""
        return self.n_samples // 60


@dataclass(frozen=True)
class Circle:
    """Simulation: an angle with linear dynamics, and bursts for covariances (section V-B); true rates 1, 2, 3, 4."""

    seed: int = setting(1, least=0)
    """Seed of the simulation."""
    n_frames: int = setting(1_600, least=1, option="--frames")
    """Length of the recording."""

    @property
    def about_frames(self) -> int:
        """About how many frames it makes."""
        return self.n_frames


@dataclass(frozen=True)
class Melody:
    """Simulation: two synthetic instruments alternate on recurring notes."""

    seed: int = setting(1, least=0)
    """Seed of the simulation."""
    n_notes: int = setting(80, least=1, option="--notes")
    """Length of the melody."""
    noise: float = 0.0
    """Standard deviation of added white noise."""

    @property
    def about_frames(self) -> int:
        """About how many frames it makes: notes last .4 s with the rests after them, frames 23 ms."""
        return self.n_notes * 400 // 23


SIMULATIONS = {"sphere": Sphere, "circle": Circle, "melody": Melody}
