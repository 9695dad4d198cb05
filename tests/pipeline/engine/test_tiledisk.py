"""Tiles on disk: where they lie, whether they fit, and what is left when they cannot be kept."""

import errno
import os
import tempfile

import damage
import numpy as np
import pytest
import xarray as xr
from damage import digest_of
from numpy.testing import assert_array_equal

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.engine import exact as ways
from manifold_observer.pipeline.engine import tiledisk
from manifold_observer.pipeline.graph.spans import blocks
from manifold_observer.tasks import atomic
from strategies import embed_options, smooth_motion

FRAMES = xr.DataArray(smooth_motion(np.random.default_rng(0), 260, 4), dims=("frame", "feature"))
OPTIONS = {"n_modes": 3, "form": "quadratic", "home": "disk", "tile": 100, "precision": "float32"}
SIX_TILES = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]  # of 100, 100 and 60 frames
pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """The temporary folder."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def seen(monkeypatch):
    """Paths of the tiles that lay on disk after every pass."""
    paths, made = [], ways.disk_product

    def watching(tiles, scale, folder, progress):
        matmat = made(tiles, scale, folder, progress)
        return lambda x: (matmat(x), paths.append(sorted(folder.glob("*"))))[0]

    monkeypatch.setattr(ways, "disk_product", watching)
    return paths


@pytest.fixture(scope="module")
def undisturbed():
    return mo.embed(FRAMES, **embed_options(**OPTIONS), preset="paper")


def assert_same_bits(one, other):
    for name in ("eigenvalue", "coordinate", "residual", "degree"):
        assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("refine", [0, 1])
def test_embed__tiles_lie_beside_the_passes_and_are_gone_at_the_end(tmp_path, scratch, seen, refine):
    kept = tmp_path / "kept"
    options = {"method": "landmarks", "landmarks": 50, "refine": 1} if refine else {}
    mo.embed(FRAMES, **embed_options(checkpoint=kept, **OPTIONS | options), preset="paper")
    assert {path.parent.parent for path in seen[0]} == {kept / "tiles"}
    assert len(seen[0]) == len(SIX_TILES)
    assert not (kept / "tiles").exists()
    assert list(scratch.iterdir()) == []


def test_embed__tiles_are_gone_after_an_error(tmp_path, scratch, monkeypatch):
    class StoppedError(Exception):
        pass

    def stop(stage, done, _total):
        if stage == "eigensolve":
            assert len(list((tmp_path / "kept/tiles").glob("*/*"))) == len(SIX_TILES)
            raise StoppedError

    with pytest.raises(StoppedError):
        mo.embed(FRAMES, **embed_options(checkpoint=tmp_path / "kept", progress=stop, **OPTIONS), preset="paper")
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["manifold-observer-passes", "pass-001.npz"]


def test_embed__tiles_of_a_killed_run_are_cleared_and_nothing_else(tmp_path, undisturbed):
    kept = tmp_path / "kept"
    mo.embed(FRAMES, **embed_options(checkpoint=kept, **OPTIONS), preset="paper")
    mine = kept / "tiles" / "photos"
    mine.mkdir(parents=True)
    (mine / "panel-00000-000.npy").write_bytes(b"a photo")
    left = kept / "tiles" / ("ab" * 16)
    left.mkdir()
    for name in ("panel-00000-000.npy", f"panel-00000-001.npy.{'0' * 32}.partial", "thesis.txt"):
        (left / name).write_bytes(b"half a tile")
    other = kept / "tiles" / ("cd" * 16)
    other.mkdir()
    (other / "panel-00003-000.npy").write_bytes(b"")
    assert_same_bits(mo.embed(FRAMES, **embed_options(checkpoint=kept, **OPTIONS), preset="paper"), undisturbed)
    assert set(digest_of(kept / "tiles")) == {
        "photos",
        "photos/panel-00000-000.npy",
        left.name,
        f"{left.name}/thesis.txt",
    }


def test_embed__a_link_in_the_place_of_the_tiles_is_refused(tmp_path):
    kept = tmp_path / "kept"
    mo.embed(FRAMES, **embed_options(checkpoint=kept, **OPTIONS), preset="paper")
    photos = tmp_path / "photos" / ("ab" * 16)
    photos.mkdir(parents=True)
    (photos / "panel-00000-000.npy").write_bytes(b"a photo")
    (kept / "tiles").symlink_to(tmp_path / "photos")
    with pytest.raises(ValueError, match=r"tiles must be a folder itself; got a symbolic link"):
        mo.embed(FRAMES, **embed_options(checkpoint=kept, **OPTIONS), preset="paper")
    assert list(digest_of(tmp_path / "photos")) == ["ab" * 16, f"{'ab' * 16}/panel-00000-000.npy"]


# ------------------------------------------------------------------------------------------ whether they fit


def test_tiles_bytes__are_those_of_the_files(tmp_path, seen, monkeypatch):
    sizes = []
    remove = tiledisk._remove
    monkeypatch.setattr(
        tiledisk, "_remove", lambda folder: sizes.extend(p.stat().st_size for p in folder.glob("*")) or remove(folder)
    )
    mo.embed(FRAMES, **embed_options(checkpoint=tmp_path / "kept", **OPTIONS), preset="paper")
    assert sum(sizes) == tiledisk.tiles_bytes(blocks(260, 100), 4)


@pytest.mark.parametrize("beside", [True, False], ids=["beside the passes", "temporary"])
def test_embed__tiles_that_do_not_fit_are_refused_before_anything_is_computed(tmp_path, scratch, monkeypatch, beside):
    needed = tiledisk.tiles_bytes(blocks(260, 100), 4)
    monkeypatch.setattr(tiledisk, "gib", lambda size: f"{size} bytes")
    monkeypatch.setattr(tiledisk.shutil, "disk_usage", damage.disk_of(needed - 1))
    monkeypatch.setattr(ways, "make_blocks", None)
    place = tmp_path / "kept" if beside else scratch
    message = f"{needed} bytes are needed, {needed - 1} bytes are free in {place}. Make room there, .*home='recomputed'"
    with pytest.raises(ValueError, match=message):
        mo.embed(FRAMES, **embed_options(checkpoint=place if beside else None, **OPTIONS), preset="paper")
    assert digest_of(tmp_path) == {"scratch": "folder"}


def test_embed__tiles_that_just_fit_are_written(tmp_path, scratch, monkeypatch, undisturbed):
    monkeypatch.setattr(tiledisk.shutil, "disk_usage", damage.disk_of(tiledisk.tiles_bytes(blocks(260, 100), 4)))
    assert_same_bits(mo.embed(FRAMES, **embed_options(**OPTIONS), preset="paper"), undisturbed)


def test_embed__a_disk_that_does_not_tell_its_space_is_tried(monkeypatch, scratch, undisturbed):
    def refuse(_path):
        raise OSError(errno.ENOSYS, "not here")

    monkeypatch.setattr(tiledisk.shutil, "disk_usage", refuse)
    assert_same_bits(mo.embed(FRAMES, **embed_options(**OPTIONS), preset="paper"), undisturbed)


# --------------------------------------------------------------------------------- when they cannot be kept


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("first", [0, 4])
def test_embed__tiles_that_cannot_be_written_cost_one_warning(tmp_path, monkeypatch, seen, undisturbed, number, first):
    replace, written = os.replace, []

    def fail(partial, place):
        if "panel-" in str(place):
            written.append(place)
            if len(written) > first:
                raise OSError(number, os.strerror(number))
        replace(partial, place)

    monkeypatch.setattr(atomic.os, "replace", fail)
    message = (
        rf"embed: tiles could not be kept in .*kept/tiles/.*: {os.strerror(number)}\. They are made again in every"
    )
    with pytest.warns(UserWarning, match=message) as told:
        found = mo.embed(FRAMES, **embed_options(checkpoint=tmp_path / "kept", **OPTIONS), preset="paper")
    assert len(told) == 1
    assert_same_bits(found, undisturbed)
    assert {len(paths) for paths in seen} == {first}
    assert not (tmp_path / "kept/tiles").exists()


def test_embed__files_that_the_system_cuts_short_cost_a_warning_each(tmp_path, undisturbed):
    with (
        damage.files_of_at_most(15_000),
        pytest.warns(UserWarning, match=r"tiles could not be kept in .*: File too large"),
        pytest.warns(UserWarning, match=r"pass 1 could not be kept: File too large"),
    ):
        found = mo.embed(FRAMES, **embed_options(checkpoint=tmp_path / "kept", **OPTIONS), preset="paper")
    assert_same_bits(found, undisturbed)
    assert digest_of(tmp_path / "kept").keys() == {"manifold-observer-passes"}


def test_embed__workers_that_do_not_see_the_folder_are_named(tmp_path, monkeypatch, undisturbed):
    made = ways.disk_product
    monkeypatch.setattr(ways, "disk_product", lambda t, s, folder, p: made(t, s, folder / "elsewhere", p))
    with pytest.warns(
        UserWarning, match=r"a worker does not find the folder\. Give checkpoint= on a disk that all"
    ) as told:
        found = mo.embed(FRAMES, **embed_options(checkpoint=tmp_path / "kept", **OPTIONS), preset="paper")
    assert len(told) == 1
    assert_same_bits(found, undisturbed)


@pytest.mark.parametrize("harm", [damage.WAYS["0 bytes"], damage.cut], ids=["0 bytes", "cut"])
def test_embed__a_tile_that_is_damaged_between_passes_is_made_again(tmp_path, monkeypatch, undisturbed, harm):
    harmed = []

    def spoil(stage, done, _total):
        if (stage, done) == ("eigensolve", 1):
            harmed.extend(sorted((tmp_path / "kept/tiles").glob("*/*"))[:2])
            for path in harmed:
                harm(path)

    monkeypatch.setattr("manifold_observer.pipeline.engine.landmarks._WARM_LANDMARKS", 20)
    whole = mo.embed(FRAMES, **embed_options(**OPTIONS), preset="paper")
    assert whole.attrs["passes"] > 1
    assert_same_bits(
        mo.embed(FRAMES, **embed_options(checkpoint=tmp_path / "kept", progress=spoil, **OPTIONS), preset="paper"),
        whole,
    )
    assert len(harmed) == 2
