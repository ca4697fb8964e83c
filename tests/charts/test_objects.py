"""A real API server accepts what the chart makes of any values."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.generate import IMAGE
from s3sink_operator.decide.children.child_names import child_names
from s3sink_operator.decide.children.pods import driver_pod
from s3sink_operator.decide.validation import validate
from tests.charts.cases import CASES, Document, only, rendered
from tests.charts.schemas import LOCATION, write_schemas
from tests.operator.samples import SETTINGS, resource
from tools.cluster import BareCluster, ClusterFailed
from tools.cluster.client import Client, Refused
from tools.parts.helm import NAMESPACE, template
from tools.parts.kubeconform import kubeconform_program

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


@pytest.fixture(scope="module")
def server(cluster: BareCluster) -> Iterator[BareCluster]:
    """With the namespaces of the objects; the operator's own admits restricted pods only."""
    for name in (NAMESPACE, "shop", "billing"):
        cluster.kubectl("create", "namespace", name)
    cluster.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    yield cluster
    for name in (NAMESPACE, "shop", "billing"):
        cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def schemas(api: Client, server: BareCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("schemas")
    write_schemas(api, folder)
    return folder


def kubeconform(folder: Path, text: str) -> str:
    """kubeconform's errors."""
    command = [str(kubeconform_program()), "-strict", "-schema-location", f"{folder}/{LOCATION}"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("case", CASES)
def test_the_api_server_accepts_every_object(server: BareCluster, case: str) -> None:
    _make_account(server, case)
    server.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=template(CASES[case]))


@pytest.mark.parametrize("case", CASES)
def test_every_object_fits_the_servers_own_schemas(schemas: Path, case: str) -> None:
    assert kubeconform(schemas, template(CASES[case])) == ""


def test_these_checks_find_a_mistake(server: BareCluster, schemas: Path) -> None:
    wrong = template().replace("containerPort:", "port:")
    assert "additional properties 'port' not allowed" in kubeconform(schemas, wrong)
    with pytest.raises(ClusterFailed, match=r"unknown field \"spec\.template\.spec\.containers\[0\]\.ports\[0\]\.port"):
        server.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=wrong)
    strange = template(CASES["a service monitor"]).replace("honorLabels", "honourLabels")
    assert "'honourLabels' not allowed" in kubeconform(schemas, strange)
    with pytest.raises(ClusterFailed, match="honourLabels"):
        server.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=strange)


