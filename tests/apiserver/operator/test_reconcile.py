from __future__ import annotations

import json
import time
from collections.abc import Callable

from tests.apiserver.operator.drivers import Driver
from tests.apiserver.operator.namespaces import SinkNamespace, sink
from tools.cluster import ClusterFailed
from tools.cluster.client import NAMESPACES
from tools.operator_harness import Operator
from tools.polling import until


def test_a_sink_gets_its_children_within_seconds(namespace: SinkNamespace, operator: Operator) -> None:
    began = time.monotonic()
    namespace.apply(sink())
    found = namespace.deployment()
    assert time.monotonic() - began < 10
    assert found["metadata"]["labels"].get("app.kubernetes.io/instance") is None
    assert "team" not in found["metadata"]["annotations"]
    manifest = namespace.manifest()
    assert manifest["spec"]["source"]["topics"] == ["orders"]
    applied = (namespace.get("s3sink", "orders") or {})["metadata"]
    # They show a driver that its manifest is older than that of another driver.
    known = {key: applied[key] for key in ("uid", "generation", "creationTimestamp")}
    assert known.items() <= manifest["metadata"].items()
    until("a pod", lambda: namespace.pods("orders"))
    assert namespace.until_reason("orders", "Ready", "Starting")


def test_cluster_mode_gets_its_rights_without_escalation(namespace: SinkNamespace, operator: Operator) -> None:
    namespace.apply(sink(spark={"mode": "Cluster"}))
    namespace.deployment()
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


def test_a_changed_spec_restarts_the_driver(namespace: SinkNamespace, operator: Operator) -> None:
    namespace.apply(sink())
    before = namespace.deployment()
    (pod,) = until("a pod", lambda: namespace.pods("orders"))
    namespace.patch("orders", {"flush": {"records": 7}})

    def rolled() -> bool:
        pods = namespace.pods("orders")
        return len(pods) == 1 and pods[0]["metadata"]["name"] != pod["metadata"]["name"]

    until("another pod", rolled)
    assert namespace.deployment()["metadata"]["generation"] > before["metadata"]["generation"]
    data = namespace.manifest()
    assert data["spec"]["flush"]["records"] == 7


def test_drift_is_corrected(namespace: SinkNamespace, operator: Operator) -> None:
    namespace.apply(sink())
    namespace.deployment()
    namespace.change("deployment", "orders-s3sink", {"spec": {"replicas": 3}})
    until("one replica again", lambda: namespace.deployment()["spec"]["replicas"] == 1)
    namespace.delete("deployment", "orders-s3sink")
    namespace.deployment()


def test_stopped_paused_and_running(namespace: SinkNamespace, operator: Operator) -> None:
    namespace.apply(sink())
    until("a pod", lambda: namespace.pods("orders"))
    namespace.patch("orders", {"state": "Stopped"})
    until("no Deployment", lambda: not namespace.get("deployment", "orders-s3sink"))
    until("no pods", lambda: not namespace.objects("pods"))
    namespace.until_reason("orders", "Ready", "Stopped")
    assert namespace.status("orders")["phase"] == "Stopped"
    namespace.patch("orders", {"state": "Paused"})
    namespace.deployment()
    data = namespace.manifest()
    assert data["spec"]["state"] == "Paused"
    with Driver(namespace, "orders") as driver:
        driver.reporter.phase("Paused", "spec.state is Paused")
        namespace.until_reason("orders", "Ready", "Paused")


