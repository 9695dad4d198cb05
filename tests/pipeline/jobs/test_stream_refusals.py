"""What cannot be continued is refused, and a continuation that was killed goes on."""

import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import xarray as xr
from streams import ALL, LEARNT, assert_same, everything, one_run, write_npy, write_wav

from manifold_observer.pipeline.jobs import load as loading
from manifold_observer.pipeline.jobs import manifest, stream
from manifold_observer.pipeline.jobs.store import alone, start, writing
from manifold_observer.pipeline.jobs.stream import continue_run, stream_dataset
from manifold_observer.pipeline.jobs.workfolder import is_work_folder

pytestmark = pytest.mark.usefixtures("in_this_thread")


@pytest.mark.slow
def test_continue__recordings_of_earlier_calls_come_first(learnt, tmp_path):
    pieces = [write_npy(tmp_path, name, ALL[LEARNT:]) for name in "abc"]
    continue_run(learnt("stft"), pieces[:2], tmp_path / "out")
    for others in (pieces[2:], pieces[:1], pieces[::-1]):
        with pytest.raises(ValueError, match="must begin with the 2 recordings of earlier calls"):
            continue_run(learnt("stft"), others, tmp_path / "out")
    assert everything(tmp_path / "out") == ["000000.zarr"]


@pytest.mark.slow
def test_continue__used_pieces_are_not_read_again(learnt, tmp_path):
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [100]))]
    continue_run(learnt("stft"), pieces[:1], tmp_path / "out")
    continue_run(learnt("stft"), pieces, tmp_path / "out")
    pieces[0].unlink()
    more = write_npy(tmp_path, "more", ALL[:50])
    assert continue_run(learnt("stft"), [*pieces, more], tmp_path / "out").added == 5


def test_continue__parts_of_another_result_are_refused(learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    continue_run(learnt("stft"), [new], tmp_path / "out")
    other = learnt("stft", gamma=0.5)
    with pytest.raises(
        ValueError, match=r"must hold parts that continue .*learnt\.zarr; got .*000000\.zarr, which continues"
    ):
        continue_run(other, [new], tmp_path / "out")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda folder: write_npy(folder, "new", np.zeros((50, 3))),
            "must have the channels of the result, 'ch1', 'ch2'",
        ),
        (
            lambda folder: write_wav(folder, "new", ALL[:50]),
            "must have the sampling rate of the result, 1 Hz; got 1000 Hz",
        ),
        (lambda folder: folder / "new.npy", "does not exist"),
        (lambda folder: folder / "*.npy", r"\*\.npy must match a recording; got none"),
    ],
)
def test_continue__other_recordings_are_refused(learnt, tmp_path, make, message):
    new = make(tmp_path)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        continue_run(learnt("stft"), [new], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_continue__bad_samples_are_named(learnt, tmp_path):
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [50]))]
    continue_run(learnt("identity"), pieces[:1], tmp_path / "out")
    values = ALL[LEARNT + 50 :].copy()
    values[7, 1] = np.nan
    write_npy(tmp_path, "1", values)
    with pytest.raises(ValueError, match=r"frame 7 holds NaN.* Samples and frames count from sample 0 of .*1\.npy"):
        continue_run(learnt("identity"), pieces, tmp_path / "out")
    assert everything(tmp_path / "out") == ["000000.zarr"]


def test_continue__what_is_no_result_of_run_is_refused(tmp_path, learnt):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    with pytest.raises(FileNotFoundError, match="does not exist"):
        continue_run(tmp_path / "no.zarr", [new], tmp_path / "out")
    continue_run(learnt("stft"), [new], tmp_path / "out")
    with writing(tmp_path / "demo.zarr") as folder:
        start(folder, {"demo": "sphere"})
    with pytest.raises(ValueError, match="must hold its settings"):
        continue_run(tmp_path / "demo.zarr", [new], tmp_path / "other")


def test_continue__every_store_is_checked_once_a_call(learnt, tmp_path, monkeypatch):
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [50, 100]))]
    for k in (1, 2):
        continue_run(learnt("identity"), pieces[:k], tmp_path / "out")
    checked, check = [], manifest.check_harmless
    monkeypatch.setattr(manifest, "check_harmless", lambda place: (checked.append(place), check(place)))
    continue_run(learnt("identity"), pieces, tmp_path / "out")
    assert checked == [learnt("identity"), tmp_path / "out/000000.zarr", tmp_path / "out/000001.zarr"]


