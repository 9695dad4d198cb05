"""What stands at a place, or beside it, before a result is written there."""

import hashlib
import os
import stat

import numpy as np
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.jobs import workfolder
from manifold_observer.pipeline.jobs.config import RunConfig
from manifold_observer.pipeline.jobs.load import load
from manifold_observer.pipeline.jobs.store import start, write_group, writing

IDENTITY = RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=1))
VALUES = np.random.default_rng(0).normal(size=(60, 3)).cumsum(axis=0)


def digest(folder, *, without=()):
    """What every path below a folder is: kind, permissions, and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.split("/")[0] in without:
            continue
        how = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.is_file() and path.read_bytes()
        found[name] = stat.filemode(how.st_mode), hashlib.sha256(repr(content).encode()).hexdigest()
    return found


def write(out, *, values=VALUES, overwrite=False):
    with writing(out, overwrite=overwrite) as folder:
        fill(folder, values)


def fill(folder, values=VALUES):
    start(folder, {})
    write_group(folder, "state", xr.Dataset({"state": (("frame", "mode"), values)}))


def state(out):
    return load(out)["state/state"].values


def a_file(path):
    path.write_text("years of work")


def add_notes(out):
    (out / "notes.txt").write_text("what I saw")


def killed(out):
    """The work folder of a run that was killed while it wrote, with a pass: all that is gone is the lock."""
    work = workfolder._begin(out.parent, out.name)
    (work.folder / "running").touch()
    work.result.mkdir()
    start(work.result, {})
    work.passes.mkdir()
    (work.passes / "pass-001.npz").write_bytes(b"a pass")
    os.close(work.handle)
    return work.folder
