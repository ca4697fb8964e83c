from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.chain.apiserver.drivers import Driver
from e2e.chain.apiserver.operating import Operator
from e2e.chain.sinks import Namespace, until
from e2e.cluster import ClusterFailed

SPEC: dict[str, Any] = {
    "source": {"bootstrapServers": "kafka:9092", "topics": ["orders"]},
    "destination": {"bucket": "lake", "credentials": {"secretRef": {"name": "s3"}}},
    "format": {"type": "Json"},
}


def sink(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "orders", "labels": {"app.kubernetes.io/instance": "argo"}, "annotations": {"team": "data"}}
    return {
        "apiVersion": "s3sink.dev/v1alpha1",
        "kind": "S3Sink",
        "metadata": metadata,
        "spec": {**SPEC, **spec},
    }


def deployment(namespace: Namespace) -> dict[str, Any]:
    found: dict[str, Any] = until("the Deployment", lambda: namespace.get("deployment", "orders-s3sink"))
    return found


def test_a_sink_gets_its_children_within_seconds(namespace: Namespace, operator: Operator) -> None:
    began = time.monotonic()
    namespace.apply(sink())
    found = deployment(namespace)
    assert time.monotonic() - began < 10
    assert found["metadata"]["labels"].get("app.kubernetes.io/instance") is None
    assert "team" not in found["metadata"]["annotations"]
    manifest = yaml.safe_load((namespace.get("configmap", "orders-s3sink") or {})["data"]["sink.yaml"])
    assert manifest["spec"]["source"]["topics"] == ["orders"]
    until("a pod", lambda: namespace.pods("orders"))
    assert namespace.until_reason("orders", "Ready", "Starting")


def test_cluster_mode_gets_its_rights_though_the_operator_may_not_escalate(
    namespace: Namespace, operator: Operator
) -> None:
    namespace.apply(sink(spark={"mode": "Cluster"}))
    deployment(namespace)
    account = f"--as=system:serviceaccount:{namespace.name}:orders-s3sink"

    def may(verb: str, kind: str, who: str = account) -> bool:
        try:
            return namespace.kubectl("auth", "can-i", verb, kind, who).strip() == "yes"
        except ClusterFailed:
            return False

    assert may("create", "pods")
    assert may("deletecollection", "pods")
    for verb, kind in (("get", "secrets"), ("create", "configmaps"), ("create", "deployments"), ("patch", "pods")):
        assert not may(verb, kind), (verb, kind)
    assert not may("get", "pods", f"{account}-executor")
    namespace.patch("orders", {"spark": {"mode": "Local"}})
    until("the rights to go", lambda: not namespace.get("role", "orders-s3sink"))
    until("the account to go", lambda: not namespace.get("serviceaccount", "orders-s3sink-executor"))


def test_a_changed_spec_rolls_the_driver(namespace: Namespace, operator: Operator) -> None:
    namespace.apply(sink())
    before = deployment(namespace)
    (pod,) = until("a pod", lambda: namespace.pods("orders"))
    namespace.patch("orders", {"flush": {"records": 7}})

    def rolled() -> bool:
        pods = namespace.pods("orders")
        return len(pods) == 1 and pods[0]["metadata"]["name"] != pod["metadata"]["name"]

    until("another pod", rolled)
    assert deployment(namespace)["metadata"]["generation"] > before["metadata"]["generation"]
    data = (namespace.get("configmap", "orders-s3sink") or {})["data"]["sink.yaml"]
    assert yaml.safe_load(data)["spec"]["flush"]["records"] == 7


def test_drift_is_put_right(namespace: Namespace, operator: Operator) -> None:
    namespace.apply(sink())
    deployment(namespace)
    namespace.kubectl("scale", "deployment", "orders-s3sink", "--replicas=3")
    until("one replica again", lambda: deployment(namespace)["spec"]["replicas"] == 1)
    namespace.kubectl("delete", "deployment", "orders-s3sink")
    deployment(namespace)


def test_stopped_paused_and_running(namespace: Namespace, operator: Operator) -> None:
    namespace.apply(sink())
    until("a pod", lambda: namespace.pods("orders"))
    namespace.patch("orders", {"state": "Stopped"})
    until("no Deployment", lambda: not namespace.get("deployment", "orders-s3sink"))
    until("no pods", lambda: not namespace.objects("pods"))
    namespace.until_reason("orders", "Ready", "Stopped")
    assert namespace.status("orders")["phase"] == "Stopped"
    namespace.patch("orders", {"state": "Paused"})
    deployment(namespace)
    data = (namespace.get("configmap", "orders-s3sink") or {})["data"]["sink.yaml"]
    assert yaml.safe_load(data)["spec"]["state"] == "Paused"
    with Driver(namespace, "orders") as driver:
        driver.reporter.phase("Paused", "spec.state is Paused")
        namespace.until_reason("orders", "Ready", "Paused")


