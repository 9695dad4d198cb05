"""Tiles in files: made once, mapped from then on."""

import errno

import damage
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from manifold_observer.tasks.engine import kernel, quadratic, tilefile
from manifold_observer.tasks.engine.kernel import Scale
from strategies import smooth_motion, spd

PLACES, SPANS = [(0, 0), (0, 1), (1, 1)], [(0, 0), (0, 7), (7, 7)]


def two_blocks(dtype=np.float64):
    rng = np.random.default_rng(0)
    frames, precisions = smooth_motion(rng, 12, 3), spd(rng, 12, 3)
    whole = quadratic.quadratic_block(frames - frames.mean(axis=0), precisions).astype(dtype)
    return [whole.take(np.arange(7)), whole.take(np.arange(7, 12))]


def expected(blocks, scale):
    return [
        kernel.kernel_tile(blocks[i], blocks[j], *scale.of(*span, blocks[i], blocks[j]), on_diagonal=i == j)
        for (i, j), span in zip(PLACES, SPANS, strict=True)
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("local", [None, np.linspace(1, 2, 12)], ids=["one scale", "local scales"])
def test_read_or_make__the_first_and_every_later_time_gives_the_tiles(tmp_path, dtype, local):
    blocks, scale = two_blocks(dtype), Scale(3.0, local)
    for _ in range(2):
        tiles = tilefile.read_or_make(str(tmp_path / "panel"), blocks, PLACES, SPANS, scale)
        for tile, truth in zip(tiles, expected(blocks, scale), strict=True):
            assert tile.dtype == dtype
            assert_array_equal(tile, truth)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"panel-{k:03d}.npy" for k in range(3)]


def test_read_or_make__makes_once_and_maps_after(tmp_path, monkeypatch):
    path, blocks = str(tmp_path / "panel"), two_blocks()
    made = tilefile.read_or_make(path, blocks, PLACES, SPANS, Scale(3.0))

    def refuse(*_args, **_options):
        raise AssertionError("a tile was made again")

    monkeypatch.setattr(tilefile.kernel, "kernel_tile", refuse)
    again = tilefile.read_or_make(path, blocks, PLACES, SPANS, Scale(3.0))
    for one, other in zip(again, made, strict=True):
        assert isinstance(one, np.memmap)
        assert not one.flags.writeable
        assert_array_equal(one, other)


def test_read_or_make__makes_what_is_missing_again(tmp_path):
    path, blocks = str(tmp_path / "panel"), two_blocks()
    tilefile.read_or_make(path, blocks, PLACES, SPANS, Scale(3.0))
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    missing = tmp_path / "panel-001.npy"
    missing.unlink()
    tiles = tilefile.read_or_make(path, blocks, PLACES, SPANS, Scale(3.0))
    assert_array_equal(tiles[1], expected(blocks, Scale(3.0))[1])
    assert all(file.stat().st_mtime_ns == when for file, when in kept.items() if file != missing)


def test_read_or_make__leftovers_of_a_killed_write_are_not_read(tmp_path):
    path, blocks = str(tmp_path / "panel"), two_blocks()
    leftover = tmp_path / "panel-000.npy.0123.partial"
    leftover.write_bytes(b"half a tile")
    tiles = tilefile.read_or_make(path, blocks, PLACES, SPANS, Scale(3.0))
    assert_array_equal(tiles[0], expected(blocks, Scale(3.0))[0])
    assert leftover.read_bytes() == b"half a tile"


def test_read_or_make__a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_args, **_options):
        raise OSError("disk full")

    monkeypatch.setattr(tilefile.np, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        tilefile.read_or_make(str(tmp_path / "panel"), two_blocks(), PLACES, SPANS, Scale(3.0))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("harm", damage.WAYS.values(), ids=damage.WAYS)
def test_read_or_make__makes_what_is_damaged_again(tmp_path, harm):
    path, blocks, why = str(tmp_path / "panel"), two_blocks(), []
    tilefile.read_or_make(path, blocks, PLACES, SPANS, Scale(3.0))
    file = tmp_path / "panel-001.npy"
    whole = file.read_bytes()
    harm(file)
    if harm is damage.flip:  # within the numbers: only a digest of every tile in every pass would see that
        damage.flip(file, 0.1)
    tiles = tilefile.read_or_make(path, blocks, PLACES, SPANS, Scale(3.0), why.append)
    assert_array_equal(tiles[1], expected(blocks, Scale(3.0))[1])
    assert len(why) == file.is_dir()  # it is not ours, and the tile stays in memory
    assert file.is_dir() or file.read_bytes() == whole


@pytest.mark.parametrize(
    "other", [np.zeros((7, 5), np.float32), np.zeros((5, 7)), np.asfortranarray(np.zeros((7, 5))), np.zeros(35)]
)
def test_read_or_make__a_tile_of_other_blocks_is_made_again(tmp_path, other):
    blocks = two_blocks()
    np.save(tmp_path / "panel-001.npy", other)
    tiles = tilefile.read_or_make(str(tmp_path / "panel"), blocks, PLACES, SPANS, Scale(3.0))
    assert_array_equal(tiles[1], expected(blocks, Scale(3.0))[1])


def test_read_or_make__a_tile_that_cannot_be_written_stays_in_memory(tmp_path):
    blocks, why = two_blocks(), []
    with damage.files_of_at_most(300):  # 7 x 7 numbers are more, 7 x 5 and 5 x 5 with their header too
        tiles = tilefile.read_or_make(str(tmp_path / "panel"), blocks, PLACES, SPANS, Scale(3.0), why.append)
    for tile, truth in zip(tiles, expected(blocks, Scale(3.0)), strict=True):
        assert_array_equal(tile, truth)
    assert [error.errno for error in why] == [errno.EFBIG] * 3
    assert list(tmp_path.iterdir()) == []


def test_read_or_make__without_its_folder_tiles_stay_in_memory(tmp_path):
    blocks, why = two_blocks(), []
    tiles = tilefile.read_or_make(str(tmp_path / "gone/panel"), blocks, PLACES, SPANS, Scale(3.0), why.append)
    assert_array_equal(tiles[2], expected(blocks, Scale(3.0))[2])
    assert {error.errno for error in why} == {errno.ENOENT}
