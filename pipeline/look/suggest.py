"""What to do with a recording: which features, frames of which length, and what to ask about its values.

Throughout: a *ladder* is a row of lengths of frames, of which the shortest is taken that holds enough samples, and of
which there are not too many.
"""

from __future__ import annotations

from typing import NamedTuple

from .asking import Question
from .glance import Glance

_LADDER = (
    ("23ms", 0.023),
    ("50ms", 0.05),
    ("100ms", 0.1),
    ("250ms", 0.25),
    ("500ms", 0.5),
    ("1s", 1.0),
    ("2s", 2.0),
    ("5s", 5.0),
    ("10s", 10.0),
    ("30s", 30.0),
    ("60s", 60.0),
)
# Hertz from which a recording is sound, and from which it is a waveform whose power tells more than its values.
_SOUND, _WAVE = 4_000, 50
# Samples of a frame at least, by what describes it: a level needs fewer than a spectrum.
_LEAST = {"log_rms": 25, "stft": 64}
# Frames above which longer ones are suggested, and below which shorter ones are.
_MANY, _FEW = 50_000, 300
# Channels up to which levels alone are too few features.
_FEW_CHANNELS = 3
# Whole numbers of a clock without a unit that are rather milliseconds than seconds.
_STEPS_OF_MS = 50


class Suggestion(NamedTuple):
    """What describes a frame, and why."""

    features: str
    frame: str | None
    why: str


def suggest(found: Glance) -> Suggestion:
    """Features and length of frames for a recording.

    Parameters
    ----------
    found
        What is in it.

    Examples
    --------
    >>> sound = Glance(samples=480_000, channels=["1"], dtype="float32", seen=1.0, rate=16_000.0, seconds=30.0)
    >>> suggest(sound)[:2]
    ('stft', '23ms')
    """
    if found.rate is None:
        return _without_clock(found)
    if found.counts and found.rate < _WAVE * 4:
        return Suggestion("identity", None, "counts: every sample is a frame")
    if found.rate < _WAVE:
        return Suggestion("identity", None, "sensors: every sample is a frame")
    if found.rate >= _SOUND:
        frame = _length(found, "stft")
        return Suggestion("stft", frame, f"sound: spectra of {frame} frames")
    name = "stft" if len(found.channels) <= _FEW_CHANNELS else "log_rms"
    frame = _length(found, name)
    what = "spectra" if name == "stft" else "the level of every channel"
    return Suggestion(name, frame, f"waveforms: {what} in frames of {frame}")


def _without_clock(found: Glance) -> Suggestion:
    """Frames are counted in samples."""
    if found.samples <= _MANY:
        return Suggestion("identity", None, "no clock: every sample is a frame")
    samples = max(64, 2 ** (found.samples // _MANY).bit_length())
    name = "stft" if len(found.channels) <= _FEW_CHANNELS else "log_rms"
    return Suggestion(name, str(samples), f"no clock: frames of {samples} samples")


def _length(found: Glance, features: str) -> str:
    """The shortest frame that holds enough samples, unless there would be too many or too few."""
    rate, seconds = found.rate or 1.0, found.seconds or 0.0
    fitting = [(text, length) for text, length in _LADDER if length * rate >= _LEAST[features]]
    for text, length in fitting:
        if seconds / length <= _MANY:
            return text
    return fitting[-1][0] if fitting else _LADDER[-1][0]


def doubts(found: Glance, features: str, given: dict[str, object]) -> list[Question]:
    """What opening does not ask, but a person would.

    Parameters
    ----------
    found
        What is in the recording.
    features
        What is going to describe its frames.
    given
        Options that are given or were answered.

    Examples
    --------
    >>> table = Glance(
    ...     samples=20_000, channels=["x"], dtype="f8", seen=1.0, rate=1.0, seconds=2e4, unit="s", clock_name="time"
    ... )
    >>> doubts(table, "identity", {})[0].ways
    (('time_unit', 'ms'), ('time_unit', 's'))
    """
    asked = []
    if found.unit == "s" and "time_unit" not in given and found.rate is not None and found.rate <= 1:
        asked += _about_unit(found, 1 / found.rate)
    dead = [name for name, part in found.missing.items() if part == 1]
    if features == "log_rms":
        dead += [name for name, value in found.constant.items() if value == 0 and name not in dead]
    if dead and len(dead) < len(found.channels) and "channels" not in given:
        told = ", ".join(map(repr, dead[:5])) + (" ..." if len(dead) > 5 else "")
        what = "hold nothing but zeros or NaN" if len(dead) > 1 else "holds nothing but zeros or NaN"
        asked.append(Question(f"{told} {what}.", "drop_channels", dead, (("drop_channels", dead),)))
    holes = [name for name, part in found.missing.items() if part < 1]
    if holes and "gaps" not in given:
        told = ", ".join(f"{name!r} ({found.missing[name]:.2%})" for name in holes[:5])
        more = " ..." if len(holes) > 5 else ""
        sentence = f"NaN or infinity in {told}{more}: those samples can be taken for gaps."
        asked.append(Question(sentence, "gaps", "nan", (("gaps", "nan"), ("drop_channels", holes))))
    return asked


def _about_unit(found: Glance, step: float) -> list[Question]:
    """A clock of whole numbers that states no unit."""
    if abs(step - round(step)) > 0.02 * step or step > _STEPS_OF_MS:
        return []
    sentence = (
        f"the clock {found.clock_name!r} states no unit and was read as seconds, {found.rate:g} Hz and "
        f"{found.samples / (found.rate or 1) / 3600:.1f} hours in all; as milliseconds it is {1000 / step:g} Hz and "
        f"{found.samples * step / 1000:.1f} s."
    )
    return [Question(sentence, "time_unit", "ms", (("time_unit", "ms"), ("time_unit", "s")))]
