"""A namespace of these tests. Requests use one open connection: a kubectl for each would take too long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from tools.cluster.client import NAMESPACES, Client, Document, Refused
from tools.cluster.namespace import Namespace
from tools.polling import until

APIS = {
    **dict.fromkeys(("configmap", "serviceaccount", "pod", "event", "secret"), "/api/v1"),
    **dict.fromkeys(("deployment", "replicaset"), "/apis/apps/v1"),
    **dict.fromkeys(("job", "cronjob"), "/apis/batch/v1"),
    **dict.fromkeys(("role", "rolebinding"), "/apis/rbac.authorization.k8s.io/v1"),
    "s3sink": "/apis/s3sink.dev/v1alpha1",
}
CHILDREN = ("configmap", "serviceaccount", "role", "rolebinding", "deployment", "job", "cronjob")
_ALWAYS_THERE = {("configmap", "kube-root-ca.crt"), ("serviceaccount", "default")}

SPEC: dict[str, Any] = {
    "source": {"bootstrapServers": "kafka:9092", "topics": ["orders"]},
    "destination": {"bucket": "lake", "credentials": {"secretRef": {"name": "s3"}}},
    "format": {"type": "Json"},
}


def sink(name: str = "orders", **spec: Any) -> Document:
    metadata = {"name": name, "labels": {"app.kubernetes.io/instance": "argo"}, "annotations": {"team": "data"}}
    return {
        "apiVersion": "s3sink.dev/v1alpha1",
        "kind": "S3Sink",
        "metadata": metadata,
        "spec": {**SPEC, **spec},
    }


@dataclass(frozen=True)
class SinkNamespace(Namespace):
    client: Client

    def path(self, kind: str, name: str = "") -> str:
        kind = kind.removesuffix("s") if kind not in APIS else kind
        return f"{APIS[kind]}/namespaces/{self.name}/{kind}s" + (f"/{name}" if name else "")

    def apply(self, *documents: Mapping[str, Any]) -> None:
        for document in documents:
            path = self.path(document["kind"].lower(), document["metadata"]["name"])
            self.client.patch(path, document, "apply", fieldManager="tests", force="true")

    def get(self, kind: str, name: str) -> Document | None:
        try:
            return self.client.get(self.path(kind, name))
        except Refused as refused:
            if refused.code == 404:
                return None
            raise

    def objects(self, kind: str, selector: str = "") -> list[Document]:
        return self.client.list(self.path(kind), labelSelector=selector)

    def patch(self, sink: str, spec: Mapping[str, Any]) -> None:
        self.change("s3sink", sink, {"spec": spec})

    def change(self, kind: str, name: str, document: Mapping[str, Any]) -> None:
        self.client.patch(self.path(kind, name), document)

    def delete(self, kind: str, name: str) -> None:
        self.client.delete(self.path(kind, name), propagationPolicy="Background")

    def left_behind(self) -> list[str]:
        kinds = ("s3sink", *CHILDREN, "replicaset", "pod")
        found = {(kind, found["metadata"]["name"]) for kind in kinds for found in self.objects(kind)}
        return sorted("/".join(each) for each in found - _ALWAYS_THERE)

    def events(self, sink: str) -> set[str]:
        """The reasons of all events about a sink."""
        about = (event["involvedObject"] | event for event in self.objects("events"))
        return {event["reason"] for event in about if (event["kind"], event["name"]) == ("S3Sink", sink)}

    def remove(self) -> None:
        """Does not wait until it is empty."""
        self.client.delete(f"{NAMESPACES}/{self.name}")

    def deployment(self, sink: str = "orders") -> Document:
        found: Document = until("the Deployment", lambda: self.get("deployment", f"{sink}-s3sink"), every=0.05)
        return found

    def manifest(self, sink: str = "orders") -> Document:
        """What the driver reads."""
        found = until("the ConfigMap", lambda: self.get("configmap", f"{sink}-s3sink"), every=0.05)
        manifest: Document = yaml.safe_load(found["data"]["sink.yaml"])
        return manifest

    def generation(self, sink: str = "orders") -> int:
        return int((self.get("s3sink", sink) or {})["metadata"]["generation"])

    def until_served(self, sink: str = "orders", seconds: float = 30.0) -> None:
        """Until the sink is Ready with its current generation."""

        def served() -> bool:
            status = self.status(sink)
            ready = self.condition(sink, "Ready")
            return status.get("observedGeneration") == self.generation(sink) and ready[0] == "True"

        until(f"{sink} to be served", served, seconds, every=0.1)


class Neighbour:
    """A sink whose spec is changed from time to time, to prove that other sinks do not affect it."""

    def __init__(self, shop: SinkNamespace) -> None:
        self.shop = shop
        self._asked = 0

    def is_served(self, seconds: float = 15.0) -> None:
        self._asked += 1
        self.shop.patch("neighbour", {"flush": {"records": self._asked}})
        self.shop.until_served("neighbour", seconds)
        assert self.shop.manifest("neighbour")["spec"]["flush"]["records"] == self._asked
