"""What all children of a sink have in common: owner, labels, and a hash of what was applied."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from s3sink_api.group import API_VERSION, KIND
from s3sink_api.labels import APPLIED, DRIVER
from s3sink_api.spec import S3Sink
from s3sink_operator.decide.children.child_names import child_labels
from s3sink_operator.values.objects import SinkResource


def owned_object(
    resource: SinkResource,
    sink: S3Sink,
    api_version: str,
    kind: str,
    name: str,
    body: Mapping[str, Any],
    *,
    role: str = DRIVER,
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A document for server-side apply. Kubernetes deletes the object together with the sink."""
    owner = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": resource.key.name,
        "uid": resource.uid,
        "controller": True,
    }
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": resource.key.namespace,
        "labels": child_labels(sink, role),
        "ownerReferences": [owner],
    }
    if annotations is not None:
        metadata["annotations"] = dict(annotations)
    document = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}
    applied = content_hash(document)
    metadata.setdefault("annotations", {})[APPLIED] = applied
    return document


def content_hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
