"""Plans: bounds that hold, the same refusal as embed's, and reasons."""

import json
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
import xarray as xr
from distributed import Client, LocalCluster

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.embedding import plan as planning
from manifold_observer.pipeline.engine import decide, memory
from manifold_observer.pipeline.engine.config import EmbedConfig
from manifold_observer.pipeline.frames import runs
from manifold_observer.pipeline.graph.limits import Workers
from manifold_observer.tasks.engine.covariance import PseudoInverse
from manifold_observer.tasks.engine.distance import Distance
from manifold_observer.tasks.engine.moments import Axes
from manifold_observer.tasks.engine.slab import Metric
from strategies import embed_options, smooth_motion

N = 600
FRAMES = xr.DataArray(smooth_motion(np.random.default_rng(0), N, 4), dims=("frame", "feature"))


def distance_of(p, form, window=21):
    return Distance(Metric(window, PseudoInverse()), Axes(np.zeros(p), None), form, "float32")


@pytest.fixture
def there(monkeypatch):
    """Say what workers there are."""

    def say(number, limit):
        monkeypatch.setattr(decide, "workers", lambda: Workers(number, limit))

    return say


# ---------------------------------------------------------------------------------------------- what it says


@pytest.mark.usefixtures("in_this_thread")
def test_plan__fields():
    found = mo.plan(FRAMES, n_modes=3, preset="paper")
    assert (found.n_frames, found.n_features, found.n_axes, found.n_workers) == (N, 4, 4, 1)
    assert (found.method, found.home, found.tile) == ("exact", "local", 512)
    assert found.form in ("quadratic", "factor", "window")
    assert found.precision in ("float32", "float64")
    assert found.tasks > 0
    assert found.passes > 0
    assert 0 < found.bytes_per_task < found.peak_worker_bytes < found.worker_limit_bytes
    assert found.peak_caller_bytes > 0
    assert found.seconds > 0
    assert len(found.reasons) == 2
    machine = found.as_dict()
    assert list(machine) == [field.name for field in fields(mo.Plan)]
    assert json.loads(json.dumps(machine)) == machine


@pytest.mark.usefixtures("in_this_thread")
def test_plan__reads_well():
    lines = str(
        mo.plan(FRAMES, n_modes=3, engine=mo.Engine(form="quadratic", precision="float64"), preset="paper")
    ).splitlines()
    assert lines[0] == "600 frames of 4 features (4 axes) on 1 worker"
    assert lines[1] == "way      exact, tiles local, 16 passes"
    assert lines[2] == "tiles    quadratic form, float64, 512 frames a side"
    assert [line.split()[0] for line in lines[3:]] == ["tasks", "memory", "time", "because", "because"]
    assert lines[-2] == "because  600 frames are few enough (50000) for all pairs"


@pytest.mark.usefixtures("in_this_thread")
def test_plan__takes_the_options_of_embed_and_counts_axes():
    tied = xr.concat([FRAMES, 2 * FRAMES.isel(feature=[0]), 0 * FRAMES.isel(feature=[0])], "feature")
    found = mo.plan(
        tied,
        progress=print,
        checkpoint="x",
        engine=mo.Engine(method="landmarks", landmarks=50, refine=2, home="recomputed", tile=100),
        preset="paper",
    )
    assert (found.n_features, found.n_axes) == (6, 4)
    assert (found.method, found.home, found.tile, found.passes) == ("landmarks", "recomputed", 100, 2)
    assert found.reasons == ("method='landmarks' was asked for", "home='recomputed' was asked for")
    alone = mo.plan(FRAMES, engine=mo.Engine(method="landmarks", landmarks=50), preset="paper")
    assert (alone.home, alone.passes) == ("none", 0)
    assert alone.reasons[1] == "every frame meets 50 landmarks"


@pytest.mark.usefixtures("in_this_thread")
def test_plan__takes_covariances_that_are_given():
    covariance = xr.DataArray(np.tile(np.eye(4), (N, 1, 1)), dims=("frame", "feature", "feature_1"))
    assert mo.plan(FRAMES, covariance=covariance, preset="paper").form in ("quadratic", "factor")


