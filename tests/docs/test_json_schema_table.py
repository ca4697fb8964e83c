"""The tables of JSON Schema in docs/schemas.md: each schema gives the column that they name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from s3sink_job.decode.json_schema_decoder import JsonSchemaDecoder
from s3sink_job.decode.schema_languages import columns_of
from s3sink_job.decode.settings import NO_OPTIONS
from s3sink_job.decode.writer_schemas import WriterSchema

PAGE = Path(__file__).parents[2] / "docs" / "schemas.md"


def tables() -> list[tuple[str, str, bool]]:
    """Schema, column, and whether the column holds JSON."""
    found, holds_json = [], False
    section = PAGE.read_text(encoding="utf-8").split("\n## JSON Schema\n")[1].split("\n### ")[0]
    for line in section.splitlines():
        holds_json = holds_json or line == "| JSON Schema | column with JSON |"
        if row := re.fullmatch(r"\| `(.+)` \| `(.+)` \|", line):
            found.append((row[1], row[2], holds_json))
    return found


TABLES = tables()


def test_the_tables_are_there() -> None:
    assert {holds_json for _, _, holds_json in TABLES} == {False, True}


@pytest.mark.parametrize(("schema", "column", "holds_json"), TABLES)
def test_a_schema_gives_the_column_in_the_table(schema: str, column: str, holds_json: bool) -> None:
    json.loads(schema)
    written = WriterSchema("JSON", schema)

    assert str(columns_of(written, "JsonSchema", NO_OPTIONS)) == column
    assert JsonSchemaDecoder(written)._reader.schema.holds("json") == holds_json
