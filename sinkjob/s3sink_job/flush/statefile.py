"""The state as the JSON document in the bucket, such that an older release reads it or refuses it in words.

0.1.0 ignores fields at the top level that it does not know, and fails on unknown fields below. What came later
therefore stands at the top. Where forgetting it would do harm, the format version is raised.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from s3sink_job.errors import ProtocolError
from s3sink_job.flush.manifest import Gap
from s3sink_job.flush.state import (
    Cut,
    Owner,
    PartitionState,
    ResetDone,
    Resource,
    State,
    TopicState,
    Totals,
    Truncation,
)

FORMAT_VERSION = 3
"""1 is what 0.1.0 reads. 2 has resets, which it would carry out again. 3 has partitions that are stopped because
their log was cut, and lost objects that wait for repair: it would step over the one and forget the other."""
EPOCHS, CUTS = "leader_epochs", "cuts"
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The zero id, which brokers without topic ids answer. 0.1.0 stored it as it is."""


def state_to_json(state: State) -> bytes:
    doc = asdict(state)
    later: dict[str, dict[str, dict[int, Any]]] = {EPOCHS: {}, CUTS: {}}
    for name, topic in doc["topics"].items():
        # As 0.1.0 has it: for another text it would take the topic for a recreated one.
        topic["id"] = topic["id"] or NO_ID
        for partition, at in topic["partitions"].items():
            for key, value in ((EPOCHS, at.pop("leader_epoch")), (CUTS, at.pop("cut"))):
                if value is not None:
                    later[key].setdefault(name, {})[partition] = value
    return json.dumps({"formatVersion": _format_version(state), **doc, **later}, indent=1).encode()


def _format_version(state: State) -> int:
    """The lowest that can say it: an older release goes on where nothing would be forgotten."""
    stopped = any(at.cut for topic in state.topics.values() for at in topic.partitions.values())
    if stopped or state.lost:
        return 3
    return 2 if state.resets else 1


def state_from_json(body: bytes, where: str) -> State:
    try:
        doc = json.loads(body)
        version = doc.pop("formatVersion")
        if not isinstance(version, int) or version > FORMAT_VERSION:
            raise ProtocolError(
                f"{where} has format version {version}, this s3sink knows up to {FORMAT_VERSION}: "
                "run a newer s3sink; nothing was changed",
                reason="NewerFormat",
            )
        for field_name in ("epoch", "revision", "flush"):
            if not isinstance(doc[field_name], int):
                raise TypeError(f"{field_name} is no whole number")
        resource = doc.get("resource")
        return State(
            owner=Owner(**doc["owner"]),
            epoch=doc["epoch"],
            revision=doc["revision"],
            writer=doc["writer"],
            flush=doc["flush"],
            last=doc["last"],
            publishing=doc["publishing"],
            contacted=doc["contacted"],
            topics={name: _topic(t, *_later(doc, name)) for name, t in doc["topics"].items()},
            totals=Totals(**doc["totals"]),
            recent_gaps=tuple(Gap(**g) for g in doc["recent_gaps"]),
            stamp=doc.get("stamp", 0),
            resets=tuple(ResetDone(**r) for r in doc.get("resets", ())),
            resource=Resource(**resource) if resource else None,
            lost={flush: tuple(places) for flush, places in doc.get("lost", {}).items()},
            truncations=tuple(Truncation(**t) for t in doc.get("truncations", ())),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProtocolError(
            f"{where} cannot be read as an s3sink state ({error}): restore it from a version or backup; "
            "nothing was changed",
            reason="CorruptState",
        ) from error


def _later(doc: Mapping[str, Any], topic: str) -> tuple[Mapping[str, int], Mapping[str, Any]]:
    return doc.get(EPOCHS, {}).get(topic, {}), doc.get(CUTS, {}).get(topic, {})


def _topic(doc: Mapping[str, Any], epochs: Mapping[str, int], cuts: Mapping[str, Any]) -> TopicState:
    partitions = {
        int(p): PartitionState(**at, leader_epoch=epochs.get(p), cut=Cut(**cuts[p]) if p in cuts else None)
        for p, at in doc["partitions"].items()
    }
    topic_id = "" if doc["id"] == NO_ID else doc["id"]
    return TopicState(topic_id, doc["generation"], partitions, doc.get("schema", ""))
