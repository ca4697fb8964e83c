"""Lenses' index objects: the offsets that its sink wrote exactly once.

`<indexes>/<connector>/.locks/<topic>/<partition>.lock` is JSON with the last committed offset. Below a folder with the
partition's number there is one for each folder of data. Old releases have empty objects named by the offset,
`<indexes>/<connector>/<topic>/<partition>/<offset>`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from s3sink_job.base.errors import FinalError
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.stores.bucket import Bucket

_LOCK = re.compile(r"\.locks/(?P<topic>[A-Za-z0-9._-]+)/(?P<partition>\d+)\.lock")
_OF_FOLDER = re.compile(r"\.locks/(?P<topic>[A-Za-z0-9._-]+)/(?P<partition>\d+)/.*\.lock")
_OLD = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)/(?P<partition>\d{5})/(?P<offset>\d+)")


@dataclass(frozen=True)
class IndexPosition:
    """`next` is the offset after the last one that is written; None if nothing is."""

    next: int | None = None
    pending: bool = False
    ahead: int | None = None


def read_indexes(bucket: Bucket, folder: str, topics: Iterable[str]) -> dict[TopicPartition, IndexPosition]:
    wanted = set(topics)
    found: dict[TopicPartition, IndexPosition] = {}
    for key, _ in bucket.list(f"{folder}/"):
        name = key[len(folder) + 1 :]
        if match := _LOCK.fullmatch(name):
            at = (match["topic"], int(match["partition"]))
            if at[0] in wanted:
                position, pending = _read(bucket, key)
                found[at] = replace(found.get(at, IndexPosition()), next=position, pending=pending)
        elif (match := _OF_FOLDER.fullmatch(name)) and match["topic"] in wanted:
            at = (match["topic"], int(match["partition"]))
            position, _ = _read(bucket, key)
            before = found.get(at, IndexPosition())
            found[at] = replace(before, ahead=max(filter(None, (position, before.ahead)), default=None))
        elif (match := _OLD.fullmatch(name)) and match["topic"] in wanted:
            at = (match["topic"], int(match["partition"]))
            before = found.get(at, IndexPosition())
            found[at] = replace(before, next=max(int(match["offset"]) + 1, before.next or 0))
    return found


def _read(bucket: Bucket, key: str) -> tuple[int | None, bool]:
    answer = bucket.get(key)
    try:
        document = json.loads(answer[0]) if answer else {}
        offset = document.get("committedOffset")
        pending = document.get("pendingState") is not None
        return (None if offset is None else int(offset) + 1), pending
    except (ValueError, TypeError, AttributeError):
        raise FinalError(
            f"{bucket.url(key)} is no index object that s3sink knows; without --connector the consumer group decides",
            reason="TakeoverPosition",
        ) from None
