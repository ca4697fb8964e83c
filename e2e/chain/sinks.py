"""A cluster as these tests use it: kubectl, sinks, and waiting for what they say about themselves."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from e2e.cluster import Cluster
from e2e.cluster.client import Client, Refused

DEFINITION = "s3sinks.s3sink.dev"
_GROUPS = {
    "deployments": "/apis/apps/v1",
    "jobs": "/apis/batch/v1",
    "pods": "/api/v1",
    "s3sinks": "/apis/s3sink.dev/v1alpha1",
    "serviceaccounts": "/api/v1",
}
"""Where the API server has the kinds that tests wait for."""
LEFT_BEHIND = "s3sinks,configmaps,serviceaccounts,roles,rolebindings,deployments,replicasets,cronjobs,jobs,pods"
_ALWAYS_THERE = {"configmap/kube-root-ca.crt", "serviceaccount/default"}


def until(what: str, condition: Callable[[], Any], seconds: float = 60.0, every: float = 0.25) -> Any:
    """The first answer that is not empty; an AssertionError with the last one otherwise."""
    deadline = time.monotonic() + seconds
    found: Any = None
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(every)
    raise AssertionError(f"waited {seconds:.0f} s in vain for {what}; the last answer was {found!r}")


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
        """The message that goes with it."""

        def message() -> str:
            _, found, text = self.condition(sink, type)
            return text if found == reason else ""

        try:
            return str(until(f"{type} of {sink} to say {reason}", message, seconds))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{json.dumps(self.status(sink), indent=1)}") from None

    def patch(self, sink: str, spec: Mapping[str, Any]) -> None:
        self.kubectl("patch", "s3sink", sink, "--type", "merge", "--patch", json.dumps({"spec": spec}))

    def pods(self, sink: str, role: str = "driver") -> list[dict[str, Any]]:
        """Those that are not being deleted."""
        found = self.objects("pods", f"s3sink.dev/sink={sink},s3sink.dev/role={role}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def running(self, sink: str) -> list[str]:
        """Drivers whose process lives, those that are being deleted as well."""
        found = self.objects("pods", f"s3sink.dev/sink={sink},s3sink.dev/role=driver")
        statuses = {pod["metadata"]["name"]: pod["status"].get("containerStatuses", []) for pod in found}
        return [name for name, containers in statuses.items() if any("running" in c["state"] for c in containers)]

    def left_behind(self) -> list[str]:
        names = self.kubectl("get", LEFT_BEHIND, "--output", "name").split()
        return [name for name in names if name not in _ALWAYS_THERE]

    @property
    def _api(self) -> Client:
        """For what is asked again and again: a kubectl each time would cost more than what is waited for."""
        kubeconfig = self.cluster.kubeconfig
        return _client(kubeconfig, kubeconfig.stat().st_mtime_ns)

    def _path(self, kinds: str) -> str:
        return f"{_GROUPS[kinds]}/namespaces/{self.name}/{kinds}"


@cache
def _client(kubeconfig: Path, written: int) -> Client:
    """A cluster that was brought up again has other certificates, and has written its file anew."""
    return Client.of(kubeconfig)
