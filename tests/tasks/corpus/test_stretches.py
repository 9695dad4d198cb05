"""Stretches of a sample: as many frames as are wanted, in order, apart, and by one recording's name alone."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.tasks.corpus.stretches import allotted, spread_out, stretches

counts = st.lists(st.integers(0, 10_000), min_size=1, max_size=30)


@given(counts, st.integers(1, 20_000), st.booleans())
def test_allotted__gives_what_is_wanted_and_no_more_than_there_is(have, total, equal):
    given_ = allotted(have, total, equal=equal)
    assert (given_ <= have).all()
    assert (given_ >= 0).all()
    assert given_.sum() == min(total, sum(have))


@given(counts, st.integers(1, 20_000))
def test_allotted__equally_differs_by_one_at_most_but_for_short_recordings(have, total):
    given_ = allotted(have, total, equal=True)
    whole = given_ < np.asarray(have)
    if whole.any():
        assert given_[whole].max() - given_[whole].min() <= 1
        assert given_.max() <= given_[whole].min() + 1


@pytest.mark.parametrize(
    ("have", "total", "equal", "expected"),
    [
        ([100, 100, 100], 30, True, [10, 10, 10]),
        ([5, 100, 100], 45, True, [5, 20, 20]),
        ([100, 300], 40, False, [10, 30]),
        ([3, 3], 100, False, [3, 3]),
        ([100, 100, 100], 31, True, [11, 10, 10]),
        ([0, 9], 5, True, [0, 5]),
    ],
)
def test_allotted__cases(have, total, equal, expected):
    assert allotted(have, total, equal=equal).tolist() == expected


@pytest.mark.slow
@given(st.integers(0, 5000), st.integers(0, 6000), st.integers(1, 300), st.text(max_size=9), st.integers(0, 9))
def test_stretches__hold_so_many_frames_in_order(n, wanted, length, name, seed):
    spans = stretches(n, wanted, length, name, seed)
    assert sum(stop - start for start, stop in spans) == min(n, wanted)
    ends = [0, *(end for span in spans for end in span), n]
    assert ends == sorted(ends)
    assert all(a[1] < b[0] for a, b in itertools.pairwise(spans))
    assert spans == stretches(n, wanted, length, name, seed)


def test_stretches__lie_all_over_a_recording_and_differ_between_recordings():
    found = [stretches(10_000, 500, 50, name, 0) for name in ("a", "b")]
    assert found[0] != found[1]
    for spans in found:
        assert max(np.diff([0, *(start for start, _ in spans), 10_000])) < 2100  # a tenth each, one in every tenth


@given(st.integers(1, 200), st.integers(1, 300))
def test_spread_out__from_the_first_to_the_last(n, chosen):
    found = spread_out(n, chosen)
    assert len(found) == min(n, chosen) or chosen == 1
    assert found[0] == 0
    assert found[-1] == (n - 1 if min(n, chosen) > 1 else 0)