def test_once_is_a_job_whose_last_words_stay(namespace: Namespace, operator: Operator) -> None:
    namespace.apply(sink(run="Once"))
    until("a Job", lambda: namespace.get("job", "orders-s3sink"))
    with Driver(namespace, "orders") as driver:
        namespace.until_ready("orders")
        driver.reporter.phase("Completed", "everything that was there at the start is in the bucket")
        last = json.dumps(driver.reporter.status())
        ended = {"exitCode": 0, "reason": "Completed", "message": last, "finishedAt": "2026-11-16T00:00:00Z"}
        driver.shows(ready=False, state={"terminated": ended}, phase="Succeeded")
    namespace.until_reason("orders", "Ready", "Completed")
    assert namespace.status("orders")["phase"] == "Completed"
    # Another spec is another run.
    first = (namespace.get("job", "orders-s3sink") or {})["metadata"]["uid"]
    namespace.patch("orders", {"flush": {"records": 7}})

    def another() -> bool:
        job = namespace.get("job", "orders-s3sink")
        return job is not None and job["metadata"]["uid"] != first

    until("another Job", another)


def test_a_failed_run_says_why_and_is_not_tried_again(namespace: Namespace, operator: Operator) -> None:
    namespace.apply(sink(run="Once"))
    until("a Job", lambda: namespace.get("job", "orders-s3sink"))
    with Driver(namespace, "orders") as driver:
        driver.reporter.condition("LastFlushSucceeded", False, "BucketMissing", "bucket lake does not exist")
        driver.reporter.phase("Failed", "bucket lake does not exist")
        last = json.dumps(driver.reporter.status())
        ended = {"exitCode": 2, "reason": "Error", "message": last, "finishedAt": "2026-11-16T00:00:00Z"}
        driver.shows(ready=False, state={"terminated": ended}, phase="Failed")
    assert "bucket lake does not exist" in namespace.until_reason("orders", "Ready", "BucketMissing")
    assert len(namespace.objects("pods")) == 1


def test_the_report_becomes_the_status_and_its_silence_too(namespace: Namespace, operator: Operator) -> None:
    namespace.apply(sink())
    with Driver(namespace, "orders") as driver:
        namespace.until_ready("orders")
        driver.reporter.condition("LastFlushSucceeded", False, "AccessDenied", "the store refuses the keys")
        namespace.until_reason("orders", "LastFlushSucceeded", "AccessDenied", 10)
        table = namespace.kubectl("get", "s3s").splitlines()
        assert table[0].split() == ["NAME", "STATE", "READY", "LAG", "LAST", "FLUSH", "RETRIES", "RESTARTS", "AGE"]
        assert table[1].split()[:3] == ["orders", "Running", "True"]
        driver.fall_silent()
        assert "does not answer" in namespace.until_reason("orders", "Ready", "NoReport", 20)
        assert namespace.condition("orders", "Ready")[0] == "Unknown"
        assert operator.metric("s3sink_operator_status_poll_failures_total") > 0
        driver.answer()
        namespace.until_ready("orders", 20)
    reasons = {e["reason"] for e in namespace.objects("events") if e["involvedObject"]["kind"] == "S3Sink"}
    assert {"Running", "AccessDenied", "NoReport"} <= reasons


def test_nothing_is_written_at_idle(namespace: Namespace, tmp_path: Path) -> None:
    operator = Operator(namespace.cluster, tmp_path, "--namespaces", namespace.name)
    operator.start()
    namespace.apply(sink())
    with Driver(namespace, "orders"):
        namespace.until_ready("orders")
        time.sleep(3)
        writes = operator.metric("s3sink_operator_writes_total")
        version = (namespace.get("s3sink", "orders") or {})["metadata"]["resourceVersion"]
        looks = operator.metric("s3sink_operator_reconciles_total")
        time.sleep(6)
        assert operator.metric("s3sink_operator_reconciles_total") >= looks + 3
        assert operator.metric("s3sink_operator_writes_total") == writes
        assert (namespace.get("s3sink", "orders") or {})["metadata"]["resourceVersion"] == version
    operator.stop()


def test_a_spec_that_is_not_accepted_names_every_mistake(namespace: Namespace, operator: Operator) -> None:
    namespace.apply(sink(format={"type": "Orc"}, nullValues="Skip"))
    message = namespace.until_reason("orders", "Accepted", "InvalidSpec")
    assert "spec.format.type: Orc is not built yet" in message
    assert "spec.nullValues: Skip is not built yet" in message
    assert not namespace.get("deployment", "orders-s3sink")
    namespace.apply(sink())
    deployment(namespace)
    namespace.until_reason("orders", "Accepted", "Valid")


