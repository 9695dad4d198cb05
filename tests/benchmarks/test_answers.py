"""The yardstick at a tiny size: that it measures, that it refuses to be fooled, and that its readers read."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import manifold_observer.pipeline as mo


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """The script imports its folder, as it does when it is run from there."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] in ("answers", "yardstick")]:
        del sys.modules[name]


def part(name):
    return importlib.import_module(f"yardstick.{name}")


def refuses(case, n_embedded):
    raise ValueError("no.")


@pytest.mark.slow
def test_answers__two_tiny_recordings_are_compared_and_reported():
    answers, simulations, report = importlib.import_module("answers"), part("simulations"), part("report")
    cases = [simulations.track(length=240), simulations.gestures(length=200), simulations.track_shuffled(length=240)]
    ways = {**answers.chosen_ways(["default"], [["n_modes=3", "gamma=0.5"]]), "refuses": refuses}
    results = answers.run(cases, ways, modes=3)
    json.dumps(answers.rounded(results))
    place, gesture, control = (next(iter(result["truths"].values())) for result in results)
    assert (place["kind"], gesture["kind"], control["control"]) == ("number", "class", True)
    assert place["ways"]["n_modes=3 gamma=0.5"]["state"] > 0.5 > control["ways"]["n_modes=3 gamma=0.5"]["state"]
    assert gesture["rivals"]["3"]["pca raw pole 0.0"] > gesture["chance"]["mean"] + 0.2
    assert np.isfinite(place["ways"]["n_modes=3 gamma=0.5"]["streamed, second half"])
    table = report.table(results, [*ways], 3)
    assert len(table.splitlines()) == 2 + 3
    said = "\n".join(report.summary(results, [*ways], 3))
    assert "refuses refused place_track (whole and streamed): no." in said
    assert "refuses, rivals with as many coordinates: mean" in said


def test_answers__kinds_on_which_nothing_was_tuned_are_reported_apart():
    answers, apart, report = importlib.import_module("answers"), part("apart"), part("report")
    results = answers.run(
        [part("simulations").gestures(length=150), apart.APART["visits"](length=150)], {"refuses": refuses}
    )
    said = list(report.summary(results, ["refuses"], 8))
    assert "over 1 truths" in said[0]
    assert any("refuses on 1 kinds on which nothing was tuned:" in line for line in said)
    assert "| visits | mood (apart) |" in report.table(results, ["refuses"], 8).splitlines()[-1]


def test_apart__wild_numbers_of_sensors_do_not_own_the_state():
    """Spikes of a hundred deviations, saturated and stuck sensors: read as well as by whoever smooths components."""
    judge, ways, case = part("judge"), part("ways"), part("apart").APART["faulty"](length=900)
    state = ways.WAYS["default"](case, 900).state
    assert judge.score(state, case.truths["load"]) > 0.8
    assert judge.score(state, case.truths["mode"]) > 0.9


def test_later__a_faint_rhythm_among_many_channels_is_read_in_more_axes():
    """It lies beyond 20 principal axes, and the target is the one that foretells what lies there."""
    judge, case = part("judge"), part("later").LATER["rhythm"](length=600)
    embedding = mo.embed(case.frames)
    assert embedding.attrs["axes"] == 40
    assert embedding.attrs["shrinkage_target"] == "pooled"
    assert embedding.attrs["foretold_identity"] > embedding.attrs["foretold_pooled"]
    state = mo.observe(embedding, case.frames)["state"].values
    assert judge.score(state, case.truths["beta"]) > 0.8


def test_answers__the_same_numbers_in_two_runs_and_from_the_cache(tmp_path):
    answers, case = importlib.import_module("answers"), part("simulations").gestures(length=150)
    ways = answers.chosen_ways(["paper eight"], [])
    runs = [answers.run([case], ways, ["dm"], modes=4, cache=folder) for folder in (tmp_path, tmp_path, None)]
    assert len(list(tmp_path.glob("*.npz"))) == 4
    assert runs[0][0]["truths"] == runs[1][0]["truths"] == runs[2][0]["truths"]


