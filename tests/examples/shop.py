"""The topics of examples and pages: few records, always the same, so that the keys are known."""

from __future__ import annotations

import io
import json
import zlib
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import boto3
import fastavro

from tests.decode.proto_samples import message_class, schema_of
from tools.parts.kafka import Headers, KafkaBroker, Record
from tools.parts.registry import SchemaRegistry
from tools.parts.s3 import Moto

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC).timestamp()
"""The time of every flush."""


def record(key: str | None, value: Any, at: str, headers: Headers | None = None) -> Record:
    """`at` is a time of the day that ends at `NOON`."""
    raw = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
    time = datetime.fromisoformat(f"2026-01-15T{at}+00:00").timestamp()
    return (None if key is None else key.encode(), raw, headers, int(time * 1000))


def order(number: int, total: float, country: str | None) -> dict[str, Any]:
    return {"id": number, "total": total, "customer": {"country": country} if country else {}}


EU: Headers = [("region", b"eu")]
US: Headers = [("region", b"us")]

ORDERS = [
    [
        record("c-7", order(1, 12.5, "DE"), "09:05:00", EU),
        record("c-9", order(2, 99, "FR"), "09:40:00", EU),
        record("c-7", order(3, 7.25, "DE"), "10:10:00", EU),
    ],
    [
        record("c-4", order(4, 1.5, "US"), "09:20:00", US),
        record("c-4", None, "10:30:00", US),
        record("c-5", order(5, 3, None), "10:45:00"),
    ],
]
PAYMENTS = [[record("p-1", {"order": 1, "amount": 12.5}, "09:06:00"), record("p-2", {"order": 3}, "10:11:00")]]
EVENTS = [
    [
        record("u-1", {"event_id": "a", "event_type": "click", "region": "us-east"}, "10:00:00"),
        record("u-2", {"event_id": "b", "event_type": "view", "region": "us-east"}, "10:30:00"),
        record("u-1", {"event_id": "c", "event_type": "click", "region": "eu-west"}, "11:00:00"),
    ]
]
USERS = [[record("123", {"user_id": 123, "name": {"first": "John", "last": "Doe"}}, "09:00:00")]]
LOGS = [[record(None, f"GET /{n} 200".encode(), "09:00:00") for n in range(3)]]
WEB_LOGS = [[record(None, {"path": f"/{n}", "status": 200}, "09:00:00") for n in range(3)]]
PHOTOS = [[record("cat", b"\x89PNG\r\n\x1a\n\x00", "09:00:00"), record("dog", b"\x89PNG\r\n\x1a\n\x01", "09:00:01")]]

TOPICS: dict[str, list[list[Record]]] = {
    "orders": ORDERS,
    "payments": PAYMENTS,
    "events": EVENTS,
    "sink-topic": ORDERS,
    "users": USERS,
    "app-logs": LOGS,
    "photos": PHOTOS,
    "shop.orders": ORDERS,
    "shop.payments": PAYMENTS,
    "shop.log.web": WEB_LOGS,
}


