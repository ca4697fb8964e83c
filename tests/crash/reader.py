"""Reads Kafka and the bucket without any of the product's code."""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Place = tuple[int, int]
"""Partition and offset."""


def in_kafka(bootstrap: str, topic: str, read: Callable[[bytes], str] = bytes.decode) -> dict[Place, str]:
    """Every committed record of a topic from its beginning to its end, as text."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "independent-reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        partitions = set(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
        records: dict[Place, str] = {}
        while partitions:
            for message in consumer.consume(10_000, timeout=0.2):
                error: Any = message.error()
                partition: Any = message.partition()
                if error is None:
                    value: Any = message.value()
                    records[partition, message.offset() or 0] = read(value)
                    continue
                assert error.code() == KafkaError._PARTITION_EOF, error
                partitions.discard(partition)
        return records
    finally:
        consumer.close()


@dataclass
class IndependentReader:
    """Reads a sink's objects repeatedly, and checks that none changes or disappears."""

    client: S3Client
    bucket: str
    prefix: str
    _seen: dict[str, tuple[str, datetime]] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Every line of every object."""
        found = self._objects()
        for key, facts in self._seen.items():
            assert found.get(key) == facts, f"{key} was {facts}, is {found.get(key)}"
        self._seen = found
        return [line for key in sorted(found) for line in self._read(key)]

    def _objects(self) -> dict[str, tuple[str, datetime]]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=self.prefix)
        return {o["Key"]: (o["ETag"], o["LastModified"]) for page in pages for o in page.get("Contents", [])}

    def _read(self, key: str) -> list[str]:
        body = self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        if key.endswith(".parquet"):
            # As JSON, so that all checks read rows the same way.
            return [json.dumps(row, default=str) for row in pq.read_table(io.BytesIO(body)).to_pylist()]
        return gzip.decompress(body).decode().splitlines()


def places(lines: Iterable[str]) -> Counter[tuple[Place, int]]:
    """Partition, offset and id of rows with Kafka's columns."""
    rows = map(json.loads, lines)
    return Counter(((row["_partition"], row["_offset"]), row["id"]) for row in rows)


def ids(lines: Iterable[str]) -> Counter[int]:
    """The ids of rows that are the record's value only."""
    return Counter(json.loads(line)["id"] for line in lines)
