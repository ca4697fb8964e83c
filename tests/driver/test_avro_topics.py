"""Topics of Avro records with a real schema registry: each record is in the bucket once, with its types."""

from __future__ import annotations

import datetime
import decimal
import io
import json
from typing import Any

import duckdb
import fastavro
import pyarrow.parquet as pq
import pytest

from s3sink_job.cli.opened_sink import LOCAL_CLUSTER
from s3sink_job.commit.ledger import Ledger
from s3sink_job.driver.driver import Driver
from s3sink_job.flush.state import Owner
from s3sink_job.proof.preflight import CheckResult, preflight_checks
from tests.decode.avro_samples import signed, written
from tests.harness import World
from tools.parts.registry import SchemaRegistry
from tools.polling import until

pytestmark = [pytest.mark.slow, pytest.mark.spark]

MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
DAY = {"type": "int", "logicalType": "date"}
TIME = {"type": "long", "logicalType": "timestamp-micros"}


def order(**more: Any) -> dict[str, Any]:
    fields = {"id": "long", "customer": ["null", "string"], "amount": MONEY, "day": DAY, "at": TIME, **more}
    return {"type": "record", "name": "shop.Order", "fields": [{"name": n, "type": t} for n, t in fields.items()]}


def value(number: int, **more: Any) -> dict[str, Any]:
    customer = None if number % 3 == 0 else f"c{number}"
    row = {"id": number, "customer": customer, "amount": signed(-number, 4), "day": number, "at": number * 1_000_001}
    return {**row, **more}


def wire(number: int, schema: Any, row: Any) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + written(schema, row)[0]


@pytest.fixture
def avro(world: World, registry: SchemaRegistry) -> dict[str, Any]:
    """The part of a spec that reads Avro values with the registry. The topic is there, and empty."""
    world.kafka.create_topic(world.topic, 1)
    return {"value": {"format": "Avro", "schemaRegistry": {"url": registry.url}}}


def parquet_rows(world: World, key: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(world.content(key))).to_pylist()
    return rows


def source_schemas(world: World, key: str) -> Any:
    return json.loads(pq.read_metadata(io.BytesIO(world.content(key))).metadata[b"s3sink.schemas"])


def test_avro_values_become_parquet_with_their_types(world: World, registry: SchemaRegistry, avro: Any) -> None:
    number = registry.register(f"{world.topic}-value", json.dumps(order()))
    world.produce([wire(number, order(), value(n)) for n in range(500)])
    driver = world.drain(source=avro, format={"type": "Parquet"})
    (key,) = world.objects()
    rows = parquet_rows(world, key)
    assert [row["id"] for row in rows] == list(range(500))
    assert source_schemas(world, key) == [{"id": number, "type": "AVRO", "schema": json.dumps(order())}]
    assert rows[7] == {
        "id": 7,
        "customer": "c7",
        "amount": decimal.Decimal("-0.07"),
        "day": datetime.date(1970, 1, 8),
        "at": datetime.datetime(1970, 1, 1, 0, 0, 7, 7, datetime.UTC),
    }
    assert world.verify(driver).ok
    # A reader that is not Arrow's.
    (path,) = world.download(world.folder / "read")
    found = duckdb.sql(f"SELECT typeof(amount), typeof(day) FROM '{path}' LIMIT 1").fetchall()
    assert found == [("DECIMAL(12,2)", "DATE")]


@pytest.mark.parametrize("kind", ["Avro", "Orc", "Csv", "Json", "Text", "Bytes"])
def test_avro_values_in_every_output_format_are_proved(
    world: World, registry: SchemaRegistry, avro: Any, kind: str
) -> None:
    number = registry.register(f"{world.topic}-value", json.dumps(order()))
    world.produce([wire(number, order(), value(n)) for n in range(40)] + [None])
    driver = world.drain(source=avro, format={"type": kind})
    report = world.verify(driver)
    assert report.ok, report
    assert report.counts.records == 41 if kind != "Bytes" else report.counts.records >= 40
    if kind == "Avro":
        found = list(fastavro.reader(io.BytesIO(world.content(world.objects()[0]))))
        assert found[1]["amount"] == decimal.Decimal("-0.01")
        schema: Any = fastavro.reader(io.BytesIO(world.content(world.objects()[0]))).writer_schema
        assert schema["name"] == "shop.Order"


def test_alternating_schema_versions_share_one_object(world: World, registry: SchemaRegistry, avro: Any) -> None:
    schemas = [order(), order(note=["null", "string"]), order(quantity=["null", "int"])]
    numbers = [registry.register(f"{world.topic}-value", json.dumps(schema)) for schema in schemas]
    extra: list[dict[str, Any]] = [{}, {"note": "n"}, {"quantity": 3}]
    world.produce([wire(numbers[n % 3], schemas[n % 3], value(n, **extra[n % 3])) for n in range(900)])
    driver = world.drain(source=avro, format={"type": "Parquet"})
    (key,) = world.objects()
    rows = parquet_rows(world, key)
    assert [row["id"] for row in rows] == list(range(900))
    assert [(row["note"], row["quantity"]) for row in rows[:3]] == [(None, None), ("n", None), (None, 3)]
    assert world.verify(driver).ok


