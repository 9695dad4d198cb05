"""One map for a corpus: fitted once, all recordings read by it, fitted again where that is asked for or due."""

import hashlib
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.corpus.ledger import read_ledger
from manifold_observer.pipeline.corpus.listing import items_of
from manifold_observer.pipeline.corpus.maps import current_map, fit_for
from manifold_observer.pipeline.jobs.events import listen
from strategies import seldom, share

pytestmark = pytest.mark.usefixtures("in_this_thread")
RUN = mo.RunConfig(mo.FeatureConfig("identity"), embedding=mo.EmbedConfig(n_modes=2))
HOW = mo.MapConfig(frames=160, stretch=40)


def night(path, seed=0, shift=0.0, n=160):
    """A walk round a circle that all nights share."""
    path.parent.mkdir(exist_ok=True)
    rng, sensors = np.random.default_rng(seed), np.random.default_rng(99).normal(size=(2, 4))
    angle = rng.uniform(0, 6) + np.cumsum(0.1 + 0.05 * rng.normal(size=n))
    hidden = np.column_stack([np.cos(angle), np.sin(angle)])
    np.save(path, hidden @ sensors + 0.15 * rng.normal(size=(n, 4)) + shift)


@pytest.fixture(scope="module")
def made(tmp_path_factory, in_this_thread):
    """A corpus of two nights and a broken one that has been run."""
    folder = tmp_path_factory.mktemp("corpus")
    for k in range(2):
        night(folder / "in" / f"n{k}.npy", k)
    (folder / "in" / "broken.npy").write_bytes(b"not an array")
    config = mo.CorpusConfig(["in/*.npy"], "out", RUN, HOW, backoff=0.0, folder=str(folder))
    return config, mo.run_corpus(config)


@pytest.fixture
def corpus(made, tmp_path):
    """A copy of it that a test may change; inputs that were copied count as the same."""
    folder = tmp_path / "corpus"
    shutil.copytree(made[0].folder, folder)
    return replace(made[0], folder=str(folder), inputs=("in/*.npy",), output="out")


def computed(config, **options):
    """Names of the recordings that a call computes."""
    seen = []
    with listen(seen.append):
        mo.run_corpus(config, **options)
    return [event.recording for event in seen if event.kind == "finished"]


