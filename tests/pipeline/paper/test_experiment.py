"""Experiments are cut into works that are kept, drawn, and judged as their numbers say."""

import errno
import functools
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace

import damage
import dask
import numpy as np
import pytest
import xarray as xr
from damage import digest_of

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.paper import drift as paper_drift
from manifold_observer.pipeline.paper import sealed
from manifold_observer.pipeline.paper import sphere as paper_sphere
from manifold_observer.pipeline.paper.experiment import Claim, Experiment, Work, claims_table, reproduce
from manifold_observer.pipeline.paper.experiments import EXPERIMENTS
from manifold_observer.pipeline.paper.pictures import new_figure, rendered
from manifold_observer.tasks import atomic

pytestmark = pytest.mark.usefixtures("in_this_thread")

made = []


def square(x):
    made.append(x)
    return xr.Dataset({"square": x * x}, attrs={"x": x})


def broken(x):
    raise RuntimeError(f"no {x}")


def experiment(function=square, numbers=(1, 2, 3)):
    return Experiment(
        lambda quick: [Work(f"x{x}", function, {"x": x}) for x in numbers[: 2 if quick else None]],
        lambda parts: xr.concat(list(parts.values()), "work", combine_attrs="drop"),
        lambda joined: {},
        lambda joined: [
            Claim("1", "squares grow", str(joined.square.values), bool((joined.square.diff("work") > 0).all()))
        ],
    )


@pytest.fixture(autouse=True)
def nothing_made():
    made.clear()


def test_reproduce__writes_numbers_claims_and_keeps_works(tmp_path):
    seen = []
    claims = reproduce({"toy": experiment()}, tmp_path / "out", progress=lambda *step: seen.append(step))
    assert claims["toy"][0].holds
    assert made == [1, 2, 3]
    with xr.open_dataset(tmp_path / "out/toy.nc", engine="scipy") as stored:
        assert stored["square"].values.tolist() == [1, 4, 9]
    assert json.loads((tmp_path / "out/claims.json").read_text())["toy"][0]["holds"] is True
    assert "| toy | 1 | squares grow | [1 4 9] |  |  | yes |" in (tmp_path / "out/claims.md").read_text()
    assert seen == [("works", done, 3) for done in range(4)]


def test_reproduce__goes_on_where_it_stopped_and_makes_again_what_has_other_settings(tmp_path):
    with pytest.raises(RuntimeError, match="no 1"):
        reproduce({"toy": experiment(broken)}, tmp_path / "out")
    reproduce({"toy": experiment()}, tmp_path / "out", quick=True)
    assert made == [1, 2]
    reproduce({"toy": experiment()}, tmp_path / "out")
    assert made == [1, 2, 3]
    other = Experiment(
        lambda quick: [Work("x1", square, {"x": 5})], lambda parts: parts["x1"], lambda joined: {}, lambda joined: []
    )
    reproduce({"toy": other}, tmp_path / "out")
    assert made == [1, 2, 3, 5]


def test_reproduce__leaves_other_folders_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match=r"must be a new or empty folder.* holds other files"):
        reproduce({"toy": experiment()}, tmp_path / "mine")
    with pytest.raises(ValueError, match=r"the folder of .* must exist"):
        reproduce({"toy": experiment()}, tmp_path / "nowhere/out")
    assert os.listdir(tmp_path / "mine") == ["thesis.txt"]


SLOW = """
import sys, time, xarray as xr
from pathlib import Path
from manifold_observer.pipeline.paper.experiment import Experiment, Work, reproduce
def slow(x):
    if x and len(sys.argv) > 2:
        print("waiting", flush=True)
        time.sleep(60)
    return xr.Dataset({"x": x})
toy = Experiment(lambda quick: [Work(f"x{x}", slow, {"x": x}) for x in range(3)],
    lambda parts: xr.concat(list(parts.values()), "work", combine_attrs="drop"), lambda joined: {}, lambda joined: [])
reproduce({"toy": toy}, Path(sys.argv[1]))
"""