def test_each_change_of_the_schema_may_begin_an_object(world: World, registry: SchemaRegistry, avro: Any) -> None:
    schemas = [order(), order(note=["null", "string"])]
    numbers = [registry.register(f"{world.topic}-value", json.dumps(schema)) for schema in schemas]
    versions = [0, 0, 1, 1, 1, 0]
    raw = [wire(numbers[v], schemas[v], value(n, **({"note": "n"} if v else {}))) for n, v in enumerate(versions)]
    world.produce([*raw[:3], None, *raw[3:]])
    driver = world.drain(source=avro, format={"type": "Parquet", "schemaEvolution": {"onChange": "Roll"}})
    found = [(source_schemas(world, key)[0]["id"], parquet_rows(world, key)) for key in world.objects()]
    assert [(number, [row["id"] for row in rows]) for number, rows in found] == [
        (numbers[0], [0, 1]),
        (numbers[1], [2, None, 3, 4]),
        (numbers[0], [5]),
    ]
    assert ["note" in rows[0] for _, rows in found] == [False, True, False]
    assert world.verify(driver).ok


def test_a_change_that_the_mode_refuses_is_a_bad_record(world: World, registry: SchemaRegistry, avro: Any) -> None:
    schemas = [order(), order(note="string")]
    numbers = [registry.register(f"{world.topic}-value", json.dumps(schema)) for schema in schemas]
    world.produce(
        [wire(numbers[n % 2], schemas[n % 2], value(n, **({"note": "n"} if n % 2 else {}))) for n in range(6)]
    )
    driver = world.drain(source=avro, format={"type": "Parquet"}, errors={"records": "Skip"})
    assert [row["id"] for key in world.objects() for row in parquet_rows(world, key)] == [0, 2, 4]
    assert world.verify(driver).ok
    world.produce([wire(numbers[1], schemas[1], value(6, note="n"))])
    lenient = {"type": "Parquet", "schemaEvolution": {"mode": "None"}}
    driver = world.drain(source=avro, format=lenient, errors={"records": "Skip"})
    assert [row["id"] for key in world.objects() for row in parquet_rows(world, key)] == [0, 2, 4, 6]
    assert world.verify(driver).ok


def test_a_schema_that_was_taken_once_is_proved_in_every_later_flush(
    world: World, registry: SchemaRegistry, avro: Any
) -> None:
    """The later objects alone would look as if the field was new in them."""
    schemas = [order(), order(note="string")]
    numbers = [registry.register(f"{world.topic}-value", json.dumps(schema)) for schema in schemas]
    raw = [wire(numbers[n % 2], schemas[n % 2], value(n, **({"note": "n"} if n % 2 else {}))) for n in range(6)]
    world.produce([raw[1]])
    world.drain(source=avro, format={"type": "Parquet"})
    world.produce([raw[0], raw[3], raw[2], raw[5]])
    driver = world.drain(source=avro, format={"type": "Parquet"})
    assert [row["id"] for key in world.objects() for row in parquet_rows(world, key)] == [1, 0, 3, 2, 5]
    report = world.verify(driver)
    assert report.ok, report


def test_columns_known_from_an_earlier_flush_stay(world: World, registry: SchemaRegistry, avro: Any) -> None:
    wide, narrow = order(total="long"), order(total="int")
    numbers = [registry.register(f"{world.topic}-value", json.dumps(schema)) for schema in (wide, narrow)]
    world.produce([wire(numbers[0], wide, value(0, total=2**40))])
    world.drain(source=avro, format={"type": "Parquet"})
    world.produce([wire(numbers[1], narrow, value(1, total=7))])
    driver = world.drain(source=avro, format={"type": "Parquet"})
    types = {str(pq.read_schema(io.BytesIO(world.content(key))).field("total").type) for key in world.objects()}
    assert types == {"int64"}
    assert world.verify(driver).ok


def test_bad_records_are_skipped_one_by_one(world: World, registry: SchemaRegistry, avro: Any) -> None:
    number = registry.register(f"{world.topic}-value", json.dumps(order()))
    good = [wire(number, order(), value(n)) for n in range(6)]
    bad = [b"{}", good[0][:-1], wire(number + 1_000_000, order(), value(1)), good[0] + b"x"]
    world.produce([*good[:3], *bad, *good[3:]])
    driver = world.drain(source=avro, format={"type": "Parquet"}, errors={"records": "Skip"})
    rows = [row for key in world.objects() for row in parquet_rows(world, key)]
    assert [row["id"] for row in rows] == list(range(6))
    assert world.verify(driver).ok


