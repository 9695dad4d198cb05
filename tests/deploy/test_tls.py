"""The page on TLS: its commands make certificates, and a scheduler and a worker that only their holders can use."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import sysconfig
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

from manifold_observer.pipeline.clusters import address
from manifold_observer.pipeline.clusters.cluster import connect
from manifold_observer.pipeline.clusters.config import ClusterConfig
from manifold_observer.pipeline.clusters.lost import LostClusterError

README = (Path(__file__).parents[2] / "deploy" / "README.md").read_text(encoding="utf-8")
SCRIPTS = Path(sysconfig.get_path("scripts"))
WAIT = 120
SECTION = README.partition("## With TLS")[2]
MAKE, EXPORT, START = re.findall(r"```bash\n(.*?)```", SECTION, re.DOTALL)
pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="the page makes certificates with openssl")
OPTIONS = ("--features", "identity", "--n-modes", "2")


def shell(commands, folder, **options):
    return subprocess.run(
        ["bash", "-ec", commands], cwd=folder, capture_output=True, text=True, timeout=WAIT, check=True, **options
    ).stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with certificates as the page makes them, and the environment that it asks for."""
    folder = tmp_path_factory.mktemp("tls")
    shell(MAKE, folder)
    listed = shell(f"{EXPORT}\nenv", folder)
    return folder, os.environ | dict(line.split("=", 1) for line in listed.splitlines() if line.startswith("DASK_"))


@pytest.fixture(scope="module")
def secured(made):
    """Address of a scheduler with a worker, started by the commands of the page with other numbers."""
    folder, environment = made
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    lines = START.replace("10.0.0.1:8786", f"127.0.0.1:{port}").replace("10.0.0.1", "127.0.0.1")
    lines = lines.replace("8786", str(port)).replace(":8787", ":0").replace("--nworkers 8", "--nworkers 1")
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, "env": environment}
    started = []
    try:
        for line in lines.splitlines()[:2]:
            command, *rest = line.split()
            assert command == "dask"
            started.append(
                subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_" + rest[0], *rest[1:]], **streams)
            )
        _wait_for(port)
        yield f"tls://127.0.0.1:{port}"
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(timeout=WAIT)


def _wait_for(port):
    """Wait until the scheduler listens."""
    until = time.monotonic() + WAIT
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=WAIT).close()
        except ConnectionRefusedError:
            assert time.monotonic() < until
            time.sleep(0.05)


def command(folder, environment, address, out="out.zarr"):
    words = [sys.executable, "-m", "manifold_observer.pipeline.cli.entry", "run", "a.npy", out, *OPTIONS]
    options = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "timeout": WAIT}
    return subprocess.run([*words, "--cluster", address], check=False, **options)


@pytest.mark.slow
def test_page__its_holders_can_use_the_cluster_and_nobody_else(made, secured):
    folder, environment = made
    np.save(folder / "a.npy", np.random.default_rng(0).normal(size=(80, 3)).cumsum(axis=0))
    done = command(folder, environment, secured)
    assert done.returncode == 0, done.stderr
    assert (folder / "out.zarr").is_dir()
    plain = command(folder, dict(os.environ), secured, "other.zarr")
    assert plain.returncode == 4
    assert "got none in distributed.comm.tls.ca-file, client.cert, client.key" in plain.stderr
    assert "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT" in plain.stderr
    assert plain.stderr.count("\n") == 1


@pytest.mark.slow
def test_page__certificates_of_another_authority_are_refused(made, secured, tmp_path):
    folder, environment = made
    shell(MAKE, tmp_path)
    np.save(tmp_path / "a.npy", np.zeros((80, 3)))
    strange = {name: value.replace(str(folder), str(tmp_path)) for name, value in environment.items()}
    refused = command(tmp_path, strange, secured)
    assert refused.returncode == 4
    assert refused.stderr.startswith(f"Error: cluster: no scheduler answers at {secured} (")
    assert refused.stderr.count("\n") == 1


@pytest.mark.slow
def test_options__certificates_of_a_file_of_settings_do_as_well(made, secured, monkeypatch):
    folder = made[0]
    (folder / "tls.toml").write_text(
        f'[cluster]\nkind = "{secured}"\ntls_ca_file = "ca.pem"\ntls_cert = "node.pem"\ntls_key = "node.key"\n'
    )
    monkeypatch.chdir(folder)
    table = tomllib.loads((folder / "tls.toml").read_text())["cluster"]
    with connect(ClusterConfig.of_table(table)) as client:
        assert client.submit(abs, -4).result() == 4


@pytest.mark.slow
def test_options__a_client_that_is_not_encrypted_is_refused(secured, monkeypatch):
    """By the scheduler, which hangs up; and before, where certificates are given for such an address."""
    monkeypatch.setattr(address, "CONNECT_SECONDS", 5)
    plain = secured.replace("tls://", "tcp://")
    with pytest.raises(LostClusterError, match=f"no scheduler answers at {plain} "), connect(plain):
        pytest.fail("the client was let in")
    with pytest.raises(
        ValueError, match=r"tls_key must be left out with an address that is not encrypted; .*Take tls:"
    ):
        connect(ClusterConfig(plain, tls_key="node.key")).__enter__()


def test_options__a_client_without_a_certificate_is_refused_by_the_scheduler(made, secured):
    """Which is what Dask itself would do with the authority's certificate alone."""
    context = ssl.create_default_context(cafile=made[0] / "ca.pem")
    context.check_hostname = False
    where = secured.removeprefix("tls://").split(":")
    with pytest.raises(OSError, match=r"CERTIFICATE_REQUIRED|certificate required|reset|EOF"):  # noqa: PT012, SIM117
        with socket.create_connection((where[0], int(where[1])), timeout=WAIT) as plain:
            with context.wrap_socket(plain) as connection:
                if not connection.recv(8):
                    raise OSError("EOF")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("nowhere.pem", "node.pem", "node.key"), r"got \S*nowhere\.pem, .*No such file"),
        (("ca.pem", "node.key", "node.key"), r"certificates in PEM files; got "),
        (("ca.pem", "node.pem", "ca.key"), r"KEY_VALUES_MISMATCH|key values mismatch"),
        (("ca.pem", "node.pem", None), r"got none in distributed\.comm\.tls\.client\.key\. Give --tls-ca-file"),
    ],
)
def test_options__files_that_are_no_certificates_are_named(made, secured, names, sentence):
    paths = [None if name is None else str(made[0] / name) for name in names]
    config = ClusterConfig(secured, tls_ca_file=paths[0], tls_cert=paths[1], tls_key=paths[2])
    with pytest.raises(LostClusterError, match=sentence):
        connect(config).__enter__()


@pytest.mark.slow
def test_page__yaml_has_the_same_settings(made):
    yaml = pytest.importorskip("yaml")
    (block,) = re.findall(r"```yaml\n(.*?)```", SECTION, re.DOTALL)
    tls = yaml.safe_load(block)["distributed"]["comm"]["tls"]
    named = {re.sub(r"^DASK_DISTRIBUTED__COMM__TLS__", "", name) for name in made[1] if "__TLS__" in name}
    flat = {"CA_FILE"} | {f"{role}__{part}".upper() for role in ("scheduler", "worker", "client") for part in tls[role]}
    assert named == flat
    assert "ca-file" in tls