_INVOICE = [
    {"name": "number", "type": "long"},
    {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
]
_CURRENCY = {"name": "currency", "type": ["null", "string"], "default": None}
INVOICE_SCHEMAS = [
    {"type": "record", "name": "shop.Invoice", "fields": fields} for fields in (_INVOICE, [*_INVOICE, _CURRENCY])
]
INVOICES = [
    {"number": 1, "amount": Decimal("12.50"), "day": date(2026, 1, 14), "currency": None},
    {"number": 2, "amount": Decimal("99.00"), "day": date(2026, 1, 15), "currency": "EUR"},
    {"number": 3, "amount": Decimal("-7.25"), "day": date(2026, 1, 15), "currency": None},
]


def invoices(registry: SchemaRegistry) -> list[Record]:
    """Avro in the registry's wire format; the second one is of a newer version of the schema."""
    ids = [registry.register("invoices-value", json.dumps(schema)) for schema in INVOICE_SCHEMAS]
    made = []
    for row in INVOICES:
        version, value = 1 if row["currency"] else 0, io.BytesIO()
        fastavro.schemaless_writer(value, INVOICE_SCHEMAS[version], row)
        made.append(record("i", b"\0" + ids[version].to_bytes(4, "big") + value.getvalue(), "09:00:00"))
    return made


PARCEL = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Parcel { int64 number = 1; google.protobuf.Timestamp sent = 2; optional double weight = 3; Route route = 4; }
message Route { State state = 1; repeated string places = 2; }
enum State { WAITING = 0; SENT = 1; LOST = 2; }
"""
PARCELS: list[dict[str, Any]] = [
    {"number": 1, "sent": {"seconds": 1768471200}, "weight": 2.5, "route": {"state": "SENT", "places": ["Graz"]}},
    {"number": 2, "route": {"state": "LOST"}},
]


def parcels(registry: SchemaRegistry) -> list[Record]:
    """Protobuf in the registry's wire format."""
    frame = b"\0" + registry.register("parcels-value", PARCEL, kind="PROTOBUF").to_bytes(4, "big") + b"\0"
    made = message_class(schema_of(PARCEL))
    return [record("p", frame + made(**row).SerializeToString(), "09:00:00") for row in PARCELS]


RETURN_SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "day": {"type": "string", "format": "date"},
        "at": {"type": "string", "format": "date-time"},
        "reason": {"enum": ["Broken", "Late"]},
    },
    "required": ["id", "day"],
    "additionalProperties": False,
}


def returns(registry: SchemaRegistry) -> list[Record]:
    """JSON in the registry's wire format; the second one is not valid, because its reason is none of the list."""
    prefix = b"\0" + registry.register("returns-value", json.dumps(RETURN_SCHEMA), kind="JSON").to_bytes(4, "big")
    rows = [{"id": 1, "day": "2026-01-15", "at": "2026-01-15T10:00:00+01:00", "reason": "Late"}]
    rows += [{"id": 2, "day": "2026-01-15", "reason": "Lost"}, {"id": 3, "day": "2026-01-15"}]
    return [record("r", prefix + json.dumps(row).encode(), "09:00:00") for row in rows]


SHIPMENT = {
    "type": "record",
    "name": "shop.Shipment",
    "fields": [{"name": "number", "type": "long"}, {"name": "place", "type": "string"}],
}
SHIPMENTS = [{"number": 1, "place": "Łódź"}, {"number": 2, "place": "Graz"}]


def shipments(glue: Moto) -> list[Record]:
    """Avro as the serializers of AWS Glue write it; the second one is compressed."""
    client: Any = boto3.client(
        "glue",
        endpoint_url=glue.endpoint,
        region_name="eu-central-1",
        aws_access_key_id=glue.access_key,
        aws_secret_access_key=glue.secret_key,
    )
    client.create_registry(RegistryName="shop")
    version = client.create_schema(
        RegistryId={"RegistryName": "shop"},
        SchemaName="shipments",
        DataFormat="AVRO",
        Compatibility="BACKWARD",
        SchemaDefinition=json.dumps(SHIPMENT),
    )["SchemaVersionId"]
    made = []
    for row, (kind, pack) in zip(SHIPMENTS, ((0, bytes), (5, zlib.compress)), strict=True):
        value = io.BytesIO()
        fastavro.schemaless_writer(value, SHIPMENT, row)
        made.append(record("s", bytes([3, kind]) + UUID(version).bytes + pack(value.getvalue()), "09:00:00"))
    return made


def open_shop(kafka: KafkaBroker, registry: SchemaRegistry, glue: Moto) -> None:
    for topic, partitions in {
        **TOPICS,
        "invoices": [invoices(registry)],
        "parcels": [parcels(registry)],
        "returns": [returns(registry)],
        "shipments": [shipments(glue)],
    }.items():
        kafka.create_topic(topic, partitions=len(partitions))
        for partition, records in enumerate(partitions):
            kafka.produce(topic, records, partition)
