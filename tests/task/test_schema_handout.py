"""The schemas that the driver hands out: found before the first flush, limited in time and size."""

from __future__ import annotations

import json
import time

import pytest

from s3sink_api.spec import SchemaRegistry as RegistrySpec
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.settings import Decoding, SchemaSource
from s3sink_job.decode.writer_schemas import WriterSchema
from s3sink_job.flush.manifest import Slice
from s3sink_job.task.schema_handout import MOST_TEXT, PATIENCE, SchemaHandout
from s3sink_job.task.slice_result import SliceResult
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
    assert sorted(found[registry.url]) == sorted(numbers)


def test_a_registry_that_is_away_is_left_to_the_tasks(caplog: pytest.LogCaptureFixture) -> None:
    handout, began = SchemaHandout(Secrets("nowhere")), time.monotonic()
    assert handout.for_topics({f"t{n}": avro("http://127.0.0.1:1") for n in range(1_000)}) == {}
    assert time.monotonic() - began < 2 * PATIENCE
    assert caplog.text.count("no schemas before the first flush") == 1


def test_what_tasks_found_is_handed_out_next_time_up_to_a_limit() -> None:
    large = WriterSchema("AVRO", "x" * (MOST_TEXT // 2))
    found = {"http://r": dict.fromkeys(range(5), large)}
    handout = SchemaHandout(Secrets("nowhere"))
    handout.learn([SliceResult(Slice("t", 1, 0, 0, 1, "Records"), 1, found_schemas=found)])
    assert sorted(handout.for_topics({})["http://r"]) == [0, 1]
