"""Avro records that other people's serializers wrote, with a real schema registry: Confluent's for Python, Apicurio's
for Java. Each record is in the bucket once, with every value."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from py4j.java_gateway import JavaGateway

from s3sink_job.driver.driver import Driver
from tests.harness import World
from tests.java import java_gateway
from tools.parts.jars import avro_serializer_jars
from tools.parts.registry import SchemaRegistry

pytestmark = [pytest.mark.slow, pytest.mark.spark]

SUBJECTS = ["TOPIC", "RECORD", "TOPIC_RECORD"]


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields.items()]}


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


ADDRESS = record("shop.Address", city="string", code=["null", "int"])
ORDER = record(
    "shop.Order",
    id="long",
    customer=["null", "string"],
    amount=logical("bytes", "decimal", precision=12, scale=2),
    day=logical("int", "date"),
    hour=logical("int", "time-millis"),
    at=logical("long", "timestamp-micros"),
    token=logical("string", "uuid"),
    state={"type": "enum", "name": "State", "symbols": ["OPEN", "PAID"]},
    mark={"type": "fixed", "name": "Mark", "size": 4},
    address=ADDRESS,
    lines={"type": "array", "items": record("Line", sku="string", count="int")},
    tags={"type": "map", "values": "double"},
    note=["null", "long", "string"],
)
TOKEN = "5f0c5d2e-8b7b-4f0b-9a53-0d3f8a1f2b6c"


def order(number: int) -> dict[str, Any]:
    """An order as the Parquet object has to have it."""
    return {
        "id": number - 3,
        "customer": None if number % 3 == 0 else f"c{number}",
        "amount": Decimal(number - 5) / 100,
        "day": date(2026, 1, 1 + number % 28),
        "hour": time(number % 24, 1, 2, 3000),
        "at": datetime(2026, 1, 1, 12, 0, number % 60, 7, UTC),
        "token": TOKEN,
        "state": ["OPEN", "PAID"][number % 2],
        "mark": bytes([number % 256, 0, 255, 1]),
        "address": {"city": "Łódź", "code": None if number % 2 else number},
        "lines": [{"sku": f"s{n}", "count": n} for n in range(number % 4)],
        "tags": [("a", number / 2)],
        "note": [None, {"long": number, "string": None}, {"long": None, "string": "n"}][number % 3],
    }


def for_serializer(row: dict[str, Any]) -> dict[str, Any]:
    """The same order as Confluent's serializer takes it: maps as dicts, a branch as its value."""
    note = row["note"] and next(value for value in row["note"].values() if value is not None)
    return {**row, "tags": dict(row["tags"]), "note": note}


@dataclass(frozen=True)
class Topic:
    """A topic whose values are read with the registry."""

    world: World
    registry: SchemaRegistry

    def drain(self, **more: Any) -> Driver:
        avro = {"format": "Avro", "schemaRegistry": {"url": self.registry.url}}
        source = {"value": avro, "key": avro}
        return self.world.drain(source=source, format={"type": "Parquet", **more})

    def rows(self) -> list[dict[str, Any]]:
        """Of the only object, in order."""
        (key,) = self.world.objects()
        found: list[dict[str, Any]] = pq.read_table(io.BytesIO(self.world.content(key))).to_pylist()
        return found


@pytest.fixture
def topic(world: World, registry: SchemaRegistry) -> Topic:
    world.kafka.create_topic(world.topic, 1)
    return Topic(world, registry)


Serialize = Callable[[Any], bytes]


def confluent(topic: Topic, schema: Any, subjects: str = "TOPIC", part: str = MessageField.VALUE) -> Serialize:
    client = SchemaRegistryClient({"url": topic.registry.url})
    text = schema if isinstance(schema, Schema) else json.dumps(schema)
    serializer = AvroSerializer(client, text, conf={"subject.name.strategy.type": subjects})
    context = SerializationContext(topic.world.topic, part)

    def serialize(value: Any) -> bytes:
        written = serializer(value, context)
        assert written is not None
        return written

    return serialize


