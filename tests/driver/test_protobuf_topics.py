"""Topics of Protobuf records with a real schema registry: each record is in the bucket once, with its types."""

from __future__ import annotations

import io
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from google.protobuf.unknown_fields import UnknownFieldSet

from tests.decode.proto_samples import message_class, schema_of
from tests.driver.test_avro_topics import findings
from tests.harness import World, failure_of
from tools.parts.registry import SchemaRegistry

pytestmark = [pytest.mark.slow, pytest.mark.spark]

SHOP = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum State { OPEN = 0; PAID = 1; }
message Address { string city = 1; Address next = 2; }
message Order {
  int64 id = 1; google.protobuf.StringValue customer = 2; uint64 total = 3; google.protobuf.Timestamp at = 4;
  State state = 5; Address address = 6; repeated int32 counts = 7; map<string, double> rates = 8;
  oneof by { string card = 9; bool cash = 10; }
}
"""
KEY = 'syntax = "proto3"; package shop; message OrderKey { int64 id = 1; }'
COLUMNS = (
    "id int64, customer string, total decimal128(20, 0), at timestamp[ns, tz=UTC], state string, "
    "address struct<city: string, next: string>, counts list<item: int32>, rates map<string, double>, "
    "card string, cash bool"
)


def order(number: int) -> bytes:
    made: Any = message_class(schema_of(SHOP), "Order")(id=number, total=2**64 - 1 - number, state=number % 2)
    made.at.FromNanoseconds(1_700_000_000_000_000_000 + number)
    made.address.city, made.address.next.city = f"c{number % 2}", "n"
    made.counts.extend(range(number % 3))
    made.rates["r"] = number / 2
    if number % 3 == 0:
        made.customer.value = f"c{number}"
    if number % 2:
        made.cash = False
    return bytes(made.SerializeToString())


def framed(number: int, indexes: bytes, payload: bytes) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + indexes + payload


ORDER = b"\x02\x02"
"""The second message of the schema."""


@pytest.fixture
def protobuf(world: World, registry: SchemaRegistry) -> dict[str, Any]:
    """The part of a spec that reads Protobuf with the registry. The topic is there, and empty."""
    world.kafka.create_topic(world.topic, 1)
    part = {"format": "Protobuf", "schemaRegistry": {"url": registry.url}}
    return {"value": part, "key": part}


def test_protobuf_values_and_keys_become_parquet_with_their_types(
    world: World, registry: SchemaRegistry, protobuf: Any
) -> None:
    number = registry.register(f"{world.topic}-value", SHOP, kind="PROTOBUF")
    key_number = registry.register(f"{world.topic}-key", KEY, kind="PROTOBUF")
    keys = [bytes(message_class(schema_of(KEY))(id=n).SerializeToString()) for n in range(200)]
    records = [
        (framed(key_number, b"\x00", key), framed(number, ORDER, order(n)), None, None) for n, key in enumerate(keys)
    ]
    world.kafka.produce(world.topic, records, 0)
    layout = {"partitionBy": [{"type": "Field", "path": ["address", "city"]}, {"type": "Field", "path": ["state"]}]}
    form = {"type": "Parquet", "columns": {"meta": "Kafka"}}

    driver = world.drain(source=protobuf, format=form, layout=layout)

    assert sorted({key.rpartition("/")[0] for key in world.objects()}) == ["raw/c0/OPEN", "raw/c1/PAID"]
    tables = [pq.read_table(io.BytesIO(world.content(key))) for key in world.objects()]
    rows = sorted((row for table in tables for row in table.to_pylist()), key=lambda row: row["id"])
    assert [row["id"] for row in rows] == list(range(200))
    assert rows[9]["_key"] == '{"id":9}'
    assert rows[9]["at"].value == 1_700_000_000_000_000_009
    assert {name: rows[9][name] for name in ("customer", "total", "address", "counts", "rates", "card", "cash")} == {
        "customer": "c9",
        "total": 2**64 - 10,
        "address": {"city": "c1", "next": '{"city":"n"}'},
        "counts": [],
        "rates": [("r", 4.5)],
        "card": None,
        "cash": False,
    }
    assert [rows[10]["customer"], rows[10]["cash"]] == [None, None]
    assert world.verify(driver).ok
    # A reader that is not Arrow's.
    path = world.download(world.folder / "read")[0]
    found = duckdb.sql(f"SELECT typeof(total), typeof(\"at\"), typeof(rates) FROM '{path}' LIMIT 1").fetchall()
    assert found == [("DECIMAL(20,0)", "TIMESTAMPTZ_NS", "MAP(VARCHAR, DOUBLE)")]


def test_bad_protobuf_records_are_skipped_one_by_one(world: World, registry: SchemaRegistry, protobuf: Any) -> None:
    number = registry.register(f"{world.topic}-value", SHOP, kind="PROTOBUF")
    good = [framed(number, ORDER, order(n)) for n in range(6)]
    bad = [b"{}", good[0][:-1], framed(number, b"\x02\x08", b""), framed(number, ORDER, b"\x08"), good[0] + b"\x07"]
    world.produce([*good[:3], *bad, *good[3:], None])
    spec = {"source": {"value": protobuf["value"]}, "errors": {"records": "Skip"}}

    driver = world.drain(format={"type": "Avro"}, **spec)

    report = world.verify(driver)
    assert report.ok, report
    assert report.counts.records == 7


def test_an_inline_protobuf_schema_needs_no_registry(world: World) -> None:
    world.kafka.create_topic(world.topic, 1)
    world.produce([order(n) for n in range(10)])
    # Its first message counts. The other fields of the records are unknown to it.
    value = {"format": "Protobuf", "schema": 'syntax = "proto3"; message Order { int64 id = 1; }'}
    driver = world.drain(source={"value": value}, format={"type": "Orc"})
    report = world.verify(driver)
    assert report.ok, report
    assert report.counts.records == 10
    narrow = message_class(schema_of(value["schema"]))
    left_out = sum(len(UnknownFieldSet(narrow.FromString(order(n)))) for n in range(10))
    labels = {"topic": world.topic, "partition": "0"}
    found = driver.reporter.metrics.registry.get_sample_value("s3sink_unknown_fields_total", labels)
    assert found == left_out > 10, "as Google's own library counts them"


def test_check_shows_the_first_message_as_columns(world: World, registry: SchemaRegistry, protobuf: Any) -> None:
    text = SHOP.replace("message Address { string city = 1; Address next = 2; }\n", "")
    text += "message Address { string city = 1; Address next = 2; }\n"
    registry.register(f"{world.topic}-value", text, kind="PROTOBUF")
    found = findings(world.driver(source=protobuf))
    (columns,) = [text for what, ok, text in found if what == "schema" and ok and "-value, version 1, id " in text]
    assert columns.endswith(COLUMNS)


def test_a_wrong_inline_schema_stops_the_sink_before_it_writes_anything(world: World) -> None:
    world.kafka.create_topic(world.topic, 1)
    world.produce([order(n) for n in range(3)])
    value = {
        "format": "Protobuf",
        "schema": 'syntax = "proto3";\nmessage Order { option allow_alias = true; int id = 1; }',
    }
    driver = world.driver(source={"value": value})
    error = failure_of(driver.step)
    assert (error.reason, error.retryable) == ("InvalidSchema", False)
    assert str(error).startswith("spec.source.value.schema is not a Protobuf schema: ")
    assert "int" in str(error)
    assert ("schema", False, str(error)) in findings(driver)
    assert world.objects("") == []
