"""The topics of examples and pages: few records, always the same, so that the keys are known."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro

from tools.parts.kafka import Headers, KafkaBroker, Record
from tools.parts.registry import SchemaRegistry

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
    "sink_topic": ORDERS,
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


def open_shop(kafka: KafkaBroker, registry: SchemaRegistry) -> None:
    for topic, partitions in {**TOPICS, "invoices": [invoices(registry)]}.items():
        kafka.create_topic(topic, partitions=len(partitions))
        for partition, records in enumerate(partitions):
            kafka.produce(topic, records, partition)
