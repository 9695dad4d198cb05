"""What is expected of landmarks and passes: the cheapest way that is enough, within what may be spent."""

import pytest

from manifold_observer.tasks.engine.expected import Bounds, Prices, Seen, expect, gain, passes_for, through

SEEN = [Seen(128, 8e-3), Seen(256, 4e-3), Seen(512, 2e-3)]
NUMBERS = [256, 512, 1024, 2048, 4096, 8192]


def way(n_frames, tolerance, seen=SEEN, numbers=NUMBERS, bounds=None):
    prices = Prices(n_frames, 462.0, 462.0, 42.0)
    return expect(seen, tolerance, 10.0, prices, numbers, bounds or Bounds(60))


@pytest.mark.parametrize(
    ("n_frames", "tolerance", "landmarks", "passes"),
    [
        (100_000, 1e-2, 256, 0),
        (100_000, 3e-3, 512, 0),
        (1_000_000, 1e-3, 2048, 0),
        (10_000_000, 2e-4, 8192, 0),
        (100_000, 2e-4, 1024, 2),  # two passes are less than the links of 8,192 landmarks
        (5_000, 2e-4, 256, 3),  # all pairs are few
        (100_000, 1e-8, 2048, 6),  # out of reach for landmarks, which save a pass
    ],
)
def test_expect__takes_the_cheapest_way(n_frames, tolerance, landmarks, passes):
    found = way(n_frames, tolerance)
    assert (found.landmarks, found.passes, found.enough) == (landmarks, passes, True)


def test_expect__stays_within_the_bounds():
    assert way(100_000, 1e-8, bounds=Bounds(2)).passes <= 2
    assert not way(100_000, 1e-8, bounds=Bounds(2)).enough
    dear = Prices(100_000, 462.0, 462.0, 42.0).of_passes(1)
    found = way(100_000, 1e-8, bounds=Bounds(60, work=dear / 2))
    assert (found.passes, found.enough) == (0, False)
    assert way(100_000, 1e-8, bounds=Bounds(60, work=1.0)) is None


def test_expect__what_is_done_costs_nothing_and_is_no_way_by_itself():
    found = way(100_000, 1e-3, seen=[Seen(256, 8e-4), Seen(512, 7e-4)], numbers=[512], bounds=Bounds(60, done=512))
    assert (found.landmarks, found.passes) == (512, 1)


def test_through__falls_as_it_was_seen_to_and_all_frames_leave_nothing():
    assert through(SEEN, 1024) == pytest.approx(1e-3)
    assert through(SEEN, 1024, 1000) == 0.0
    assert through([Seen(256, 1e-3), Seen(512, 2e-3)], 1024) < 2e-3  # never upwards


def test_gain__is_larger_where_the_spectrum_falls_faster():
    assert gain([0.3, 0.2, 0.1, 0.09], 2, 3) < gain([0.3, 0.2, 0.1, 0.02], 2, 3)
    assert gain([], 2, 3) == gain([0.3], 2, 3) == 2.0
    assert passes_for(1e-2, 1e-4, 10.0) == 3