@pytest.mark.parametrize("case", ["default", "settings", "a narrow network policy"])
def test_its_pods_are_restricted(server: BareCluster, api: Client, case: str) -> None:
    _make_account(server, case)
    documents = rendered(CASES[case])
    pods = [only(documents, "Deployment")["spec"]["template"], *(d for d in documents if d["kind"] == "Pod")]
    for number, pod in enumerate(pods):
        api.try_post(PODS, {**pod, "metadata": {"name": f"pod-{number}", "labels": pod["metadata"]["labels"]}})
    pods[0]["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    with pytest.raises(Refused, match="violates PodSecurity"):
        api.try_post(PODS, {**pods[0], "metadata": {"name": "pod"}})


def _make_account(server: BareCluster, case: str) -> None:
    """The operator's ServiceAccount: without it no pod is admitted, not even in a dry run."""
    name = only(rendered(CASES[case]), "Deployment")["spec"]["template"]["spec"]["serviceAccountName"]
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    server.kubectl("--namespace", NAMESPACE, "apply", "-f", "-", stdin=yaml.safe_dump(account))


def kinds(documents: list[Document]) -> set[str]:
    return {document["kind"] for document in documents}


def test_an_operator_for_some_namespaces_has_no_rights_elsewhere() -> None:
    documents = rendered(CASES["namespaced"])
    assert not {"ClusterRole", "ClusterRoleBinding"} & kinds(documents)
    for kind in ("Role", "RoleBinding"):
        assert {d["metadata"]["namespace"] for d in documents if d["kind"] == kind} == {"shop", "billing"}
    for binding in (d for d in documents if d["kind"] == "RoleBinding"):
        (subject,) = binding["subjects"]
        assert (subject["name"], subject["namespace"]) == ("s3sink-operator", NAMESPACE)


def test_with_a_cluster_id_the_operator_needs_no_right_on_namespaces() -> None:
    def resources(case: str) -> set[str]:
        rules = only(rendered(CASES[case]), "ClusterRole")["rules"]
        return {resource for rule in rules for resource in rule["resources"]}

    assert resources("default") - resources("named cluster") == {"namespaces"}


def test_the_roles_for_people_are_not_aggregated() -> None:
    documents = rendered(CASES["rights for people"])
    for name in ("s3sink-operator-view", "s3sink-operator-edit"):
        role = only(documents, "ClusterRole", name)
        assert not [label for label in role["metadata"]["labels"] if "aggregate" in label]
        assert {group for rule in role["rules"] for group in rule["apiGroups"]} == {"s3sink.dev"}


def test_drivers_run_the_image_of_the_values() -> None:
    def images(case: str) -> tuple[str, str]:
        (container,) = only(rendered(CASES[case]), "Deployment")["spec"]["template"]["spec"]["containers"]
        return container["image"], next(e["value"] for e in container["env"] if e["name"] == "S3SINK_IMAGE")

    assert images("default") == (IMAGE, IMAGE)
    both = ("registry.example.com/data/s3sink:1-rc1", "registry.example.com/data/drivers:7")
    assert images("tag and registry") == both
    pinned = "s3sink@sha256:" + "0123456789abcdef" * 4
    assert images("digest") == (pinned, pinned)


def test_only_watched_namespaces_are_scraped() -> None:
    def where(case: str) -> Any:
        found = [d for d in rendered(CASES[case]) if d["metadata"]["name"].endswith("-drivers")]
        return found[0]["spec"]["namespaceSelector"]

    assert where("pod monitors") == {"matchNames": ["shop"]}
    assert where("a service monitor") == {"any": True}


def test_the_pod_monitor_selects_the_operators_drivers() -> None:
    made, _ = validate(resource())
    assert made is not None
    pod = driver_pod(made, SETTINGS, child_names(made))
    ports = [port["name"] for container in pod["spec"]["containers"] for port in container["ports"]]
    documents = rendered(CASES["a service monitor"] | CASES["a network policy"])
    monitor = only(documents, "PodMonitor")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert [endpoint["port"] for endpoint in monitor["podMetricsEndpoints"]] == ports
    drivers = only(documents, "NetworkPolicy")["spec"]["egress"][2]
    assert drivers["to"][0]["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_the_network_policy_allows_only_what_is_needed() -> None:
    wide = only(rendered(CASES["a network policy"]), "NetworkPolicy")["spec"]
    assert wide["ingress"] == [{"ports": [{"port": 8081, "protocol": "TCP"}]}]
    dns, server, drivers = wide["egress"]
    assert {port["port"] for port in dns["ports"]} == {53}
    assert ([port["port"] for port in server["ports"]], "to" in server) == ([443, 6443], False)
    assert drivers["to"][0]["namespaceSelector"] == {"matchLabels": {}}
    narrow = only(rendered(CASES["a narrow network policy"]), "NetworkPolicy")["spec"]
    assert [peer["namespaceSelector"]["matchLabels"] for peer in narrow["ingress"][0]["from"]] == [
        {"kubernetes.io/metadata.name": "monitoring"}
    ]
    assert narrow["egress"][1]["to"] == [{"ipBlock": {"cidr": "10.0.0.1/32"}}]
    assert narrow["egress"][2]["to"][0]["namespaceSelector"]["matchExpressions"][0]["values"] == ["shop"]
    assert narrow["egress"][3]["ports"][0]["port"] == 4317


def test_the_network_policy_allows_the_test_pod() -> None:
    values = CASES["a narrow network policy"] | {"helmTest": {"enabled": True}}
    documents = rendered(values)
    *_, allowed = only(documents, "NetworkPolicy")["spec"]["ingress"][0]["from"]
    assert allowed["podSelector"]["matchLabels"].items() <= only(documents, "Pod")["metadata"]["labels"].items()


def test_templates_in_further_objects_are_filled_in() -> None:
    names = {d["metadata"]["name"] for d in rendered(CASES["more objects"]) if d["kind"] == "ConfigMap"}
    assert names == {"s3sink-operator-more", "s3sink-system-text"}


def test_the_definition_is_kept_as_the_values_say() -> None:
    def annotations(case: str) -> Any:
        return only(rendered(CASES[case]), "CustomResourceDefinition")["metadata"].get("annotations")

    assert annotations("default") == {"helm.sh/resource-policy": "keep"}
    assert annotations("a definition that goes") == {"argocd.argoproj.io/sync-wave": "-1"}
    assert "CustomResourceDefinition" not in kinds(rendered(CASES["somebody else's definition"]))
