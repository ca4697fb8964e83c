"""Writes to the API server: children, the status, events. The object cache gets the answers."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Any

from s3sink_api.group import API_VERSION, KIND
from s3sink_api.labels import MANAGER
from s3sink_operator.logs import log
from s3sink_operator.observe.api_client import ApiClient, ApiError
from s3sink_operator.observe.object_cache import ObjectCache
from s3sink_operator.values.decision import Decision, Event
from s3sink_operator.values.objects import Document, SinkResource

LONGEST_EVENT = 1024


def write_children(api: ApiClient, cache: ObjectCache, resource: SinkResource, decision: Decision) -> None:
    """Deletes first: nothing may run beside what is to be deleted."""
    key = resource.key
    for child in decision.delete:
        if not api.delete(child.kind, key.namespace, child.name, child.uid):
            cache.forget(child.kind, key, child.name)
        log.info("deleted object", extra={"fields": {"sink": str(key), "kind": child.kind, "name": child.name}})
    for document in decision.apply:
        cache.update(document["kind"], api.apply(document), key)
        fields = {"sink": str(key), "kind": document["kind"], "name": document["metadata"]["name"]}
        log.info("applied object", extra={"fields": fields})


def write_status(
    api: ApiClient, cache: ObjectCache, resource: SinkResource, status: Document, events: tuple[Event, ...] = ()
) -> None:
    key = resource.key
    cache.update(KIND, api.replace_status(KIND, key.namespace, key.name, status))
    for event in events:
        try:
            api.create("Event", key.namespace, event_document(resource, event))
        except ApiError as error:
            # Not worth a retry: the status says the same.
            if error.namespace_terminating:
                return
            log.warning("could not write an event", extra={"fields": {"sink": str(key), "error": str(error)}})


def event_document(resource: SinkResource, event: Event) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{resource.key.name}.{secrets.token_hex(8)}",
            "namespace": resource.key.namespace,
        },
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": resource.key.name,
            "namespace": resource.key.namespace,
            "uid": resource.uid,
        },
        "type": event.type,
        "reason": event.reason,
        "message": event.message[:LONGEST_EVENT],
        "source": {"component": MANAGER},
        "reportingComponent": MANAGER,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