def bits(folder):
    """Digest of every chunk that a result holds."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "zarr.json"
    }


@pytest.mark.slow
def test_run_corpus__reads_all_recordings_by_one_map(made):
    config, status = made
    assert status.counts == {"done": 2, "failed": 1}
    assert status.exit_code == 3
    assert status.shared["version"] == 1
    assert status.shared["recordings"] == 2
    assert status.shared["refused"] == {}  # the broken one has failed, and says why
    assert status.shared["drift"] == "drift: 2 recordings are too few to tell; it takes 5"
    results = [xr.open_datatree(config.root / f"n{k}.zarr") for k in range(2)]
    assert {tree.attrs["map_fingerprint"] for tree in results} == {status.shared["fingerprint"]}
    table = xr.open_dataset(config.manifest, engine="zarr")
    np.testing.assert_array_equal(table["map_version"], [np.nan, 1, 1])
    assert (table["outside_share"][1:] < 0.1).all()


@pytest.mark.slow
def test_run_corpus__a_map_is_used_again_for_what_is_new(corpus):
    before = bits(corpus.root / "n0.zarr")
    assert computed(corpus) == []
    night(corpus.root.parent / "in" / "n9.npy", 9)
    assert computed(corpus) == ["n9"]
    assert bits(corpus.root / "n0.zarr") == before
    assert current_map(corpus).version == 1


@pytest.mark.slow
def test_run_corpus__refit_reads_everything_by_the_next_version(corpus):
    night(corpus.root.parent / "in" / "n9.npy", 9)
    assert computed(corpus, refit=True) == ["n0", "n1", "n9"]
    status = mo.corpus_status(corpus)
    assert status.shared["version"] == 2
    assert status.shared["recordings"] == 3
    assert min(status.shared["alignment"][:2]) > 0.9
    assert computed(corpus) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "version"),
    share([({"frames": 200}, 2), ({"centred": False}, 2), ({"refit": "due", "most_outside": 0.2}, 1)], 2),
)
def test_run_corpus__a_map_is_fitted_again_where_its_settings_change(corpus, changed, version):
    """What says when a refit is due changes no map, and so no result."""
    again = computed(replace(corpus, shared=replace(HOW, **changed)))
    assert again == (["n0", "n1"] if version == 2 else [])
    assert current_map(corpus).version == version


@pytest.mark.slow
def test_run_corpus__a_refit_that_is_due_is_made_once(corpus):
    config = replace(corpus, shared=replace(HOW, refit="due"))
    night(corpus.root.parent / "in" / "other.npy", 5, shift=1.0)
    assert computed(config) == ["other"]
    status = mo.corpus_status(config)
    assert status.shared["refit_due"] == ["other"]
    assert status.counts == {"map": 3, "failed": 1}  # what the next run will do
    (record,) = [one for one in status.recordings if one["name"] == "other"]
    assert any("of the frames of other lie outside the map" in sentence for sentence in record["warnings"])
    assert computed(config) == ["n0", "n1", "other"]
    assert current_map(config).version == 2
    assert mo.corpus_status(config).shared["refit_due"] == []
    assert computed(config) == []


@pytest.mark.slow
def test_run_corpus__a_map_that_a_kill_left_is_used(corpus):
    """As after a kill between the map and the first result."""
    shutil.rmtree(corpus.state)
    for k in range(2):
        shutil.rmtree(corpus.root / f"n{k}.zarr")
    place = fit_for(corpus, items_of(corpus))
    mark = current_map(corpus)
    assert computed(corpus) == ["n0", "n1"]
    assert current_map(corpus) == mark
    assert mark.path == place


@seldom
def test_run_corpus__without_the_section_each_has_its_own_embedding_again(corpus):
    config = replace(corpus, shared=None)
    assert computed(config) == ["n0", "n1"]
    assert mo.corpus_status(config).shared is None
    assert "embedding" in xr.open_datatree(corpus.root / "n0.zarr").children
    assert computed(corpus) == ["n0", "n1"]


@seldom
def test_run_corpus__a_damaged_map_is_replaced(corpus):
    """Its root cannot be read: it counts as none, and the next one lies beside it."""
    place = current_map(corpus).path
    (place / "zarr.json").write_text("{")
    assert computed(corpus) == ["n0", "n1"]
    assert current_map(corpus).path != place


@pytest.mark.slow
def test_run_corpus__workers_give_the_same_bits(made, tmp_path, workers_here):
    shutil.copytree(f"{made[0].folder}/in", tmp_path / "in")
    config = replace(made[0], folder=str(tmp_path), inputs=("in/*.npy",), output="out")
    with workers_here(2):
        mo.run_corpus(config)
    assert current_map(config).fingerprint == current_map(made[0]).fingerprint
    assert bits(current_map(config).path) == bits(current_map(made[0]).path)
    for name in ("n0", "n1"):
        assert bits(config.root / f"{name}.zarr") == bits(made[0].root / f"{name}.zarr")


@pytest.mark.slow
def test_ledger__of_many_features_holds_no_mean_of_each(made):
    facts = read_ledger(made[0])["n0"].facts
    assert "mean of feature ch1" in facts["quantities"]
    assert json.dumps(facts)


TOML = """[corpus]
inputs = ["in/*.npy"]
output = "out"
cluster = "none"
[run]
features = "identity"
n-modes = 2
"""


def test_corpus_command__reads_the_section_and_tells_of_the_map(corpus, console):
    file = corpus.root.parent / "corpus.toml"
    file.write_text(f"{TOML}[map]\nframes = 160\nstretch = 40\n")
    night(corpus.root.parent / "in" / "other.npy", 5, shift=1.0)
    code, out, _ = console("corpus", "run", file)
    assert code == 3
    assert "map: version 1, fitted on 2 recordings" in out
    assert "a refit is due for what lies outside: other (" in out
    assert json.loads(console("corpus", "status", "--json", file)[1])["shared"]["refit_due"] == ["other"]


@seldom
def test_corpus_command__refit_fits_the_next_version(corpus, console):
    file = corpus.root.parent / "corpus.toml"
    file.write_text(f"{TOML}[map]\nframes = 160\nstretch = 40\n")
    code, out, _ = console("corpus", "run", "--refit", file)
    assert code == 3
    assert "map: version 2, fitted on 2 recordings" in out
    assert "correlations with the one before 1.00, 1.00" in out


@pytest.mark.parametrize(
    ("section", "words", "sentence"),
    [
        ("", ["--refit"], "--refit needs one map for all recordings"),
        ("[map]\nframes = 3\n", [], "frames"),
        ("[map]\nlevel = 2.0\n", [], "level must lie in"),
        ("[map]\nframe = 300\n", [], "frame"),
        ("[map]\nallotment = 'fair'\n", [], "allotment"),
    ],
)
def test_corpus_command__refuses_what_a_map_cannot_be(corpus, console, section, words, sentence):
    file = corpus.root.parent / "corpus.toml"
    file.write_text(TOML + section)
    code, _, err = console("corpus", "run", *words, file)
    assert code in (1, 2)
    assert sentence in err
    assert "Traceback" not in err
