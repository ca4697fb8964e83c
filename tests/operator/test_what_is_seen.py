"""Documents of the API server as facts."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from s3sink_operator import observe
from s3sink_operator.model import Exit
from s3sink_operator.observe import child_from, pod_from


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


@contextmanager
def answering(monkeypatch: pytest.MonkeyPatch, code: int, body: bytes) -> Iterator[None]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(code)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(observe, "PORT", server.server_address[1])
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def test_a_report_is_read_straight_from_the_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(monkeypatch, 200, b"{}"):
        assert observe._get("127.0.0.1", 2.0) == b"{}"


@pytest.mark.parametrize(("code", "size"), [(503, 2), (200, (1 << 20) + 1)])
def test_a_bad_or_endless_answer_is_no_report(monkeypatch: pytest.MonkeyPatch, code: int, size: int) -> None:
    with answering(monkeypatch, code, b"x" * size), pytest.raises(ValueError):
        observe._get("127.0.0.1", 2.0)


def test_the_operator_may_not_read_secrets_nor_more_than_it_needs() -> None:
    file = Path(__file__).parents[2] / "examples" / "kubernetes" / "operator.yaml"
    documents = list(yaml.safe_load_all(file.read_text()))
    rules = next(d for d in documents if d["kind"] == "ClusterRole")["rules"]
    resources = {r for rule in rules for r in rule["resources"]}
    assert "secrets" not in resources
    assert not [rule for rule in rules if "*" in (*rule["resources"], *rule["verbs"], *rule["apiGroups"])]
    assert not {"escalate", "bind", "impersonate"} & {v for rule in rules for v in rule["verbs"]}
