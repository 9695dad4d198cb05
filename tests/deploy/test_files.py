"""What people copy from deploy/: each file is checked by the program that reads it, and names what exists."""

import json
import py_compile
import re
import shutil
import subprocess
import sysconfig
import tomllib
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

from manifold_observer.pipeline.cli.corpus_file import read_corpus
from manifold_observer.pipeline.watch.counts import FAMILIES, PREFIX

yaml = pytest.importorskip("yaml")
from called import commands_in, parsed  # noqa: E402 - it reads YAML

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file() and path.name != "Dockerfile")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SCRIPTS = sorted(DEPLOY.glob("slurm/*.sbatch"))
MANIFESTS = sorted(DEPLOY.glob("kubernetes/*.yaml"))
UNITS = sorted(DEPLOY.glob("systemd/*"))


def run(*words):
    return subprocess.run([*words], capture_output=True, text=True, check=False, timeout=120)


def program(name):
    """A program of this interpreter's environment or of the PATH; the test is skipped where there is none."""
    found = shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (pip install 'manifold-observer[lint]', or a package of the system)")
    return found


def documents(path):
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # definitions of the operator have a megabyte
    return [one for one in yaml.load_all(path.read_text(encoding="utf-8"), loader) if one is not None]


# ------------------------------------------------------------------------------------------------ commands


@pytest.mark.parametrize("path", [*FILES, *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_commands__are_those_of_the_program(path):
    for words in commands_in(path):
        parsed(words)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *[(path.name, 1) for path in SCRIPTS if path.name != "cluster.sbatch"],
        ("cluster.sbatch", 3),
        ("compose.yaml", 3),
        ("cluster.yaml", 2),
        ("job.yaml", 3),
        ("cronjob.yaml", 1),
        ("crontab", 1),
        ("manifold-observer.service", 1),
        ("nightly_corpus.py", 1),
    ],
)
def test_commands__are_all_found(name, number):
    """Else the test above would be satisfied with none."""
    (path,) = (path for path in FILES if path.name == name)
    assert len(commands_in(path)) == number


def test_commands__that_do_not_exist_are_refused():
    for words in (["manifold-observer", "run", "a", "b", "--loud"], ["dask", "worker", "--loud"]):
        with pytest.raises(click.UsageError):
            parsed(words)


# ------------------------------------------------------------------------------------------------ containers


def test_dockerfile__pleases_hadolint():
    done = run(program("hadolint"), "--format", "json", DEPLOY / "docker" / "Dockerfile")
    assert json.loads(done.stdout) == []


def test_dockerfile__takes_what_the_build_needs_and_nothing_that_is_private():
    text = (DEPLOY / "docker" / "Dockerfile").read_text()
    extras = re.search(r"\.whl\)\[([\w,]+)\]", text)[1].split(",")
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    assert "USER 1000" in text
    assert "OMP_NUM_THREADS=1" in text
    minor = re.search(r"python:3\.(\d+)-slim", text)[1]
    assert int(minor) >= int(PROJECT["requires-python"].rpartition(".")[2])
    kept = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    assert kept == {"pyproject.toml", PROJECT["readme"], *PROJECT["license-files"], "pipeline", "tasks", "datasets"}


