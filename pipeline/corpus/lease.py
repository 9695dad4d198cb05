"""One run at a time over a corpus, wherever it was started; the lock of a run that died is taken over.

Two things hold it. A lock of the file system on a file that is never replaced ends with its process, and is all that
processes of one machine need. Machines that share a folder may not see each other's locks, so the *holder* also
writes who it is, and a *beat* that it changes all the while: a holder on another machine lives as long as its beat
changes, by the watch of whoever looks. No two clocks are ever compared.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from manifold_observer.tasks import atomic

from ..graph.host import this_machine
from ..jobs.lock import try_lock

_LOCK, _HOLDER = "lock", "holder.json"
# Beats in the time after which a holder counts as dead.
_BEATS = 6
_LOOK_SECONDS = 0.5


class HeldError(ValueError):
    """Another run works on the corpus."""


class Holder(NamedTuple):
    """Who holds a corpus: machine, boot and process, and a token of its own."""

    token: str
    host: str
    boot: str
    pid: int
    since: str

    @property
    def is_here(self) -> bool:
        """Whether it runs, or ran, on this machine since it was started."""
        return (self.host, self.boot) == this_machine()


class Lease:
    """A corpus that this process holds."""

    def __init__(self, folder: Path, holder: Holder) -> None:
        self._folder, self._holder = folder, holder
        self._over = threading.Event()

    @property
    def token(self) -> str:
        """What tells this run from all others."""
        return self._holder.token

    @property
    def lost(self) -> bool:
        """Whether another run has taken over, since this one gave no sign of life for too long."""
        found = read_holder(self._folder)
        # A network folder that is away for a moment is no sign of another run.
        return found is not None and found.token not in ("", self._holder.token)

    def beat(self, seconds: float) -> None:
        """Show life until it is over."""
        number = 0
        while not self._over.wait(seconds):
            number += 1
            with suppress(OSError):  # a full disk, or one that is away for a moment
                _beat_file(self._folder, self._holder).write_text(str(number))

    def end(self) -> None:
        """Beat no more."""
        self._over.set()


@contextmanager
def holding_corpus(folder: Path, takeover: float) -> Iterator[Lease]:
    """Hold a corpus for the length of a block.

    Parameters
    ----------
    folder
        Its state, which is made where it does not exist.
    takeover
        Seconds without a beat after which a holder on another machine is dead.

    Raises
    ------
    HeldError
        Another run holds it.
    OSError
        The folder cannot be written to.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / ".corpus"
    >>> with holding_corpus(folder, 60):
    ...     with holding_corpus(folder, 60):
    ...         pass
    Traceback (most recent call last):
    manifold_observer.pipeline.corpus.lease.HeldError: ...
    """
    handle = _opened(folder)
    try:
        holder = _claim(folder, takeover, _locked(folder, handle))
        lease = Lease(folder, holder)
        beating = threading.Thread(target=lease.beat, args=(takeover / _BEATS,), daemon=True)
        beating.start()
        try:
            yield lease
        finally:
            lease.end()
            beating.join()
            _release(folder, holder)
    finally:
        os.close(handle)


def read_holder(folder: Path) -> Holder | None:
    """Who holds a corpus, or held it when it was killed; None where nobody does."""
    try:
        return _parsed((folder / _HOLDER).read_bytes())
    except OSError:
        return None


def lives(folder: Path, holder: Holder) -> bool | None:
    """Whether a holder lives; None where it is on another machine, and only time can tell."""
    if not holder.is_here:
        return None
    handle = os.open(folder / _LOCK, os.O_RDONLY)
    try:
        return not try_lock(handle, shared=True)
    except OSError:
        return _process_lives(holder.pid)
    finally:
        os.close(handle)


def _opened(folder: Path) -> int:
    """Open the file that is locked, which also shows whether anything can be written here."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            atomic.write(folder / "written", b"")
        except BaseException:
            os.close(handle)
            raise
    except OSError as error:
        raise type(error)(
            f"corpus: {folder.parent} must be a folder that can be written to; got: {error.strerror}. "
            "Choose another output, change its permissions, or free some space."
        ) from None
    return handle