@pytest.mark.usefixtures("in_this_thread")
def test_plan__refuses_what_embed_refuses():
    with pytest.raises(ValueError, match="n_modes must be at least 1"):
        mo.plan(FRAMES, n_modes=0, preset="paper")
    with pytest.raises(ValueError, match="at least window=21 frames"):
        mo.plan(FRAMES[:20], preset="paper")
    with pytest.raises(ValueError, match=r"n_modes must be at most 598 for 600 frames; got 599\."):
        mo.plan(FRAMES, n_modes=599, preset="paper")
    with pytest.raises(TypeError, match="unexpected keyword"):
        mo.plan(FRAMES, colour="red", preset="paper")


@pytest.mark.usefixtures("in_this_thread")
@pytest.mark.parametrize("cut", [300, 310, 320])
def test_plan__a_segment_that_the_sample_cuts_is_no_short_segment(monkeypatch, cut):
    monkeypatch.setattr(planning, "_SAMPLE_FRAMES", 320)
    frames = FRAMES.assign_coords(segment=("frame", np.repeat([0, 1], [cut, N - cut])))
    assert mo.plan(frames, preset="paper", engine=mo.Engine(form="quadratic")).n_frames == N
    monkeypatch.setattr(planning, "_SAMPLE_FRAMES", 10)  # less than a window
    assert mo.plan(frames, preset="paper", engine=mo.Engine(form="quadratic")).n_frames == N


# ------------------------------------------------------------------------------------------- what it chooses

GIB = 2**30
CHOICES = [
    # frames, workers, of GiB each, options, method, home
    (5_000, 2, 4, {}, "exact", "local"),
    (20_000, 2, 4, {}, "exact", "resident"),
    (50_000, 2, 4, {}, "exact", "recomputed"),
    (50_000, 2, 16, {}, "exact", "resident"),
    (50_001, 2, 4, {}, "landmarks", "recomputed"),
    (50_001, 2, 16, {}, "exact", "resident"),
    (50_001, 2, 4, {"epsilon": "local"}, "exact", "recomputed"),
    (1_000_000, 2, 4, {}, "landmarks", "recomputed"),
    (1_000_000, 2, 4, {"method": "exact"}, "exact", "recomputed"),
    (100, 2, 4, {"method": "landmarks"}, "landmarks", "local"),
]


@pytest.mark.parametrize(("n", "number", "size", "options", "method", "home"), CHOICES)
def test_choose__table(n, number, size, options, method, home):
    there, config = Workers(number, size * GIB), EmbedConfig(**options)
    assert decide.choose_method(n, 4, config, there) == method
    assert decide.choose_home(n, 4, config.home, there) == home


@pytest.mark.parametrize(
    ("n", "options", "reasons"),
    [
        (5_000, {}, ["few enough (50000)", "0.05 GiB of tiles are at most 0.06 GiB: they are brought here"]),
        (20_000, {}, ["few enough", "0.75 GiB of tiles fit into half of the workers' memory, 4.00 GiB"]),
        (50_000, {}, ["few enough", "4.66 GiB of tiles do not fit into half of the workers' memory, 4.00 GiB"]),
        (60_000, {}, ["60000 frames are more than 50000, and 6.71 GiB of tiles do not fit", "meets 2000 landmarks"]),
        (60_000, {"epsilon": "local"}, ["a local scale needs all pairs", "do not fit"]),
        (60_000, {"refine": 1}, ["more than 50000", "do not fit into half"]),
    ],
)
@pytest.mark.usefixtures("in_this_thread")
def test_plan__says_why(there, monkeypatch, n, options, reasons):
    there(2, 4 * GIB)
    monkeypatch.setattr(planning, "_SAMPLE_FRAMES", 300)
    # frames that are never looked at beyond the sample
    frames = FRAMES.isel(frame=np.arange(n) % N).chunk(frame=300)
    found = mo.plan(frames, **embed_options(precision="float32", form="quadratic", **options), preset="paper")
    assert found.n_frames == n
    for part, reason in zip(reasons, found.reasons, strict=True):
        assert part in reason


