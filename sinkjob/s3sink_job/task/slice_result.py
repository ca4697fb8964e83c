"""What a task reports of its slice, and how that travels to the driver: as JSON in the one row of its output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pyspark.sql.types import StringType, StructField, StructType

from s3sink_job.columns.known_columns import KnownColumns, known_from_text, known_to_text
from s3sink_job.decode.schema_access import SchemasByRegistry
from s3sink_job.decode.writer_schemas import Reference, SchemaId, WriterSchema
from s3sink_job.flush.manifest import InputTypes, ObjectEntry, Slice, inputs_from_doc, object_from_doc
from s3sink_job.stores.request_limit import PARALLEL

LARGE_RECORD = "LargeRecord"
"""Reason of a slice that has to be read again with a limit in bytes."""
DEAD_LETTER = "DeadLetter"
"""Reason of a slice that has to be read again with all columns of Kafka's records."""
ID_IN_HEADER = "IdInHeader"
"""Reason of a slice that has to be read again with the ids of schemas that are in headers."""
UNCOUNTED = "Uncounted"
"""Reason of a slice that has to be read again with all records, because it is not known how many Spark left out."""

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
class ShownRecord:
    """A bad record for the log, the status and the manifest; with its content only if `errors.logRecords` is set."""

    offset: int
    became: str
    """`Skip` or `DeadLetter`."""
    stage: str
    reason: str
    message: str
    key: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class SliceResult:
    """Every record in `[slice.start, end)` is in `objects` or in `skipped`."""

    slice: Slice
    end: int
    objects: tuple[ObjectEntry, ...] = ()
    skipped: tuple[int, ...] = ()
    letters: tuple[int, ...] = ()
    """Offsets of dead letters. They are in objects of their own."""
    shown: tuple[ShownRecord, ...] = ()
    """Some of the bad records, the last one among them."""
    failure: Failure | None = None
    request_retries: int = 0
    read_bytes: int = 0
    """Size of the columns that Spark handed over: what the records weigh in Kafka, without its compression."""
    schema: KnownColumns | None = None
    """The topic's columns, as known before and as found in the slice; None where no schema is inferred."""
    throttled: int = 0
    """Throttled answers of the store."""
    request_limit: int = PARALLEL
    """Parallel requests that the task was down to at its end."""
    refused_keys: tuple[tuple[tuple[str, ...], str], ...] = ()
    """Groups whose key the store refuses, each with the reason."""
    found_schemas: SchemasByRegistry = field(default_factory=dict)
    """Of typed records: those that the task had to ask a registry for."""
    unknown_fields: int = 0
    """Values that were left out, because the schema of their record has no field for them."""
    filtered: int = 0
    """Records that the transform left out."""
    inputs: InputTypes = ()
    """The types of the fields that its expressions depend on."""

    @property
    def bad(self) -> int:
        return len(self.skipped) + len(self.letters)

    @property
    def records(self) -> int:
        """Without tombstones that are left out."""
        return sum(entry.rows for entry in self.objects if not entry.letters) + self.bad + self.filtered

    def to_json(self) -> str:
        doc = asdict(replace(self, schema=None, found_schemas={}))
        doc["schema"] = None if self.schema is None else known_to_text(self.schema)
        doc["found_schemas"] = {
            name: [[*schema_id, asdict(schema)] for schema_id, schema in found.items()]
            for name, found in self.found_schemas.items()
        }
        return json.dumps(doc)


def result_from_json(text: str) -> SliceResult:
    doc = json.loads(text)
    return SliceResult(
        slice=Slice(**doc["slice"]),
        end=doc["end"],
        objects=tuple(object_from_doc(o) for o in doc["objects"]),
        skipped=tuple(doc["skipped"]),
        letters=tuple(doc["letters"]),
        shown=tuple(ShownRecord(**record) for record in doc["shown"]),
        failure=Failure(**doc["failure"]) if doc["failure"] else None,
        request_retries=doc["request_retries"],
        read_bytes=doc["read_bytes"],
        schema=None if doc["schema"] is None else known_from_text(doc["schema"]),
        throttled=doc["throttled"],
        request_limit=doc["request_limit"],
        refused_keys=tuple((tuple(group), why) for group, why in doc["refused_keys"]),
        found_schemas={name: _schemas(found) for name, found in doc["found_schemas"].items()},
        unknown_fields=doc["unknown_fields"],
        filtered=doc["filtered"],
        inputs=inputs_from_doc(doc["inputs"]),
    )


def _schemas(found: list[Any]) -> dict[SchemaId, WriterSchema]:
    return {SchemaId(kind, value): _schema(doc) for kind, value, doc in found}


def _schema(doc: Mapping[str, Any]) -> WriterSchema:
    return WriterSchema(doc["kind"], doc["text"], tuple(Reference(*one) for one in doc["references"]))