def test_reproduce__a_killed_run_goes_on(tmp_path):
    command = [sys.executable, "-c", SLOW, str(tmp_path / "out")]
    with subprocess.Popen([*command, "wait"], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout.readline() == "waiting\n"
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert "another run is writing" in second.stderr
        killed.send_signal(signal.SIGKILL)
    kept = tmp_path / "out/works/toy/x0.nc"
    before = kept.stat().st_mtime_ns
    assert not (tmp_path / "out/toy.nc").exists()
    subprocess.run(command, check=True, timeout=60)
    assert kept.stat().st_mtime_ns == before
    with xr.open_dataset(tmp_path / "out/toy.nc", engine="scipy") as stored:
        assert stored["x"].values.tolist() == [0, 1, 2]


# ------------------------------------------------------------------------------------------ damage and disks


@pytest.mark.parametrize("harm", damage.WAYS.values(), ids=damage.WAYS)
def test_reproduce__a_damaged_work_is_computed_again(tmp_path, harm):
    out = tmp_path / "out"
    reproduce({"toy": experiment()}, out)
    before = digest_of(out)
    made.clear()
    harm(out / "works/toy/x2.nc")
    if (out / "works/toy/x2.nc").is_dir():  # not ours: it is named, and has to be moved away
        with (
            pytest.warns(UserWarning, match=r"x2.nc cannot be used: it is not a file"),
            pytest.raises(OSError, match="could not be written: Is a directory"),
        ):
            reproduce({"toy": experiment()}, out)
        (out / "works/toy/x2.nc").rmdir()
        made.clear()
        reproduce({"toy": experiment()}, out)
    else:
        with pytest.warns(UserWarning, match=r"x2.nc cannot be used: it is damaged; it is computed again") as told:
            reproduce({"toy": experiment()}, out)
        assert len(told) == 1
    assert made == [2]
    assert digest_of(out) == before


def test_sealed__any_flipped_byte_is_seen(tmp_path):
    place = tmp_path / "a.nc"
    dataset = xr.Dataset({"x": ("k", [1.0, 2.0])}, {"name": ("k", ["one", "other"])}, {"settings": "x=1"})
    sealed.write(dataset, place)
    xr.testing.assert_identical(sealed.read(place), dataset)
    content = place.read_bytes()
    for k in range(len(content)):
        place.write_bytes(content[:k] + bytes([content[k] ^ 1]) + content[k + 1 :])
        with pytest.raises(sealed.DamagedError):
            sealed.read(place)


def test_reproduce__pictures_in_three_formats_and_a_page_that_shows_them(tmp_path):
    one = functools.partial(new_figure, "<i>One</i>", "n = 3, <u>", 2, 1)
    told = Claim("1", "x < y & <b>bold</b>", "x = 1", False, test="+0.1")
    toy = replace(
        experiment(),
        draw=lambda joined: {"one": one()},
        judge=lambda joined: [told],
    )
    reproduce({"toy": toy}, tmp_path / "out")
    page = (tmp_path / "out" / "index.html").read_text()
    assert [(tmp_path / "out" / f"toy-one.{ending}").read_bytes()[:4] for ending in ("png", "pdf")] == [
        b"\x89PNG",
        b"%PDF",
    ]
    assert "<svg" in (tmp_path / "out" / "toy-one.svg").read_text()
    linked = set(re.findall(r'(?:src|href)="([^"#:]+)"', page))
    assert linked == {"claims.md", "toy-one.png", "toy-one.svg", "toy-one.pdf"}
    assert all((tmp_path / "out" / name).exists() for name in linked)
    assert "0 of 1 claims" in page
    assert "&lt;b&gt;bold" in page
    assert not re.search("<[biu]>", page)
    reproduce({"toy": toy}, tmp_path / "quick", quick=True)
    assert {path.suffix for path in (tmp_path / "quick").glob("toy-one.*")} == {".png"}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
@pytest.mark.parametrize(
    "name", ["x2.nc", "toy.nc", "toy-nothing.png", "toy-nothing.pdf", "index.html", "claims.json", "claims.md"]
)
def test_reproduce__a_disk_that_fails_says_how_to_resume(tmp_path, monkeypatch, name, number):
    toy = replace(experiment(), draw=lambda joined: {"nothing": new_figure("Nothing", "n = 0", 1, 1)})
    reproduce({"toy": toy}, tmp_path / "whole")
    made.clear()
    rename = os.replace

    def fail(partial, place):
        if place.name == name:
            raise OSError(number, os.strerror(number))
        rename(partial, place)

    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, "replace", fail)
        with pytest.raises(OSError, match="reproduce: ") as failed:
            reproduce({"toy": toy}, tmp_path / "out")
    assert str(failed.value) == (
        f"reproduce: {tmp_path / 'out'} could not be written: {os.strerror(number)}. What is finished is kept; the "
        "same command resumes once this is mended."
    )
    assert not list((tmp_path / "out").rglob("*.partial"))
    reproduce({"toy": toy}, tmp_path / "out")
    assert made == ([1, 2, 2, 3] if name == "x2.nc" else [1, 2, 3])
    assert digest_of(tmp_path / "out") == digest_of(tmp_path / "whole")


