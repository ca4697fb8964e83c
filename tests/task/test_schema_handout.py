"""The schemas that the driver hands out: found before the first flush, limited in time and size."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from s3sink_api.spec import SchemaRegistry as RegistrySpec
from s3sink_api.spec import parse
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.settings import Decoding, SchemaSource
from s3sink_job.decode.writer_schemas import Reference, SchemaId, WriterSchema, numbered
from s3sink_job.flush.manifest import Slice
from s3sink_job.task.encoding import encoding_of
from s3sink_job.task.schema_handout import MOST_TEXT, PATIENCE, SchemaHandout
from s3sink_job.task.slice_result import SliceResult, result_from_json
from tools.parts.registry import SchemaRegistry


def avro(url: str) -> Decoding:
    return Decoding("String", "Avro", value_schemas=SchemaSource(registry=RegistrySpec(url=url)))


def test_a_cold_start_hands_out_the_newest_schemas_of_each_topic(registry: SchemaRegistry, topic_name: str) -> None:
    numbers = [
        registry.register(f"{topic_name}-value", json.dumps({"type": "map", "values": kind}))
        for kind in ("int", "long")
    ]
    handout = SchemaHandout(Secrets("nowhere"))
    found = handout.for_topics({topic_name: avro(registry.url)})
    assert sorted(found[registry.url]) == sorted(numbered(number) for number in numbers)


def test_a_registry_that_is_away_is_left_to_the_tasks(caplog: pytest.LogCaptureFixture) -> None:
    handout, began = SchemaHandout(Secrets("nowhere")), time.monotonic()
    assert handout.for_topics({f"t{n}": avro("http://127.0.0.1:1") for n in range(1_000)}) == {}
    assert time.monotonic() - began < 2 * PATIENCE
    assert caplog.text.count("no schemas before the first flush") == 1


def test_what_tasks_found_is_handed_out_next_time_up_to_a_limit() -> None:
    large = WriterSchema("AVRO", "x" * (MOST_TEXT // 2))
    found = {"http://r": dict.fromkeys(map(numbered, range(5)), large)}
    handout = SchemaHandout(Secrets("nowhere"))
    handout.learn([SliceResult(Slice("t", 1, 0, 0, 1, "Records"), 1, found_schemas=found)])
    assert sorted(handout.for_topics({})["http://r"]) == [numbered(0), numbered(1)]


def test_schemas_that_headers_name_travel_like_all_others() -> None:
    guid = SchemaId("schema GUID", "89791762-2336-4186-9674-299b90a802e2")
    schema = WriterSchema("AVRO", '"long"', (Reference("R", '"int"'),))
    found = {"http://r": {guid: schema, numbered(7): schema, SchemaId("Apicurio global id", "7"): schema}}
    sent = SliceResult(Slice("t", 1, 0, 0, 1, "Records"), 1, found_schemas=found)
    handout = SchemaHandout(Secrets("nowhere"))
    handout.learn([result_from_json(sent.to_json())])
    assert handout.for_topics({}) == found


APICURIO = "http://r/apis/ccompat/v7"


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ({}, {"schemaRegistry": {"url": "http://r"}}, ("value", "value_schema_id")),
        (
            {"format": "Avro", "schemaRegistry": {"url": "http://r"}},
            {"schemaRegistry": {"url": "http://r"}},
            ("value", "value_schema_id"),
        ),
        ({}, {"schema": '"long"'}, ("value",)),
        ({}, {"format": "Json"}, ("value",)),
        ({}, {"schemaRegistry": {"url": APICURIO}}, ("value", "value_schema_id")),
        ({}, {"format": "Protobuf", "schemaRegistry": {"url": "http://r"}}, ("value", "value_schema_id")),
        (
            {},
            {"format": "Protobuf", "schemaRegistry": {"url": APICURIO}},
            ("value", "value_schema_id", "value_message"),
        ),
    ],
)
def test_headers_are_read_only_where_they_may_name_a_schema(
    key: dict[str, Any], value: dict[str, Any], wanted: tuple[str, ...]
) -> None:
    source = {"bootstrapServers": "k:1", "topics": ["t"], "key": key, "value": {"format": "Avro", **value}}
    document = {
        "apiVersion": "s3sink.dev/v1alpha1",
        "kind": "S3Sink",
        "metadata": {"name": "sink"},
        "spec": {"source": source, "destination": {"bucket": "lake"}, "format": {"type": "Json"}},
    }
    assert encoding_of(parse(document).spec).columns == wanted
    document["spec"]["layout"] = {"partitionBy": [{"type": "Key"}]}  # type: ignore[index]
    ids = {"key_schema_id"} if "schemaRegistry" in key else set()
    assert set(encoding_of(parse(document).spec).columns) == {"key", *wanted, *ids}