# --------------------------------------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("number", "limit", "options", "fits"),
    [
        (2, 330 * 2**20, {"home": "resident", "method": "exact"}, "Give the workers more memory, or take fewer"),
        (2, 330 * 2**20, {"method": "landmarks"}, "Give the workers more memory, or take fewer"),
    ],
)
@pytest.mark.usefixtures("in_this_thread")
def test_plan__refuses_what_does_not_fit_and_so_does_embed(there, number, limit, options, fits):
    there(number, limit)
    sentences = []
    for function in (mo.plan, mo.embed):
        with pytest.raises(ValueError, match=r"needs .* per worker, but the limit is") as caught:
            function(FRAMES, **embed_options(form="quadratic", precision="float64", **options))
        sentences.append(str(caught.value))
    assert sentences[0] == sentences[1]
    assert f"limit is {limit / GIB:.2f} GiB" in sentences[0]
    assert fits in sentences[0]


def test_what_fits__names_recomputed_tiles_where_those_fit(there):
    options = 20_000, distance_of(8, "quadratic"), 0.0
    shape = decide.shape_of(*options[:2], EmbedConfig())
    bounds = [memory.exact_memory(shape, home, 8, 2).worker for home in ("recomputed", "resident")]
    assert bounds[0] < bounds[1]
    there(2, 2**30)
    limit = sum(bounds) // 2
    there(2, limit)
    with pytest.raises(ValueError, match=r"resident tiles must fit|home='recomputed' would fit"):
        decide.settle(*options, EmbedConfig(home="resident"))
    there(1000, limit)  # all tiles fit into half of the memory, one worker's blocks do
    decide.settle(*options, EmbedConfig(home="resident"))
    there(2, bounds[0])
    decide.settle(*options, EmbedConfig(home="recomputed"))
    there(2, bounds[0] - 1)
    with pytest.raises(ValueError, match=r"needs .* per worker, but the limit is"):
        decide.settle(*options, EmbedConfig(home="recomputed"))


def test_what_fits__names_landmarks_that_fit(there):
    there(2, 2**30)
    config = EmbedConfig(method="landmarks", landmarks=20_000)
    with pytest.raises(ValueError, match=r"method='landmarks' with landmarks=2000 would fit"):
        decide.settle(200_000, distance_of(4, "quadratic"), 0.0, config)


def test_plan__passes_over_local_tiles_are_no_tasks_and_narrow_ones_cost_less():
    few, many = (mo.plan(FRAMES, n_modes=3, engine=mo.Engine(home="local", max_passes=most)) for most in (1, 60))
    assert (few.passes, many.passes, few.tasks) == (2, 13, many.tasks)
    assert mo.plan(FRAMES, n_modes=3, engine=mo.Engine(home="recomputed")).tasks > many.tasks
    decision = decide.settle(4000, distance_of(8, "quadratic"), 0.0, EmbedConfig(home="local"))
    shape, nothing = decide.shape_of(4000, decision.distance, EmbedConfig()), planning.timing.Rates(0.0, 0.0, 0.0)
    narrow, wide = (planning._seconds(shape, nothing, decision, EmbedConfig(n_modes=n), 0) for n in (3, 16))
    assert narrow < 0.6 * wide


def test_what_fits__a_local_scale_is_not_sent_to_landmarks(there):
    options = 3_000_000, distance_of(4, "quadratic"), 0.0
    there(2, 2**29)
    assert "landmarks=" in refusal(*options, EmbedConfig(method="exact"))
    assert "landmarks=" not in refusal(*options, EmbedConfig(epsilon="local"))


def refusal(*settled):
    with pytest.raises(ValueError, match=r"needs .* per worker, but the limit is") as caught:
        decide.settle(*settled)
    return str(caught.value)


