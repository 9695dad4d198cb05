"""A result that was damaged or copied in part is refused by name; it never reads as NaN."""

import json
import shutil
import warnings

import numpy as np
import pytest
import xarray as xr
import zarr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.jobs import manifest
from manifold_observer.pipeline.jobs.config import RunConfig
from manifold_observer.pipeline.jobs.continuation import learnt_from
from manifold_observer.pipeline.jobs.load import by_convention, load
from manifold_observer.pipeline.jobs.run import read_embedding, run
from manifold_observer.pipeline.jobs.store import open_group
from manifold_observer.pipeline.jobs.stream import continue_run, stream_dataset
from strategies import share

pytestmark = pytest.mark.usefixtures("in_this_thread")

WALK = np.random.default_rng(0).normal(size=(90, 3)).cumsum(axis=0)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A result, two new recordings, and the stream that goes on over them."""
    folder = tmp_path_factory.mktemp("made")
    for name, rows in {"a": WALK[:60], "b": WALK[60:75], "c": WALK[75:]}.items():
        np.save(folder / f"{name}.npy", rows)
    run(
        [folder / "a.npy"],
        folder / "a.zarr",
        RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2)),
    )
    for end in (1, 2):
        continue_run(folder / "a.zarr", [folder / "b.npy", folder / "c.npy"][:end], folder / "more")
    return folder


@pytest.fixture
def copied(made, tmp_path):
    """A copy of it, to be damaged."""
    return shutil.copytree(made, tmp_path / "copy")


def files(out):
    return sorted(path for path in out.rglob("*") if path.is_file())


def chunks(out):
    return [path for path in files(out) if path.name != "zarr.json"]


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 0x10
    path.write_bytes(content)


def missing(path):
    path.unlink()


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def emptied(path):
    path.write_bytes(b"")


def flipped(path):
    flip(path, path.stat().st_size // 2)


@pytest.mark.slow
def test_results__every_array_has_checksums_and_all_its_chunks(made):
    for out in (made / "a.zarr", made / "more/000001.zarr"):
        arrays = [path.parent for path in out.glob("*/*/zarr.json")]
        assert len(arrays) > 8
        for place in arrays:
            array = zarr.open_array(place)
            assert array.metadata.codecs[-1].to_dict()["name"] == "crc32c", place
            assert array.nchunks_initialized == array.nchunks, place


@pytest.mark.slow
def test_results__open_in_plain_xarray_and_zarr_without_a_warning(made):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trees = [xr.open_datatree(made / "a.zarr", consolidated=how, chunks={}) for how in (None, True, False)]
        assert xr.open_zarr(made / "a.zarr", group="state", consolidated=False)["state"].shape == (60, 4)
        for consolidated in (None, True, False):
            root = zarr.open_group(made / "a.zarr", mode="r", use_consolidated=consolidated)
            assert sorted(name for name, _ in root.members()) == ["embedding", "frames", "state"]
    for tree in trees:
        xr.testing.assert_identical(tree.map_over_datasets(by_convention).load(), load(made / "a.zarr").load())
        assert not any(name.startswith("_nc") for name in tree.attrs)


def test_results__the_list_names_every_file(made):
    for out in (made / "a.zarr", made / "more/000000.zarr"):
        root = json.loads((out / "zarr.json").read_text())
        sizes = {path.relative_to(out).as_posix(): path.stat().st_size for path in files(out)}
        del sizes["zarr.json"]
        assert root["attributes"]["_nc_manifest"]["sizes"] == sizes


@pytest.mark.parametrize("damage", [missing, cut, emptied])
def test_load__names_any_file_that_is_missing_or_short(copied, damage):
    out = copied / "a.zarr"
    for path in files(out):
        content = path.read_bytes()
        damage(path)
        named = path.relative_to(out).as_posix() if path.parent != out else "is not a result, or was not finished"
        with pytest.raises(ValueError, match=rf"a\.zarr.*{named}.* again"):
            load(out)
        path.write_bytes(content)
    load(out)


def test_load__names_metadata_that_were_changed(copied):
    out = copied / "a.zarr"
    for path in [path for path in files(out) if path.name == "zarr.json"]:
        content = path.read_text()
        assert content.count('"') > 2
        path.write_text(content.replace("zstd", "zst0").replace("manifold_observer", "manifold_0bserver"))
        if path.read_text() != content:
            with pytest.raises(
                ValueError, match=rf"{path.relative_to(out).as_posix()} has been changed.*Copy it again"
            ):
                load(out)
        path.write_text(content)
    load(out)


@pytest.mark.slow
def test_load__a_flipped_bit_anywhere_in_a_chunk_names_the_array(copied):
    out = copied / "a.zarr"
    for path in share(chunks(out), 3):
        content = path.read_bytes()
        group = path.relative_to(out).parts[0]
        for at in {0, len(content) // 2, len(content) - 1}:
            flip(path, at)
            with pytest.raises(ValueError, match=rf"store: .*{group}.* damaged .*Copy the result again"):
                open_group(out, group).load()
            path.write_bytes(content)
    assert np.isfinite(load(out)["state/state"]).all()


def test_load__the_array_is_named_to_the_last_part(copied):
    flip(copied / "a.zarr/state/state/c/0/0", 30)
    tree = load(copied / "a.zarr")
    tree["frames"].load()
    with pytest.raises(ValueError, match=r"a\.zarr/state/state must be as it was written; it is damaged"):
        tree["state/state"].mean().compute()


def test_load__files_too_many(copied):
    out = copied / "a.zarr"
    (out / "notes.txt").write_text("what I saw")  # which nobody reads
    load(out)
    (out / "state/state/c/1").mkdir()
    (out / "state/state/c/1/0").write_bytes(b"of another result")
    with pytest.raises(ValueError, match=r"state/state/c/1/0 is one too many\. Copy it again"):
        load(out)


def test_load__links_to_the_files_are_as_good(copied):
    """As git-annex lays them."""
    path = copied / "a.zarr/state/state/c/0/0"
    path.rename(copied / "elsewhere")
    path.symlink_to(copied / "elsewhere")
    assert np.isfinite(load(copied / "a.zarr")["state/state"]).all()
    (copied / "elsewhere").unlink()
    with pytest.raises(ValueError, match="state/state/c/0/0 is missing"):
        load(copied / "a.zarr")


def test_load__one_of_an_earlier_version_opens_with_a_warning(copied):
    root = json.loads((copied / "a.zarr/zarr.json").read_text())
    del root["attributes"]["_nc_manifest"]
    (copied / "a.zarr/zarr.json").write_text(json.dumps(root))
    with pytest.warns(UserWarning, match="was written by an earlier version, so damage cannot be detected"):
        assert load(copied / "a.zarr")["state/state"].shape == (60, 4)


def test_check_whole__only_what_is_used(copied):
    (copied / "a.zarr/state/state/c/0/0").unlink()
    assert read_embedding(copied / "a.zarr")["coordinate"].shape == (60, 2)
    assert manifest.check_whole("test", copied / "a.zarr", ["frames"])["complete"] is True
    for groups in (None, ["state"]):
        with pytest.raises(ValueError, match="state/state/c/0/0 is missing"):
            manifest.check_whole("test", copied / "a.zarr", groups)
    with pytest.raises(ValueError, match="it has no group smoothed"):
        manifest.check_whole("test", copied / "a.zarr", ["smoothed"])


@pytest.mark.parametrize("damage", [missing, cut, emptied])
@pytest.mark.parametrize("group", ["embedding", "frames"])
def test_read_embedding__refuses_what_is_damaged(copied, damage, group):
    path = chunks(copied / "a.zarr" / group)[0]
    damage(path)
    with pytest.raises(ValueError, match=rf"read_embedding: .*{path.relative_to(copied / 'a.zarr')}"):
        read_embedding(copied / "a.zarr")


def test_read_embedding__a_flipped_bit_is_named(copied):
    flipped(copied / "a.zarr/embedding/coordinate/c/0/0")
    with pytest.raises(ValueError, match=r"store: .*embedding/coordinate must be as it was written"):
        read_embedding(copied / "a.zarr").load()
    flipped(copied / "a.zarr/embedding/coordinate/c/0/0")  # and back
    flipped(copied / "a.zarr/embedding/lift/c/0/0")
    with pytest.raises(ValueError, match=r"store: .*embedding/lift must be as it was written"):
        learnt_from(copied / "a.zarr")


@pytest.mark.parametrize("damage", [missing, cut, emptied, flipped])
@pytest.mark.parametrize("place", ["a.zarr/state/carry", "a.zarr/embedding/lift", "more/000001.zarr/state/carry"])
def test_continue__a_stream_does_not_go_on_from_what_is_damaged(made, copied, damage, place):
    damage(chunks(copied / place)[0])
    np.save(copied / "d.npy", WALK[:20])
    before = sorted(copied.rglob("*"))
    with pytest.raises(ValueError, match=r"{0}\.zarr.*{2}".format(*place.partition(".zarr/"))):
        continue_run(copied / "a.zarr", [made / "b.npy", made / "c.npy", copied / "d.npy"], copied / "more")
    assert sorted(copied.rglob("*")) == before


@pytest.mark.parametrize("damage", [missing, cut, emptied, flipped])
def test_load__of_a_stream_refuses_what_is_damaged(copied, damage):
    damage(chunks(copied / "more/000000.zarr/state/state")[0])
    with pytest.raises(ValueError, match=r"000000\.zarr.*state/state"):
        stream_dataset(copied / "more").load()


def test_command__damage_is_one_sentence(copied, console):
    flipped(copied / "a.zarr/state/carry/c/0")
    for name in ("b", "c"):
        np.save(copied / f"{name}.npy", WALK[:20])
    code, out, err = console("continue", copied / "a.zarr", copied / "b.npy", copied / "new")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "state/carry must be as it was written" in err
    assert "Copy the result again" in err
    assert not (copied / "new").exists()


def test_continue__a_file_in_the_place_of_a_result_is_named_as_one(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((80, 3)))
    with pytest.raises(ValueError, match=r"a\.npy must be a folder that manifold-observer wrote; got a file"):
        continue_run(tmp_path / "a.npy", [tmp_path / "a.npy"], tmp_path / "more")