@pytest.mark.parametrize("subjects", SUBJECTS)
def test_confluents_serializer_loses_no_value_by_any_subject(topic: Topic, subjects: str) -> None:
    world = topic.world
    payment = record("shop.Payment", id="long", paid="boolean")
    orders, payments = confluent(topic, ORDER, subjects), confluent(topic, payment, subjects)
    keys = confluent(topic, record("shop.OrderKey", id="long"), subjects, MessageField.KEY)
    produced = [order(n) if n % 2 else {"id": n, "paid": n % 4 == 0} for n in range(200)]
    values = [payments(row) if "paid" in row else orders(for_serializer(row)) for row in produced]
    records = [(keys({"id": n}), value, None, None) for n, value in enumerate(values)]
    world.kafka.produce(world.topic, records, 0)

    driver = topic.drain(columns={"meta": "Kafka"})

    rows = topic.rows()
    assert [json.loads(row["_key"]) for row in rows] == [{"id": n} for n in range(200)]
    columns = [*order(0), "paid"]
    assert [{name: row[name] for name in columns} for row in rows] == [
        {name: row.get(name) for name in columns} for row in produced
    ]
    named = {subject for subject in topic.registry.request("GET", "/subjects") if "Payment" in subject}
    wanted = {"TOPIC": set(), "RECORD": {"shop.Payment"}, "TOPIC_RECORD": {f"{world.topic}-shop.Payment"}}
    assert wanted[subjects] <= named
    assert world.verify(driver).ok


def test_confluents_serializer_with_references_loses_no_value(topic: Topic) -> None:
    world = topic.world
    address, customer = f"{world.topic}-address", f"{world.topic}-customer"
    client = SchemaRegistryClient({"url": topic.registry.url})
    client.register_schema(address, Schema(json.dumps(ADDRESS), "AVRO"))
    to_address = [SchemaReference("shop.Address", address, 1)]
    schema = Schema(json.dumps(record("shop.Customer", name="string", home="shop.Address")), "AVRO", to_address)
    client.register_schema(customer, schema)
    refer = [SchemaReference("shop.Customer", customer, 1), *to_address]
    text = json.dumps(record("shop.Sale", id="long", by="shop.Customer", to=["null", "shop.Address"]))
    serialize = confluent(topic, Schema(text, "AVRO", refer))
    home = {"city": "Łódź", "code": 7}
    sales = [{"id": n, "by": {"name": f"c{n}", "home": home}, "to": home if n % 2 else None} for n in range(50)]
    world.produce([serialize(sale) for sale in sales])

    driver = topic.drain()

    assert topic.rows() == sales
    assert world.verify(driver).ok


@pytest.fixture(scope="module")
def java() -> Iterator[JavaGateway]:
    with java_gateway(avro_serializer_jars()) as opened:
        yield opened


def apicurio(java: JavaGateway, topic: Topic, schema: Any, **settings: str) -> Serialize:
    """Apicurio's serializer for Java. It takes values in Avro's own JSON."""
    avro, options = java.jvm.org.apache.avro, java.jvm.java.util.HashMap()
    host = f"http://{topic.registry.host}:{topic.registry.port}"
    for name, setting in {"url": f"{host}/apis/registry/v3", "auto-register": "true", **settings}.items():
        options.put(f"apicurio.registry.{name}", setting)
    serializer = java.jvm.io.apicurio.registry.serde.avro.AvroKafkaSerializer()
    serializer.configure(options, False)
    parsed = avro.Schema.Parser().parse(json.dumps(schema))
    reader, decoders = avro.generic.GenericDatumReader(parsed), avro.io.DecoderFactory.get()

    def serialize(value: Any) -> bytes:
        read = reader.read(None, decoders.jsonDecoder(parsed, json.dumps(value)))
        return bytes(serializer.serialize(topic.world.topic, read))

    return serialize


def as_avro_json(row: dict[str, Any]) -> dict[str, Any]:
    """An order in Avro's JSON: logical types as the numbers below them, bytes as text, branches by name."""
    unscaled = int(row["amount"] * 100)
    hour, at = row["hour"], row["at"] - datetime(1970, 1, 1, tzinfo=UTC)
    code, note = row["address"]["code"], row["note"]
    return {
        **row,
        "customer": row["customer"] and {"string": row["customer"]},
        "amount": unscaled.to_bytes(3, "big", signed=True).decode("latin-1"),
        "day": (row["day"] - date(1970, 1, 1)).days,
        "hour": ((hour.hour * 60 + hour.minute) * 60 + hour.second) * 1000 + hour.microsecond // 1000,
        "at": (at.days * 86_400 + at.seconds) * 1_000_000 + at.microseconds,
        "mark": row["mark"].decode("latin-1"),
        "address": {**row["address"], "code": None if code is None else {"int": code}},
        "tags": dict(row["tags"]),
        "note": note and {kind: value for kind, value in note.items() if value is not None},
    }


@pytest.mark.parametrize("dereference", ["false", "true"])
def test_a_java_serializer_loses_no_value(java: JavaGateway, topic: Topic, dereference: str) -> None:
    world = topic.world
    serialize = apicurio(java, topic, ORDER, **{"dereference-schema": dereference})
    produced = [order(n) for n in range(150)]
    world.produce([serialize(as_avro_json(row)) for row in produced])

    driver = topic.drain()

    assert topic.rows() == produced
    assert world.verify(driver).ok
