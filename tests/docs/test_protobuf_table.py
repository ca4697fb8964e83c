"""The table of Protobuf types in docs/schemas.md: each type becomes the column that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from s3sink_job.decode.proto_types import SCALARS, WRAPPERS
from s3sink_job.decode.schema_languages import columns_of
from s3sink_job.decode.settings import NO_OPTIONS
from tests.decode.proto_samples import schema_of

PAGE = Path(__file__).parents[2] / "docs" / "schemas.md"
HEAD = """
syntax = "proto3";
import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto"; import "google/protobuf/any.proto";
import "google/protobuf/struct.proto"; import "google/protobuf/wrappers.proto"; import "google/protobuf/empty.proto";
import "confluent/type/decimal.proto";
import "additionalTypes/decimal.proto";
"""
NAMED = {"enum": "enum E { A = 0; }", "int64 x": "message M { int64 x = 1; }"}
"""What `an enum`, and `a message with an int64 x`, mean."""


def table() -> dict[str, str]:
    section = PAGE.read_text(encoding="utf-8").split("\n## Protobuf\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| ") and "---" not in line][1:]
    found = {}
    for kinds, column in rows:
        names = [" ".join(re.findall("`([^`]+)`", kinds))] if "message" in kinds else re.findall("`([^`]+)`", kinds)
        found |= dict.fromkeys(names, column.strip().strip("`"))
    return found


TABLE = table()


def test_every_scalar_type_is_in_the_table() -> None:
    assert set(SCALARS) <= set(TABLE)
    assert {name for name in TABLE if name.endswith(("32Value", "64Value"))} <= WRAPPERS


@pytest.mark.parametrize("name", TABLE)
def test_a_type_becomes_the_column_in_the_table(name: str) -> None:
    kind = {"enum": "E", "int64 x": "M"}.get(name, name)
    schema = schema_of(f"{HEAD} message Root {{ {kind} f = 1; }} {NAMED.get(name, '')}")
    assert str(columns_of(schema, "Protobuf", NO_OPTIONS).field("f").type) == TABLE[name]
