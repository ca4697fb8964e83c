"""The state as JSON, the state object in the bucket. Older releases read it, or refuse it with a clear message.

0.1.0 ignores unknown fields at the top level and fails on unknown fields below. So newer fields are at the top level.
Where it would do harm to ignore one, the format version is raised.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from s3sink_job.base.errors import ProtocolError
from s3sink_job.flush.manifest import Gap, LastLetter
from s3sink_job.flush.rollback import TYPED_SCHEMA
from s3sink_job.flush.state import (
    FixedEnd,
    LetterTotals,
    Owner,
    PartitionState,
    Refresh,
    RefreshPhase,
    ResetDone,
    Resource,
    SinkState,
    TopicEnd,
    TopicState,
    Totals,
    TruncatedLog,
    Truncation,
)

FORMAT_VERSION = 4
"""0.1.0 reads 1. 2 has resets, which 0.1.0 would do again. 3 has stopped partitions with truncated logs, lost objects
that are not repaired yet, and columns of typed records: 0.1.0 would skip, forget, or fail to read them. 4 has a full
refresh: an older release would publish nothing of it, and would miss the objects that it removed."""
EPOCHS, TRUNCATED_LOGS = "leader_epochs", "cuts"
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The zero id, the answer of brokers without topic ids. 0.1.0 stores it as it is."""


def state_to_json(state: SinkState) -> bytes:
    doc = asdict(state)
    if state.end is None:
        del doc["end"]
    if state.letters == LetterTotals():
        del doc["letters"]
    if state.refresh is None:
        del doc["refresh"]
    if not state.filtered:
        del doc["filtered"]
    newer: dict[str, dict[str, dict[int, Any]]] = {EPOCHS: {}, TRUNCATED_LOGS: {}}
    for name, topic in doc["topics"].items():
        # As 0.1.0 has it. With another text it would see a recreated topic.
        topic["id"] = topic["id"] or NO_ID
        for number, partition in topic["partitions"].items():
            epoch, log = partition.pop("leader_epoch"), partition.pop("truncated_log")
            if epoch is not None:
                newer[EPOCHS].setdefault(name, {})[number] = epoch
            if log is not None:
                log_doc = {"at": log["first_difference"], "seen": log["found_at"]}
                newer[TRUNCATED_LOGS].setdefault(name, {})[number] = log_doc
    return json.dumps({"formatVersion": _format_version(state), **doc, **newer}, indent=1).encode()


def _format_version(state: SinkState) -> int:
    """The lowest that is safe: an older release may continue where it would forget nothing."""
    if state.refresh is not None:
        return 4
    stopped = any(at.truncated_log for topic in state.topics.values() for at in topic.partitions.values())
    typed = any(topic.schema.startswith(TYPED_SCHEMA) for topic in state.topics.values())
    if stopped or state.lost or typed:
        return 3
    return 2 if state.resets else 1


def state_from_json(body: bytes, where: str) -> SinkState:
    try:
        doc = json.loads(body)
        version = doc.pop("formatVersion")
        if not isinstance(version, int) or version > FORMAT_VERSION:
            raise ProtocolError(
                f"{where} has format version {version}, this s3sink reads up to {FORMAT_VERSION}: "
                "run a newer s3sink; nothing was changed",
                reason="NewerFormat",
            )
        for field_name in ("epoch", "revision", "flush"):
            if not isinstance(doc[field_name], int):
                raise TypeError(f"{field_name} is not an integer")
        resource = doc.get("resource")
        return SinkState(
            owner=Owner(**doc["owner"]),
            epoch=doc["epoch"],
            revision=doc["revision"],
            writer=doc["writer"],
            flush=doc["flush"],
            last=doc["last"],
            publishing=doc["publishing"],
            contacted=doc["contacted"],
            topics={name: _topic(topic, *_newer_fields(doc, name)) for name, topic in doc["topics"].items()},
            totals=Totals(**doc["totals"]),
            recent_gaps=tuple(Gap(**g) for g in doc["recent_gaps"]),
            stamp=doc.get("stamp", 0),
            resets=tuple(ResetDone(**r) for r in doc.get("resets", ())),
            resource=Resource(**resource) if resource else None,
            lost={flush: tuple(places) for flush, places in doc.get("lost", {}).items()},
            truncations=tuple(Truncation(**t) for t in doc.get("truncations", ())),
            end=_fixed_end(doc.get("end")),
            letters=_letters(doc.get("letters", {})),
            refresh=_refresh(doc.get("refresh")),
            filtered=doc.get("filtered", 0),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProtocolError(
            f"{where} is not a readable s3sink state ({error}): restore it from a version or a backup; "
            "nothing was changed",
            reason="CorruptState",
        ) from error


def _letters(doc: Mapping[str, Any]) -> LetterTotals:
    last = doc.get("last")
    return LetterTotals(**{**doc, "last": LastLetter(**last) if last else None})


def _refresh(doc: Mapping[str, Any] | None) -> Refresh | None:
    if doc is None:
        return None
    former = {name: _former_topic(topic) for name, topic in doc["former"].items()}
    totals = {name: Totals(**doc[name]) for name in ("totals", "totals_replaced")}
    return Refresh(**{**doc, "phase": RefreshPhase(doc["phase"]), "former": former, **totals})


def _former_topic(doc: Mapping[str, Any]) -> TopicState:
    partitions = {}
    for number, at in doc["partitions"].items():
        log = at["truncated_log"]
        partitions[int(number)] = PartitionState(**{**at, "truncated_log": TruncatedLog(**log) if log else None})
    return TopicState(doc["id"], doc["generation"], partitions, doc["schema"])


def _newer_fields(doc: Mapping[str, Any], topic: str) -> tuple[Mapping[str, int], Mapping[str, Any]]:
    return doc.get(EPOCHS, {}).get(topic, {}), doc.get(TRUNCATED_LOGS, {}).get(topic, {})


def _topic(doc: Mapping[str, Any], epochs: Mapping[str, int], logs: Mapping[str, Any]) -> TopicState:
    partitions = {
        int(p): PartitionState(**at, leader_epoch=epochs.get(p), truncated_log=_truncated_log(logs.get(p)))
        for p, at in doc["partitions"].items()
    }
    topic_id = "" if doc["id"] == NO_ID else doc["id"]
    return TopicState(topic_id, doc["generation"], partitions, doc.get("schema", ""))


def _fixed_end(doc: Mapping[str, Any] | None) -> FixedEnd | None:
    if doc is None:
        return None
    topics = {name: TopicEnd(topic["id"], _by_number(topic["offsets"])) for name, topic in doc["topics"].items()}
    return FixedEnd(doc["wanted"], doc["at"], topics)


def _by_number(doc: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): value for partition, value in doc.items()}


def _truncated_log(doc: Mapping[str, Any] | None) -> TruncatedLog | None:
    return None if doc is None else TruncatedLog(first_difference=doc["at"], found_at=doc["seen"])
