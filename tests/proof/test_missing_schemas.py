"""A schema that left the registry: its records cannot be compared, and that is not the loss of data."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from s3sink_job.base.retry import NO_RETRIES
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.schema_access import SchemaAccess
from s3sink_job.proof.object_contents import UnreadableRecords, difference, expected_rows
from tests.decode.avro_samples import written
from tests.decode.batches import batch_of
from tests.flush.examples import object_entry
from tests.task.test_encoding_documents import encoding
from tools.parts.registry import SchemaRegistry

SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
FOUND = pa.table({"id": [5]})


def expected(registry: SchemaRegistry, number: int) -> pa.Table:
    """The rows of a record with this schema id."""
    value = b"\x00" + number.to_bytes(4, "big") + written(SCHEMA, {"id": 5})[0]
    records = batch_of(value).select(["partition", "offset", "value"])
    wanted = encoding(value={"format": "Avro", "schemaRegistry": {"url": registry.url}})
    access = SchemaAccess(Secrets("nowhere"), NO_RETRIES)
    return expected_rows(FOUND, [records], wanted, object_entry(0, 1), access=access)


def test_records_with_their_schema_are_compared(registry: SchemaRegistry, topic_name: str) -> None:
    number = registry.register(f"{topic_name}-value", json.dumps(SCHEMA))
    assert not difference(expected(registry, number), FOUND)


def test_records_without_their_schema_are_named_and_not_counted_as_lost(registry: SchemaRegistry) -> None:
    with pytest.raises(UnreadableRecords, match=r"not compared, because its records cannot be read: .*id 999999"):
        expected(registry, 999_999)
