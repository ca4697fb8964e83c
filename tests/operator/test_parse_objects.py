"""Documents of the API server as values."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from s3sink_operator.observe.parse_objects import parse_child, parse_pod
from s3sink_operator.values.objects import ContainerExit


def pod(**status: Any) -> dict[str, Any]:
    labels = {"s3sink.dev/role": "driver"}
    return {"metadata": {"name": "p", "labels": labels}, "status": {"phase": "Running", **status}}


def test_a_crashing_container_has_restarts_and_its_last_exit() -> None:
    ended = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-16T11:00:00Z"}
    container = {
        "ready": False,
        "restartCount": 4,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
        "lastState": {"terminated": ended},
    }
    seen = parse_pod(pod(containerStatuses=[container]))
    assert (seen.role, seen.restarts, seen.waiting) == ("driver", 4, "CrashLoopBackOff")
    assert seen.last_exit == ContainerExit(137, "OOMKilled", "", "2026-11-16T11:00:00Z")
    assert seen.ended is None


def test_a_container_between_two_restarts_has_not_ended() -> None:
    container = {"ready": False, "restartCount": 1, "state": {"terminated": {"exitCode": 1}}}
    assert parse_pod(pod(containerStatuses=[container])).ended is None
    assert parse_pod(pod(phase="Failed", containerStatuses=[container])).ended == ContainerExit(1)


def test_an_unschedulable_pod_has_the_message_of_the_scheduler() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    assert parse_pod(pod(phase="Pending", conditions=[condition])).unschedulable == "0/1 nodes"


def test_a_deleted_pod_has_the_end_of_its_grace_period() -> None:
    document = pod()
    document["metadata"]["deletionTimestamp"] = "2026-11-16T11:00:00Z"
    assert parse_pod(document).deleting == datetime(2026, 11, 16, 11, tzinfo=UTC)


def test_only_a_controller_reference_makes_an_owner() -> None:
    owners = [{"uid": "a"}, {"uid": "b", "controller": True}]
    assert parse_child("Job", {"metadata": {"name": "x", "ownerReferences": owners}}).owner == "b"
    assert parse_child("Job", {"metadata": {"name": "x"}}).owner == ""


def test_only_the_main_container_counts() -> None:
    beside = {"name": "a-proxy", "ready": True, "restartCount": 9}
    ours = {"name": "driver", "ready": False, "restartCount": 1, "state": {"waiting": {"reason": "ErrImagePull"}}}
    seen = parse_pod(pod(containerStatuses=[beside, ours]))
    assert (seen.ready, seen.restarts, seen.waiting) == (False, 1, "ErrImagePull")


def test_a_removed_pod_has_reason_and_message() -> None:
    evicted = parse_pod(pod(phase="Failed", reason="Evicted", message="the node was low on memory"))
    assert (evicted.reason, evicted.reason_message) == ("Evicted", "the node was low on memory")
    target = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager", "message": "tainted"}
    assert parse_pod(pod(conditions=[target])).reason == "DeletionByTaintManager"


def test_the_pod_of_a_job_has_the_name_of_the_job() -> None:
    document = pod()
    document["metadata"]["labels"]["batch.kubernetes.io/job-name"] = "orders-s3sink-29"
    assert parse_pod(document).job == "orders-s3sink-29"


def test_the_operator_has_no_right_on_secrets_and_no_wildcards() -> None:
    file = Path(__file__).parents[2] / "examples" / "kubernetes" / "operator.yaml"
    documents = list(yaml.safe_load_all(file.read_text()))
    rules = next(d for d in documents if d["kind"] == "ClusterRole")["rules"]
    resources = {r for rule in rules for r in rule["resources"]}
    assert "secrets" not in resources
    assert not [rule for rule in rules if "*" in (*rule["resources"], *rule["verbs"], *rule["apiGroups"])]
    assert not {"escalate", "bind", "impersonate"} & {v for rule in rules for v in rule["verbs"]}