def test_an_object_of_somebody_else_stays_theirs(namespace: Namespace, operator: Operator) -> None:
    namespace.kubectl("create", "configmap", "orders-s3sink", "--from-literal=mine=yes")
    namespace.apply(sink())
    assert "ConfigMap orders-s3sink" in namespace.until_reason("orders", "Ready", "NameTaken")
    assert (namespace.get("configmap", "orders-s3sink") or {})["data"] == {"mine": "yes"}
    namespace.kubectl("delete", "configmap", "orders-s3sink")
    deployment(namespace)


def test_what_the_server_refuses_is_said(namespace: Namespace, operator: Operator) -> None:
    template = {"spec": {"tolerations": [{"operator": "Nonsense"}]}}
    namespace.apply(sink(spark={"driver": {"podTemplate": template}}))
    assert "Nonsense" in namespace.until_reason("orders", "Ready", "Refused")
    namespace.apply(sink())
    deployment(namespace)
    namespace.until_reason("orders", "Ready", "Starting")


def test_a_quota_that_forbids_the_pod_is_said(namespace: Namespace, operator: Operator) -> None:
    namespace.kubectl("create", "quota", "none", "--hard=pods=0")
    time.sleep(1)
    namespace.apply(sink())
    assert "exceeded quota" in namespace.until_reason("orders", "Ready", "FailedCreate")


def test_executors_are_scaled_with_kubectl(namespace: Namespace, operator: Operator) -> None:
    namespace.apply(sink(spark={"mode": "Cluster"}))
    deployment(namespace)
    namespace.kubectl("scale", "s3sink", "orders", "--replicas=5")
    assert (namespace.get("s3sink", "orders") or {})["spec"]["spark"]["executor"]["instances"] == 5


def test_the_operator_has_no_finalizer_and_does_nothing_it_may_not(namespace: Namespace, operator: Operator) -> None:
    namespace.apply(sink(spark={"mode": "Cluster"}))
    deployment(namespace)
    with Driver(namespace, "orders"):
        namespace.until_ready("orders")
        found = namespace.get("s3sink", "orders") or {}
        assert "finalizers" not in found["metadata"]
        assert not [key for key in found["metadata"]["annotations"] if "kopf" in key]
    namespace.kubectl("delete", "s3sink", "orders", "--timeout=20s")
    until("nothing to be left", lambda: not namespace.left_behind())
    assert operator.get("/healthz") == (200, "ok\n")
    assert '"status": 403' not in operator.log
    assert "is forbidden" not in operator.log.replace("is forbidden: exceeded", "")


def test_delete_leaves_nothing_even_without_the_operator(namespace: Namespace, own_operator: Operator) -> None:
    own_operator.start()
    namespace.apply(sink(spark={"mode": "Cluster"}))
    until("a pod", lambda: namespace.pods("orders"))
    own_operator.kill()
    namespace.kubectl("delete", "s3sink", "orders", "--timeout=20s")
    until("nothing to be left", lambda: not namespace.left_behind())


def test_a_namespace_goes_even_without_the_operator(namespace: Namespace, own_operator: Operator) -> None:
    own_operator.start()
    namespace.apply(sink())
    until("a pod", lambda: namespace.pods("orders"))
    own_operator.kill()
    namespace.cluster.kubectl("delete", "namespace", namespace.name, "--timeout=60s")
    namespace.cluster.kubectl("create", "namespace", namespace.name)


def test_what_happened_while_it_was_away_is_made_up_for(namespace: Namespace, own_operator: Operator) -> None:
    own_operator.start()
    namespace.apply(sink())
    deployment(namespace)
    own_operator.kill()
    namespace.patch("orders", {"state": "Stopped"})
    own_operator.start()
    until("no Deployment", lambda: not namespace.get("deployment", "orders-s3sink"))


def test_it_stops_when_told(namespace: Namespace, own_operator: Operator) -> None:
    own_operator.start()
    began = time.monotonic()
    own_operator.stop()
    assert time.monotonic() - began < 8
    assert not own_operator.alive


@pytest.mark.parametrize("body", [b"not json", b"[]", b"{}", b'{"phase": 5, "conditions": "x"}'])
def test_a_driver_that_talks_nonsense_harms_nobody_else(
    namespace: Namespace, operator: Operator, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace.apply(sink())
    with Driver(namespace, "orders") as driver:
        namespace.until_ready("orders")
        lie: Any = json.loads(body) if body[:1] in b"[{" else 5
        monkeypatch.setattr(driver.reporter, "status", lambda: lie)
        assert "report" in namespace.until_reason("orders", "Ready", "NoReport", 20)
