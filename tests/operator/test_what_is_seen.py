"""Documents of the API server as facts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from s3sink_operator.facts import child_from, pod_from
from s3sink_operator.model import Exit


def pod(**status: Any) -> dict[str, Any]:
    labels = {"s3sink.dev/role": "driver"}
    return {"metadata": {"name": "p", "labels": labels}, "status": {"phase": "Running", **status}}


def test_a_crashing_container() -> None:
    ended = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-16T11:00:00Z"}
    container = {
        "ready": False,
        "restartCount": 4,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
        "lastState": {"terminated": ended},
    }
    seen = pod_from(pod(containerStatuses=[container]))
    assert (seen.role, seen.restarts, seen.waiting) == ("driver", 4, "CrashLoopBackOff")
    assert seen.last_exit == Exit(137, "OOMKilled", "", "2026-11-16T11:00:00Z")
    assert seen.ended is None


def test_a_container_between_two_starts_has_not_ended() -> None:
    container = {"ready": False, "restartCount": 1, "state": {"terminated": {"exitCode": 1}}}
    assert pod_from(pod(containerStatuses=[container])).ended is None
    assert pod_from(pod(phase="Failed", containerStatuses=[container])).ended == Exit(1)


def test_a_pod_no_node_takes() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    assert pod_from(pod(phase="Pending", conditions=[condition])).unschedulable == "0/1 nodes"


def test_a_pod_that_is_being_deleted() -> None:
    document = pod()
    document["metadata"]["deletionTimestamp"] = "2026-11-16T11:00:00Z"
    assert pod_from(document).deleting == datetime(2026, 11, 16, 11, tzinfo=UTC)


def test_only_a_controller_owns() -> None:
    owners = [{"uid": "a"}, {"uid": "b", "controller": True}]
    assert child_from("Job", {"metadata": {"name": "x", "ownerReferences": owners}}).owner == "b"
    assert child_from("Job", {"metadata": {"name": "x"}}).owner == ""


def test_our_container_counts_and_not_one_beside_it() -> None:
    beside = {"name": "a-proxy", "ready": True, "restartCount": 9}
    ours = {"name": "driver", "ready": False, "restartCount": 1, "state": {"waiting": {"reason": "ErrImagePull"}}}
    seen = pod_from(pod(containerStatuses=[beside, ours]))
    assert (seen.ready, seen.restarts, seen.waiting) == (False, 1, "ErrImagePull")


def test_a_pod_that_must_go_says_why() -> None:
    evicted = pod_from(pod(phase="Failed", reason="Evicted", message="the node was low on memory"))
    assert (evicted.reason, evicted.reason_message) == ("Evicted", "the node was low on memory")
    target = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager", "message": "tainted"}
    assert pod_from(pod(conditions=[target])).reason == "DeletionByTaintManager"


def test_the_pod_of_a_job_names_it() -> None:
    document = pod()
    document["metadata"]["labels"]["batch.kubernetes.io/job-name"] = "orders-s3sink-29"
    assert pod_from(document).job == "orders-s3sink-29"


def test_the_operator_may_not_read_secrets_nor_more_than_it_needs() -> None:
    file = Path(__file__).parents[2] / "examples" / "kubernetes" / "operator.yaml"
    documents = list(yaml.safe_load_all(file.read_text()))
    rules = next(d for d in documents if d["kind"] == "ClusterRole")["rules"]
    resources = {r for rule in rules for r in rule["resources"]}
    assert "secrets" not in resources
    assert not [rule for rule in rules if "*" in (*rule["resources"], *rule["verbs"], *rule["apiGroups"])]
    assert not {"escalate", "bind", "impersonate"} & {v for rule in rules for v in rule["verbs"]}