def test_a_registry_that_is_away_loses_no_record(world: World) -> None:
    world.kafka.create_topic(world.topic, 1)
    with SchemaRegistry() as registry:
        spec = {"value": {"format": "Avro", "schemaRegistry": {"url": registry.url}}}
        number = registry.register(f"{world.topic}-value", json.dumps(order()))
        world.produce([wire(number, order(), value(n)) for n in range(5)])
        registry.pause()
        skip = {
            "records": "Skip",
            "requestRetries": {"max": 0, "backoff": "1ms"},
            "retries": {"max": 3, "backoff": "1s"},
        }
        driver = world.driver(
            source=spec, format={"type": "Parquet"}, errors=skip, run="Continuous", flush={"interval": "1s"}
        )
        registry.kill()
        until("the flush to fail", lambda: (driver.step(), driver.planner.backoff.problems)[1], 60)
        assert not world.objects()
        (problem,) = {problem.reason for problem in driver.planner.backoff.problems.values()}
        assert problem == "RegistryUnavailable"
        registry.start()
        assert registry.register(f"{world.topic}-value", json.dumps(order())) == number
    with SchemaRegistry(port=registry.port) as again:
        assert again.register(f"{world.topic}-value", json.dumps(order())) == number
        world.drain(source=spec, format={"type": "Parquet"})
    assert [row["id"] for key in world.objects() for row in parquet_rows(world, key)] == list(range(5))


def test_keys_routes_and_folders_know_avro(world: World, registry: SchemaRegistry, avro: Any) -> None:
    number = registry.register(f"{world.topic}-value", json.dumps(order()))
    key_number = registry.register(f"{world.topic}-key", '"long"')
    records = [(wire(key_number, "long", n), wire(number, order(), value(n)), None, None) for n in range(6)]
    world.kafka.produce(world.topic, records, 0)
    source = {**avro, "key": {"format": "Avro", "schemaRegistry": {"url": registry.url}}}
    layout = {"partitionBy": [{"type": "Field", "path": ["day"]}, {"type": "Key"}]}
    driver = world.drain(source=source, format={"type": "Parquet", "columns": {"meta": "Kafka"}}, layout=layout)
    keys = world.objects()
    assert len(keys) == 6
    assert any(key.startswith("raw/1970-01-04/3/") for key in keys), keys
    assert {row["_key"] for key in keys for row in parquet_rows(world, key)} == {str(n) for n in range(6)}
    assert world.verify(driver).ok


def test_an_inline_schema_needs_no_registry(world: World) -> None:
    world.kafka.create_topic(world.topic, 1)
    world.produce([written(order(), value(n))[0] for n in range(10)])
    source = {"value": {"format": "Avro", "schema": json.dumps(order())}}
    driver = world.drain(source=source, format={"type": "Avro"})
    found = [row for key in world.objects() for row in fastavro.reader(io.BytesIO(world.content(key)))]
    assert [row["id"] for row in found] == list(range(10))
    assert world.verify(driver).ok


def test_check_shows_the_latest_schema_as_columns(world: World, registry: SchemaRegistry, avro: Any) -> None:
    registry.register(f"{world.topic}-value", json.dumps(order()))
    key = {"format": "Avro", "schemaRegistry": {"url": registry.url}}
    found = findings(world.driver(source={**avro, "key": key}))
    assert ("registry", True, f"{registry.url} answers") in found
    assert found.count(("registry", True, f"{registry.url} answers")) == 1
    (columns,) = [text for what, ok, text in found if what == "schema" and ok and "-value, version 1, id " in text]
    assert columns.endswith(
        "id int64, customer string, amount decimal128(12, 2), day date32[day], at timestamp[us, tz=UTC]"
    )
    assert any(f"no subject {world.topic}-key" in text for _, _, text in found)


def test_check_names_a_registry_that_cannot_be_reached(world: World) -> None:
    world.kafka.create_topic(world.topic, 1)
    value = {"format": "Avro", "schemaRegistry": {"url": "http://127.0.0.1:1/registry"}}
    what, ok, text = findings(world.driver(source={"value": value}))[-1]
    assert (what, ok) == ("registry", False)
    assert text.startswith("RegistryUnavailable: schema registry: GET http://127.0.0.1:1/registry/")


def findings(driver: Driver) -> list[tuple[str, bool, str]]:
    return [(result.what, result.ok, result.text) for result in preflight(driver)]


def preflight(driver: Driver) -> list[CheckResult]:
    owner = Owner(LOCAL_CLUSTER, "default", "sink")
    found = preflight_checks(
        driver.sink,
        driver.bucket,
        lambda bucket: Ledger(bucket, ".s3sink/default/sink", owner, conditional=True),
        driver.kafka.admin,
        driver.secrets,
    )
    return list(found)
