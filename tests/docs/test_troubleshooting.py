"""docs/troubleshooting.md: every heading is a part of a message that the package gives in that case."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
import prepared

PAGE = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^### (.+)$", PAGE, re.MULTILINE)
pytestmark = pytest.mark.usefixtures("in_this_thread")


def missing(console):
    return console("run", "missing.npy", "out.zarr", "--features", "identity", "--cluster", "none")[2]


def labelled(console):
    prepared.bench(Path.cwd())
    return console("run", "bench.csv", "out.zarr", "--features", "identity", "--cluster", "none")[2]


def existing(console):
    prepared.nights(Path.cwd(), ["night"])
    Path("out.zarr").mkdir()
    return console("run", "night.npy", "out.zarr", "--features", "histogram", "--frame", "60", "--cluster", "none")[2]


def holes(console):
    walk = np.random.default_rng(0).normal(size=(200, 3)).cumsum(axis=0)
    walk[50] = np.nan
    np.save("walk.npy", walk)
    return console("run", "walk.npy", "out.zarr", "--features", "identity", "--cluster", "none")[2]


def noise(_console):
    return warned(lambda: mo.embed(frames(np.random.default_rng(0).normal(size=(400, 4)))))


def strangers(_console):
    walk = frames(np.random.default_rng(0).normal(size=(400, 4)).cumsum(axis=0))
    embedding = mo.embed(walk)
    return warned(lambda: mo.extend(embedding, walk[:60] + 1000))


def error(*words, files=()):
    """What a command says of files that are made for it."""

    def said(console):
        for make in files:
            make()
        return console(*words)[2]

    return said


def walk(name="walk.npy", shape=(200, 3)):
    return lambda: np.save(name, np.random.default_rng(0).normal(size=shape).cumsum(axis=0))


def text(name, content):
    return lambda: Path(name).write_text(content)


def rows(*lines):
    return "time,a,b\n" + "".join(f"{line}\n" for line in lines)


def result():
    walk()()
    mo.run(["walk.npy"], "walk.zarr", mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2)))


def damaged():
    result()
    next(path for path in Path("walk.zarr/state/state/c").rglob("*") if path.is_file()).unlink()


RUN = ("--features", "identity", "--cluster", "none")
WALK = ("run", "walk.npy", "out.zarr")
TABLE = [f"{k},{k % 7 + 0.5},{k * k % 11 + 0.5}" for k in range(200)]
MILLISECONDS = text("ms.csv", rows(*(f"{k},{k % 7 + 0.5},{k * k % 11 + 0.5}" for k in range(9000))))

CASES = {
    "does not exist. Check the path": missing,
    "is not in a supported format": error("look", "x.bin", files=[lambda: Path("x.bin").write_bytes(b"\0\1\2" * 99)]),
    "got an HTML page": error("look", "page.wav", files=[text("page.wav", "<html>404</html>")]),
    "got an empty file": error("look", "nothing.csv", files=[text("nothing.csv", "")]),
    "is a folder, not a Zarr store": error("look", "in", files=[lambda: Path("in").mkdir()]),
    "is a result, not a recording": error("look", "walk.zarr", files=[result]),
    "which looks like (channel, time)": error(*WALK, *RUN, files=[walk(shape=(3, 500))]),
    "must hold numbers in every channel": error(
        "run", "a.csv", "out.zarr", *RUN, files=[text("a.csv", rows(*TABLE, "200,1.5,ERROR"))]
    ),
    "must tell which channels are signals": labelled,
    "must name channels of": error(*WALK, *RUN, "--channels", "z", files=[walk()]),
    "must have the channels of the first": error(
        "run", "walk.npy", "two.npy", "out.zarr", *RUN, files=[walk(), walk("two.npy", (200, 2))]
    ),
    "must have increasing times": error(
        "run", "a.csv", "out.zarr", *RUN, files=[text("a.csv", rows(*TABLE, *TABLE[90:]))]
    ),
    "must be finite": holes,
    "must be whole samples where the recording has no sampling rate": error(
        *WALK, "--frame", "23ms", "--cluster", "none", files=[walk()]
    ),
    "and was read as seconds": lambda console: MILLISECONDS() and console("look", "ms.csv")[1],
    "features need a frame length": error(*WALK, "--cluster", "none", files=[walk()]),
    "features have no frame": error(*WALK, *RUN, "--frame", "5", files=[walk()]),
    "frame must fit into a segment": error(
        *WALK, "--features", "log_rms", "--frame", "500", "--cluster", "none", files=[walk()]
    ),
    "need explicit bins": error(*WALK, "--features", "histogram", "--frame", "9", "--cluster", "none", files=[walk()]),
    "frames are equal": error(*WALK, *RUN, files=[lambda: np.save("walk.npy", np.zeros((200, 3)))]),
    "n_modes must be at most": error(*WALK, *RUN, "--n-modes", "500", files=[walk()]),
    "needs 0.34 GiB per worker, but the limit is": error(*WALK, *RUN, "--memory", "1MB", files=[walk()]),
    "the coordinates foretell": noise,
    "are far from all embedded ones": strangers,
    "gamma must lie in [0, 1)": error(*WALK, *RUN, "--gamma", "2", files=[walk()]),
    "already exists. Choose another name, or give --overwrite": existing,
    "must exist. Make it with: mkdir -p": error("run", "walk.npy", "no/out.zarr", *RUN, files=[walk()]),
    "must not be the recording or lie within it": error("run", "walk.npy", "walk.npy", *RUN, files=[walk()]),
    "must be something that manifold-observer wrote": error("info", "walk.npy", files=[walk()]),
    "is missing. Copy it again": error("info", "walk.zarr", files=[damaged]),
    "no scheduler answers at": error(
        *WALK, *RUN[:2], "--cluster", "tcp://127.0.0.1:9", "--wait", "1ms", files=[walk()]
    ),
    "must be left out with --cluster": error(*WALK, *RUN, "--dashboard", files=[walk()]),
    "has unknown settings": error(*WALK, "--config", "my.toml", files=[walk(), text("my.toml", "gama = 1\n")]),
}


def frames(values):
    return xr.DataArray(values, dims=("frame", "feature"))


def warned(call):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call()
    return " ".join(str(one.message) for one in said)


def test_page__every_heading_has_a_case():
    assert list(CASES) == HEADINGS


@pytest.mark.parametrize("heading", HEADINGS)
def test_page__the_message_is_given(heading, tmp_path, monkeypatch, console):
    monkeypatch.chdir(tmp_path)
    assert heading in " ".join(CASES[heading](console).split())