def test_compose__follows_its_schema():
    vendored = pytest.importorskip("check_jsonschema").__name__
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(resources.files(vendored).joinpath("builtin_schemas/vendor/compose-spec.json").read_text())
    (compose,) = documents(DEPLOY / "docker" / "compose.yaml")
    jsonschema.validate(compose, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(compose | {"services": {"job": {"comand": []}}}, schema)


def test_compose__nobody_outside_reaches_the_scheduler():
    (compose,) = documents(DEPLOY / "docker" / "compose.yaml")
    assert compose["networks"]["private"]["internal"] is True
    for name, service in compose["services"].items():
        assert all(port.startswith("127.0.0.1:8787:") for port in service.get("ports", [])), name
        assert "private" in service["networks"]
        assert service["volumes"] == compose["services"]["job"]["volumes"]  # the same files under the same paths


def test_compose__the_job_computes_on_its_workers():
    (compose,) = documents(DEPLOY / "docker" / "compose.yaml")
    read = read_corpus(DEPLOY / "docker" / "corpus.toml")
    (worker,) = (words for words in commands_in(DEPLOY / "docker" / "compose.yaml") if words[1] == "worker")
    assert read.cluster.kind in worker
    assert read.cluster.kind == "tcp://scheduler:8786"
    assert "scheduler" in compose["services"]


def test_images__are_of_this_version():
    named = [
        line for path in FILES for line in path.read_text().splitlines() if re.search(r"\bimage:|docker build", line)
    ]
    (version,) = re.findall(r"^version: (\S+)$", (ROOT / "docs" / "CITATION.cff").read_text(), re.MULTILINE)
    image = f"{PROJECT['name']}:{version}"
    assert len(named) >= 5
    for line in [*named, *(DEPLOY / "docker" / "Dockerfile").read_text().splitlines()[1:2]]:
        assert image in line, line


# ------------------------------------------------------------------------------------------------ Kubernetes


def _of_the_operator(kind):
    found = find_spec("dask_kubernetes")
    if found is None:
        pytest.skip("dask-kubernetes is not installed (pip install 'manifold-observer[lint]')")
    charts = Path(found.submodule_search_locations[0]) / "operator" / "deployment" / "helm"
    (version,) = documents(charts / "dask-kubernetes-operator" / "crds" / f"{kind.lower()}.yaml")[0]["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


def _closed(schema):
    """The schema, which takes no field that it does not name: the API server drops those without a word."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    named = isinstance(closed.get("properties"), dict) and closed.get("type") == "object"
    if named and not closed.get("x-kubernetes-preserve-unknown-fields"):
        closed.setdefault("additionalProperties", False)
    return closed


@pytest.mark.slow
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifests__follow_the_schema_of_their_kind(path):
    jsonschema = pytest.importorskip("jsonschema")
    for document in documents(path):
        if document["apiVersion"] == "kubernetes.dask.org/v1":
            jsonschema.validate({"spec": document["spec"]}, _closed(_of_the_operator(document["kind"])))
            for pod in _pods(document):
                _validate(_as_pod(pod))
        else:
            _validate(document)


def _validate(document):
    validate = pytest.importorskip("kubernetes_validate")
    validate.validate(document, validate.latest_version(), strict=True)


def _pods(value):
    """Every description of a pod in a document."""
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        for inner in value.values():
            yield from _pods(inner)


def _as_pod(spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}


@pytest.mark.slow
def test_manifests__a_wrong_field_is_seen():
    jsonschema = pytest.importorskip("jsonschema")
    (document,) = documents(DEPLOY / "kubernetes" / "cluster.yaml")
    document["spec"]["worker"]["replica"] = document["spec"]["worker"].pop("replicas")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"spec": document["spec"]}, _closed(_of_the_operator("DaskCluster")))


@pytest.mark.parametrize("path", [p for p in MANIFESTS if p.name != "storage.yaml"], ids=lambda path: path.name)
def test_manifests__pods_are_nobody_special_and_see_the_same_files(path):
    (claim,) = documents(DEPLOY / "kubernetes" / "storage.yaml")
    for document in documents(path):
        pods = list(_pods(document))
        assert pods
        for pod in pods:
            assert pod["securityContext"]["runAsNonRoot"] is True
            volumes = {volume["name"]: volume for volume in pod["volumes"]}
            assert volumes["data"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
            for container in pod["containers"]:
                assert {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}["data"] == "/data"
                assert "memory" in container["resources"]["limits"]


@pytest.mark.slow
def test_manifests__have_what_the_operators_own_have(tmp_path):
    """dask kubernetes gen cluster is the golden input: names of ports and selectors that the operator looks for."""
    if find_spec("dask_kubernetes") is None:
        pytest.skip("dask-kubernetes is not installed (pip install 'manifold-observer[lint]')")
    words = [program("dask"), "kubernetes", "gen", "cluster", "--name", "nights", "--image", "x"]
    golden = yaml.safe_load(run(*words).stdout)
    (ours,) = documents(DEPLOY / "kubernetes" / "cluster.yaml")
    assert ours["spec"]["scheduler"]["service"] == golden["spec"]["scheduler"]["service"]
    for role in ("scheduler", "worker"):
        (own,), (theirs,) = (one["spec"][role]["spec"]["containers"] for one in (ours, golden))
        assert own["name"] == theirs["name"]
    ports = [{port["name"]: port["containerPort"] for port in one["ports"]} for one in _schedulers(ours, golden)]
    assert ports[0] == ports[1]
    assert "$(DASK_WORKER_NAME)" in ours["spec"]["worker"]["spec"]["containers"][0]["args"]


def _schedulers(*clusters):
    return [one["spec"]["scheduler"]["spec"]["containers"][0] for one in clusters]


# ------------------------------------------------------------------------------------------------ schedules


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts__please_bash_and_shellcheck(path):
    assert run("bash", "-n", path).stderr == ""
    done = run(program("shellcheck"), "--shell=bash", path)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts__stop_at_errors_and_say_how_they_are_used(path):
    text = path.read_text()
    assert text.startswith("#!/bin/bash\n")
    assert "set -euo pipefail" in text
    assert "export OMP_NUM_THREADS=1" in text
    done = run("bash", path)
    assert done.returncode != 0
    assert "usage: sbatch" in done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_units__please_systemd(tmp_path):
    """Their program is put where it is here, since systemd looks for it."""
    for path in UNITS:
        text = path.read_text().replace("/opt/manifold-observer/bin/manifold-observer", "/bin/true")
        (tmp_path / path.name).write_text(text)
    done = run("systemd-analyze", "verify", *sorted(tmp_path.iterdir()))
    assert (done.returncode, done.stderr.strip()) == (0, "")
    calendar = re.search(r"OnCalendar=(.+)", (DEPLOY / "systemd" / "manifold-observer.timer").read_text())[1]
    told = run("systemd-analyze", "calendar", calendar)
    assert told.returncode == 0
    assert "02:30:00" in told.stdout


def test_units__may_write_where_their_command_does():
    text = (DEPLOY / "systemd" / "manifold-observer.service").read_text()
    (words,) = commands_in(DEPLOY / "systemd" / "manifold-observer.service")
    written = Path(parsed(words)["metrics_file"]).parent
    allowed = re.search(r"ReadWritePaths=(.+)", text)[1].split()
    assert str(written) in allowed
    assert re.search(r"WorkingDirectory=(.+)", text)[1] in allowed


def test_airflow__the_example_compiles_and_skips_on_the_code_of_failed_recordings(tmp_path):
    path = DEPLOY / "airflow" / "nightly_corpus.py"
    py_compile.compile(str(path), cfile=str(tmp_path / "dag.pyc"), doraise=True)
    assert "skip_on_exit_code=3" in path.read_text()


# ------------------------------------------------------------------------------------------------ alerts


def _alerts():
    (rules,) = documents(DEPLOY / "prometheus" / "alerts.yaml")
    return [rule for group in rules["groups"] for rule in group["rules"]]


def test_alerts__name_metrics_and_labels_that_there_are():
    known = {f"{PREFIX}_{family.name}": family for family in FAMILIES}
    for rule in _alerts():
        named = re.findall(rf"({PREFIX}_\w+)(?:\{{(\w+)=)?", rule["expr"])
        assert named, rule["alert"]
        for name, label in named:
            assert name in known
            assert label in ("", "corpus", known[name].label)
        assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= {"corpus"}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool comes with Debian's prometheus")
def test_alerts__please_promtool():
    done = run("promtool", "check", "rules", DEPLOY / "prometheus" / "alerts.yaml")
    assert done.returncode == 0, done.stdout
