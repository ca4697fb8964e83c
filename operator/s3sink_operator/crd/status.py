"""The schema of `status`. What the driver reports is cut down to it before it is written."""

from __future__ import annotations

from typing import Any


def _text(description: str, longest: int = 1024) -> dict[str, Any]:
    return {"type": "string", "maxLength": longest, "description": description}


def _time(description: str) -> dict[str, Any]:
    return {"type": "string", "format": "date-time", "description": description}


def _count(description: str) -> dict[str, Any]:
    return {"type": "integer", "format": "int64", "description": description}


def _number(description: str) -> dict[str, Any]:
    return {"type": "number", "description": description}


def _object(description: str, properties: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "description": description, "properties": properties}
    return schema | {"required": list(required)} if required else schema


def _list(description: str, most: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "maxItems": most, "description": description, "items": item}


_CONDITION = _object(
    "One aspect of the sink's state.",
    {
        "type": _text("Accepted, Ready, LastFlushSucceeded, ExactlyOnce, CaughtUp or OffsetsPublished.", 64),
        "status": {"type": "string", "enum": ["True", "False", "Unknown"], "description": "Whether it holds."},
        "reason": _text("Why, as one stable word.", 128),
        "message": _text("Why, for people, and what to do.", 4096),
        "lastTransitionTime": _time("When the status changed last."),
        "observedGeneration": _count("The generation of the spec this is about."),
    },
    ("type", "status", "reason", "message", "lastTransitionTime"),
)
_TOPIC = _text("The topic.", 249)
_PARTITION = _count("The partition.")

STATUS: dict[str, Any] = _object(
    "What the operator and the driver saw last.",
    {
        "observedGeneration": _count("The generation of the spec that the operator looked at last."),
        "phase": {
            "type": "string",
            "enum": ["Pending", "Starting", "Running", "Paused", "Stopped", "Completed", "Degraded", "Failed"],
            "description": "What the sink is doing, in one word; the conditions say more.",
        },
        "conditions": _list(
            "Accepted, Ready, LastFlushSucceeded, ExactlyOnce, CaughtUp and OffsetsPublished.", 16, _CONDITION
        )
        | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        "flush": _object(
            "The last flush, and the sums since the sink's first start.",
            {
                "lastTime": _time("When the last flush was published."),
                "lastReason": _text("The rules that made its slices due."),
                "records": _count("Records in the last flush."),
                "bytes": _count("Bytes in the last flush, as written."),
                "objects": _count("Objects in the last flush."),
                "durationSeconds": _number("How long the last flush took."),
                "nextDue": _time("When the next rule fires, if something waits."),
                "totalRecords": _count("Records since the sink's first start."),
                "totalObjects": _count("Objects since the sink's first start."),
            },
        ),
        "retry": _object(
            "Failures, and what became of bad records.",
            {
                "attempts": _count("Failures since the last flush."),
                "lastError": _text("The last failure, as reason and message.", 4096),
                "lastTime": _time("When the last failure was."),
                "nextTime": _time("When it is tried again."),
                "skippedRecords": _count("Bad records left out since the first start."),
                "deadLetteredRecords": _count("Bad records put aside since the first start."),
            },
        ),
        "lag": _object(
            "How far the bucket is behind Kafka; absent while nobody reports.",
            {
                "records": _count("Offsets up to the readable end, over all partitions."),
                "recordsToHighWatermark": _count("The same up to the high watermark."),
                "seconds": _number("The longest time a partition has been behind."),
                "worst": _object(
                    "The partition furthest behind; absent when all are level.",
                    {"topic": _TOPIC, "partition": _PARTITION, "records": _count("Its lag.")},
                ),
            },
        ),
        "offsets": _list(
            "The partitions furthest behind, at most 50.",
            50,
            _object(
                "One partition.",
                {
                    "topic": _TOPIC,
                    "partition": _PARTITION,
                    "committed": _count("The next offset to write."),
                    "end": _count("The readable end."),
                    "lag": _count("Offsets in between."),
                },
            ),
        ),
        "gaps": _object(
            "Offsets that were lost in Kafka before they were written.",
            {
                "count": _count("Recorded gaps."),
                "records": _count("Offsets in them."),
                "recent": _list(
                    "The last 20 gaps.",
                    20,
                    _object(
                        "One gap.",
                        {
                            "topic": _TOPIC,
                            "partition": _PARTITION,
                            "from": _count("The first offset that is missing."),
                            "to": _count("The offset after the last that is missing."),
                            "reason": _text("Why they are missing."),
                        },
                    ),
                ),
            },
        ),
        "reset": _object(
            "The last reset that was carried out.",
            {"nonce": _text("Its nonce."), "time": _time("When every topic began anew.")},
        ),
        "driver": _object(
            "The driver's pod.",
            {
                "pod": _text("Its name.", 253),
                "restarts": _count("How often its container was started again."),
                "lastExit": _object(
                    "How the container ended last.",
                    {
                        "code": _count("Its exit code."),
                        "reason": _text("Kubernetes' word for it, such as OOMKilled."),
                        "message": _text("The last line it wrote.", 4096),
                        "time": _time("When it ended."),
                    },
                ),
                "epoch": _count("The driver's epoch in the sink's state; a higher one shuts out a lower one."),
            },
        ),
        "executors": _object(
            "The executor pods of Cluster mode, for `kubectl scale`.",
            {
                "replicas": {"type": "integer", "format": "int32", "description": "Executors that run."},
                "selector": _text("The label selector of their pods."),
            },
        ),
    },
)
