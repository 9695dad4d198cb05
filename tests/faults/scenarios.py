"""What is run under faults: every command that writes, in a folder that holds files of the user as well."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import dask
import numpy as np
import xarray as xr
import zarr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.cli import commands as cli
from manifold_observer.pipeline.jobs import placement, run, stream
from manifold_observer.pipeline.jobs.progress import Stages
from manifold_observer.pipeline.paper import demo
from manifold_observer.pipeline.paper.experiment import Claim, Experiment, Work, reproduce

# Names beside OUT that earlier versions, or others, took for auxiliary ones.
_TEMPTING = (".old", ".partial", ".checkpoint", ".tiles", ".tmp", ".work", ".lock")


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One command: the name of OUT, what is there before, what is run, and how OUT is read."""

    out: str
    prepare: Callable[[Path], None]
    """Makes inputs and earlier results in an empty folder."""
    command: Callable[[Path, bool], None]
    """Runs in that folder; with True over what is there, where the command has --overwrite."""
    read: Callable[[Path], Any]
    """Everything that OUT says, numbers as digests; raises where OUT is not whole."""
    parts: bool = False
    """Whether OUT is a folder whose entries appear one by one."""
    earlier: bool = False
    """Whether a result is at OUT before."""
    scratch: bool = False
    """Whether the command uses the folder for temporary files, where a kill leaves some."""


def by_command_line(job: Callable[[], object]) -> None:
    """Run a job as the command line does: errors end in one sentence and an exit code."""
    cli.cli = click.Command("job", callback=job)
    sys.argv = ["manifold-observer"]
    cli.main()


def settle(seed: int = 0) -> None:
    """One thread and one order of everything, so that a run makes the same calls each time.

    Dask breaks ties by the names of tasks, which are random. The second run of a case has another seed: names of
    temporary files must not come again.
    """
    os.urandom = random.Random(seed).randbytes
    placement._WAITING_AT_ONCE = 1  # files that are pushed to the disk
    dask.config.set(scheduler="synchronous")
    zarr.config.set({"async.concurrency": 1, "threading.max_workers": 1})


def add_user_files(parent: Path, out: str) -> None:
    """Files of the user, with names that tempt."""
    for suffix in _TEMPTING:
        folder = parent / (out + suffix)
        folder.mkdir(mode=0o750)
        (folder / "notes.txt").write_text(f"kept in {suffix}")
    hidden = parent / f".{out}"
    hidden.mkdir()
    (hidden / "settings.json").write_text("{}")
    (parent / f"{out}.partial" / "empty").mkdir()
    (parent / "notes.txt").write_text("do not touch")
    (parent / "notes.txt").chmod(0o440)
    (parent / "link.npy").symlink_to("first.npy")
    (parent / f"{out}.link").symlink_to(f"{out}.old")
    (parent / "dangling").symlink_to("nowhere")
    other = parent / "unrelated.zarr"
    other.mkdir()
    (other / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {"mine": 1}}))


def _walk(n: int = 120, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 3)).cumsum(axis=0)


def _config(home: str) -> mo.RunConfig:
    # The form is fixed: a timed probe would choose it, and with it the last digits.
    options = {"n_modes": 2, "method": "exact", "home": home, "tile": 60, "form": "factor", "epsilon": "local"}
    # Three passes, three tiles.
    embedding = mo.EmbedConfig(**options, residual_tolerance=1e-2)
    # Other dynamics would be compared at length, and touch no file more.
    observer = mo.ObserverConfig(dynamics="poles")
    return mo.RunConfig(mo.FeatureConfig("identity"), embedding=embedding, observer=observer)


def _recordings(parent: Path) -> None:
    np.save(parent / "first.npy", _walk())
    np.save(parent / "second.npy", _walk(30, seed=1))


def _with_earlier(parent: Path) -> None:
    _recordings(parent)
    run.run([parent / "second.npy"], parent / "out.zarr", _config("local"))


