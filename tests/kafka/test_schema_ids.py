"""Ids of schemas in headers and names of messages: columns for keys and values, and no other header leaves Spark."""

from __future__ import annotations

import pyarrow as pa

from s3sink_job.flush.manifest import Slice
from s3sink_job.kafka.batch_size import SMALL, without_large
from s3sink_job.kafka.slice_reader import read_slices
from tests.harness import World

GUID = b"\x01" + bytes(range(16))
NUMBER = (7).to_bytes(8, "big")


def test_the_last_header_that_names_a_schema_is_read_for_key_and_value(world: World) -> None:
    world.kafka.create_topic(world.topic, 1)
    headers = [
        None,
        [("other", b"x")],
        [("__value_schema_id", GUID)],
        [("__key_schema_id", GUID), ("a", b"1"), ("__value_schema_id", b"\x00old"), ("__value_schema_id", GUID)],
        [("apicurio.value.globalId", NUMBER), ("apicurio.protobuf.type", b"Old"), ("apicurio.protobuf.type", b"Order")],
        [
            ("apicurio.value.contentId", NUMBER),
            ("apicurio.protobuf.type.key", b"Key"),
            ("apicurio.key.globalId", NUMBER),
        ],
        [("__value_schema_id", None)],
        [("__value_schema_id", b"")],
        [("__value_schema_id", b"x" * 2 * SMALL)],
    ]
    world.kafka.produce(world.topic, [(None, b"v", given, None) for given in headers], 0)
    frame = read_slices(
        world.spark,
        [Slice(world.topic, 1, 0, 0, len(headers), "test")],
        {"bootstrap.servers": world.kafka.bootstrap},
        columns=("value", "key_schema_id", "value_schema_id", "key_message", "value_message"),
        group=f"test.{world.topic}",
        isolation="ReadCommitted",
    )
    assert frame.columns[2:] == ["value", "key_schema_id", "value_schema_id", "key_message", "value_message"]
    found: pa.Table = without_large(frame).toArrow().sort_by("offset")
    values = [None, None, GUID, GUID, b"g" + NUMBER, b"c" + NUMBER, None, b"", None]
    assert found.column("value_schema_id").to_pylist() == values
    assert found.column("key_schema_id").to_pylist() == [*[None] * 3, GUID, None, b"g" + NUMBER, *[None] * 3]
    assert found.column("value_message").to_pylist() == [*[None] * 4, b"Order", *[None] * 4]
    assert found.column("key_message").to_pylist() == [*[None] * 5, b"Key", *[None] * 3]
    assert found.column("large").to_pylist() == [False] * 8 + [True]
