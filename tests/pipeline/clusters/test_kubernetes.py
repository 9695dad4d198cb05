"""Kubernetes: the DaskCluster that would be made, and what is said where there is no Kubernetes."""

import sys

import pytest

from manifold_observer.pipeline.clusters import kubernetes
from manifold_observer.pipeline.clusters.cluster import connect
from manifold_observer.pipeline.clusters.config import ClusterConfig

DASK_CLUSTER = "apiVersion: kubernetes.dask.org/v1\nkind: DaskCluster\nmetadata: {name: nights}\nspec: {}\n"


def test_keywords__make_a_dask_cluster_of_the_operator():
    made = pytest.importorskip("dask_kubernetes.operator.kubecluster.kubecluster")
    config = ClusterConfig.of_table(
        {"kind": "kubernetes", "image": "mo:1", "workers": 3, "memory": "4GiB", "cores": 2, "namespace": "lab"}
    )
    own = kubernetes.keywords(config)
    assert own.pop("namespace") == "lab"
    assert own.pop("create_mode").name == "CREATE_ONLY"  # never somebody else's
    spec = made.make_cluster_spec(**own)
    assert spec["metadata"]["name"].startswith("manifold-observer-")
    worker = spec["spec"]["worker"]
    assert worker["replicas"] == 3
    (container,) = worker["spec"]["containers"]
    assert container["image"] == "mo:1"
    assert container["args"][:4] == ["dask-worker", "--nthreads", "1", "--no-dashboard"]
    assert container["args"][4:6] == ["--memory-limit", str(2**32)]
    assert container["resources"]["limits"] == {"cpu": "2", "memory": "4096Mi"}
    assert {"name": "OMP_NUM_THREADS", "value": "1"} in container["env"]


def test_keywords__without_an_image_connect_to_a_cluster_that_exists():
    pytest.importorskip("dask_kubernetes.operator")
    own = kubernetes.keywords(ClusterConfig("kubernetes", name="nights"))
    assert own["create_mode"].name == "CONNECT_ONLY"
    assert "image" not in own


def test_keywords__a_manifest_is_taken_as_it_is(tmp_path):
    (tmp_path / "cluster.yaml").write_text(f"---\nkind: Other\n---\n{DASK_CLUSTER}")
    own = kubernetes.keywords(ClusterConfig("kubernetes", manifest=str(tmp_path / "cluster.yaml")))
    assert own["custom_cluster_spec"]["metadata"] == {"name": "nights"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, r"manifest must be a YAML file; got .*No such file"),
        ("{", r"manifest must be a YAML file; got "),
        ("kind: Pod\n", r"must hold one DaskCluster with a name; got 0 in "),
        (f"{DASK_CLUSTER}---\n{DASK_CLUSTER}", r"must hold one DaskCluster with a name; got 2 in "),
        ("kind: DaskCluster\n", r"must hold one DaskCluster with a name"),
        ("kind: DaskCluster\nmetadata: 3\n", r"must hold one DaskCluster with a name"),
    ],
)
def test_manifest__that_is_none_is_said_in_one_sentence(tmp_path, text, sentence):
    if text is not None:
        (tmp_path / "cluster.yaml").write_text(text)
    with pytest.raises(ValueError, match=sentence):
        kubernetes.manifest(tmp_path / "cluster.yaml")


def test_keywords__refuse_what_the_manifest_has_and_what_is_missing():
    with pytest.raises(ValueError, match=r"image must be given with --cluster kubernetes; got none\. Give --image"):
        kubernetes.keywords(ClusterConfig("kubernetes"))
    with pytest.raises(ValueError, match=r"image must be left out with manifest='m\.yaml'; got 'mo:1'"):
        kubernetes.keywords(ClusterConfig("kubernetes", manifest="m.yaml", image="mo:1"))


@pytest.mark.parametrize("configuration", [None, "", "clusters: 3\n"])
def test_connect__without_kubernetes_is_one_sentence(tmp_path, monkeypatch, configuration):
    pytest.importorskip("dask_kubernetes.operator")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    if configuration is not None:
        (tmp_path / "config").write_text(configuration)
    sentence = r"^cluster: --cluster kubernetes must reach Kubernetes with the Dask operator; got .+\. Check 'kubectl"
    with pytest.raises(ConnectionError, match=sentence), connect(ClusterConfig("kubernetes", name="nights")):
        pass


def test_connect__without_dask_kubernetes_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask_kubernetes.operator", None)
    with (
        pytest.raises(ConnectionError, match=r"Install it with: pip install dask-kubernetes\."),
        connect(ClusterConfig("kubernetes", name="nights")),
    ):
        pass
