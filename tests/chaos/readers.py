"""Reads every record of the topic and of the bucket, without any of the product's code.

A record has its id and a checksum of its text; in Kafka also partition and offset, in the bucket the key of its object.
"""

from __future__ import annotations

import csv
import io
import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import fastavro
import polars as pl
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from pyarrow import orc

from tests.chaos.choices import PREFIX, Choices
from tools.parts.decompressors import DECOMPRESS

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Row = dict[str, Any]
ID = {"id": pl.Int64, "sum": pl.Int64}
SILENCE = 60.0
LEVELS = {"ReadCommitted": "read_committed", "ReadUncommitted": "read_uncommitted"}


def in_kafka(bootstrap: str, topic: str, isolation: str) -> pl.DataFrame:
    """Columns id, sum, partition, offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "independent-reader",
            "isolation.level": LEVELS[isolation],
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        left = set(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in left])
        rows = []
        last = time.monotonic()
        while left:
            some = consumer.consume(10_000, timeout=0.5)
            last = time.monotonic() if some else last
            assert time.monotonic() < last + SILENCE, (
                f"no more records from Kafka; left to read: partitions {sorted(left)}"
            )
            for message in some:
                error: Any = message.error()
                if error is None:
                    value: Any = message.value()
                    rows.append((*_told(json.loads(value)), message.partition(), message.offset()))
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition())
                else:
                    raise AssertionError(f"the independent consumer failed: {error}")
    finally:
        consumer.close()
    return pl.DataFrame(rows, {**ID, "partition": pl.Int32, "offset": pl.Int64}, orient="row")


def in_bucket(client: S3Client, bucket: str, choices: Choices) -> pl.DataFrame:
    """Columns id, sum, key."""
    read = READERS[choices.format]
    rows = []
    for key in keys(client, bucket, f"{PREFIX}/"):
        body = client.get_object(Bucket=bucket, Key=key)["Body"].read()
        try:
            rows += [(*_told(row), key) for row in read(body, choices.codec)]
        except Exception as error:
            raise AssertionError(
                f"{key} of {len(body)} bytes cannot be read: {type(error).__name__}: {error}"
            ) from error
    return pl.DataFrame(rows, {**ID, "key": pl.String}, orient="row")


def keys(client: S3Client, bucket: str, prefix: str) -> Iterator[str]:
    """Page by page, each by the token of the page before."""
    more: dict[str, Any] = {}
    while True:
        page: Any = client.list_objects_v2(Bucket=bucket, Prefix=prefix, **more)
        yield from (found["Key"] for found in page.get("Contents", []))
        if not page["IsTruncated"]:
            return
        more = {"ContinuationToken": page["NextContinuationToken"]}


def _told(row: Row) -> tuple[int, int]:
    """With an envelope the value is one of its fields."""
    value = row.get("value", row)
    return int(value["id"]), zlib.crc32(value["text"].encode())


def _parquet(body: bytes, codec: str) -> Iterable[Row]:
    return pl.read_parquet(io.BytesIO(body)).iter_rows(named=True)


def _avro(body: bytes, codec: str) -> Iterable[Any]:
    return fastavro.reader(io.BytesIO(body))


def _lines(body: bytes, codec: str) -> Iterable[Row]:
    return map(json.loads, DECOMPRESS[codec](body).splitlines())


def _csv(body: bytes, codec: str) -> Iterable[Row]:
    return csv.DictReader(io.StringIO(bytes(DECOMPRESS[codec](body)).decode(), newline=""))


def _orc(body: bytes, codec: str) -> Iterable[Row]:
    rows: list[Row] = orc.ORCFile(io.BytesIO(body)).read().to_pylist()
    return rows


READERS: dict[str, Callable[[bytes, str], Iterable[Row]]] = {
    "Parquet": _parquet,
    "Avro": _avro,
    "Json": _lines,
    "Text": _lines,
    "Bytes": _lines,
    "Csv": _csv,
    "Orc": _orc,
}
