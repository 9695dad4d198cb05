"""The command continue tells who watches of every part, and of calls that find nothing new."""

import json

import numpy as np
import pytest

from manifold_observer.pipeline.watch.counts import from_text

HISTOGRAM = ("--features", "histogram", "--frame", 10, "--bins", 4, "--n-modes", 2, "--cluster", "none")


@pytest.mark.slow
def test_continue__counts_what_it_adds(console, tmp_path):
    rng = np.random.default_rng(0)
    for name, n in (("a", 3000), ("b", 500)):
        np.save(tmp_path / f"{name}.npy", rng.integers(0, 4, size=(n, 2)).astype(float))
    code, _, err = console("run", tmp_path / "a.npy", tmp_path / "a.zarr", *HISTOGRAM)
    assert code == 0, err
    words = ("continue", tmp_path / "a.zarr", tmp_path / "b.npy", tmp_path / "more")
    watched = ("--metrics-file", tmp_path / "more.prom", "--log-file", tmp_path / "more.log", "--log-format", "json")
    for _ in range(2):
        code, _, err = console(*words, *watched)
        assert code == 0, err
    told = [json.loads(line) for line in (tmp_path / "more.log").read_text().splitlines()]
    outcomes = [one for one in told if one["event"] not in ("started", "stage")]
    assert [one["event"] for one in outcomes] == ["finished", "skipped"]
    assert outcomes[0]["n_frames"] == 50
    values = from_text((tmp_path / "more.prom").read_text().splitlines())
    assert (values["frames_total", ""], values["recordings_total", "skipped"]) == (50, 1)
