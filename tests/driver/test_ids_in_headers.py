"""Records whose schema is named in a header, as Confluent's and Apicurio's serializers write them, between records with
an id in front: each is in the bucket once, with its own values."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from py4j.java_gateway import JavaGateway

from s3sink_job.task.slice_task import SliceTask
from tests.commit.test_store_faults import abort_all, committed_but_unpublished
from tests.decode.guid_registry import PATH, guid_of, with_guids
from tests.harness import World
from tests.java import java_gateway
from tools.parts.jars import avro_serializer_jars
from tools.parts.kafka import Record
from tools.parts.registry import SchemaRegistry

pytestmark = [pytest.mark.slow, pytest.mark.spark]

Headers = list[tuple[str, bytes | None]]


def record(name: str, /, **fields: Any) -> str:
    return json.dumps({"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields.items()]})


ORDER = record("shop.Order", id="long", country="string")
PAYMENT = record("shop.Payment", id="long", country="string", paid="boolean")
KEY = record("shop.Key", id="long")


def row(number: int) -> dict[str, Any]:
    return {"id": number, "country": ["de", "fr"][number % 2]} | ({"paid": True} if number % 3 else {})


class Confluent:
    """Serializers that put the id in front, or a GUID into a header."""

    def __init__(self, world: World, url: str) -> None:
        self._topic = world.topic
        self._client = SchemaRegistryClient({"url": url})
        self._opened: dict[tuple[str, bool], AvroSerializer] = {}

    def serialize(self, schema: str, part: str, value: Any, headers: Headers | None) -> bytes:
        if (schema, headers is None) not in self._opened:
            conf: dict[str, Any] = {"subject.name.strategy.type": "TOPIC_RECORD"}
            if headers is not None:
                conf["schema.id.serializer"] = header_schema_id_serializer
            self._opened[schema, headers is None] = AvroSerializer(self._client, schema, conf=conf)
        written = self._opened[schema, headers is None](value, SerializationContext(self._topic, part, headers))
        assert written is not None
        return written

    def record(self, number: int) -> tuple[bytes, bytes, Headers, None]:
        """Every second record has no prefix."""
        headers: Headers = [("trace", b"x" * (number % 5))] if number % 2 else []
        own = headers if number % 2 else None
        value = self.serialize(PAYMENT if number % 3 else ORDER, MessageField.VALUE, row(number), own)
        return self.serialize(KEY, MessageField.KEY, {"id": number}, own), value, headers, None


@pytest.fixture
def asked() -> list[str]:
    """Paths of all requests to the registry."""
    return []


@pytest.fixture
def avro(world: World, registry: SchemaRegistry, asked: list[str]) -> Iterator[dict[str, Any]]:
    """The format of keys and values. The topic is there, and empty."""
    world.kafka.create_topic(world.topic, 1)
    with with_guids(registry, asked) as url:
        yield {"format": "Avro", "schemaRegistry": {"url": url}}


def rows_of(world: World) -> list[dict[str, Any]]:
    """Of all objects, by id."""
    found = [row for key in world.objects() for row in pq.read_table(io.BytesIO(world.content(key))).to_pylist()]
    return sorted(found, key=lambda one: one["id"])


def test_prefixes_and_guids_in_headers_are_mixed_in_one_topic(
    world: World, avro: dict[str, Any], asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    confluent = Confluent(world, avro["schemaRegistry"]["url"])
    records = [confluent.record(n) for n in range(200)]
    assert [header[0] for header in records[1][2]] == ["trace", "__value_schema_id", "__key_schema_id"]
    world.kafka.produce(world.topic, records, 0)
    spec: dict[str, Any] = {
        "source": {"key": avro, "value": avro},
        "format": {"type": "Parquet", "columns": {"meta": "Kafka"}, "schemaEvolution": {"mode": "None"}},
        "layout": {"partitionBy": [{"type": "Field", "path": ["country"]}]},
    }
    committed_but_unpublished(world, monkeypatch, **spec)
    lost = abort_all(world)

    driver = world.drain(**spec)

    rows = rows_of(world)
    assert (lost, len(world.objects())) == (2, 2)
    assert [{name: r[name] for name in ("id", "country", "paid")} for r in rows] == [
        {"paid": None, **row(n)} for n in range(200)
    ]
    assert [json.loads(r["_key"]) for r in rows] == [{"id": n} for n in range(200)]
    assert all("country=" not in key and ("de" in key or "fr" in key) for key in world.objects())
    assert len({path for path in asked if path.startswith(PATH)}) == 3
    report = world.verify(driver)
    assert report.ok, report.counts.findings


def test_a_guid_that_nobody_knows_is_a_bad_record(world: World, avro: dict[str, Any]) -> None:
    confluent = Confluent(world, avro["schemaRegistry"]["url"])
    good = [confluent.record(n) for n in range(4)]
    unknown = [("__value_schema_id", b"\x01" + guid_of(2**31 - 5).bytes)]
    world.kafka.produce(world.topic, [*good[:2], (b"k", good[1][1], unknown, None), *good[2:]], 0)

    driver = world.drain(source={"value": avro}, format={"type": "Parquet"}, errors={"records": "Skip"})

    assert [found["id"] for found in rows_of(world)] == [0, 1, 2, 3]
    assert world.state()["totals"]["skipped"] == 1
    assert world.verify(driver).ok


def test_values_of_json_that_begin_with_a_frame_are_read_without_headers(
    world: World, registry: SchemaRegistry, jobs: list[SliceTask]
) -> None:
    """Headers are read from the first value without a frame on. A header beside a frame changes nothing."""
    world.kafka.create_topic(world.topic, 2)
    schema = '{"type":"object","properties":{"id":{"type":"integer"}}}'
    number = registry.register(f"{world.topic}-value", schema, kind="JSON").to_bytes(4, "big")

    def given(first: int, *, in_header: bool) -> list[Record]:
        """20 values, and a tombstone."""
        values = [json.dumps({"id": n}).encode() for n in range(first, first + 20)]
        headers: list[Headers | None] = [[("__value_schema_id", b"\x00" + number)]] * 20
        if not in_header:
            values = [b"\x00" + number + value for value in values]
            headers = [None, [("__value_schema_id", b"\x00\xff\xff\xff\xff")]] * 10
        return [(None, None, None, None), *((None, *both, None) for both in zip(values, headers, strict=True))]

    spec: dict[str, Any] = {
        "source": {"value": {"format": "JsonSchema", "schemaRegistry": {"url": registry.url}}},
        "format": {"type": "Parquet"},
        "nullValues": "Skip",
        "flush": {"records": 21},
    }
    world.kafka.produce(world.topic, given(0, in_header=False), 0)
    driver = world.driver(run="Continuous", **spec)
    driver.step()
    assert [task.columns for task in jobs] == [("value",)]

    jobs.clear()
    world.kafka.produce(world.topic, given(20, in_header=True), 0)
    world.kafka.produce(world.topic, given(40, in_header=False), 1)
    driver.step()
    read = [(len(task.slices), task.columns) for task in jobs]
    assert read == [(2, ("value",)), (1, ("value", "value_schema_id"))]

    jobs.clear()
    world.kafka.produce(world.topic, given(60, in_header=True), 0)
    driver.step()
    assert [task.columns for task in jobs] == [("value", "value_schema_id")]
    assert [found["id"] for found in rows_of(world)] == list(range(80))
    assert world.verify(driver).ok


def test_ids_of_keys_that_nobody_reads_are_not_looked_for_beside_a_topic_with_keys(
    world: World, registry: SchemaRegistry, jobs: list[SliceTask]
) -> None:
    other = f"{world.topic}.other"
    schema = '{"type":"object","properties":{"id":{"type":"integer"}}}'
    number = registry.register(f"{world.topic}-key", schema, kind="JSON").to_bytes(4, "big")
    spec: dict[str, Any] = {
        "source": {
            "topics": [world.topic, other],
            "key": {"format": "JsonSchema", "schemaRegistry": {"url": registry.url}},
        },
        "format": {"type": "Json"},
        "routes": [
            {
                "topics": [other],
                "source": {"key": {"format": "String"}},
                "format": {"type": "Json", "envelope": {"enabled": True}},
            }
        ],
        "flush": {"records": 3},
    }
    for topic in (world.topic, other):
        world.kafka.create_topic(topic, 1)
    driver = world.driver(run="Continuous", **spec)
    for flush in range(2):
        for topic in (world.topic, other):
            headers: Headers = [("__key_schema_id", b"\x00" + number)]
            world.kafka.produce(topic, [(b'{"id":1}', b'{"n":%d}' % n, headers, None) for n in range(3)], 0)
        driver.step()
        assert [task.reading.ids for task in jobs] == [False] * (flush + 1)
    assert len(world.objects()) == 4
    assert world.verify(driver).ok


@pytest.fixture(scope="module")
def java() -> Iterator[JavaGateway]:
    with java_gateway(avro_serializer_jars()) as opened:
        yield opened


def apicurio_records(java: JavaGateway, world: World, registry: SchemaRegistry, by: str, count: int) -> list[Any]:
    """Orders with the id in a header, as Apicurio's serializer for Java writes them."""
    options = java.jvm.java.util.HashMap()
    host = f"http://{registry.host}:{registry.port}"
    settings = {"url": f"{host}/apis/registry/v3", "auto-register": "true", "headers.enabled": "true", "use-id": by}
    for name, setting in settings.items():
        options.put(f"apicurio.registry.{name}", setting)
    serializer = java.jvm.io.apicurio.registry.serde.avro.AvroKafkaSerializer()
    serializer.configure(options, False)
    parsed = java.jvm.org.apache.avro.Schema.Parser().parse(ORDER)
    found = []
    for number in range(count):
        order = java.jvm.org.apache.avro.generic.GenericData.Record(parsed)
        order.put("id", java.jvm.Long.valueOf(number))
        order.put("country", by)
        headers = java.jvm.org.apache.kafka.common.header.internals.RecordHeaders()
        value = bytes(serializer.serialize(world.topic, headers, order))
        found.append((None, value, [(header.key(), bytes(header.value())) for header in headers.toArray()], None))
    return found


def test_ids_of_apicurio_in_headers_are_read(java: JavaGateway, world: World, registry: SchemaRegistry) -> None:
    world.kafka.create_topic(world.topic, 1)
    # The same content under another name: from here on global ids are ahead of content ids.
    registry.register(f"{world.topic}-before", ORDER)
    kinds = ["contentId", "globalId"]
    by_kind = [apicurio_records(java, world, registry, kind, 20) for kind in kinds]
    assert [records[0][2][0][0] for records in by_kind] == [f"apicurio.value.{kind}" for kind in kinds]
    number = int.from_bytes(by_kind[0][0][2][0][1], "big")
    front = [(None, b"\x00" + number.to_bytes(4, "big") + records[0][1], None, None) for records in by_kind]
    world.kafka.produce(world.topic, [*by_kind[0], *front, *by_kind[1]], 0)

    avro = {"format": "Avro", "schemaRegistry": {"url": registry.url}}
    driver = world.drain(source={"value": avro}, format={"type": "Parquet"})

    wanted = [{"id": n, "country": kind} for n in [*range(20), 0] for kind in kinds]
    assert sorted(map(str, rows_of(world))) == sorted(map(str, wanted))
    assert world.verify(driver).ok
