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
