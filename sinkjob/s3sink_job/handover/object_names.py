"""Offsets in the names of objects, as other sinks write them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.handover.positions import NamedObject

_CONFLUENT = re.compile(r"(?:^|/)(?P<topic>[A-Za-z0-9._-]+)\+(?P<partition>\d+)\+(?P<offset>\d+)(?:\.[^/]*)?$")
_LENSES = re.compile(r"(?:^|/)(?P<topic>[A-Za-z0-9._-]+)\((?P<partition>\d+)_(?P<offset>\d+)\)[^/]*$")
_FOLDERS = re.compile(r"(?:^|/)(?P<topic>[A-Za-z0-9._-]+)/(?P<partition>\d+)/(?P<offset>\d+)(?:_\d+_\d+)?[^/\d][^/]*$")


def named_objects(keys: Iterable[str], *, lenses: bool) -> dict[TopicPartition, list[NamedObject]]:
    """Objects by their partitions. Lenses names an object by its last offset, all others by the first."""
    found: dict[TopicPartition, list[NamedObject]] = {}
    for key in keys:
        for pattern in (_CONFLUENT, _LENSES, _FOLDERS):
            match = pattern.search(key)
            if match:
                last = pattern is _LENSES or (lenses and pattern is _FOLDERS)
                at = (match["topic"], int(match["partition"]))
                found.setdefault(at, []).append(NamedObject(key, int(match["offset"]), last))
                break
    return found
