"""Options of the observer, checked once."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ..frames.options import as_attributes, check_choice, is_whole

GAINS = ("paper", "unit", "kalman", "dmk")
OPTIMAL_GAINS = ("kalman", "dmk")
"""Those that come from a Riccati equation, and not from gamma."""
STEPS = ("exact", "euler")
RATES = ("step", "paper", "generator", "calibrated")
USUAL_RATES = {"paper": "step", "unit": "step", "kalman": "calibrated", "dmk": "paper"}
"""The rates that a gain takes where none are named."""
INITIALS = ("steady", "paper")


@dataclass(frozen=True)
class ObserverConfig:
    """How the observer runs."""

    gamma: float = 0.85
    """Weight of the measurement against the dynamics, 0 <= gamma < 1; of the gains "paper" and "unit"."""
    gain: str = "paper"
    """"paper" (as printed, sign flipped), "unit" (settles to the measurement), "kalman" or "dmk"."""
    step: str = "exact"
    """"exact" or "euler"."""
    substeps: int | None = None
    """Euler steps a frame; None takes enough to contract."""
    initial: str = "steady"
    """State before a segment: "steady" or "paper"."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        if not 0 <= self.gamma < 1:
            raise ValueError(
                f"observe: gamma must lie in [0, 1); got {self.gamma}. At 1 and above the observer does not "
                "contract; the paper uses gamma=0.85 and gamma=0.1."
            )
        check_choice("observe", "gain", self.gain, GAINS)
        check_choice("observe", "step", self.step, STEPS)
        check_choice("observe", "initial", self.initial, INITIALS)
        if self.substeps is not None and (self.step != "euler" or not is_whole(self.substeps, 1)):
            raise ValueError(
                f"observe: substeps must be at least 1 and goes with step='euler'; got {self.substeps} "
                f"with step={self.step!r}. Leave it out, or give step='euler'."
            )

    @property
    def optimal(self) -> bool:
        """Whether the gain comes from a Riccati equation, and not from gamma."""
        return self.gain in OPTIMAL_GAINS

    def attrs(self) -> dict[str, int | float | str]:
        """Settings as attributes that every file format can hold."""
        values = asdict(self)
        return as_attributes({name: value for name, value in values.items() if not (self.optimal and name == "gamma")})
