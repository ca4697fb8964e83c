"""Sinks that the operator looks after, seen and changed by Argo CD's own code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from deploy.generate import ACTIONS, ARGOCD
from tests.api.documents import minimal, put
from tests.apiserver.operator.namespaces import CHILDREN, SinkNamespace
from tests.argocd import lua
from tests.argocd.conftest import OTHERS
from tests.argocd.git import Git, each_way
from tests.argocd.situations import CASES, operator_error, shown
from tools.argocd.program import NAMESPACE, ArgoCD, Health, Way
from tools.cluster import BareCluster
from tools.cluster.client import Client, Document, sinks
from tools.operator_harness import FakeNode, Operator, report
from tools.polling import until

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
SINK = put(minimal(), "metadata.labels", {"team": "data"})


@pytest.fixture
def way() -> Way:
    """Where it does not matter."""
    return Way()


@pytest.fixture
def shop(granted: BareCluster, api: Client, namespace: str) -> SinkNamespace:
    return SinkNamespace(granted, namespace, api)


def until_health(git: Git, expected: str, manifest: str | Document = SINK) -> Health:
    found: Health = until(
        expected, lambda: next((h for h in [git.argocd.health(git.live(manifest))] if h.status == expected), None), 30
    )
    return found


@each_way
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_stays_as_git_has_it(git: Git, busy_operator: Operator, example: Path) -> None:
    manifest = example.read_text()
    git.sync(manifest)
    until_health(git, "Healthy", manifest)
    assert git.differs(manifest) == {}
    before = git.live(manifest)
    after = git.sync(manifest)
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    assert after["spec"] == before["spec"]


def test_a_sink_is_followed_and_acted_on(
    git: Git, busy_operator: Operator, node: FakeNode, shop: SinkNamespace
) -> None:
    git.sync(SINK)
    until_health(git, "Healthy")
    paused = git.argocd.act(git.live(SINK), "pause")
    assert paused == {"spec": {"state": "Paused"}}
    node.reports[(git.namespace, "orders")] = report(2, phase="Paused")
    git.api.patch(sinks(git.namespace, "orders"), paused)
    assert git.argocd.health(git.live(SINK)).status in {"Progressing", "Suspended"}
    until_health(git, "Suspended")

    git.api.patch(sinks(git.namespace, "orders"), git.argocd.act(git.live(SINK), "stop"))
    until("the pods to go", lambda: not shop.pods("orders"))
    assert until_health(git, "Suspended").message == "spec.state is Stopped; no driver runs"

    node.reports[(git.namespace, "orders")] = report(4)
    git.api.patch(sinks(git.namespace, "orders"), git.argocd.act(git.live(SINK), "resume"))
    until_health(git, "Healthy")


@pytest.mark.parametrize(("action", "changed"), [("restart", "metadata"), ("reset", "spec")])
def test_a_restart_and_a_reset_replace_the_pod(
    git: Git, busy_operator: Operator, shop: SinkNamespace, action: str, changed: str
) -> None:
    git.sync(SINK)
    until_health(git, "Healthy")
    (before,) = shop.pods("orders")
    patch = git.argocd.act(git.live(SINK), action)
    assert set(patch) == {changed}
    git.api.patch(sinks(git.namespace, "orders"), patch)

    def replaced() -> bool:
        pods = shop.pods("orders")
        return len(pods) == 1 and pods[0]["metadata"]["uid"] != before["metadata"]["uid"]

    until("another pod", replaced)
    until_health(git, "Healthy")
    (manifest,) = (text for each in shop.objects("configmap") for text in each["data"].values() if "S3Sink" in text)
    assert ("nonce" in manifest) is (action == "reset")


@pytest.mark.parametrize("tracking", ["annotation", "label", "annotation+label"])
def test_what_the_operator_makes_is_not_taken_for_the_applications_own(
    git: Git, busy_operator: Operator, shop: SinkNamespace, tracking: str
) -> None:
    sink = put(SINK, "spec.spark.mode", "Cluster")
    (desired,) = git.argocd.read(json.dumps(sink), git.namespace, tracking=tracking)
    git.argocd.apply(desired)
    until_health(git, "Healthy", sink)
    found = [each for kind in (*CHILDREN, "replicaset", "pod") for each in shop.objects(kind)]
    ours = [each["metadata"] for each in found if each["metadata"].get("ownerReferences")]
    assert len(ours) >= 7
    for metadata in ours:
        assert "app.kubernetes.io/instance" not in metadata["labels"]
        assert not [name for name in metadata.get("annotations", {}) if "argocd" in name or "last-applied" in name]


@pytest.mark.parametrize("name", CASES)
def test_argo_cd_says_of_every_situation_what_the_script_says(argocd: ArgoCD, name: str) -> None:
    sink = shown(CASES[name])
    assert argocd.health(sink) == lua.health(sink)
    assert argocd.health(sink).status == CASES[name].health
    offered = {name: action.get("disabled", False) for name, action in argocd.actions(sink).items()}
    assert offered == {name: each["disabled"] for name, each in lua.run("actions/discovery.lua", sink).items()}


def test_argo_cd_knows_an_operator_that_fails_from_a_sink_that_is_new(argocd: ArgoCD) -> None:
    assert argocd.health(operator_error()).status == "Degraded"
    assert argocd.health(minimal() | {"metadata": {"name": "orders", "generation": 1}}).status == "Progressing"


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_changes_nothing_but_what_it_is_for(argocd: ArgoCD, action: str) -> None:
    """Lua knows no difference between an empty list and an empty map."""
    sink = put(put(shown(CASES["paused"]), "spec.source.properties", {}), "spec.routes", [])
    patch = argocd.act(sink, action)
    if action == "restart":
        assert list(patch["metadata"].pop("annotations")) == ["s3sink.dev/restarted-at"]
        assert patch == {"metadata": {}}
    elif action == "reset":
        assert list(patch["spec"].pop("reset")) == ["nonce"]
        assert patch == {"spec": {}}
    else:
        state = {"pause": "Paused", "resume": "Running", "stop": "Stopped"}[action]
        assert patch == ({} if state == "Paused" else {"spec": {"state": state}})


def test_the_settings_that_were_there_stay(cluster: BareCluster, settings: None) -> None:
    found = json.loads(cluster.kubectl("get", "configmap", "argocd-cm", "--namespace", NAMESPACE, "-o", "json"))
    ours = yaml.safe_load((ARGOCD / "argocd-cm.yaml").read_text())["data"]
    assert found["data"] == OTHERS | ours
