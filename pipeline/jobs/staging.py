"""A result in an object store: written beside its place, and put there by copies, its root last.

Throughout: beside an output NAME lies ``.manifold-observer/NAME/``, with the lease and, for each run, a *work prefix*
TOKEN with ``mark.json``, ``result/`` (what workers write), ``passes/`` (those of a long solve), ``placing.json`` (from
the moment on in which an earlier result begins to go) and ``kept.json`` (a finished result that found no place). Stores
have no renaming: the copies are made within the store, and nothing is a result before its root is there.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..stores.address import Address, Place, lies_in
from ..stores.objects import Found, TakenError, copy_all, found_in, look, read, remove, sizes, write, write_new
from ..stores.refusals import MissingError, StoreError
from ..stores.zarrs import written_alone
from .lease import Lease, lease_is_dead, leased
from .manifest import ROOT, first_foreign, names_of, seal
from .mirror import fetched, mirrored, scratch

WORK = ".manifold-observer"
"""What lies beside outputs under this name belongs to runs."""
_MARK, _PLACING, _KEPT, _LEASE = "mark.json", "placing.json", "kept.json", "lease.json"


@dataclass(frozen=True)
class Staging(Address):
    """Where a run writes to, with the folder of this machine for the passes of its solve."""

    passes: Path = Path()


@contextmanager
def writing_there(out: Address, inputs: Sequence[Place], *, overwrite: bool) -> Iterator[Staging]:
    """Give a place in a store to write a result to; it appears at ``out`` at the end.

    Parameters
    ----------
    out, inputs, overwrite
        As for :func:`.store.writing`.

    Yields
    ------
    The place to write to.

    Raises
    ------
    ValueError, StoreError
        As :func:`.store.writing` says, or the store cannot be used.
    """
    check_there(out, inputs, overwrite)
    busy = f"store: another run is writing {out}. Wait for it, or choose another name."
    with leased(_beside(out) / _LEASE, busy) as lease, scratch(str(out), busy) as passes:
        work = _begin(out, passes)
        try:
            check_there(out, inputs, overwrite)  # again: another run may have finished since
            result = work / "result"
            with mirrored(passes, work / "passes"), written_alone(result):
                yield Staging(result.scheme, result.host, result.key, passes=passes)
            seal(result)
        except BaseException:
            with suppress(StoreError):
                _clear(work, passes=False)
            raise
        _appear(work, out, lease, overwrite=overwrite)


@contextmanager
def alone_there(folder: Address) -> Iterator[None]:
    """Hold a prefix that several results go to."""
    busy = f"store: another run is writing to {folder}. Wait for it, or choose another name."
    with leased(_beside(folder) / _LEASE, busy):
        yield


def remove_there(out: Address) -> None:
    """Remove a result of this project, its root first; a place that holds anything else stays as it is."""
    with leased(_beside(out) / _LEASE, f"store: a run is writing {out}, which is not removed."):
        if (foreign := first_foreign(out)) is not None:
            raise ValueError(f"store: {out} {foreign} and is not removed.")
        known = names_of(_json(out / ROOT))
        remove([out / ROOT])
        remove([out / name for name in known])


def check_there(out: Address, inputs: Sequence[Place], overwrite: bool) -> None:
    """Refuse a place where something could be lost."""
    check_writable(out)
    for source in inputs:
        if isinstance(source, Address) and (lies_in(out, source) or lies_in(source, out)):
            raise ValueError(f"store: the output must not be the recording or lie within it; got {out} and {source}.")
    if look(out) is not None:
        raise ValueError(f"store: {out} is an object, which is not replaced. Choose another name.")
    there = next(found_in(out), None)
    if there is None or (look(out / ROOT) is None and any(_is_unplaced(work) for work in _works(out))):
        return  # nothing, or copies of a run that was killed, which the next one puts in order
    if not overwrite:
        _sweep(out)
        raise ValueError(f"store: {out} already exists. Choose another name, or give --overwrite.")
    if (foreign := first_foreign(out)) is not None:
        raise ValueError(f"store: {out} {foreign} and is not replaced. Choose another name, or move it away.")


def _sweep(out: Address) -> None:
    """Clear what a run left that was killed when its result was in place."""
    root = _bytes(out / ROOT)
    for work in _works(out):
        if root is not None and _bytes(work / "result" / ROOT) == root:
            _clear(work)
            remove([_beside(out) / _LEASE] if lease_is_dead(_beside(out) / _LEASE) else [])


def passes_of(folder: Staging) -> Address:
    """Where the passes of a solve are kept, for the place that :func:`writing_there` gave."""
    return folder.with_name("passes")


def check_writable(out: Address) -> None:
    """Refuse what cannot be written."""
    if out.is_web:
        raise ValueError(
            f"store: the output must be a path, s3:// or gs://; got {out}. Web servers are only read; choose another."
        )
    if not out.key:
        raise ValueError(f"store: the output must have a name in its bucket; got {out}. Add one: {out}out.zarr.")


def _beside(out: Address) -> Address:
    """What belongs to an output beside it."""
    return out.parent / WORK / out.name


def _begin(out: Address, passes: Path) -> Address:
    """A work prefix of one's own, with the passes of runs that were killed or failed; these are put in order."""
    work = _beside(out) / secrets.token_hex(8)
    mark = {"token": work.name, "out": str(out), "manifold_observer": version("manifold-observer")}
    write_new(work / _MARK, json.dumps(mark).encode())
    for dead in _works(out):
        if dead != work:
            _settle(dead, out)
            if not any(passes.iterdir()):
                fetched(dead / "passes", work / "passes", passes)
            if look(dead / _KEPT) is None:
                _clear(dead)
    return work


