"""The rate of a clock is fitted over its gap-free stretches; its gaps are told from rounding and jitter."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from manifold_observer.tasks.frames.ticks import read_ticks, resolution, simple_period

RNG = np.random.default_rng(0)
LOST = np.r_[0:600, 637:1000]


def milliseconds(rate, samples=LOST, rounded=np.floor):
    return rounded(samples * 1000 / rate + 0.3) / 1000


@pytest.mark.parametrize("rounded", [np.floor, np.round])
@pytest.mark.parametrize("rate", [100, 128, 250, 256, 360, 500, 512, 700, 2000 / 3, 44.1])
def test_read_ticks__clocks_in_milliseconds_have_the_rate_that_made_them(rate, rounded):
    found = read_ticks(milliseconds(rate, rounded=rounded))
    assert 1 / found.period == pytest.approx(rate, rel=1e-12)
    assert found.gaps.tolist() == [600]


@pytest.mark.parametrize("rate", [100, 250, 256, 1000])
def test_read_ticks__clocks_in_single_precision_have_no_gaps(rate):
    stored = (np.arange(20_000) / rate + 3600).astype(np.float32)
    found = read_ticks(stored.astype(float), tick=float(np.spacing(stored.max())))
    assert 1 / found.period == pytest.approx(rate, rel=1e-12)
    assert not len(found.gaps)


@pytest.mark.parametrize("rate", [1, 44056, 44100, 256, 30_000 / 1001, 0.0123])
@pytest.mark.parametrize("start", [0.0, 5.5])
def test_read_ticks__regular_clocks_are_exact(rate, start):
    found = read_ticks(start + np.arange(5000) / rate)
    assert 1 / found.period == pytest.approx(rate, rel=1e-11)
    assert not len(found.gaps)


def test_read_ticks__a_rate_is_simple_only_within_its_error():
    assert 1 / read_ticks(np.arange(5000) / 255.99).period == pytest.approx(255.99)
    assert simple_period(1 / 255.9998, 1e-7) == 1 / 256
    assert simple_period(1 / 255.9998, 1e-12) == 1 / 255.9998


def test_read_ticks__holes_of_a_clock_in_whole_seconds_are_gaps():
    seconds = np.delete(np.arange(300.0), [20, 21, 150, 290])
    found = read_ticks(seconds)
    assert found.period == 1.0
    assert seconds[found.gaps].tolist() == [22.0, 151.0, 291.0]


def test_read_ticks__long_steps_that_recur_evenly_are_rounding():
    period = 1.05
    found = read_ticks(np.floor(np.arange(1000) * period + RNG.uniform(-0.2, 0.2, 1000).cumsum().clip(-1, 1)))
    assert found.period == pytest.approx(period, rel=2e-3)
    assert len(found.gaps) <= 1


def test_read_ticks__jitter_is_no_gap_and_a_gap_in_it_is_one():
    jittered = (np.arange(5000) + 0.2 * RNG.standard_normal(5000)) / 100
    assert not len(read_ticks(np.sort(jittered)).gaps)
    jittered[2000:] += 0.05
    found = read_ticks(np.sort(jittered))
    assert found.gaps.tolist() == [2000]
    assert 1 / found.period == pytest.approx(100, rel=1e-4)


def test_read_ticks__samples_that_catch_up_came_late():
    times = np.arange(5000) / 250
    for at in range(100, 5000, 400):
        times[at : at + 10] = np.maximum(times[at : at + 10], times[at + 9] - 0.0001 * (9 - np.arange(10)))
    found = read_ticks(times)
    assert not len(found.gaps)
    assert 1 / found.period == pytest.approx(250, rel=1e-6)


def test_read_ticks__what_no_rate_describes_shows():
    assert read_ticks(RNG.exponential(1.0, 1000).cumsum()).irregular > 0.5
    assert read_ticks(np.r_[np.arange(200.0), 200 + np.arange(200) / 2]).spread == pytest.approx(2.0)
    assert read_ticks(milliseconds(700)).spread < 1.1


@given(
    rate=st.integers(1, 999),
    n=st.integers(600, 900),
    holes=st.lists(st.tuples(st.integers(1, 40), st.integers(5, 300)), max_size=4),
    places=st.sampled_from([3, 6, 12]),
)
def test_read_ticks__finds_the_holes_and_the_rate(rate, n, holes, places):
    """Holes of five samples and more, of any clock in milliseconds or finer; not where its period is about a tick.

    A few hundred samples at 998 Hz have one double step in milliseconds: rounding, or a sample that was lost.
    """
    assume(places > 3 or rate <= 900)
    samples = np.arange(n)
    for at, length in holes:
        samples = np.where(np.arange(n) >= at * 14, samples + length, samples)
    found = read_ticks(np.round(samples / rate, places))
    assert 1 / found.period == pytest.approx(rate, rel=3e-3)
    assert found.gaps.tolist() == (np.flatnonzero(np.diff(samples) > 1) + 1).tolist()


@pytest.mark.parametrize(("times", "tick"), [([0, 0.004, 0.008], 1e-3), ([0, 60, 120], 1.0), ([0.25, 0.5], 0.01)])
def test_resolution__is_the_decimal_at_which_times_end(times, tick):
    assert resolution(np.array(times, float)) == pytest.approx(tick)