def test_answers__unknown_setting_is_refused():
    with pytest.raises(ValueError, match="gama"):
        importlib.import_module("answers").chosen_ways([], [["gama=1"]])


def test_intervals__hold_the_truth_as_often_as_they_say_and_shrink_with_more_frames():
    """Two readings of the same worth: the difference is luck, and 0 lies within the interval nearly always."""
    intervals, judge = part("intervals"), part("judge")
    truth = part("case").Truth(np.sin(np.arange(2000) / 9))
    held, widths = 0, []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        own, other = truth.values[:, None] + rng.normal(size=(2, 2000, 1))
        for n in (500, 2000):
            known = truth._replace(values=truth.values[:n])
            found = intervals.behind(own[:n], other[:n], known, judge.held_out(known))
            widths.append(found.high - found.low)
        held += found.low <= 0 <= found.high
    assert held >= 34
    assert np.mean(widths[1::2]) < 0.7 * np.mean(widths[::2])
    by = judge.score(other, truth) - judge.score(own, truth)
    assert found.by == pytest.approx(by, abs=1e-9)


@pytest.mark.parametrize("classes", [2, 4])
def test_intervals__of_classes_are_about_the_difference_of_the_scores(classes):
    intervals, judge = part("intervals"), part("judge")
    rng = np.random.default_rng(0)
    labels = np.arange(1200) // 40 % classes
    truth = part("case").Truth(labels)
    good, poor = (labels[:, None] + spread * rng.normal(size=(1200, 2)) for spread in (0.4, 1.0))
    found = intervals.behind(poor, good, truth, judge.held_out(truth))
    assert found.by == pytest.approx(judge.score(good, truth) - judge.score(poor, truth), abs=1e-9)
    assert 0 < found.low < found.by < found.high


def test_halves__rivals_that_learn_from_the_first_half_read_the_first_as_before_and_the_second_nearly_so():
    halves, rivals, case = part("halves"), part("rivals"), part("simulations").gestures(length=400)
    streamed = halves.streamed(case, 200, 4)
    known = rivals.condition(case.plain[:200], case.kind)
    spans = [slice(0, 200)]
    for name, made in (("pca", rivals.principal(known, 4)), ("dm", rivals.diffusion_maps(known, spans, 4, 0.01))):
        found = next(values for key, values in streamed.items() if key.startswith(f"{name} conditioned"))
        pole = 0.7 if name == "pca" else 0.0
        np.testing.assert_allclose(found[:200], rivals.smoothed(made, spans, pole), atol=1e-6)
    judge = part("judge")
    truth = case.truths["gesture"]
    assert all(judge.streamed_score(values, truth, 200) > 0.5 for values in streamed.values())


def test_report__a_refusal_counts_as_lost():
    answers, simulations, report = importlib.import_module("answers"), part("simulations"), part("report")
    results = answers.run([simulations.gestures(length=200)], {"refuses": refuses}, modes=4)
    said = list(report.summary(results, ["refuses"], 4))
    assert any("within .02 of the best dm and of the best pca alike: 0 of 1" in line for line in said)
    assert any("lost by more than .10 to the best of all: 1" in line for line in said)


def test_folds__nothing_is_learnt_on_or_beside_the_block_that_is_judged():
    judge = part("judge")
    known = np.arange(200) % 7 != 0
    for learn, held_out in judge._folds(known):
        apart = np.abs(np.flatnonzero(learn)[:, None] - np.flatnonzero(held_out)).min()
        assert apart > 10
        assert not (learn & ~known).any()
        assert not (held_out & ~known).any()
    assert sum(held_out.sum() for _, held_out in judge._folds(known)) == known.sum()