def test_reproduce__leftovers_of_a_killed_write_are_removed_and_nothing_else(tmp_path):
    out, hexes = tmp_path / "out", "0" * 32
    reproduce({"toy": experiment()}, out)
    before = digest_of(out)
    for name in (f"toy.nc.{hexes}.partial", f"works/toy/x1.nc.{hexes}.partial", f"claims.md.{hexes}.partial"):
        (out / name).write_bytes(b"half")
    for name in ("thesis.partial", f"thesis.txt.{hexes}.partial", "works/toy/notes.txt"):
        (out / name).write_bytes(b"years of work")
    reproduce({"toy": experiment()}, out)
    assert digest_of(out).keys() - before.keys() == {
        "thesis.partial",
        f"thesis.txt.{hexes}.partial",
        "works/toy/notes.txt",
    }


def with_numbers(place):
    place.mkdir()
    (place / "toy.nc").write_bytes(b"years of work")


FOREIGN = {
    "numbers by our name": with_numbers,
    "the old mark": lambda place: (with_numbers(place), (place / "reproduction.json").write_text("{}")),
    "a file": lambda place: place.write_bytes(b"years of work"),
    "a link": lambda place: (with_numbers(place.with_name("elsewhere")), place.symlink_to("elsewhere")),
    "a link to nothing": lambda place: place.symlink_to("nowhere"),
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_reproduce__a_place_that_is_not_ours_is_refused_and_left(tmp_path, make):
    make(tmp_path / "out")
    before = digest_of(tmp_path)
    with pytest.raises(ValueError, match=r"reproduce: the output must be"):
        reproduce({"toy": experiment()}, tmp_path / "out")
    assert digest_of(tmp_path) == before


def test_reproduce__links_within_are_replaced_or_refused_never_followed(tmp_path):
    out = tmp_path / "out"
    reproduce({"toy": experiment()}, out)
    (tmp_path / "mine.nc").write_bytes(b"years of work")
    (out / "toy.nc").unlink()
    (out / "toy.nc").symlink_to(tmp_path / "mine.nc")
    reproduce({"toy": experiment()}, out)
    assert (tmp_path / "mine.nc").read_bytes() == b"years of work"
    (out / "works").rename(tmp_path / "moved")
    (out / "works").symlink_to(tmp_path / "moved")
    with pytest.raises(ValueError, match="works must be a folder itself; got a symbolic link"):
        reproduce({"toy": experiment()}, out)


def test_claims_table__says_what_would_make_a_claim_hold():
    rows = {"toy": [Claim("2", "it flies", "it does not", False, "wings")]}
    assert claims_table(rows).splitlines()[-1] == "| toy | 2 | it flies | it does not |  |  | no: wings |"


# ------------------------------------------------------------------------------------- the paper's experiments


def test_pieces__of_all_experiments_have_their_own_names_and_quick_is_less():
    for name, own in EXPERIMENTS.items():
        whole, quick = ([work.name for work in own.works(few)] for few in (False, True))
        assert len(set(whole)) == len(whole), name
        assert 1 <= len(quick) <= len(whole)


SMALL = {"drift_rate": 0.024, "n_samples": 60 * 700}


@pytest.fixture(scope="module")
def joined():
    """Every experiment of the sphere at a tiny size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper_sphere, "SAMPLES", 60 * 700)
        drift = {
            f"c{rate}-seed{seed}": paper_drift.drift_realisation(seed, rate, 60 * 700)
            for rate in (0.008, 0.024)
            for seed in (1, 2, 3)
        }
        return {
            "set-up": EXPERIMENTS["set-up"].join({str(c): paper_sphere.set_up_path(c, 1) for c in (0.008, 0.024)}),
            "sphere": EXPERIMENTS["sphere"].join({s: paper_sphere.sphere_realisation(s, **SMALL) for s in (1, 2, 3)}),
            "extension": EXPERIMENTS["extension"].join(
                {s: paper_sphere.extension_realisation(s, **SMALL, learnt=500) for s in (1, 2, 3)}
            ),
            "drift": EXPERIMENTS["drift"].join(drift),
        }


NAMES = ["set-up", "sphere", "extension", "drift"]


@pytest.mark.filterwarnings("ignore:calibrate")
@pytest.mark.parametrize("name", NAMES)
def test_judge__gives_claims_with_numbers(joined, name):
    claims = EXPERIMENTS[name].judge(joined[name])
    assert claims
    for claim in claims:
        assert isinstance(claim.holds, bool)
        assert any(letter.isdigit() for letter in claim.measured)
        assert "|" not in claim.claim + claim.measured + claim.remedy + claim.figure  # cells of a table


@pytest.mark.filterwarnings("ignore:calibrate")
@pytest.mark.parametrize("name", NAMES)
def test_draw__axes_are_labelled_with_units(joined, name):
    for picture, figure in EXPERIMENTS[name].draw(joined[name]).items():
        assert picture.isidentifier()
        titled = [axes for axes in figure.axes if axes.lines or axes.collections]
        assert titled
        labels = " ".join(axes.get_xlabel() + axes.get_ylabel() for axes in figure.axes)
        assert "/" in labels or "frames" in labels
        assert tuple(figure.get_size_inches()) == (12.8, 7.2), "a slide of 16:9"
        assert figure.get_suptitle()
        found = rendered(figure, ["png"])
        assert re.search(r"\bn = \d", found.caption), "how many were drawn"


@pytest.mark.filterwarnings("ignore:calibrate")
def test_drift__names_stand_apart_and_the_future_is_marked(joined):
    figure = EXPERIMENTS["drift"].draw(joined["drift"])["correlation"]
    for panel in figure.axes:
        boxes = sorted((text.get_window_extent() for text in panel.texts), key=lambda box: box.y0)
        assert len(boxes) == len(panel.lines)
        assert all(above.y0 >= below.y0 + 0.9 * below.height for below, above in itertools.pairwise(boxes))
        assert all(figure.bbox.x1 >= box.x1 for box in boxes)
        dashed = [line for line in panel.lines if line.get_color() == "#009E73"]
        assert [line.get_linestyle() for line in dashed] == ["--"]
        assert any("future" in text.get_text() for text in panel.texts)


def test_drift__the_integrator_and_time_have_their_order(joined):
    mean = joined["drift"]["correlation"].mean(["drift_rate", "realisation", "component"])
    assert mean.sel(estimate="observer") > mean.sel(estimate="gamma_1") + 0.3
    held_out, in_sample = (joined["drift"][name] for name in ("correlation", "correlation_in_sample"))
    assert (held_out <= in_sample + 1e-3).mean() > 0.95, "a regression that is scored where it was fitted flatters"


def test_sphere__frames_without_time_tell_less(joined):
    mean = joined["sphere"]["correlation"].mean(["realisation", "component"])
    assert mean.sel(estimate="observer") > mean.sel(estimate="shuffled") + 0.1


# ------------------------------------------------------------------------- estimates, made again in another way


@pytest.fixture(scope="module")
def recording():
    """One tiny recording: its frames, the angles, and the embedding."""
    with dask.config.set(scheduler="synchronous"):
        frames, truth = paper_sphere.simulate(3, 0.024, 60 * 700)
        return frames, truth.transpose("frame", "component").values, mo.embed(frames, n_modes=4, preset="paper")


def held_out(values, angles, n_folds=5):
    """Correlations with a regression of contiguous blocks, each fitted without its own."""
    parts = np.array_split(np.arange(len(angles)), n_folds)
    design = np.column_stack([np.ones(len(values)), values])
    reading = np.empty_like(angles)
    for part in parts:
        others = np.setdiff1d(np.arange(len(angles)), part)
        reading[part] = design[part] @ np.linalg.lstsq(design[others], angles[others], rcond=None)[0]
    return [np.corrcoef(reading[:, k], angles[:, k])[0, 1] for k in range(angles.shape[1])]


def slowest_linear(frames, lag):
    """Coordinates of the frames whose correlation at a lag is largest, by a generalised eigenproblem."""
    x = frames - frames.mean(axis=0)
    now, later = x[:-lag], x[lag:]
    c0 = (now.T @ now + later.T @ later) / 2
    values, vectors = np.linalg.eigh(c0)
    keep = values > 1e-9 * values.max()
    white = vectors[:, keep] / np.sqrt(values[keep])
    both = white.T @ ((now.T @ later + later.T @ now) / 2) @ white
    return x @ white @ np.linalg.eigh(both)[1][:, ::-1][:, :4]


def test_drift__diffusion_maps_tica_and_the_integrator_are_what_they_are_called(recording):
    frames, angles, embedding = recording
    found = paper_drift.drift_realisation(3, 0.024, 60 * 700)["correlation"]
    maps = held_out(embedding["coordinate"].transpose("frame", "mode").values, angles)
    np.testing.assert_allclose(found.sel(estimate="diffusion_maps"), maps, atol=1e-9)
    observer = held_out(mo.observe(embedding, frames, 0.85)["state"].transpose("frame", "mode").values, angles)
    np.testing.assert_allclose(found.sel(estimate="observer"), observer, atol=1e-9)
    if "tica" in found["estimate"].values:
        tica = held_out(slowest_linear(frames.values, 1), angles)
        np.testing.assert_allclose(found.sel(estimate="tica"), tica, atol=0.02)
    inputs = (frames.values - embedding["feature_mean"].values) @ np.linalg.pinv(embedding["lift"].values).T
    state, total = np.zeros(4), []
    for value in inputs * embedding["rate"].values:
        state = state + value
        total.append(state)
    np.testing.assert_allclose(found.sel(estimate="gamma_1"), held_out(np.array(total), angles), atol=1e-9)


def test_sphere__estimates_are_read_held_out_and_have_a_matched_null(recording):
    _, angles, embedding = recording
    found = paper_sphere.sphere_realisation(3, 0.024, 60 * 700)
    maps = held_out(embedding["coordinate"].transpose("frame", "mode").values, angles)
    np.testing.assert_allclose(found["correlation"].sel(estimate="diffusion_maps"), maps, atol=1e-9)
    assert (found["shrinkage_ratio"] > 1.1).all(), "shrinkage alone makes errors larger at the boundary"


def test_extension__is_read_as_the_embedded_frames_were():
    frames, truth = paper_sphere.simulate(3, 0.024, 60 * 700)
    angles, old, new = truth.transpose("frame", "component").values, frames[:500], frames[500:]
    embedding = mo.embed(old, n_modes=4, preset="paper")
    before = mo.observe(embedding, old, 0.85)
    after = mo.observe(embedding, new, 0.85, carry=before["carry"])["state"].transpose("frame", "mode").values
    design = np.column_stack([np.ones(500), before["state"].transpose("frame", "mode").values])
    weights = np.linalg.lstsq(design, angles[:500], rcond=None)[0]
    reading = np.column_stack([np.ones(len(after)), after]) @ weights
    expected = [np.corrcoef(reading[:, k], angles[500:, k])[0, 1] for k in (0, 1)]
    found = paper_sphere.extension_realisation(3, 0.024, 60 * 700, learnt=500)["correlation"]
    np.testing.assert_allclose(found.sel(estimate="observer"), expected, atol=1e-9)
