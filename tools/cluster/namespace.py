"""One namespace of a cluster as tests use it: kubectl, objects, and what its sinks report in their status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tools.cluster.client import Client, Refused
from tools.cluster.interface import Cluster
from tools.polling import until

DEFINITION = "s3sinks.s3sink.dev"
_GROUPS = {
    "deployments": "/apis/apps/v1",
    "jobs": "/apis/batch/v1",
    "pods": "/api/v1",
    "s3sinks": "/apis/s3sink.dev/v1alpha1",
    "serviceaccounts": "/api/v1",
}
"""The API group of each kind that tests wait for."""
LEFT_BEHIND = "s3sinks,configmaps,serviceaccounts,roles,rolebindings,deployments,replicasets,cronjobs,jobs,pods"
_ALWAYS_THERE = {"configmap/kube-root-ca.crt", "serviceaccount/default"}


@dataclass(frozen=True)
class Namespace:
    """One namespace of the cluster, and the sinks in it."""

    cluster: Cluster
    name: str

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.cluster.kubectl("--namespace", self.name, *arguments, stdin=stdin)

    def apply(self, *documents: Mapping[str, Any]) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(items))

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        try:
            return self._api.get(f"{self._path(f'{kind}s')}/{name}")
        except Refused as refused:
            if refused.code == 404:
                return None
            raise

    def objects(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        return self._api.list(self._path(kind), labelSelector=selector)

    def status(self, sink: str) -> dict[str, Any]:
        return dict((self.get("s3sink", sink) or {}).get("status", {}))

    def condition(self, sink: str, type: str) -> tuple[str, str, str]:
        """Status, reason and message."""
        for found in self.status(sink).get("conditions", []):
            if found["type"] == type:
                return found["status"], found["reason"], found["message"]
        return "", "", ""

    def until_ready(self, sink: str, seconds: float = 60.0) -> None:
        until(f"{sink} to be ready", lambda: self.condition(sink, "Ready")[0] == "True", seconds)

    def until_reason(self, sink: str, type: str, reason: str, seconds: float = 60.0) -> str:
        """Waits until the condition has this reason, and returns its message."""

        def message() -> str:
            _, found, text = self.condition(sink, type)
            return text if found == reason else ""

        try:
            return str(until(f"condition {type} of {sink} to have the reason {reason}", message, seconds))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{json.dumps(self.status(sink), indent=1)}") from None

    def patch(self, sink: str, spec: Mapping[str, Any]) -> None:
        self.kubectl("patch", "s3sink", sink, "--type", "merge", "--patch", json.dumps({"spec": spec}))

    def pods(self, sink: str, role: str = "driver") -> list[dict[str, Any]]:
        """The pods that are not being deleted."""
        found = self.objects("pods", f"s3sink.dev/sink={sink},s3sink.dev/role={role}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def running(self, sink: str) -> list[str]:
        """The names of driver pods with a running process, also of those being deleted."""
        found = self.objects("pods", f"s3sink.dev/sink={sink},s3sink.dev/role=driver")
        statuses = {pod["metadata"]["name"]: pod["status"].get("containerStatuses", []) for pod in found}
        return [name for name, containers in statuses.items() if any("running" in c["state"] for c in containers)]

    def left_behind(self) -> list[str]:
        names = self.kubectl("get", LEFT_BEHIND, "--output", "name").split()
        return [name for name in names if name not in _ALWAYS_THERE]

    @property
    def _api(self) -> Client:
        """For requests in loops, where a kubectl for each would be slow."""
        kubeconfig = self.cluster.kubeconfig
        return _client(kubeconfig, kubeconfig.stat().st_mtime_ns)

    def _path(self, kinds: str) -> str:
        return f"{_GROUPS[kinds]}/namespaces/{self.name}/{kinds}"


@cache
def _client(kubeconfig: Path, written: int) -> Client:
    """`written` is the file's time: a cluster that was started again has other certificates."""
    return Client.of(kubeconfig)
