"""What a task reports of its slice, and how that travels to the driver: as JSON in the one row of its output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from s3sink_job.columns.types import from_text, to_text
from s3sink_job.decode.schema_access import SchemasByRegistry
from s3sink_job.decode.writer_schemas import WriterSchema
from s3sink_job.flush.manifest import ObjectEntry, Slice, object_from_doc
from s3sink_job.stores.request_limit import PARALLEL

LARGE_RECORD = "LargeRecord"
"""Reason of a slice that has to be read again with a limit in bytes."""

# A type, not text: to parse two words Spark would start its SQL parser.
RESULT_SCHEMA = StructType([StructField("result", StringType())])


@dataclass(frozen=True)
class Failure:
    """Why a slice stopped before its end. `offset` is that of the record, if a record is the cause."""

    reason: str
    message: str
    retryable: bool
    offset: int | None = None


@dataclass(frozen=True)
class SliceResult:
    """Every record in `[slice.start, end)` is in `objects` or in `skipped`."""

    slice: Slice
    end: int
    objects: tuple[ObjectEntry, ...] = ()
    skipped: tuple[int, ...] = ()
    failure: Failure | None = None
    request_retries: int = 0
    read_bytes: int = 0
    """Size of the columns that Spark handed over: what the records weigh in Kafka, without its compression."""
    schema: pa.StructType | None = None
    """The topic's columns, as known before and as found in the slice; None where no schema is inferred."""
    throttled: int = 0
    """Throttled answers of the store."""
    request_limit: int = PARALLEL
    """Parallel requests that the task was down to at its end."""
    refused_keys: tuple[tuple[tuple[str, ...], str], ...] = ()
    """Groups whose key the store refuses, each with the reason."""
    found_schemas: SchemasByRegistry = field(default_factory=dict)
    """Of typed records: those that the task had to ask a registry for."""

    def to_json(self) -> str:
        doc = asdict(replace(self, schema=None))
        return json.dumps(doc | {"schema": None if self.schema is None else to_text(self.schema)})


def result_from_json(text: str) -> SliceResult:
    doc = json.loads(text)
    return SliceResult(
        slice=Slice(**doc["slice"]),
        end=doc["end"],
        objects=tuple(object_from_doc(o) for o in doc["objects"]),
        skipped=tuple(doc["skipped"]),
        failure=Failure(**doc["failure"]) if doc["failure"] else None,
        request_retries=doc["request_retries"],
        read_bytes=doc["read_bytes"],
        schema=None if doc["schema"] is None else from_text(doc["schema"]),
        throttled=doc["throttled"],
        request_limit=doc["request_limit"],
        refused_keys=tuple((tuple(group), why) for group, why in doc["refused_keys"]),
        found_schemas={url: _schemas(by_id) for url, by_id in doc["found_schemas"].items()},
    )


def _schemas(by_id: Mapping[str, Any]) -> dict[int, WriterSchema]:
    return {
        int(number): WriterSchema(doc["kind"], doc["text"], tuple(doc["references"])) for number, doc in by_id.items()
    }