def test_score__truth_reads_itself_and_noise_reads_chance():
    judge, case = part("judge"), part("case")
    rng = np.random.default_rng(0)
    label = np.repeat(rng.permutation(np.arange(40) % 4), 25)
    number = np.cumsum(rng.normal(size=1000))
    number[:100] = np.nan
    noise = rng.normal(size=(1000, 3))
    assert judge.score(label[:, None] + 0.01 * noise, case.Truth(label)) == 1
    assert judge.score(np.nan_to_num(number)[:, None], case.Truth(number)) > 0.999
    assert abs(judge.score(noise, case.Truth(label)) - 0.25) < 0.06
    assert abs(judge.score(noise, case.Truth(number))) < 0.15
    assert judge.chance(label[:, None] + 0.01 * noise, case.Truth(label))[1] < 0.5


def test_streamed_score__without_both_classes_in_both_halves_there_is_none():
    judge, case = part("judge"), part("case")
    label = np.repeat([0, 1], 100)
    assert np.isnan(judge.streamed_score(label[:, None], case.Truth(label), 100))
    assert judge.streamed_score(label[:, None] * 1.0, case.Truth(np.roll(label, 50)), 100) < 1


def test_diffusion_maps__those_of_the_rivals_are_the_papers():
    rivals, case, known = part("rivals"), part("case"), part("simulations").regimes(length=300)
    theirs = mo.embed(known.frames, n_modes=3, preset="paper")["coordinate"].values
    spans = case.segments(known.frames)
    for width in (rivals._NARROW, 0):
        rivals._NARROW = width
        mine = rivals.diffusion_maps(known.plain, spans, 3)
        assert np.allclose(np.abs(np.sum(mine * theirs, axis=0) / len(mine)), 1, atol=1e-3)


def test_diffusion_maps__a_ridge_is_the_inverse_of_the_whole_matrix():
    rivals, known = part("rivals"), part("simulations").regimes(length=60)
    spans = part("case").segments(known.frames)
    centred = known.plain - known.plain.mean(axis=0)
    least = 0.01 * centred.var(axis=0).mean()
    window = centred[:21]
    precision = np.linalg.inv(np.cov(window.T) + least * np.eye(10))
    apart = centred - centred[3]
    expected = np.einsum("np,pq,nq->n", apart, precision, apart)
    for width in (rivals._NARROW, 0):
        rivals._NARROW = width
        assert np.allclose(rivals._distances(known.plain, spans, 0.01)[3], expected)


def test_cases__plain_features_are_the_projects_own_and_truths_fit():
    simulations = part("simulations")
    for case in (
        simulations.sphere(0.008, 0.1, length=40),
        simulations.speaker(length=40),
        simulations.bench(length=130),
    ):
        assert np.allclose(case.plain, case.frames.values)
        assert all(len(truth.values) == len(case.plain) for truth in case.truths.values())


def test_windows__shrink_to_short_segments():
    windows = list(part("rivals")._windows([slice(0, 3), slice(3, 33)]))
    assert [(w.start, w.stop) for w in windows[:4]] == [(0, 3)] * 3 + [(3, 24)]
    assert windows[-1] == slice(12, 33)


def test_readers__wfdb_of_twelve_and_sixteen_bits(tmp_path):
    files = part("files")
    digital = np.array([[1, -1], [2047, -2048], [-300, 300]])
    packed = b"".join(
        bytes([a & 255, (a >> 8 & 15) | (b >> 8 & 15) << 4, b & 255]) for a, b in (digital & 4095).tolist()
    )
    (tmp_path / "x.dat").write_bytes(packed)
    (tmp_path / "y.dat").write_bytes(digital[:, 0].astype("<i2").tobytes())
    tail = "12 0 0 0 0"
    header = f"x 3 360 3\nx.dat 212 200 {tail} one\nx.dat 212 200 {tail} two\ny.dat 16 100 {tail} three\n"
    (tmp_path / "x.hea").write_text(header)
    signals = files.read_wfdb(tmp_path / "x.hea")
    assert signals.rate == 360
    assert signals.names == ["one", "two", "three"]
    assert np.allclose(signals.values, np.column_stack([digital / 200, digital[:, 0] / 100]))