def test_continue__a_part_is_no_result_to_continue(learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    part = continue_run(learnt("stft"), [new], tmp_path / "out").part
    with pytest.raises(ValueError, match=r"000000\.zarr must hold an embedding; got a part of a stream"):
        continue_run(part, [new], tmp_path / "other")


def test_continue__the_place_is_for_parts_alone(learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    with pytest.raises(ValueError, match="OUT must not be the result or a recording"):
        continue_run(learnt("stft"), [new], learnt("stft"))
    with pytest.raises(ValueError, match="hold only parts"):
        continue_run(learnt("stft"), [new], tmp_path)
    with pytest.raises(ValueError, match="must exist"):
        continue_run(learnt("stft"), [new], tmp_path / "no" / "out")


@pytest.mark.parametrize(
    "name", ["000001.zarr.partial", ".000001.zarr.0123456789abcdef.manifold-observer", "notes.txt"]
)
def test_continue__nothing_of_the_users_in_the_place_is_touched(learnt, tmp_path, name):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    continue_run(learnt("stft"), [new], tmp_path / "out")
    (tmp_path / "out" / name).mkdir()
    (tmp_path / "out" / name / "thesis.tex").write_text("years of work")
    more = write_npy(tmp_path, "more", ALL[:100])
    with pytest.raises(ValueError, match="hold only parts"):
        continue_run(learnt("stft"), [new, more], tmp_path / "out")
    assert (tmp_path / "out" / name / "thesis.tex").read_text() == "years of work"


def test_continue__an_empty_folder_of_the_user_stays_and_a_new_one_goes(learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[:3])
    (tmp_path / "mine").mkdir()
    for name in ("mine", "out"):
        assert continue_run(learnt("stft"), [new], tmp_path / name).added == 0
    assert everything(tmp_path) == ["mine", "new.npy"]


def test_continue__a_link_to_nothing_is_refused(learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    (tmp_path / "out").symlink_to("nothing")
    with pytest.raises(ValueError, match="OUT must be a new folder"):
        continue_run(learnt("stft"), [new], tmp_path / "out")
    assert everything(tmp_path) == ["new.npy", "out"]


@pytest.mark.slow
def test_continue__what_a_kill_at_the_very_end_leaves_goes_with_the_next_part(learnt, tmp_path):
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [83]))]
    script = f"""
        import os, signal
        from pathlib import Path
        from manifold_observer.pipeline.jobs import store, stream
        store.sync = lambda *_args: os.kill(os.getpid(), signal.SIGKILL)
        stream.continue_run(Path({str(learnt("stft"))!r}), [Path({str(pieces[0])!r})], Path("out"))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(everything(tmp_path / "out")) == 3
    assert continue_run(learnt("stft"), pieces, tmp_path / "out").part == tmp_path / "out" / "000001.zarr"
    assert everything(tmp_path / "out") == ["000000.zarr", "000001.zarr"]


def test_continue__two_at_once(learnt, tmp_path):
    new = write_npy(tmp_path, "new", ALL[LEARNT:])
    with alone(tmp_path / "out"), pytest.raises(ValueError, match=r"another run is writing to .*out"):
        continue_run(learnt("stft"), [new], tmp_path / "out")
    assert continue_run(learnt("stft"), [new], tmp_path / "out").added == 21


@pytest.mark.slow
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_continue__what_fails_in_the_middle_leaves_nothing_and_the_same_call_goes_on(
    learnt, tmp_path, monkeypatch, error
):
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [83]))]
    continue_run(learnt("stft"), pieces[:1], tmp_path / "out")

    def fail(*_args, **_options):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(stream, "observe_coordinates", fail)
        with pytest.raises(error):
            continue_run(learnt("stft"), pieces, tmp_path / "out")
    assert everything(tmp_path / "out") == ["000000.zarr"]
    continue_run(learnt("stft"), pieces, tmp_path / "out")
    assert_same(tmp_path / "out", one_run(learnt("stft"), write_npy(tmp_path, "w", ALL[LEARNT:])), times=False)


@pytest.mark.slow
def test_continue__killed_in_the_middle_the_same_call_goes_on(learnt, tmp_path):
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [83]))]
    continue_run(learnt("stft"), pieces[:1], tmp_path / "out")
    script = f"""
        import os, signal
        from pathlib import Path
        from manifold_observer.pipeline.jobs import stream
        stream.observe_coordinates = lambda *_args, **_options: os.kill(os.getpid(), signal.SIGKILL)
        stream.continue_run(Path({str(learnt("stft"))!r}), [Path(p) for p in {list(map(str, pieces))}], Path("out"))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], cwd=tmp_path, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    *hidden, _ = everything(tmp_path / "out")
    assert [is_work_folder(tmp_path / "out" / name) for name in hidden] == [True, True]  # of the part, of the stream
    assert stream_dataset(tmp_path / "out").sizes["frame"] == 8
    continue_run(learnt("stft"), pieces, tmp_path / "out")
    assert everything(tmp_path / "out") == ["000000.zarr", "000001.zarr"]
    assert_same(tmp_path / "out", one_run(learnt("stft"), write_npy(tmp_path, "w", ALL[LEARNT:])), times=False)


def test_load__of_a_stream_parts_of_an_earlier_version_have_no_deviations(learnt, tmp_path):
    result, new = learnt("stft"), write_npy(tmp_path, "new", ALL[LEARNT:])
    continue_run(result, [new], tmp_path / "out")
    part = xr.open_datatree(tmp_path / "out" / "000000.zarr").load()
    later = part["state"].to_dataset()
    assert "state_std" in later
    joined = loading._along([later.drop_vars("state_std"), later], "state_std")
    assert joined.sizes["frame"] == 2 * later.sizes["frame"]
    assert np.isnan(joined[: later.sizes["frame"]]).all()
    np.testing.assert_array_equal(joined[later.sizes["frame"] :], later["state_std"])


def test_load__of_a_stream_refuses_what_is_not_whole(learnt, tmp_path):
    pieces = [write_npy(tmp_path, f"{k}", part) for k, part in enumerate(np.split(ALL[LEARNT:], [83]))]
    for k in (1, 2):
        continue_run(learnt("stft"), pieces[:k], tmp_path / "out")
    (tmp_path / "out" / "000000.zarr").rename(tmp_path / "away")
    with pytest.raises(ValueError, match=r"has no 000000\.zarr"):
        stream_dataset(tmp_path / "out")
    xr.Dataset().to_zarr(tmp_path / "out" / "000000.zarr", zarr_format=3, consolidated=False)
    with pytest.raises(ValueError, match=r"000000\.zarr is not complete"):
        stream_dataset(tmp_path / "out")
    with pytest.raises(FileNotFoundError, match="holds no parts"):
        stream_dataset(tmp_path / "nothing")