def test_run_once_is_a_job_whose_last_report_stays(namespace: SinkNamespace, operator: Operator) -> None:
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
    # A new spec is a new run.
    first = (namespace.get("job", "orders-s3sink") or {})["metadata"]["uid"]
    namespace.patch("orders", {"mode": "FullRefresh"})

    def another() -> bool:
        job = namespace.get("job", "orders-s3sink")
        return job is not None and job["metadata"]["uid"] != first

    until("another Job", another)
    # Its pods have the run's id from a label that Kubernetes sets.
    (container,) = (namespace.get("job", "orders-s3sink") or {})["spec"]["template"]["spec"]["containers"]
    (run,) = (each for each in container["env"] if each["name"] == "S3SINK_RUN_ID")
    assert run["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['batch.kubernetes.io/controller-uid']"


def test_a_failed_run_says_why_and_is_not_retried(namespace: SinkNamespace, operator: Operator) -> None:
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


def test_the_report_and_its_absence_show_in_the_status(namespace: SinkNamespace, operator: Operator) -> None:
    namespace.apply(sink())
    with Driver(namespace, "orders") as driver:
        namespace.until_ready("orders")
        driver.reporter.condition("LastFlushSucceeded", False, "AccessDenied", "the store refuses the keys")
        namespace.until_reason("orders", "LastFlushSucceeded", "AccessDenied", 10)
        table = namespace.kubectl("get", "s3s").splitlines()
        assert table[0].split()[:5] == ["NAME", "STATE", "READY", "ACCEPTED", "LAG"]
        assert table[0].split()[5:] == ["LAST", "FLUSH", "RETRIES", "RESTARTS", "AGE"]
        assert table[1].split()[:4] == ["orders", "Running", "True", "True"]
        driver.fall_silent()
        assert "no answer from" in namespace.until_reason("orders", "Ready", "NoReport", 20)
        assert namespace.condition("orders", "Ready")[0] == "Unknown"
        assert operator.metric("s3sink_operator_status_poll_failures_total") > 0
        driver.answer()
        namespace.until_ready("orders", 20)
    assert {"Running", "AccessDenied", "NoReport"} <= namespace.events("orders")


def test_nothing_is_written_or_reconciled_at_idle(namespace: SinkNamespace, own_operator: Operator) -> None:
    # Watches only this namespace.
    own_operator.start()
    namespace.apply(sink())

    def done() -> tuple[float, float, str]:
        counts = (own_operator.metric(f"s3sink_operator_{what}_total") for what in ("reconciles", "writes"))
        return *counts, (namespace.get("s3sink", "orders") or {})["metadata"]["resourceVersion"]

    def at_rest() -> bool:
        before = done()
        time.sleep(3)
        return done() == before

    with Driver(namespace, "orders") as driver:
        namespace.until_ready("orders")
        until("rest", at_rest)
        before = done()
        time.sleep(5)
        assert done() == before
        # It was polled all the time.
        driver.reporter.phase("Degraded", "something happened")
        namespace.until_reason("orders", "Ready", "Degraded", 5)


def test_a_restarted_operator_changes_nothing_about_a_healthy_sink(
    namespace: SinkNamespace, own_operator: Operator
) -> None:
    own_operator.start()
    namespace.apply(sink())
    with Driver(namespace, "orders"):
        namespace.until_ready("orders")
        time.sleep(3)
        before = namespace.get("s3sink", "orders")
        own_operator.stop()
        own_operator.start()
        until("a look at it", lambda: own_operator.metric("s3sink_operator_reconciles_total") > 0)
        time.sleep(3)
        assert own_operator.metric("s3sink_operator_writes_total") == 0
        assert namespace.get("s3sink", "orders") == before


def test_a_refused_spec_names_every_mistake(namespace: SinkNamespace, operator: Operator) -> None:
    namespace.apply(sink(transform={"where": "now() > a", "select": ["upper(a)"]}))
    message = namespace.until_reason("orders", "Accepted", "InvalidSpec")
    assert "spec.transform.where: 'now()' at position 1 is not allowed" in message
    assert "spec.transform.select[0]: 'upper(a)' at position 1 needs a name" in message
    assert not namespace.get("deployment", "orders-s3sink")
    namespace.apply(sink())
    namespace.deployment()
    namespace.until_reason("orders", "Accepted", "Valid")


def test_an_object_of_another_owner_is_not_touched(namespace: SinkNamespace, operator: Operator) -> None:
    namespace.client.post(namespace.path("configmap"), {"metadata": {"name": "orders-s3sink"}, "data": {"mine": "yes"}})
    namespace.apply(sink())
    assert "ConfigMap orders-s3sink" in namespace.until_reason("orders", "Ready", "NameTaken")
    assert (namespace.get("configmap", "orders-s3sink") or {})["data"] == {"mine": "yes"}
    namespace.delete("configmap", "orders-s3sink")
    namespace.deployment()


def test_what_the_server_refuses_shows_in_the_status(namespace: SinkNamespace, operator: Operator) -> None:
    template = {"spec": {"tolerations": [{"operator": "Nonsense"}]}}
    namespace.apply(sink(spark={"driver": {"podTemplate": template}}))
    assert "Nonsense" in namespace.until_reason("orders", "Ready", "Refused")
    namespace.apply(sink())
    namespace.deployment()
    namespace.until_reason("orders", "Ready", "Starting")


def test_a_quota_that_forbids_the_pod_shows_in_the_status(namespace: SinkNamespace, operator: Operator) -> None:
    namespace.kubectl("create", "quota", "none", "--hard=pods=0")
    time.sleep(1)
    namespace.apply(sink())
    assert "exceeded quota" in namespace.until_reason("orders", "Ready", "FailedCreate")


def test_executors_are_scaled_with_kubectl(namespace: SinkNamespace, operator: Operator) -> None:
    namespace.apply(sink(spark={"mode": "Cluster"}))
    namespace.deployment()
    namespace.kubectl("scale", "s3sink", "orders", "--replicas=5")
    assert (namespace.get("s3sink", "orders") or {})["spec"]["spark"]["executor"]["instances"] == 5


def test_no_finalizer_and_no_forbidden_request(namespace: SinkNamespace, operator: Operator) -> None:
    namespace.apply(sink(spark={"mode": "Cluster"}))
    namespace.deployment()
    with Driver(namespace, "orders"):
        namespace.until_ready("orders")
        found = namespace.get("s3sink", "orders") or {}
        assert "finalizers" not in found["metadata"]
        assert not [key for key in found["metadata"]["annotations"] if "kopf" in key]
    namespace.delete("s3sink", "orders")
    until("nothing to be left", lambda: not namespace.left_behind())
    assert operator.get("/healthz") == (200, "ok\n")
    assert '"status": 403' not in operator.log
    assert "is forbidden" not in operator.log.replace("is forbidden: exceeded", "")


def test_deleting_works_without_the_operator_and_the_next_one_catches_up(
    namespace: SinkNamespace, new_namespace: Callable[[], SinkNamespace], own_operator: Operator
) -> None:
    other = new_namespace()
    own_operator.start("--namespaces", f"{namespace.name},{other.name}")
    namespace.apply(sink(spark={"mode": "Cluster"}), sink("later"))
    other.apply(sink())
    for shop, name in ((namespace, "orders"), (namespace, "later"), (other, "orders")):
        until("a pod", lambda: shop.pods(name))  # noqa: B023 - called at once
    own_operator.kill()
    namespace.patch("later", {"state": "Stopped"})
    namespace.delete("s3sink", "orders")
    other.remove()
    until("nothing to be left", lambda: not [left for left in namespace.left_behind() if "orders" in left])
    until("the namespace to be gone", lambda: not namespace.client.exists(f"{NAMESPACES}/{other.name}"))
    other.client.post(NAMESPACES, {"metadata": {"name": other.name}})
    own_operator.start()
    until("no Deployment", lambda: not namespace.get("deployment", "later-s3sink"))
