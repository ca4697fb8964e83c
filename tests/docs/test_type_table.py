"""The table of types in docs/schemas.md: a reader of objects finds the types that it names."""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from s3sink_job.columns.text import json_of
from s3sink_job.columns.types import NULL, SIMPLE
from s3sink_job.decode.avro_decoder import decoder_of
from s3sink_job.decode.avro_schema import PRIMITIVES
from s3sink_job.decode.schema_languages import columns_of
from s3sink_job.decode.settings import NO_OPTIONS
from s3sink_job.decode.writer_schemas import WriterSchema
from tests.encodings import output
from tests.formats.samples import batch, written

PAGE = Path(__file__).parents[2] / "docs" / "schemas.md"
DAY = 20_484
CLOCK = {"ms": 3_723_004, "us": 3_723_000_004, "ns": 3_723_000_000_004}
TICKS = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
INT = pa.int64()
SAMPLES: dict[pa.DataType, Any] = {
    pa.bool_(): True,
    pa.int32(): -7,
    INT: -7,
    pa.float32(): 0.1,
    pa.float64(): 0.1,
    pa.string(): "a",
    pa.binary(): b"\xff\x00",
    pa.binary(4): b"\xff\x00\x01\x02",
    pa.binary(3): b"\xff\x00\x01",
    pa.decimal128(10, 2): Decimal("12.30"),
    pa.decimal256(50, 2): Decimal("12.30"),
    pa.date32(): DAY,
    pa.time32("ms"): CLOCK["ms"],
    pa.time64("us"): CLOCK["us"],
    **{pa.timestamp(unit, "UTC"): DAY * TICKS[unit] + CLOCK[unit] for unit in TICKS},
    **{pa.timestamp(unit): DAY * TICKS[unit] + CLOCK[unit] for unit in TICKS},
    pa.struct([("x", INT)]): {"x": 1},
    pa.list_(INT): [1, None],
    pa.map_(pa.string(), INT): [("k", 1), ("n", None)],
}
KINDS = {str(kind): kind for kind in SAMPLES}
ORC_NAMES = {"bool": "boolean", "int32": "int", "int64": "bigint", "date32[day]": "date", "timestamp[ns]": "timestamp"}


def table() -> dict[str, list[str]]:
    """The cells of each row, by its type, without marks."""
    section = PAGE.read_text(encoding="utf-8").split("## Types in objects")[1].split("\n## ")[0]
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in section.splitlines() if line.startswith("| `")]
    return {kind: cells for kind, *cells in ([cell.replace("`", "").strip() for cell in row] for row in rows)}


def two_columns(heading: str) -> dict[str, str]:
    """The first table below a heading."""
    section = PAGE.read_text(encoding="utf-8").split(f"{heading}\n")[1].split("\n\n")[0].strip()
    rows = [line.replace("`", "").strip("| ").split(" | ") for line in section.splitlines()[2:]]
    return {kind.strip(): column.strip() for kind, column in rows}


def decimal_schema(precision: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2}


def logical(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "logicalType": name}


TABLE = table()


def test_every_type_is_in_the_table() -> None:
    assert set(TABLE) == set(KINDS)
    assert {kind for kind in SIMPLE.values() if not kind.equals(NULL)} <= set(SAMPLES)


@pytest.mark.parametrize("name", TABLE)
def test_readers_find_the_types_in_the_table(name: str) -> None:
    rows = batch({"c": [SAMPLES[KINDS[name]]]}, c=KINDS[name])

    found = [
        parquet_type(written(output("Parquet"), rows)),
        avro_type(written(output("Avro"), rows)),
        orc_type(written(output("Orc"), rows)),
        json_of(rows.column("c"))[0].as_py(),
        list(csv.reader(io.StringIO(written(output("Csv"), rows).decode())))[1][0],
    ]

    assert TABLE[name] == found


AVRO_SAMPLES: dict[str, Any] = {
    "string, enum": ["string", {"type": "enum", "name": "E", "symbols": ["A"]}],
    "fixed of size 4": [{"type": "fixed", "name": "F", "size": 4}],
    "array of long": [{"type": "array", "items": "long"}],
    "map of long": [{"type": "map", "values": "long"}],
    "record with a long x": [{"type": "record", "name": "R", "fields": [{"name": "x", "type": "long"}]}],
    "record without fields, within another one": [{"type": "record", "name": "R", "fields": []}],
    "decimal of up to 38 digits": [decimal_schema(10)],
    "decimal of up to 76 digits": [decimal_schema(50)],
    "decimal of more digits": [decimal_schema(77)],
    "date": [logical("int", "date")],
    "time-millis": [logical("int", "time-millis")],
    "uuid, on string or fixed": [
        logical("string", "uuid"),
        {"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"},
    ],
    "duration": [{"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}],
    **{
        name: [logical("long", name)]
        for name in (
            "time-micros",
            *(f"{local}timestamp-{unit}" for local in ("", "local-") for unit in ("millis", "micros", "nanos")),
        )
    },
    **{name: [name] for name in sorted(PRIMITIVES - {"string"})},
}
AVRO_TABLE = two_columns("## Avro")
WITHOUT_TYPE = {"null and one other type", "several other types"}


def test_every_avro_type_is_in_its_table() -> None:
    assert set(AVRO_TABLE) == set(AVRO_SAMPLES) | WITHOUT_TYPE


@pytest.mark.parametrize("name", AVRO_SAMPLES)
def test_avro_types_become_the_columns_in_the_table(name: str) -> None:
    found = set()
    for schema in AVRO_SAMPLES[name]:
        record = {"type": "record", "name": "Root", "fields": [{"name": "f", "type": schema}]}
        columns = columns_of(WriterSchema("AVRO", json.dumps(record)), "Avro", NO_OPTIONS)
        found.add(str(columns.field("f").type))
    assert {AVRO_TABLE[name]} == found


def test_unions_become_the_columns_in_the_table() -> None:
    nullable, several = (
        decoder_of(WriterSchema("AVRO", json.dumps(s))).type for s in (["null", "int"], ["null", "int", "string"])
    )
    assert nullable.equals(pa.int32())
    assert several.equals(pa.struct([("int", pa.int32()), ("string", pa.string())]))


def parquet_type(data: bytes) -> str:
    schema = pq.ParquetFile(io.BytesIO(data)).schema
    if len(schema.column(0).path.split(".")) > 1:
        return {"c.x": "group", "c.list.element": "LIST", "c.key_value.key": "MAP"}[schema.column(0).path]
    logical = json.loads(schema.column(0).logical_type.to_json())
    parts = [schema.column(0).physical_type, logical["Type"], logical.get("timeUnit", "")]
    zone = "UTC" if logical["Type"] == "Timestamp" and logical["isAdjustedToUTC"] else ""
    return " ".join(part for part in (*parts, zone) if part not in {"", "None"})


def avro_type(data: bytes) -> str:
    reader = fastavro.reader(io.BytesIO(data))
    schema: Any = reader.writer_schema
    kind = schema["fields"][0]["type"][1]
    return kind if isinstance(kind, str) else " ".join(filter(None, (kind["type"], kind.get("logicalType"))))


def orc_type(data: bytes) -> str:
    kind = str(orc.ORCFile(io.BytesIO(data)).schema.field(0).type)
    return ORC_NAMES.get(kind, re.sub(r"<.*", "", kind).replace("decimal128", "decimal"))
