"""What people see of the resource with kubectl alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.api.documents import minimal, put
from tests.apiserver.conftest import DEFINITION
from tools.cluster import BareCluster, ClusterFailed
from tools.cluster.client import Client, Document, sinks
from tools.polling import until

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"
LONGEST_ANNOTATION = 262_144
REPORTED: Document = {
    "phase": "Running",
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Reported",
            "message": "The driver reported lately.",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        },
        {
            "type": "Accepted",
            "status": "True",
            "reason": "Valid",
            "message": "The spec is valid.",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        },
    ],
    "lag": {"records": 42},
    "flush": {"lastTime": "2026-01-01T00:00:00Z"},
    "retry": {"attempts": 3},
    "driver": {"restarts": 1},
    "executors": {"replicas": 1, "selector": "s3sink.dev/sink=orders,s3sink.dev/role=executor"},
}


@pytest.fixture
def sink(api: Client, namespace: str) -> str:
    """The path of one that has a status."""
    api.post(sinks(namespace), minimal())
    api.patch(sinks(namespace, "orders", "status"), {"status": REPORTED})
    return sinks(namespace, "orders")


def test_explain_has_a_sentence_for_every_field(cluster: BareCluster, api: Client) -> None:
    # What is published for clients follows the definition with a delay.
    until("the schema to be published", lambda: api.exists("/openapi/v3/apis/s3sink.dev/v1alpha1"))
    shown = cluster.kubectl("explain", "s3sink.spec.flush")
    assert "GROUP:      s3sink.dev" in shown
    assert "When a topic-partition is flushed: by the first rule that applies." in shown
    for field in ("records", "bytes", "interval", "aligned", "recordWindow"):
        described = cluster.kubectl("explain", f"s3s.spec.flush.{field}").partition("DESCRIPTION:")[2]
        assert described.strip().endswith("."), field


@pytest.mark.parametrize("name", ["s3s", "s3sink", "s3sinks", "s3sinks.s3sink.dev", "all"])
def test_the_resource_is_found_by_each_of_its_names(cluster: BareCluster, namespace: str, sink: str, name: str) -> None:
    assert "s3sink.s3sink.dev/orders" in cluster.kubectl("get", name, "-n", namespace, "-o", "name")


def test_columns_tell_how_a_sink_is_doing(cluster: BareCluster, namespace: str, sink: str) -> None:
    header, row = cluster.kubectl("get", "s3s", "-n", namespace).splitlines()
    columns = ["NAME", "STATE", "READY", "ACCEPTED", "LAG", "LAST", "FLUSH", "RETRIES", "RESTARTS", "AGE"]
    assert header.split() == columns
    name, state, ready, accepted, lag, _, retries, restarts, _ = row.split()
    assert (name, state, ready, accepted) == ("orders", "Running", "True", "True")
    assert (lag, retries, restarts) == ("42", "3", "1")


def test_wide_columns_tell_what_it_copies(cluster: BareCluster, namespace: str, sink: str) -> None:
    header, row = cluster.kubectl("get", "s3s", "-n", namespace, "-o", "wide").splitlines()
    assert header.split()[-4:] == ["TOPICS", "PATTERN", "BUCKET", "FORMAT"]
    assert row.split()[-3:] == ['["orders"]', "lake", "Json"]


def test_a_sink_without_a_status_has_its_columns_too(cluster: BareCluster, api: Client, namespace: str) -> None:
    api.post(sinks(namespace), minimal())
    assert cluster.kubectl("get", "s3s", "-n", namespace).splitlines()[1].split()[0] == "orders"


def test_scale_changes_the_executors(cluster: BareCluster, api: Client, namespace: str, sink: str) -> None:
    cluster.kubectl("scale", "s3s/orders", "--replicas=3", "-n", namespace)
    assert api.get(sink)["spec"]["spark"]["executor"]["instances"] == 3
    scale = api.get(f"{sink}/scale")
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (3, 1)
    assert scale["status"]["selector"] == REPORTED["executors"]["selector"]
    with pytest.raises(ClusterFailed, match=r"spec\.spark\.executor\.instances"):
        cluster.kubectl("scale", "s3s/orders", "--replicas=0", "-n", namespace)


def test_status_and_spec_are_written_apart(api: Client, sink: str) -> None:
    generation = api.get(sink)["metadata"]["generation"]
    both = {"spec": {"state": "Stopped"}, "status": {"phase": "Failed"}}
    assert api.patch(f"{sink}/status", both)["spec"]["state"] == "Running"
    stored = api.patch(sink, {"spec": {"state": "Paused"}, "status": {"phase": "Paused"}})
    assert (stored["spec"]["state"], stored["status"]["phase"]) == ("Paused", "Failed")
    assert stored["metadata"]["generation"] == generation + 1


def test_apply_takes_the_quickstart_and_says_why_it_refuses(cluster: BareCluster, namespace: str) -> None:
    assert "created" in cluster.kubectl("apply", "-n", namespace, "-f", str(QUICKSTART))
    wrong = json.dumps(put(minimal(), "spec.flush.intervall", "5m"))
    with pytest.raises(ClusterFailed, match=r'strict decoding error: unknown field "spec\.flush\.intervall"'):
        cluster.kubectl("apply", "-n", namespace, "-f", "-", stdin=wrong)


def test_the_definition_fits_into_the_copy_that_apply_keeps(cluster: BareCluster) -> None:
    cluster.kubectl("apply", "-f", str(DEFINITION))
    applied = cluster.kubectl(
        *("get", "crd", "s3sinks.s3sink.dev", "-o"),
        r"jsonpath={.metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration}",
    )
    assert 0 < len(applied) < LONGEST_ANNOTATION * 3 / 4