def _with_base(parent: Path) -> None:
    _recordings(parent)
    run.run([parent / "first.npy"], parent / "base.zarr", _config("local"))


def _run(home: str) -> Callable[[Path, bool], None]:
    def command(parent: Path, again: bool) -> None:
        run.run([parent / "first.npy"], parent / "out.zarr", _config(home), overwrite=again)

    return command


def _overwrite(parent: Path, again: bool) -> None:
    run.run([parent / "first.npy"], parent / "out.zarr", _config("recomputed"), overwrite=True)


def _continue(parent: Path, again: bool) -> None:
    stream.continue_run(parent / "base.zarr", [parent / "second.npy"], parent / "more")


def _demo(parent: Path, again: bool) -> None:
    circle = demo.DEMOS["circle"]
    embedding = dataclasses.replace(circle.config.embedding, form="factor")
    config = dataclasses.replace(circle.config, embedding=embedding)
    demo.DEMOS["circle"] = dataclasses.replace(circle, config=config)
    demo.demonstrate("circle", parent / "out.zarr", {"n_frames": 60, "seed": 1}, Stages(), overwrite=again)


def _square(x: float) -> xr.Dataset:
    return xr.Dataset({"square": ("k", np.arange(50.0) * x**2)}, attrs={"x": x})


def _reproduce(parent: Path, again: bool) -> None:
    toy = Experiment(
        lambda quick: [Work(f"x{x}", _square, {"x": x}) for x in (1.0, 2.0)],
        lambda parts: xr.concat(list(parts.values()), "work", combine_attrs="drop"),
        lambda joined: {},
        lambda joined: [Claim("1", "squares grow", str(float(joined.square.sum())), bool(joined.square[1, 1] > 1))],
    )
    reproduce({"toy": toy}, parent / "paper")


def _digested(dataset: xr.Dataset) -> dict[str, Any]:
    """Numbers as digests, and attributes, of every variable."""
    found: dict[str, Any] = {"": json.dumps(dataset.attrs, sort_keys=True, default=str)}
    for name, variable in dataset.variables.items():
        values = np.ascontiguousarray(variable.values)
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise AssertionError(f"{name} holds NaN")
        data = json.dumps(values.tolist()).encode() if values.dtype.kind in "OTU" else values.tobytes()
        attrs = json.dumps(variable.attrs, sort_keys=True, default=str)
        found[str(name)] = (variable.dims, variable.shape, str(values.dtype), hashlib.sha256(data).hexdigest(), attrs)
    return found


def read_result(out: Path) -> dict[str, Any]:
    """Everything that a result says: arrays and attributes of all groups."""
    tree = mo.load(out)
    return {node.path: _digested(node.to_dataset(inherit=False).load()) for node in tree.subtree}


def read_stream(out: Path) -> dict[str, Any]:
    """Everything that the parts of a stream say, one by one and together."""
    parts = {path.name: read_result(path) for path in sorted(out.glob("[0-9]*.zarr"))}
    return {**parts, "together": _digested(stream.stream_dataset(out).load())}


def read_reproduction(out: Path) -> dict[str, str]:
    """Files of a reproduction, which are small and the same every time."""
    return {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.rglob("*"))
        if path.is_file() and not path.relative_to(out).parts[0].startswith(".")
    }


SCENARIOS = {
    "run": Scenario("out.zarr", _recordings, _run("recomputed"), read_result),
    "disk": Scenario("out.zarr", _recordings, _run("disk"), read_result),
    "overwrite": Scenario("out.zarr", _with_earlier, _overwrite, read_result, earlier=True),
    "continue": Scenario("more", _with_base, _continue, read_stream, parts=True),
    "reproduce": Scenario("paper", lambda parent: None, _reproduce, read_reproduction, parts=True),
    "demo": Scenario("out.zarr", _recordings, _demo, read_result, scratch=True),
}


def use_temporary(folder: Path) -> None:
    """Let temporary files go to a folder that is watched as well."""
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