def test_loaders__absent_recordings_are_skipped_with_a_line(tmp_path, monkeypatch):
    loaders = part("loaders")
    monkeypatch.setenv("MANIFOLD_OBSERVER_RECORDINGS", str(tmp_path))
    told = []
    assert list(loaders.load(["melody", "sleep"], lambda *line: told.append(line))) == []
    assert [name for name, _ in told] == ["melody", "sleep"]


def test_names__are_unique_and_those_of_the_cases():
    loaders, simulations = part("loaders"), part("simulations")
    assert len(set(loaders.names())) == len(loaders.names())
    for name, simulate in (simulations.SIMULATED | loaders.UNTUNED).items():
        assert simulate(length=120).name == name


def test_loaders__other_seeds_of_the_kinds_that_count_in_no_mean():
    make = part("loaders").UNTUNED["gaze"]
    one, same, other = (make(length=120, **seed) for seed in ({}, {"seed": 37}, {"other": 100}))
    np.testing.assert_array_equal(one.plain, same.plain)
    assert other.name == one.name
    assert other.apart
    assert not np.array_equal(one.plain, other.plain)


def test_default__is_the_prototype():
    """The engine's tiles, tasks and carries against one dense file of NumPy, where a yardstick holds both."""
    prototype, known = part("prototype"), part("simulations").track(length=500)
    theirs = prototype.estimate(known, 500, prototype.Settings())
    embedding = mo.embed(known.frames)
    assert embedding.attrs["shrinkage_target"] == theirs.target
    assert embedding.attrs["shrinkage_intensity"] == pytest.approx(theirs.intensity, rel=1e-6)
    assert embedding.attrs["foretold"] == pytest.approx(theirs.said[theirs.target], abs=2e-3)
    ours = mo.observe(embedding, known.frames)["state"].values
    for k, j in enumerate([2, 3, 4, 5, 6, 7, 0, 1]):  # it has the principal components first
        assert abs(np.corrcoef(ours[:, k], theirs.state[:, j])[0, 1]) == pytest.approx(1, abs=1e-4)


def test_control__of_several_draws_is_judged_by_their_mean():
    report = part("report")
    first = {"case": "c", "draw": 1, "ways": {"w": {"n_modes": 2, "seconds whole": 1.0}}}
    chance = {"mean": 0.0, "most": 0.05}
    truth = {"kind": "number", "control": True, "chance": chance, "ways": {"w": {"state": 0.2}}, "rivals": {"2": {}}}
    drawn = [{"case": f"c_{k}", "draw": k, "truths": {"t": {"w": score}}} for k, score in ((2, -0.2), (3, 0.1))]
    (said,) = [
        line for line in report.summary([first | {"truths": {"t": truth}}, *drawn], ["w"], 2) if "control" in line
    ]
    assert "mean 0.03 of 3 draws -0.20 to 0.20" in said
    assert said.endswith("at chance")
    many = [{"case": f"c_{k}", "draw": k, "truths": {"t": {"w": 0.2 + 0.01 * k}}} for k in (2, 3)]
    (said,) = [
        line for line in report.summary([first | {"truths": {"t": truth}}, *many], ["w"], 2) if "control" in line
    ]
    assert said.endswith("ABOVE CHANCE")


def test_control__draws_are_different_orders_of_the_same_frames():
    track, compare, ways = part("simulations").SIMULATED, part("compare"), part("ways")
    one, other = (track[name](length=120) for name in ("place_track_shuffled", "place_track_shuffled_2"))
    assert not np.array_equal(one.plain, other.plain)
    assert np.array_equal(np.sort(one.plain, axis=0), np.sort(other.plain, axis=0))
    row = compare.compare(other, {"w": ways.WAYS["default"]})
    assert set(row["truths"]["position"]) == {"w"}
