"""Labels of many frames are made in pieces, whose making takes a time in proportion to the frames."""

from hypothesis import given
from hypothesis import strategies as st

from manifold_observer.pipeline.frames.frame_times import in_groups
from manifold_observer.pipeline.frames.segments import FrameRun


class Counted:
    """A run that counts how often it is looked at."""

    looks = 0

    @property
    def n_frames(self):
        Counted.looks += 1
        return 1


@given(st.lists(st.integers(1, 9)), st.integers(1, 20))
def test_in_groups__are_neighbours_and_as_few_as_fit(lengths, most):
    runs = [FrameRun(k, 10 * k, length) for k, length in enumerate(lengths)]
    groups = in_groups(runs, most)
    assert [run for group in groups for run in group] == runs
    sizes = [sum(run.n_frames for run in group) for group in groups]
    assert all(size <= most or len(group) == 1 for size, group in zip(sizes, groups, strict=True))
    assert all(size + group[0].n_frames > most for size, group in zip(sizes, groups[1:], strict=False))


def test_in_groups__many_short_segments_are_looked_at_once_each():
    Counted.looks = 0
    assert [len(group) for group in in_groups([Counted() for _ in range(2000)], 1500)] == [1500, 500]
    assert Counted.looks <= 3 * 2000
