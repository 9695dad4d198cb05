"""Hypothesis profiles by HYPOTHESIS_PROFILE: "quick" at home, "all" before a release, "ci" where time is cheap.

None of them looks at a clock. The quick one draws fewer examples for every property, takes fewer rows of some tables,
and lets fewer calls fail in tests/faults.
"""

import atexit
import contextlib
import itertools
import os
import shutil
import sys
import tempfile
import uuid

import pytest
from hypothesis import HealthCheck, settings
from profiles import PROFILE, QUICK

# Tests start many processes, which would all compile the package anew where Python is told to keep no bytecode.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What commands keep on this machine goes to a folder of the tests.
if "MANIFOLD_OBSERVER_CACHE" not in os.environ:
    os.environ["MANIFOLD_OBSERVER_CACHE"] = tempfile.mkdtemp(prefix="cache-of-tests-")
    atexit.register(shutil.rmtree, os.environ["MANIFOLD_OBSERVER_CACHE"], ignore_errors=True)

no_clock = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=8, **no_clock)
settings.register_profile("all", max_examples=15, **no_clock)
settings.register_profile("ci", max_examples=300, print_blob=True, **no_clock)
settings.load_profile(PROFILE)

# Files that take longest, the slowest first: begun late, one of them would keep a single process busy at the end.
SLOW = [
    "faults/test_faults",
    "deploy/test_slurm",
    "benchmarks/test_small",
    "clusters/test_kinds",
    "cli/test_stores",
    "jobs/test_stream_clocks",
    "jobs/test_stream",
    "jobs/test_stream_refusals",
    "corpus/test_corpus_process",
    "cli/test_signals",
    "corpus/test_in_buckets",
    "jobs/test_staging_killed",
    "jobs/test_staging",
    "corpus/test_corpus_run",
    "observers/test_certainty",
    "deploy/test_nightly",
    "deploy/test_tls",
]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One process more than there are cores: many tests wait for processes that they have started."""
    known = hasattr(os, "sched_getaffinity") and "PYTEST_XDIST_AUTO_NUM_WORKERS" not in os.environ
    return len(os.sched_getaffinity(0)) + 1 if known else None  # None leaves it to pytest-xdist


def pytest_addoption(parser):
    """``--slow``: the tests that take seconds too, as in .ci/run."""
    parser.addoption("--slow", action="store_true", help="run the tests that take many seconds each, too")


def pytest_collection_modifyitems(config, items):
    """Leave slow tests out unless they are asked for, and deal out the others."""
    all_of_them = config.args == config.getini("testpaths")  # who names a file wants what is in it
    if all_of_them and QUICK and not config.getoption("--slow"):
        left = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
    _deal(items)


def _deal(items):
    """Deal slow files out to the processes, whole, each of which begins with a share of them.

    pytest-xdist gives each process one stretch of all tests, and lets those that have finished take from the others.
    """
    shares = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    slow = {name: [] for name in SLOW}
    for path, tests in itertools.groupby(items, lambda item: item.path):
        slow.get("/".join(path.with_suffix("").parts[-2:]), []).extend(tests)
    taken = {id(item) for tests in slow.values() for item in tests}
    others = [item for item in items if id(item) not in taken]
    ends = [len(items) * number // shares for number in range(shares + 1)]
    dealt = []
    for number, (first, stop) in enumerate(itertools.pairwise(ends)):
        own = [item for name in SLOW[number::shares] for item in slow[name]]
        count = max(0, stop - first - len(own))
        dealt += own + others[:count]
        others = others[count:]
    items[:] = dealt + others


@pytest.fixture(autouse=True)
def _scheduler_as_it_was():
    """Take back the scheduler that a test leaves behind, as one does whose cluster dies under it."""
    before = _scheduler()
    yield
    if _scheduler() != before:
        sys.modules["dask.config"].set(scheduler=before)


def _scheduler():
    """Which scheduler Dask is told to use; nothing where it has not been imported."""
    return sys.modules["dask.config"].get("scheduler", None) if "dask.config" in sys.modules else None


@pytest.fixture(scope="session")
def s3():
    """Start an S3 server on loopback, for all tests of this process."""
    from store_server import s3_server  # noqa: PLC0415 - slow, and few tests need it

    server = s3_server()
    yield server
    server.stop()


@pytest.fixture
def bucket(s3, monkeypatch, tmp_path_factory):
    """Make an empty bucket, that commands and functions find as they would one of Amazon's."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.address)
    monkeypatch.setenv("MANIFOLD_OBSERVER_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    name = f"b-{uuid.uuid4().hex}"
    s3.make(name)
    return f"s3://{name}"


@pytest.fixture
def workers_here():
    """Start workers that are threads of this process, messages go over TCP, as between machines."""

    from distributed import Client, LocalCluster  # noqa: PLC0415 - the processes that only hand out tests need none

    @contextlib.contextmanager
    def start(n_workers):
        quiet = {"dashboard_address": "127.0.0.1:0", "host": "127.0.0.1", "protocol": "tcp"}
        with (
            LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=False, **quiet) as cluster,
            Client(cluster, direct_to_workers=True) as client,  # as connect has it
        ):
            yield cluster, client

    return start


@pytest.fixture(scope="module")
def in_this_thread():
    """The synchronous scheduler, the fastest for small graphs."""
    import dask  # noqa: PLC0415

    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def console(monkeypatch, capsys):
    """Run the command as the console script does; its exit code, standard output and standard error."""

    from manifold_observer.pipeline.cli import commands as command  # noqa: PLC0415

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["manifold-observer", *map(str, words)])
        try:
            command.main()
            code = 0
        except SystemExit as left:
            code = left.code
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def in_this_process(monkeypatch):
    """Commands compute in this thread instead of starting a cluster."""
    monkeypatch.setattr(
        "manifold_observer.pipeline.clusters.cluster.connect", lambda *_args, **_options: contextlib.nullcontext()
    )
