"""Doing what was decided: apply, delete, write the status, tell of it. Each step may be done twice."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Any

from s3sink_operator.api import Api, ApiError
from s3sink_operator.decide.children import API_VERSION, KIND
from s3sink_operator.logs import log
from s3sink_operator.model import MANAGER, Decision, Event, Resource
from s3sink_operator.store import Store

LONGEST_EVENT = 1024


def carry_out(api: Api, store: Store, resource: Resource, decision: Decision) -> None:
    """Deletes before it applies: nothing may run beside what is to go."""
    key = resource.key
    for child in decision.delete:
        if not api.delete(child.kind, key.namespace, child.name, child.uid):
            store.lose(child.kind, key, child.name)
        log.info("deleted", extra={"fields": {"sink": str(key), "kind": child.kind, "name": child.name}})
    for document in decision.apply:
        store.put(document["kind"], api.apply(document), key)
        fields = {"sink": str(key), "kind": document["kind"], "name": document["metadata"]["name"]}
        log.info("applied", extra={"fields": fields})


def write_status(api: Api, store: Store, resource: Resource, decision: Decision) -> None:
    if decision.status is None:
        return
    store.put(KIND, api.replace_status(KIND, resource.key.namespace, resource.key.name, decision.status))
    for event in decision.events:
        try:
            api.create("Event", resource.key.namespace, event_document(resource, event))
        except ApiError as error:
            # An event is a courtesy: the status says the same.
            if error.namespace_goes:
                return
            log.warning("event not written", extra={"fields": {"sink": str(resource.key), "error": str(error)}})


def event_document(resource: Resource, event: Event) -> dict[str, Any]:
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