def _works(out: Address) -> list[Address]:
    """Work prefixes of an output that bear their mark."""
    beside = _beside(out)
    marks = [one.name.split("/") for one in found_in(beside) if one.name.endswith(f"/{_MARK}")]
    works = [beside / names[0] for names in marks if len(names) == 2]
    return [work for work in works if _json(work / _MARK).items() >= {"token": work.name, "out": str(out)}.items()]


def _finished(work: Address) -> bool:
    """Whether the whole result lies in a work prefix."""
    return bool(_json(work / "result" / ROOT).get("attributes", {}).get("complete"))


def _is_unplaced(work: Address) -> bool:
    """Whether a run was killed that had finished its result, or was putting it in its place."""
    return _finished(work) and look(work / _KEPT) is None


def _settle(work: Address, out: Address) -> None:
    """Put in order what a run has left at the output that was killed while its result was put there."""
    if not _is_unplaced(work):
        return
    root, earlier = _bytes(out / ROOT), _bytes(work / _PLACING)
    if root is None and earlier is not None:
        _put(work, out)  # the earlier result is gone in part: this one takes its place
    elif root is None:
        # Copies of what a run makes anew: never anything that is not the same to the byte.
        remove([out / name for name in _copies(work, out)])
    elif earlier is not None and root not in (earlier, _bytes(work / "result" / ROOT)):
        write(work / _KEPT, b"{}")  # somebody else's stands where the earlier result was


def _copies(work: Address, out: Address) -> list[str]:
    """Names at the output of what is a copy of the result in a work prefix."""
    own = {one.name: one for one in found_in(work / "result")}
    same = [one for one in found_in(out) if one.name in own and own[one.name].size == one.size]
    # Encrypted copies have tags of their own.
    return [one.name for one in same if _agree(own[one.name], one, work / "result" / one.name, out / one.name)]


def _agree(own: Found, there: Found, source: Address, target: Address) -> bool:
    """Whether an object is a copy of another of its size."""
    return own.tag == there.tag or read(source) == read(target)


def _appear(work: Address, out: Address, lease: Lease, *, overwrite: bool) -> None:
    """Put the finished result in its place; an earlier one goes only then."""
    lease.check()
    try:
        _check_free(out, overwrite)
        if look(out / ROOT) is not None:
            write(work / _PLACING, read(out / ROOT))
        _put(work, out)
    except (ValueError, StoreError) as error:
        with suppress(StoreError):
            write(work / _KEPT, b"{}")
        raise ValueError(f"{error} The finished result is kept at {work / 'result'}.") from None
    with suppress(StoreError):  # the result is there; what is left is cleared by the next run
        _clear(work)


def _check_free(out: Address, overwrite: bool) -> None:
    """Refuse what has come to the place during the run."""
    if next(found_in(out), None) is None:
        return
    foreign = first_foreign(out) if overwrite else "appeared during the run"
    if foreign is not None:
        raise ValueError(f"store: {out} {foreign} and is not replaced. Move it away.")


def _put(work: Address, out: Address) -> None:
    """Put a result in its place; as often as one likes."""
    earlier = _json(work / _PLACING)
    if earlier and _bytes(out / ROOT) == _bytes(work / _PLACING):
        remove([out / ROOT])  # first: what is there is no result from now on
    known = names_of(earlier)
    remove([out / name for name, size in sizes(out).items() if known.get(name) == size])
    names = [one.name for one in found_in(work / "result") if one.name != ROOT]
    copy_all((work / "result" / name, out / name) for name in names)
    root = read(work / "result" / ROOT)
    try:
        write_new(out / ROOT, root)
    except TakenError:
        raise ValueError(f"store: something else appeared at {out} during the run, and is not replaced.") from None


def _clear(work: Address, *, passes: bool = True) -> None:
    """Remove what is ours in a work prefix, its mark last, where nothing else lies in it."""
    there = [one.name for one in found_in(work)]
    keep = [name for name in there if name.startswith("passes/")] if not passes else []
    ours = [n for n in there if n.startswith(("result/", "passes/")) or n in (_PLACING, _KEPT)]
    remove([work / name for name in ours if name not in keep])
    if set(there) <= {*ours, _MARK} and not keep:
        remove([work / _MARK])


def _json(address: Address) -> dict[str, Any]:
    """What an object says; nothing where it is missing, or says nothing."""
    try:
        found = json.loads(_bytes(address) or b"")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _bytes(address: Address) -> bytes | None:
    """An object; None where there is none."""
    try:
        return read(address)
    except MissingError:
        return None