def _locked(folder: Path, handle: int) -> bool:
    """Take the lock of the file system; False where it has none.

    Raises
    ------
    HeldError
        Another process has it.
    """
    try:
        taken = try_lock(handle)
        for _ in range(20):  # held for a moment by one who asks whether a run lives
            if taken:
                break
            time.sleep(0.01)
            taken = try_lock(handle)
    except OSError:
        return False
    if not taken:
        raise HeldError(_busy(folder, read_holder(folder)))
    return True


def _claim(folder: Path, takeover: float, certain: bool) -> Holder:
    """Become the holder, after whoever is there has been seen to be dead."""
    host, boot = this_machine()
    own = Holder(secrets.token_hex(8), host, boot, os.getpid(), time.strftime("%Y-%m-%d %H:%M:%S"))
    while not _written(folder, own):
        found = read_holder(folder)
        if found is None:  # it has just ended
            continue
        if not _is_dead(folder, found, takeover, certain):
            raise HeldError(_busy(folder, found))
        _remove(folder, found)
    return own


def _is_dead(folder: Path, found: Holder, takeover: float, certain: bool) -> bool:
    """Whether a holder does not live; for one on another machine this takes as long as ``takeover`` says."""
    if found.is_here:
        return certain or not _process_lives(found.pid)
    first, until = _beat(folder, found), time.monotonic() + takeover
    while time.monotonic() < until:
        time.sleep(min(_LOOK_SECONDS, takeover / _BEATS))
        if _beat(folder, found) != first or read_holder(folder) != found:
            return False
    return True


def _written(folder: Path, own: Holder) -> bool:
    """Write who holds the corpus, in a file that must not exist; False where it does."""
    draft = folder / f"{_HOLDER}.{own.token}"
    atomic.write(draft, json.dumps(own._asdict()).encode())
    try:
        try:
            os.link(draft, folder / _HOLDER)
        except FileExistsError:
            return False
        except OSError:  # no hard links here
            return _created(folder / _HOLDER, draft.read_bytes())
        return True
    finally:
        draft.unlink(missing_ok=True)


def _created(place: Path, content: bytes) -> bool:
    """Write a file that must not exist; False where it does."""
    try:
        with place.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return False
    return True


def _remove(folder: Path, found: Holder) -> None:
    """Remove a dead holder. Of several who do so one has the file; if it is another's by now, it is put back."""
    if read_holder(folder) != found:  # another was faster: a file moved away, if only to be put back, lets a third in
        return
    aside = folder / f"{_HOLDER}.{secrets.token_hex(8)}"
    with suppress(FileNotFoundError):
        os.rename(folder / _HOLDER, aside)
        if _parsed(aside.read_bytes()) != found:
            with suppress(OSError):
                os.link(aside, folder / _HOLDER)
        else:
            _beat_file(folder, found).unlink(missing_ok=True)
        aside.unlink()


def _release(folder: Path, own: Holder) -> None:
    """Hold the corpus no more."""
    with suppress(OSError):
        _beat_file(folder, own).unlink(missing_ok=True)
        if read_holder(folder) == own:
            (folder / _HOLDER).unlink()


def _busy(folder: Path, found: Holder | None) -> str:
    """Who is in the way."""
    who = "another run" if found is None else f"process {found.pid} on {found.host} since {found.since}"
    return (
        f"corpus: only one run at a time may write to {folder.parent}; got {who}. Wait for it; "
        "'manifold-observer corpus status' shows how far it is."
    )


def _beat_file(folder: Path, holder: Holder) -> Path:
    """Where a holder shows life; no other ever writes there."""
    return folder / f"beat-{holder.token}"


def _beat(folder: Path, holder: Holder) -> str:
    """The last beat of a holder."""
    try:
        return _beat_file(folder, holder).read_text()
    except OSError:
        return ""


def _parsed(content: bytes) -> Holder:
    """Who holds a corpus, from the file; nobody that is known for a file that was not written to its end."""
    try:
        values: dict[str, Any] = json.loads(content)
        return Holder(**values)
    except (ValueError, TypeError):
        return Holder("", "", "", 0, "")


def _process_lives(pid: int) -> bool:
    """Whether there is a process of that number on this machine."""
    import psutil  # noqa: PLC0415 - where a file system has no locks

    return bool(psutil.pid_exists(pid))