def test_what_fits__exact_passes_that_follow_a_tolerated_residual_must_fit_too(there):
    options = 3_000_000, distance_of(4, "quadratic"), 0.0
    promised = EmbedConfig(method="landmarks", residual_tolerance=1e-2, landmarks=256)
    bound = memory.exact_memory(decide.shape_of(*options[:2], promised), "recomputed", 2, 2).worker
    there(2, bound - 1)
    assert decide.settle(*options, promised).memory.worker < bound
    with pytest.raises(ValueError, match=r"needs .* per worker, but the limit is .*refine=0 would fit"):
        decide.settle(*options, replace(promised, refine=2))


def test_landmark_memory__does_not_grow_with_the_frames():
    shapes = [memory.Shape(n, distance_of(20, "quadratic"), 2048, 21) for n in (10**5, 10**6, 10**7)]
    assert len({memory.landmark_memory(shape, 2000).worker for shape in shapes}) == 1


# ------------------------------------------------------------------------------------------------- whether it holds


def peak():
    """Most memory that this process ever had, bytes."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak of a process is read from /proc")
def test_plan__bounds_hold_for_memory_and_passes():
    frames = xr.DataArray(smooth_motion(np.random.default_rng(1), 3000, 6), dims=("frame", "feature")).chunk(frame=500)
    ways = [
        {"method": "landmarks", "landmarks": 500},
        {"method": "exact", "home": "recomputed", "residual_tolerance": 1e-6},
        {"method": "exact", "home": "resident"},
    ]
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        for options in ways:
            found = mo.plan(frames, **embed_options(n_modes=3, **options), preset="paper")
            embedding = mo.embed(frames, **embed_options(n_modes=3, **options), preset="paper")
            peaks = client.run(peak)
            assert len(peaks) == found.n_workers == 2
            assert max(peaks.values()) <= found.peak_worker_bytes
            # at most one more; fewer where the wanted eigenvalues stand well above the rest, as here
            assert embedding.attrs["passes"] <= found.passes + 1
            assert embedding.attrs["method"] == found.method
            assert embedding.attrs.get("home", "none") == found.home or found.home == "none"


# --------------------------------------------------------------------------------------------- the command


@pytest.mark.usefixtures("in_this_thread", "in_this_process")
def test_command__prints_text_or_one_json_object(tmp_path, console):
    np.save(tmp_path / "walk.npy", FRAMES.values)
    words = ("plan", tmp_path / "walk.npy", "--features", "identity", "--n-modes", 2)
    code, out, _ = console(*words)
    assert code == 0
    assert out.startswith("600 frames of 4 features")
    assert "way      exact, tiles local" in out
    code, out, _ = console(*words, "--json")
    assert code == 0
    assert out.count("\n") == 1
    machine = json.loads(out)
    assert list(machine) == [field.name for field in fields(mo.Plan)]
    assert machine["n_frames"] == N
    assert list(tmp_path.iterdir()) == [tmp_path / "walk.npy"]


@pytest.mark.usefixtures("in_this_thread", "in_this_process")
def test_command__a_refusal_is_one_sentence(tmp_path, console, there):
    there(2, 330 * 2**20)
    np.save(tmp_path / "walk.npy", FRAMES.values)
    code, out, err = console("plan", tmp_path / "walk.npy", "--features", "identity")
    assert (code, out) == (1, "")
    assert err.startswith("Error: embed: needs ")
    assert "Traceback" not in err


def walk_with(*values):
    """A walk of which some samples hold something else."""
    changed = FRAMES.values.copy()
    changed[300 : 300 + len(values), 2] = values
    return changed


SPOILT = {
    "NaN": (walk_with(np.nan), [], "frame 300 is the first of 1 "),
    "dead": (np.zeros((N, 4)), [], "all 600 frames are equal"),
    "outlier": (walk_with(1e9), [], "got 1e+09 in feature "),
    "fill value": (walk_with(1e20), [], "--missing 1e+20 and --gaps nan"),
    "tiny": (FRAMES.values * 1e-200, [], "must be above 1e-150"),
    "modes": (FRAMES.values, ["--n-modes", 5000], "n_modes must be at most 598"),
}


@pytest.mark.usefixtures("in_this_thread", "in_this_process")
@pytest.mark.parametrize("kind", SPOILT)
def test_command__plan_says_what_run_says(tmp_path, console, kind):
    values, options, words = SPOILT[kind]
    np.save(tmp_path / "walk.npy", values)
    told = ("--features", "identity", *options)
    planned = console("plan", tmp_path / "walk.npy", *told)
    run = console("run", tmp_path / "walk.npy", tmp_path / "out.zarr", *told)
    assert planned[0] == run[0] == 1
    last = [one[2].strip().splitlines()[-1] for one in (planned, run)]
    assert last[0] == last[1]
    assert words in last[0]


# -------------------------------------------------------------------------------------------- what is planned


def shape(n_frames, form, p=500, window=21):
    return memory.Shape(n_frames, distance_of(p, form, window), 2048, 25)


@pytest.mark.parametrize("route", ["nystrom", "diffusion"])
@pytest.mark.parametrize("form", ["window", "factor"])
def test_landmark_memory__counts_the_windows_and_does_not_grow(form, route):
    few, many = (memory.landmark_memory(shape(n, form), 2000, route) for n in (10**6, 10**8))
    assert few.worker == many.worker
    # the landmarks' block in the window form: rows of each window, and its mixing matrix
    assert few.worker > (2000 * 21 * 500 * 4 if form == "window" else 2000 * 20 * 500 * 4)
    assert memory.landmark_memory(shape(10**6, form), 500, route).worker < few.worker


@pytest.mark.usefixtures("in_this_thread")
def test_plan__counts_the_features(tmp_path):
    np.save(tmp_path / "wide.npy", np.random.default_rng(0).normal(size=(200_000, 16)))
    recording = mo.open_recording(tmp_path / "wide.npy", sampling_rate=1000.0)
    small, large = (mo.log_rms(recording, frame=frame) for frame in (1000, 100_000 // 40))
    found = mo.plan(small, n_modes=2, preset="paper")
    assert found.peak_worker_bytes >= runs.task_memory(small).worker > runs.task_memory(small).task
    # 131 frames of 1000 samples of 16 channels, read, framed and squared
    assert runs.task_memory(small).task == 16 * 131_000 * 16 + 32 * 131_000 * 16 + 8 * 131 * 16
    assert runs.task_memory(large).task == pytest.approx(runs.task_memory(small).task, rel=0.05)
    assert runs.task_memory(small.compute()) is None


@pytest.mark.usefixtures("in_this_thread")
def test_plan__refuses_features_that_do_not_fit(monkeypatch):
    monkeypatch.setattr(runs, "workers", lambda: Workers(1, 2**29))
    wide = xr.DataArray(np.zeros((100_000, 200)), dims=("time", "channel"))
    with pytest.raises(ValueError, match=r"log_rms: needs .* per worker, but the limit is .* Take shorter frames"):
        mo.plan(mo.log_rms(wide.chunk(), frame=30_000), window=3, preset="paper")


def test_seconds__landmarks_in_the_window_form_cost_more_a_pair_the_farther_they_are_apart():
    ratios = [planning._apart(shape(n, "window", p=128), 2000) for n in (2_000, 20_000, 40_000, 10**6)]
    assert 1 <= ratios[0] < ratios[1] == ratios[2] == ratios[3] < 2
    assert planning._apart(shape(10**6, "factor"), 2000) == 1


def test_plan__is_a_card_in_a_notebook_that_says_what_its_text_says():
    found = mo.plan(xr.DataArray(np.random.default_rng(0).normal(size=(300, 3)), dims=("frame", "feature")))
    page = found._repr_html_()
    for line in str(found).splitlines()[1:]:
        name, value = line[:8].strip(), line[9:]
        assert f"{name}</th><td>{value}</td>" in page
