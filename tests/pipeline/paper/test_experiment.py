"""Experiments are cut into works that are kept, drawn, and judged as their numbers say."""

import errno
import functools
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace

import damage
import pytest
import xarray as xr
from damage import digest_of

from manifold_observer.pipeline.paper import sealed
from manifold_observer.pipeline.paper.experiment import Claim, Experiment, Work, claims_table, reproduce
from manifold_observer.pipeline.paper.pictures import new_figure
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


@pytest.mark.slow
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
