"""A folder in git and the Application that syncs it, with Argo CD's own code in place of its controller."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tools.argocd.program import ArgoCD, Way
from tools.cluster.client import Client, Document, sinks

WAYS = {
    "by default": Way(),
    "ServerSideApply": Way(server=True),
    "ServerSideDiff": Way(serverDiff=True),
    "ServerSideApply, ServerSideDiff": Way(server=True, serverDiff=True),
    "ServerSideApply, ServerSideDiff, IncludeMutationWebhook": Way(server=True, serverDiff=True, webhooks=True),
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@dataclass(frozen=True)
class Git:
    """A manifest that an Application syncs into a namespace."""

    argocd: ArgoCD
    api: Client
    namespace: str
    way: Way

    def desired(self, manifest: str | Document) -> list[Document]:
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        found = self.argocd.read(text, self.namespace)
        for document in found:
            document["metadata"]["namespace"] = self.namespace
        return found

    def sync(self, manifest: str | Document) -> Document:
        """The sink, as it is afterwards."""
        for document in self.desired(manifest):
            self.argocd.apply(document, server=self.way.server)
        return self.live(manifest)

    def live(self, manifest: str | Document) -> Document:
        return self.api.get(sinks(self.namespace, self._sink(manifest)["metadata"]["name"]))

    def differs(self, manifest: str | Document) -> dict[str, Any]:
        """What a sync would change, by the path of the field: what is there, and what would be."""
        found = self.argocd.diff(self.live(manifest), self._sink(manifest), self.way)
        live, predicted = dict(leaves(found.live)), dict(leaves(found.predicted))
        both = {path: (live.get(path), predicted.get(path)) for path in live | predicted}
        changed = {path: values for path, values in both.items() if values[0] != values[1]}
        assert bool(changed) == found.modified
        return changed

    def _sink(self, manifest: str | Document) -> Document:
        return next(document for document in self.desired(manifest) if document["kind"] == "S3Sink")


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{index}]")
    else:
        yield path, value
