"""Every fenced block of bash, Python and TOML on every page runs, in the order of the page, in a folder of its own."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import prepared
import strategies
from manifold_observer.pipeline.cli.corpus_file import read_corpus
from manifold_observer.pipeline.clusters.config import ClusterConfig
from manifold_observer.pipeline.stores.address import place
from manifold_observer.pipeline.stores.zarrs import zarr_target
from shell import Shell, blocks_of

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "deploy" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
pytestmark = [pytest.mark.usefixtures("in_this_thread"), pytest.mark.filterwarnings("default")]

# What the reader has already, by page.
BEFORE = {
    "README.md": (prepared.song, prepared.counts),
    "docs/start.md": (prepared.song, prepared.spikes, prepared.eeg),
    "docs/music.md": (prepared.song,),
    "docs/eeg.md": (prepared.eeg, prepared.emg),
    "docs/spikes.md": (prepared.spikes,),
    "docs/sensors.md": (prepared.bench,),
    "docs/choose.md": (prepared.nights,),
    "docs/scale.md": (prepared.nights,),
    "docs/streams.md": (prepared.nights,),
    "docs/json.md": (prepared.watched,),
    "docs/watching.md": (prepared.nights, prepared.watched),
    "docs/corpus.md": (prepared.corpus,),
}
# Blocks that need what a test cannot have, by page and a part of their text, with the reason. Their commands are read
# by the command's own parser in tests/deploy/test_files.py.
CANNOT = [
    ("README.md", "demo sphere", "installs; the check of a release runs it (deploy/release/check)"),
    ("README.md", "-m pytest", "runs all tests; .ci/run takes it from there"),
    ("docs/index.md", "demo sphere", "as in README.md"),
    ("docs/start.md", "demo sphere", "as in README.md"),
    ("docs/CONTRIBUTING.md", "-m pytest", "as in README.md"),
    (
        "docs/CONTRIBUTING.md",
        "landmarks: int = setting",
        "a line of a class body, which stands in pipeline/engine/config.py",
    ),
    ("docs/clusters.md", "--cluster tcp:", "needs a scheduler on another machine"),
    ("docs/clusters.md", "--cluster slurm", "needs Slurm or PBS; tests/deploy has a Slurm of one node"),
    ("docs/clusters.md", "--cluster kubernetes", "needs Kubernetes"),
    ("deploy/README.md", "dask scheduler --host", "servers on three machines"),
    ("deploy/README.md", "openssl", "tests/deploy/test_tls.py runs it"),
    ("deploy/README.md", "REQUIRE_ENCRYPTION", "tests/deploy/test_tls.py runs it"),
    ("deploy/README.md", "--protocol tls", "tests/deploy/test_tls.py runs it"),
]


def reason(page, block):
    """Why a block is left out, or nothing."""
    return next((why for name, part, why in CANNOT if name == page and part in block.text), None)


def test_exceptions__each_is_of_one_block():
    for page, part, _why in CANNOT:
        assert sum(part in block.text for block in blocks_of(ROOT / page)) == 1, (page, part)


def test_pages__each_with_a_block_to_run_is_run():
    """A page that is moved or renamed is not forgotten."""
    assert set(BEFORE) <= set(NAMES)
    assert sum(len(blocks_of(path)) for path in PAGES) >= 50


@pytest.fixture
def shell(tmp_path, monkeypatch, console, in_this_process):
    """A bash in an empty folder, whose ``manifold-observer`` is this process."""
    folder = tmp_path / "reader"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Shell(tmp_path, console)


RUN = [name for name, path in zip(NAMES, PAGES, strict=True) if any(not reason(name, one) for one in blocks_of(path))]


OWN = {"docs/stores.md", "docs/corpus.md"}


@pytest.mark.slow
@pytest.mark.parametrize("page", strategies.share([name for name in RUN if name not in OWN], 4))
def test_page__its_blocks_run_in_their_order(page, shell):
    run_page(page, shell)


@pytest.mark.slow
def test_page__of_corpora_runs_and_leaves_what_it_says(shell):
    space = run_page("docs/corpus.md", shell)
    assert {path.name for path in Path("out").glob("*.zarr")} == {"corpus.zarr", "night1.zarr", "night2.zarr"}
    assert space["status"].counts == {"done": 2}
    assert space["table"].loc["night1", "n_frames"] == 80


@pytest.mark.skipif(strategies.QUICK, reason="tests/pipeline/stores/test_page.py runs its Python")
def test_page__of_stores_runs_in_a_bucket(shell, bucket):
    np.save("walk.npy", np.random.default_rng(0).normal(size=(4_000, 3)).cumsum(axis=0).round())
    walk = xr.Dataset({"walk": (("time", "channel"), np.load("walk.npy").astype(int) % 7)})
    for name in ("night", "more-1"):
        walk.to_zarr(zarr_target(place(f"{bucket}/in/{name}.zarr")), zarr_format=3, consolidated=False)
    run_page("docs/stores.md", shell, bucket)


def run_page(page, shell, bucket="s3://lab"):
    """Prepare what a reader has, then take block after block; the names that its Python leaves."""
    for prepare in BEFORE.get(page, ()):
        prepare(Path.cwd())
    space = {"__name__": page}
    for block in blocks_of(ROOT / page):
        if reason(page, block) is None:
            take[block.language](block.text.replace("s3://lab", bucket), f"{page}:{block.line}", shell, space)
    return space


def run_bash(text, where, shell, _space):
    code, said = shell.run(text)
    assert code == 0, f"{where}\n{said}"


def run_python(text, where, _shell, space):
    exec(compile("\n" * (int(where.rpartition(":")[2]) - 1) + text, where.rpartition(":")[0], "exec"), space)


def read_toml(text, where, _shell, _space):
    """Settings that stand on a page are settings that there are."""
    sections = tomllib.loads(text)
    if "cluster" in sections:
        ClusterConfig.of_table(sections["cluster"]).check_applies()
    elif sections.keys() & {"corpus", "watch", "run"}:
        least = "" if "corpus" in sections else '[corpus]\ninputs = ["in/*.npy"]\noutput = "out"\n'
        Path("page.toml").write_text(least + text)
        read_corpus(Path("page.toml"))
    else:
        raise AssertionError(f"{where}: nothing reads {sections}")


take = {"bash": run_bash, "python": run_python, "toml": read_toml}


# ------------------------------------------------------------------------------------------------ the tests themselves


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("manifold-observer plan missing.npy --features identity", 1, "missing.npy"),
        ("manifold-observer plan 'a b' --features identity | cat", 1, "a b"),
        ("manifold-observer --version > there; test -s there && echo kept", 0, "kept"),
        ("false\necho no", 1, ""),
    ],
)
def test_shell__fails_where_a_reader_would(script, code, said, shell):
    found, text = shell.run(script)
    assert found == code
    assert said in text
    assert "no\n" not in text.splitlines(keepends=True)


def test_prepared__is_the_same_each_time(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        prepared.spikes(tmp_path / name)
    assert (tmp_path / "a" / "spikes.csv").read_bytes() == (tmp_path / "b" / "spikes.csv").read_bytes()
