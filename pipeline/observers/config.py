"""Options of the observer, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ..frames.options import as_attributes, is_whole
from ..frames.settings import check_settings, plain_numbers, setting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GAINS = ("auto", "paper", "unit", "kalman", "dmk")
READINGS = ("auto", "coordinates", "lift")
DYNAMICS = ("auto", "poles", "transitions")
OPTIMAL_GAINS = ("kalman", "dmk")
"""Those that come from a Riccati equation, and not from gamma."""
STEPS = ("exact", "euler")
RATES = ("step", "paper", "generator", "calibrated")
USUAL_RATES = {"auto": "step", "paper": "step", "unit": "step", "kalman": "calibrated", "dmk": "paper"}
"""The rates that a gain takes where none are named."""
INITIALS = ("steady", "paper", "prior", "auto")


@dataclass(frozen=True)
class ObserverConfig:
    """How the observer runs.

    Examples
    --------
    >>> ObserverConfig(gain="kalman").calibrated
    True
    """

    gamma: float = 0.85
    """Weight of the measurement, 0 <= gamma < 1, for the gains paper and unit."""
    gain: str = setting("auto", choices=GAINS)
    """Of the reading lift: as printed in the paper, with the sign flipped (paper, the default); settling to the
    measurement (unit); optimal for dynamics and noise of the embedded frames (kalman); or as in the authors' follow-up
    (dmk)."""
    step: str = setting("exact", choices=STEPS)
    """From one frame to the next: a zero-order hold (exact), or Euler's rule."""
    substeps: int | None = None
    """Euler steps per frame; enough to contract by default."""
    initial: str = setting("auto", choices=INITIALS)
    """State before the first frame of a segment: where the steady gain settles (steady); its coordinates (paper); or
    the mean, with its stationary variance, from which an optimal gain varies in time (prior). auto is prior for the
    gain kalman, else steady."""
    rates: str | Sequence[float] | NDArray[np.float64] | None = setting(None, choices=RATES)
    """Decay of the modes: one frame as a step of the Markov chain (step), as printed (paper), of the hidden diffusion
    (generator), as the embedded frames move (calibrated), or numbers per frame; by default step, for the gain dmk
    paper, for kalman calibrated."""
    burst_duration: float | None = None
    """Seconds over which burst covariances were measured, for the rates generator."""
    reading: str = setting("auto", choices=READINGS)
    """What states are read from: the frame's own coordinates, or linearly its features (lift); auto takes coordinates
    where the embedding holds what they need and no option of the lift is given."""
    dynamics: str = setting("auto", choices=DYNAMICS)
    """What follows the coordinates: a bank of fixed poles, or one filter with learnt transitions between all of them;
    auto takes the transitions where they foretell left-out frames clearly better."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        if not 0 <= self.gamma < 1:
            raise ValueError(
                f"observe: gamma must lie in [0, 1); got {self.gamma}. At 1 and above the observer does not "
                "contract; the paper uses gamma=0.85 and gamma=0.1."
            )
        check_settings("observe", self)
        if isinstance(self.rates, str) and self.rates not in RATES:
            raise ValueError(
                f"observe: rates must be one of {', '.join(map(repr, RATES))}, or numbers; got {self.rates!r}."
            )
        if self.rates is not None and not isinstance(self.rates, str):
            object.__setattr__(self, "rates", plain_numbers("observe: rates", self.rates))
        if self.initial == "prior" and not self.optimal and self.gain != "auto":
            raise ValueError(
                f"observe: initial='prior' needs gain='kalman' or 'dmk'; got gain={self.gain!r}. Leave "
                "initial out, or give gain='kalman'."
            )
        if self.substeps is not None and (self.step != "euler" or not is_whole(self.substeps, 1)):
            raise ValueError(
                f"observe: substeps must be at least 1, and only applies to step='euler'; got {self.substeps} with "
                f"step={self.step!r}. Leave it out, or give step='euler'."
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
        gain = usual_gain if self.gain == "auto" else self.gain
        usual_initial = "prior" if gain == "kalman" else "steady"
        initial = usual_initial if self.initial == "auto" else self.initial
        linear = replace(self, gain=gain, initial=initial, reading="lift")
        touched = not self._untouched
        if self.dynamics != "auto" and (self.reading == "lift" or touched):
            raise ValueError(
                f"observe: dynamics belongs to reading='coordinates'; got {self.dynamics!r} beside reading='lift' or "
                "an option of it. Leave it out."
            )
        if self.reading == "auto" and self.dynamics == "auto":
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
        return replace(self, reading="coordinates")

    @property
    def optimal(self) -> bool:
        """Whether the gain comes from a Riccati equation, and not from gamma."""
        return self.gain in OPTIMAL_GAINS

    @property
    def named_rates(self) -> str | tuple[float, ...]:
        """The rates that were asked for, or else those that go with the gain."""
        rates = USUAL_RATES[self.gain] if self.rates is None else self.rates
        return rates if isinstance(rates, str) else tuple(rates)

    @property
    def calibrated(self) -> bool:
        """Whether the dynamics come from the embedded frames."""
        return self.named_rates == "calibrated"

    @property
    def varies(self) -> bool:
        """Whether the gain varies from the first frame of a segment on."""
        return self.optimal and self.initial == "prior"

    @property
    def _untouched(self) -> bool:
        """Whether no option of the linear reading is given; older results hold ``"steady"``, the default then."""
        initial = "auto" if self.initial == "steady" else self.initial
        return replace(self, reading="auto", initial=initial, dynamics="auto") == ObserverConfig()

    def options(self) -> dict[str, Any]:
        """Options of :func:`observe`."""
        return asdict(self)

    def smoother(self) -> ObserverConfig:
        """The settings of a smoother beside this observer: its own, with an optimal gain."""
        return self if self.optimal or self._untouched else replace(self, gain="kalman")

    def attrs(self) -> dict[str, int | float | str]:
        """Settings as attributes that every file format can hold."""
        # The rates in use are stored beside these, as numbers.
        unused = {"rates", "burst_duration", "dynamics"} | ({"gamma"} if self.optimal else set())
        return as_attributes({name: value for name, value in asdict(self).items() if name not in unused})
