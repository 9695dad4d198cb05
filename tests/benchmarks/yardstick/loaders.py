"""Every case by name: real recordings where their folder is there, and simulated ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from . import animals, apart, bodies, later, machines, simulations, sounds
from .case import Case

RECORDINGS = Path(__file__).parents[4] / "shared" / "recordings"
"""Where recordings are, unless the environment variable MANIFOLD_OBSERVER_RECORDINGS says otherwise."""

REAL: dict[str, tuple[str, Callable[[Path], Case]]] = {
    "melody": ("flute_harmonica_render", sounds.melody),
    "linear_track": ("nelpy_linear_track", animals.linear_track),
    "head_direction": ("peyrache_head_direction", animals.head_direction),
    "ratgps_1d": ("ratgps_1d", animals.ratgps_1d),
    "ratgps_2d": ("ratgps_2d", animals.ratgps_2d),
    "sleep": ("sleep_edf_sc4001_1hz", bodies.sleep),
    "eeg_eyes": ("eegbci_s001", bodies.eeg_eyes),
    "emg_s01_1": ("emg_gestures_uci", bodies.emg_text),
    "emg_s06_2": ("emg_gestures_uci", bodies.emg_gzip),
    "heartbeat": ("ecg_ptb_15ch", bodies.heartbeat),
    "finch": ("bengalese_finch_gy6or6", sounds.finch),
    "bird0": ("birdsongrec_bird0", sounds.bird0),
    "singer": ("vocadito", sounds.singer),
    "skab_valve1_0": ("skab", partial(machines.skab, name="valve1_0")),
    "skab_valve1_1": ("skab", partial(machines.skab, name="valve1_1")),
    "skab_valve2_0": ("skab", partial(machines.skab, name="valve2_0")),
    "skab_other_11": ("skab", partial(machines.skab, name="other_11")),
    "occupancy": ("occupancy_uci", machines.occupancy),
    "eeg_movement": ("eegbci_s001", bodies.eeg_movement),
    "eeg_eye_state": ("eeg_eye_state", bodies.eeg_eye_state),
}


UNTUNED = apart.APART | later.LATER
"""Kinds that count in no mean."""


def load(
    only: Sequence[str] = (), absent: Callable[[str, str], None] = lambda name, why: None, other: int = 0
) -> Iterator[Case]:
    """Cases in turn; those that are not there are told to ``absent``, with the reason.

    ``other``: added to the seeds of the kinds that count in no mean.
    """
    home = Path(os.environ.get("MANIFOLD_OBSERVER_RECORDINGS", RECORDINGS))
    for name, (folder, read) in REAL.items():
        if only and name not in only:
            continue
        if (home / folder).is_dir():
            yield read(home / folder)
        else:
            absent(name, f"{home / folder} is not there")
    for name, simulate in simulations.SIMULATED.items():
        if not only or name in only:
            yield simulate()
    for name, simulate in UNTUNED.items():
        if not only or name in only:
            yield simulate(other=other)


def names() -> list[str]:
    """What ``only`` may name."""
    return [*REAL, *simulations.SIMULATED, *UNTUNED]
