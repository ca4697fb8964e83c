"""The proof must fail when objects are missing, duplicated, changed or foreign: here they are, by hand."""

from __future__ import annotations

import gzip
import json

import polars as pl
import pytest

from tests.chaos.choices import PREFIX, Choices
from tests.chaos.proof import compare
from tests.chaos.readers import in_bucket, in_kafka
from tools.parts.kafka import KafkaBroker
from tools.parts.s3 import S3Server

LINES = Choices(
    seed=0,
    format="Json",
    codec="Gzip",
    shape="plain",
    layout="default layout",
    flush={},
    isolation="ReadCommitted",
    partitions=2,
    sizes="small",
    rate=1,
    producers=(),
)


def value(number: int, text: str = "x") -> bytes:
    return json.dumps({"id": number, "text": text}).encode()


def test_missing_duplicate_changed_and_foreign_records_are_named(
    kafka: KafkaBroker, s3: S3Server, topic_name: str, bucket: str
) -> None:
    kafka.create_topic(topic_name, 2)
    for partition in range(2):
        numbers = range(10 * partition, 10 * partition + 10)
        kafka.produce(topic_name, [(None, value(n), None, None) for n in numbers], partition)
    client = s3.client()

    def put(key: str, *values: bytes) -> None:
        client.put_object(Bucket=bucket, Key=f"{PREFIX}/{key}", Body=gzip.compress(b"\n".join(values)))

    def found() -> list[str]:
        records = in_kafka(kafka.bootstrap, topic_name, LINES.isolation)
        return compare(records, in_bucket(client, bucket, LINES)).in_words()

    for start in range(0, 20, 5):
        put(f"{start:02}", *map(value, range(start, start + 5)))
    client.put_object(Bucket=bucket, Key="elsewhere", Body=b"not below the prefix")
    assert found() == []

    client.delete_object(Bucket=bucket, Key=f"{PREFIX}/15")
    assert found()[:2] == ["5 missing records, the first of them:", "  id 15, missing 1, places 1-5"]

    put("15", *map(value, range(15, 20)))
    put("again", value(3))
    assert found() == [
        "1 duplicate records, the first of them:",
        f"  id 3, twice 1, places 0-3, keys {PREFIX}/00, {PREFIX}/again",
    ]

    put("again", value(99))
    assert found() == ["1 foreign records, the first of them:", f"  id 99, keys {PREFIX}/again"]

    put("again", value(3, "y"))
    assert found() == ["1 foreign records, the first of them:", f"  id 3, keys {PREFIX}/again"]

    client.put_object(Bucket=bucket, Key=f"{PREFIX}/again", Body=gzip.compress(value(3))[:-9])
    with pytest.raises(AssertionError, match=f"{PREFIX}/again of .* bytes cannot be read"):
        found()


def test_a_record_that_is_twice_in_kafka_must_be_twice_in_the_bucket() -> None:
    kafka = pl.DataFrame([(1, 0, 0, 0), (1, 0, 0, 1)], ["id", "sum", "partition", "offset"], orient="row")
    once = pl.DataFrame([(1, 0, "a")], ["id", "sum", "key"], orient="row")
    assert compare(kafka, pl.concat([once, once])).exact
    assert compare(kafka, once).in_words()[1] == "  id 1, missing 1, places 0-0, 0-1"
    assert compare(kafka, pl.concat([once] * 3)).in_words()[1] == "  id 1, twice 1, places 0-0, 0-1, keys a, a, a"
