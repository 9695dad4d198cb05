"""Options of the observer, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..frames.options import as_attributes, check_choice, is_whole

GAINS = ("auto", "paper", "unit", "kalman", "dmk")
READINGS = ("auto", "coordinates", "lift")
OPTIMAL_GAINS = ("kalman", "dmk")
"""Those that come from a Riccati equation, and not from gamma."""
STEPS = ("exact", "euler")
RATES = ("step", "paper", "generator", "calibrated")
USUAL_RATES = {"auto": "step", "paper": "step", "unit": "step", "kalman": "calibrated", "dmk": "paper"}
"""The rates that a gain takes where none are named."""
INITIALS = ("steady", "paper")


@dataclass(frozen=True)
class ObserverConfig:
    """How the observer runs."""

    gamma: float = 0.85
    """Weight of the measurement against the dynamics, 0 <= gamma < 1; of the gains "paper" and "unit"."""
    gain: str = "auto"
    """"paper" (as printed, sign flipped), "unit" (settles to the measurement), "kalman" or "dmk"; "auto" is "paper"."""
    step: str = "exact"
    """"exact" or "euler"."""
    substeps: int | None = None
    """Euler steps a frame; None takes enough to contract."""
    initial: str = "steady"
    """State before a segment: "steady" or "paper"."""
    rates: str | Sequence[float] | NDArray[np.float64] | None = None
    """Decay of the modes: "step", "paper", "generator", "calibrated", or numbers per frame; None goes by the gain."""
    burst_duration: float | None = None
    """Seconds over which burst covariances were measured, for the rates "generator"."""
    reading: str = "auto"
    """What a state is read from: "coordinates" of the frame, or "lift", linearly from its features."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        if not 0 <= self.gamma < 1:
            raise ValueError(
                f"observe: gamma must lie in [0, 1); got {self.gamma}. At 1 and above the observer does not "
                "contract; the paper uses gamma=0.85 and gamma=0.1."
            )
        check_choice("observe", "gain", self.gain, GAINS)
        check_choice("observe", "reading", self.reading, READINGS)
        check_choice("observe", "step", self.step, STEPS)
        check_choice("observe", "initial", self.initial, INITIALS)
        if isinstance(self.rates, str) and self.rates not in RATES:
            raise ValueError(
                f"observe: rates must be one of {', '.join(map(repr, RATES))}, or numbers; got {self.rates!r}."
            )
        if self.rates is not None and not isinstance(self.rates, str):
            object.__setattr__(self, "rates", _numbers(self.rates))  # arrays cannot be compared as options are
        if self.substeps is not None and (self.step != "euler" or not is_whole(self.substeps, 1)):
            raise ValueError(
                f"observe: substeps must be at least 1 and goes with step='euler'; got {self.substeps} "
                f"with step={self.step!r}. Leave it out, or give step='euler'."
            )

    def resolved(self, *, coordinates: bool, usual_gain: str = "paper") -> ObserverConfig:
        """The same with reading and gain written out.

        Parameters
        ----------
        coordinates
            Whether the embedding holds what coordinates are read with.
        usual_gain
            Gain of the linear reading where none is named.

        Raises
        ------
        ValueError
            Coordinates are wanted of an embedding that has none to read, or with options of the linear reading.
        """
        linear = replace(self, gain=usual_gain if self.gain == "auto" else self.gain, reading="lift")
        touched = replace(self, reading="auto") != ObserverConfig()
        if self.reading == "auto":
            return linear if touched or not coordinates else replace(self, reading="coordinates")
        if self.reading == "lift":
            return linear
        if touched:
            raise ValueError(
                "observe: gamma, gain, step, rates and initial belong to reading='lift', and must be left out with "
                "reading='coordinates'; got some of them. Leave them out, or give reading='lift'."
            )
        if not coordinates:
            raise ValueError(
                "observe: reading='coordinates' needs an embedding with shrunk covariances; got one without. Embed "
                "with shrinkage='auto', or give reading='lift'."
            )
        return self

    @property
    def optimal(self) -> bool:
        """Whether the gain comes from a Riccati equation, and not from gamma."""
        return self.gain in OPTIMAL_GAINS

    @property
    def named_rates(self) -> str | tuple[float, ...]:
        """The rates that were asked for, or else those that go with the gain."""
        return USUAL_RATES[self.gain] if self.rates is None else self.rates  # type: ignore[return-value]

    @property
    def calibrated(self) -> bool:
        """Whether the dynamics come from the embedded frames."""
        return self.named_rates == "calibrated"

    def attrs(self) -> dict[str, int | float | str]:
        """Settings as attributes that every file format can hold."""
        # The rates in use are stored beside these, as numbers.
        unused = {"rates", "burst_duration"} | ({"gamma"} if self.optimal else set())
        return as_attributes({name: value for name, value in asdict(self).items() if name not in unused})


def _numbers(rates: Sequence[float] | NDArray[np.float64]) -> tuple[float, ...]:
    """Rates as plain numbers."""
    given = np.asarray(rates, np.float64)
    if given.ndim != 1:
        raise ValueError(f"observe: rates must be a name, or numbers per frame, one a mode; got {rates!r}.")
    return tuple(given.tolist())
