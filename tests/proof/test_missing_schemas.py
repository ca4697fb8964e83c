"""A schema that left the registry: its records cannot be compared, and that is not the loss of data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pytest

from s3sink_job.decode.schema_access import SchemaAccess
from s3sink_job.decode.settings import SchemaSource
from s3sink_job.decode.writer_schemas import WriterSchema
from s3sink_job.proof.object_contents import UnreadableRecords, difference, expected_rows
from tests.decode.avro_samples import writer_schema, written
from tests.decode.batches import batch_of
from tests.flush.examples import object_entry
from tests.task.test_encoding_documents import encoding

SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
VALUE = {"format": "Avro", "schemaRegistry": {"url": "http://registry"}}


@dataclass(frozen=True)
class Registry:
    """The schemas that it has, as an access and as its only lookup."""

    schemas: dict[int, WriterSchema]
    inline: WriterSchema | None = None

    def lookup(self, source: SchemaSource) -> Registry | None:
        return self if source.registry else None

    def by_id(self, number: int) -> WriterSchema | None:
        return self.schemas.get(number)


def expected(schemas: dict[int, WriterSchema]) -> pa.Table:
    records = batch_of(b"\x00\x00\x00\x00\x07" + written(SCHEMA, {"id": 5})[0]).select(["partition", "offset", "value"])
    access: Any = Registry(schemas)
    found = pa.table({"id": [5]})
    rows = expected_rows(found, [records], encoding(value=VALUE), object_entry(0, 1), access=cast(SchemaAccess, access))
    assert not difference(rows, found)
    return rows


def test_records_with_their_schema_are_compared() -> None:
    assert expected({7: writer_schema(SCHEMA)}).to_pylist() == [{"id": 5}]


def test_records_without_their_schema_are_named_and_not_counted_as_lost() -> None:
    with pytest.raises(UnreadableRecords, match=r"not compared, because its records cannot be read: .*schema id 7"):
        expected({})
