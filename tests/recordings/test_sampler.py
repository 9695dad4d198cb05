"""Pieces of music with sampled instruments, which the program fluidsynth plays."""

import pytest

from manifold_observer.datasets.simulators.music import duet, solo
from notes import check_seeds, check_spectrum

pytestmark = pytest.mark.usefixtures("sampler")
COMPOSERS = [solo, duet]


@pytest.mark.parametrize("compose", COMPOSERS)
def test_pieces__spectrum_of_each_slow_note_peaks_at_its_pitch_or_a_harmonic(compose):
    check_spectrum(compose, "sampled", harmonics=range(1, 8))


@pytest.mark.parametrize("compose", COMPOSERS)
def test_pieces__same_seed_same_piece_and_other_seed_another(compose):
    check_seeds(compose, "sampled")
