"""What a demonstration gives besides its scores."""

from manifold_observer.pipeline.jobs.progress import Stages
from manifold_observer.pipeline.paper import demo


def test_demonstrate__scores_and_shows_truth_in_its_order_however_a_folder_lists_it(monkeypatch):
    write, seen = demo.write_group, []

    def reversed_order(folder, group, dataset):
        stored = write(folder, group, dataset)
        return stored[sorted(stored.data_vars)]

    monkeypatch.setattr(demo, "write_group", reversed_order)
    found = demo.demonstrate(
        "melody", None, {"n_notes": 12}, Stages(), show=lambda state, truth: seen.append((state, truth))
    )
    assert found["components"] == ["pitch", "instrument"]
    [(state, truth)] = seen
    assert list(truth.data_vars) == ["pitch", "instrument"]
    assert state["state"].sizes["frame"] == len(truth["pitch"]) == found["n_frames"]
