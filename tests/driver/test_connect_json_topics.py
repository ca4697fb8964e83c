"""Topics that Kafka Connect's JsonConverter wrote with schemas: each record is in the bucket once, with its types."""

from __future__ import annotations

import base64
import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.harness import World

pytestmark = [pytest.mark.slow, pytest.mark.spark]

DATA = "org.apache.kafka.connect.data."
START = datetime(2026, 1, 1, tzinfo=UTC)
CONNECT = {"key": {"format": "ConnectJson"}, "value": {"format": "ConnectJson"}}


def field(name: str, kind: str, /, **more: Any) -> dict[str, Any]:
    return {"field": name, "type": kind, "optional": False, **more}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "name": "shop.Order", "optional": False, "fields": list(fields)}


FIRST = [
    field("id", "int64"),
    field("customer", "string", optional=True),
    field("amount", "bytes", name=f"{DATA}Decimal", version=1, parameters={"scale": "2"}),
    field("day", "int32", name=f"{DATA}Date", version=1),
    field("at", "int64", name=f"{DATA}Timestamp", version=1),
    field("lines", "array", items={"type": "string", "optional": False}),
]
SECOND = [*FIRST, field("note", "string", optional=True)]


def envelope(schema: dict[str, Any], payload: Any) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}).encode()


def amount(number: int) -> str:
    """A decimal with two digits behind the point, as the converter writes it by default."""
    return base64.b64encode(number.to_bytes(3, "big", signed=True)).decode()


def produced(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "customer": None if number % 3 == 0 else f"c{number}",
        "amount": amount(-number),
        "day": (START.date() - date(1970, 1, 1)).days + number % 28,
        "at": int(START.timestamp()) * 1000 + number,
        "lines": [f"l{n}" for n in range(number % 3)],
        **more,
    }


def expected(number: int, **more: Any) -> dict[str, Any]:
    row = produced(number, **more)
    return {
        **row,
        "amount": Decimal(-number) / 100,
        "day": START.date() + timedelta(days=number % 28),
        "at": START + timedelta(milliseconds=number),
    }


def produce(world: World, values: list[bytes]) -> None:
    """With keys of the same converter."""
    world.kafka.create_topic(world.topic, 1)
    keys = [envelope({"type": "int64", "optional": False}, number) for number in range(len(values))]
    records = [(key, value, None, None) for key, value in zip(keys, values, strict=True)]
    world.kafka.produce(world.topic, records, 0)


def parquet_rows(world: World) -> list[dict[str, Any]]:
    """Of the only object."""
    (key,) = world.objects()
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(world.content(key))).to_pylist()
    return rows


def test_connects_json_becomes_parquet_with_the_types_of_its_schema(world: World) -> None:
    produce(world, [envelope(struct(*FIRST), produced(n)) for n in range(300)])
    driver = world.drain(source=CONNECT, format={"type": "Parquet", "columns": {"meta": "Kafka"}})
    rows = parquet_rows(world)
    assert [{name: row[name] for name in expected(0)} for row in rows] == [expected(n) for n in range(300)]
    assert [row["_key"] for row in rows] == [str(n) for n in range(300)]
    assert world.verify(driver).ok


def test_connects_json_becomes_lines_of_the_payload_alone(world: World) -> None:
    produce(world, [envelope(struct(*FIRST), produced(n)) for n in range(100)])
    driver = world.drain(source=CONNECT, format={"type": "Json", "envelope": {"enabled": True}})
    rows = world.rows()
    assert [row["value"] for row in rows] == [produced(n) for n in range(100)]
    assert [row["key"] for row in rows] == list(range(100))
    assert world.verify(driver).ok


def test_alternating_versions_of_connects_schema_share_one_object(world: World) -> None:
    versions = [struct(*FIRST), struct(*SECOND)]
    more: list[dict[str, Any]] = [{}, {"note": "n"}]
    produce(world, [envelope(versions[n % 2], produced(n, **more[n % 2])) for n in range(600)])
    driver = world.drain(source=CONNECT, format={"type": "Parquet"})
    assert parquet_rows(world) == [{**expected(n), "note": "n" if n % 2 else None} for n in range(600)]
    assert world.verify(driver).ok


def test_a_value_that_is_not_connects_json_is_skipped_alone(world: World) -> None:
    good = [envelope(struct(*FIRST), produced(n)) for n in range(4)]
    bad = [b"{}", b"not JSON", envelope(struct(*FIRST), {"id": "text"})]
    produce(world, [*good[:2], *bad, *good[2:]])
    driver = world.drain(source=CONNECT, format={"type": "Parquet"}, errors={"records": "Skip"})
    assert parquet_rows(world) == [expected(n) for n in range(4)]
    report = world.verify(driver)
    assert report.ok, report
    assert report.skipped == len(bad)
