"""What is in the records: schemas that widen or are supplied, odd values, tombstones, bad and large records."""

from __future__ import annotations

import json
from typing import Any

from tests.corpus.format_cases import ALL, KAFKA, WITH_COLUMNS, WITH_FIELDS, alone, formats, route, side_by_side
from tests.corpus.recording import Play, Stage
from tests.corpus.records import json_record, orders, values

TABLES = formats(WITH_COLUMNS)
BEFORE: list[Any] = [
    {"n": 1, "same": "a", "nested": {"x": 1}, "list": [1, 2]},
    {"n": 2, "later": None, "nested": {}},
    {"n": None, "same": "b"},
]
AFTER: list[Any] = [
    {"n": 1.5, "same": "c", "nested": {"x": "text", "y": {"z": True}}},
    {"n": 3, "new": [{"a": 1}], "later": "now", "list": [1.5]},
    {"nested": 7, "same": 8, "flag": True},
    {"flag": "yes", "new": [{"a": 2, "b": None}], "list": "none"},
]
ODD: list[Any] = [
    b'{"big": 9007199254740993, "huge": 123456789012345678901234567890, "far": 1e400, "short": 1.50}',
    b'{"big": 0.1, "huge": 1, "far": 1, "short": 1e3}',
    {"empty": {}, "none": [], "deep": [[[[1]]]], "": "no name", "a.b": 1, "a b": 2, "ü": 3, "-": 4},
    b'{"spaced" :  [ 1 , 2 ],\n "escaped": "\\u00e4\\ud83d\\ude00\\t\\\\", "zero": -0.0}',
    b'{"level": ' + b'{"d": ' * 20 + b"1" + b"}" * 20 + b"}",
    {"date": "2026-01-01T00:00:00Z", "truth": False, "lists": [[1], [], [2.5]], "mixed": [1, "a", None]},
]
BAD: list[Any] = [
    {"n": 1},
    b"{not json",
    {"n": 2},
    b"\xff\xfe",
    b'{"n": 1, "n": 2}',
    b"[1, 2]",
    b"12",
    {"n": 3},
    b"",
    {"_more": 1, "_key": 2},
]
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": ["number", "null"]},
        "paid": {"type": "boolean"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}}},
        "extra": {},
    },
}
FITTING: list[Any] = [
    {"id": 1, "price": 1.5, "paid": True, "lines": [{"sku": "a"}, {}], "extra": {"any": [1]}},
    {"id": 2, "price": None, "extra": "text", "unknown": {"a": 1}, "another": 2},
    {"id": 3, "price": 7, "lines": []},
    {"id": "no number"},
    {"id": 1.0},
    {"id": 4, "lines": [{"sku": "a", "colour": "red"}]},
]
TOMBSTONES = [
    json_record(None if n % 3 == 1 else {"n": n, "country": "DE"}, at=n, key=f"k{n}", headers=[("h", "v")])
    for n in range(12)
]
SKIP = {"records": "Skip"}


def widening(stage: Stage) -> None:
    """Between flushes, of which the second begins with what the first learned, and the third adds nothing."""
    stage.make(*TABLES)
    for batch in (BEFORE, AFTER, BEFORE):
        for part in TABLES:
            stage.produce(values(*batch), part)
        route(stage, TABLES)


def widening_with_meta(stage: Stage) -> None:
    each = {
        "kafka": {"type": "Parquet", **KAFKA},
        "airbyte": {"type": "Avro", "columns": {"meta": "Airbyte", "flatten": True}},
        "envelope": {"type": "Orc", "envelope": {"enabled": True}},
    }
    stage.make(*each)
    for batch in (BEFORE, AFTER):
        for part in each:
            stage.produce(values(*batch), part)
        route(stage, each)


def widening_within(stage: Stage) -> None:
    """Types change when row groups are encoded already: they are read back and encoded anew."""
    stage.make()
    first = [{"n": n, "text": f"{n}"} for n in range(400)]
    second = [{"n": n + 0.5, "text": n, "new": {"n": n}} for n in range(400)]
    third: list[Any] = [{"n": 2**53 + 1, "text": "t"}, {"n": "text"}]
    stage.produce(values(*first, *second, *third))
    stage.drain(format={"type": "Parquet", "parquet": {"rowGroupBytes": 2048}})


def many_columns(stage: Stage) -> None:
    """More than there may be: the rest shares one."""
    stage.make(*TABLES)
    for part in TABLES:
        stage.produce(values({f"f{n}": n for n in range(900)}, {f"g{n}": {"n": n} for n in range(200)}), part)
    route(stage, TABLES)


def large(stage: Stage) -> None:
    """Some records are above what a job of small records takes. The next flush of the driver knows."""
    each = {**formats(("Json", "Parquet", "Avro", "Bytes")), "kafka": {"type": "Json", **KAFKA}}
    stage.make(*each)
    for part in each:
        stage.produce(
            [json_record({"n": n, "fill": chr(97 + n) * (9000 if n % 4 == 2 else 20)}, at=n) for n in range(16)], part
        )
    route(stage, each)


CASES: dict[str, Play] = {
    "widening": widening,
    "widening-with-meta": widening_with_meta,
    "widening-within-an-object": widening_within,
    "many-columns": many_columns,
    "odd-values": side_by_side(formats(ALL), values(*ODD)),
    "odd-values-kafka": side_by_side(formats(WITH_FIELDS, **KAFKA), values(*ODD)),
    "supplied-schema": side_by_side(
        *(TABLES, values(*FITTING)),
        source={"value": {"schema": json.dumps(SCHEMA)}},
        format={"type": "Parquet"},
        errors=SKIP,
    ),
    "supplied-schema-closed": alone(
        values(*FITTING),
        format={"type": "Parquet", **KAFKA},
        source={"value": {"schema": json.dumps({**SCHEMA, "additionalProperties": False})}},
        errors=SKIP,
    ),
    "bad-records-skip": side_by_side(formats(ALL), values(*BAD), errors=SKIP),
    "bad-records-skip-kafka": side_by_side(formats(WITH_FIELDS, **KAFKA), values(*BAD), errors=SKIP),
    "bad-records-fail": side_by_side(formats(ALL), values({"n": 0}, *BAD)),
    "nulls-write": side_by_side(formats(ALL), TOMBSTONES),
    "nulls-write-kafka": side_by_side(formats(WITH_FIELDS, **KAFKA), TOMBSTONES),
    "nulls-write-envelope": side_by_side(
        formats(("Json", "Parquet", "Avro", "Orc"), envelope={"enabled": True}), TOMBSTONES
    ),
    "nulls-skip": side_by_side(formats(ALL), TOMBSTONES, nullValues="Skip"),
    "nulls-separate": side_by_side(formats(ALL), TOMBSTONES, nullValues="Separate"),
    "nulls-fail": side_by_side(formats(ALL), TOMBSTONES, nullValues="Fail"),
    "large-records": large,
    "many-records": alone(orders(9000), format={"type": "Parquet", **KAFKA}, flush={"records": 100_000}),
}
