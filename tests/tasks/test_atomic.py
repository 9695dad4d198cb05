"""Files appear complete or stay as they were, whatever fails."""

import errno
import os
import stat

import pytest

from manifold_observer.tasks import atomic


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("durable", [True, False])
def test_replacing__the_place_changes_at_the_end_alone(tmp_path, durable):
    place = tmp_path / "a.txt"
    place.write_text("old")
    with atomic.replacing(place, durable=durable) as file:
        file.write(b"new")
        file.flush()
        assert place.read_text() == "old"
        (partial,) = (name for name in contents(tmp_path) if name != "a.txt")
        assert atomic.final_name(partial) == "a.txt"
    assert contents(tmp_path) == {"a.txt": "new"}


@pytest.mark.parametrize("step", ["block", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), OSError(errno.EIO, "broken"), KeyboardInterrupt()])
def test_replacing__what_fails_leaves_the_place_as_it_was(tmp_path, monkeypatch, step, error):
    (tmp_path / "a.txt").write_text("old")

    def fail(*_arguments):
        raise error

    if step != "block":
        monkeypatch.setattr(atomic.os, step, fail)

    def write():
        with atomic.replacing(tmp_path / "a.txt") as file:
            file.write(b"half of what was meant")
            if step == "block":
                fail()

    with pytest.raises(type(error)):
        write()
    assert contents(tmp_path) == {"a.txt": "old"}


def test_replacing__file_and_folder_are_put_on_disk(tmp_path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, os.replace

    def watch(handle):
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    monkeypatch.setattr(atomic.os, "fsync", watch)
    monkeypatch.setattr(atomic.os, "replace", lambda *paths: steps.append("replace") or replace(*paths))
    atomic.write(tmp_path / "a.txt", b"numbers")
    assert steps == ["file", "replace", "folder"]


def test_replacing__two_writers_never_share_a_file(tmp_path):
    place = tmp_path / "a.txt"
    with atomic.replacing(place) as one, atomic.replacing(place) as other:
        one.write(b"one")
        other.write(b"other")
    assert contents(tmp_path) == {"a.txt": "one"}


def test_replacing__a_link_is_replaced_and_not_its_target(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    (tmp_path / "a.txt").symlink_to(tmp_path / "thesis.txt")
    atomic.write(tmp_path / "a.txt", b"new")
    assert contents(tmp_path) == {"a.txt": "new", "thesis.txt": "years of work"}
    assert not (tmp_path / "a.txt").is_symlink()


def fails_with(number):
    def refuse(*_arguments):
        raise OSError(number, "no")

    return refuse


@pytest.mark.parametrize("name", [".", "a.txt"])
@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF])
def test_sync__where_the_system_cannot_it_is_left(tmp_path, monkeypatch, name, number):
    (tmp_path / "a.txt").touch()
    monkeypatch.setattr(atomic.os, "fsync", fails_with(number))
    atomic.sync(tmp_path / name)


@pytest.mark.parametrize("name", [".", "a.txt"])
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_sync__a_disk_that_fails_is_an_error(tmp_path, monkeypatch, name, number):
    (tmp_path / "a.txt").touch()
    monkeypatch.setattr(atomic.os, "fsync", fails_with(number))
    with pytest.raises(OSError, match="no"):
        atomic.sync(tmp_path / name)


def test_sync__a_folder_that_cannot_be_read_is_left_and_a_file_is_not(tmp_path, monkeypatch):
    (tmp_path / "a.txt").touch()
    monkeypatch.setattr(atomic.os, "open", fails_with(errno.EACCES))
    atomic.sync(tmp_path)
    with pytest.raises(PermissionError):
        atomic.sync(tmp_path / "a.txt")


@pytest.mark.parametrize("name", ["a.partial", "a.txt.0123.partial", "a.txt", f"{'0' * 32}.partial"])
def test_final_name__other_peoples_files_are_not_ours(name):
    assert atomic.final_name(name) is None
