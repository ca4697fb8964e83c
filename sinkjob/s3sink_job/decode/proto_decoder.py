"""Decodes the records of one Protobuf message: all at once, and single ones where that does not work."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor

from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import NO_FAULTS, Fault, Faults
from s3sink_job.decode.proto_columns import RecordReader
from s3sink_job.decode.proto_files import MessagePath, link, message_at
from s3sink_job.decode.proto_rows import read_row
from s3sink_job.decode.proto_sources import sources_of
from s3sink_job.decode.proto_types import column_type, parse_message
from s3sink_job.decode.proto_wire import NotProtobuf, Unknown
from s3sink_job.decode.record_bytes import Records
from s3sink_job.decode.row_groups import with_rows
from s3sink_job.decode.text_cache import TextCache
from s3sink_job.decode.writer_schemas import InvalidSchema, WriterSchema, size_of

KEPT_TEXT = 4 * 2**20
"""Characters of schemas that stay parsed."""
MOST_NAMED = 100
"""Unknown fields that are counted by number. Bytes of another kind may read as thousands of fields."""
UnknownField: TypeAlias = tuple[str, int]
OTHERS: UnknownField = ("", 0)
log = logging.getLogger(__name__)


class ProtobufDecoder:
    def __init__(self, descriptor: Descriptor) -> None:
        """Raises `InvalidSchema`."""
        self._message = parse_message(descriptor)
        self._reader = RecordReader(self._message)
        self.name = descriptor.full_name
        self.type: pa.DataType = column_type(self._message.root)
        self.sources = sources_of(self._message.root)
        self.unknown: Unknown = Counter()
        """Of all records so far."""
        self.unknown_fields = 0
        self._logged = 0

    def decode(self, column: Column, skip: int = 0, records: Records | None = None) -> tuple[Column, Faults]:
        """The values, without the first `skip` bytes of each. Rows at fault are null. The column has no null."""
        records = records or Records(column)
        unknown: Unknown = Counter()
        values, alone = self._reader.read(records, records.bounds[:-1] + skip, unknown)
        faults: dict[int, Fault] = {}
        if alone.any():
            found: list[Any] = []
            rows = np.flatnonzero(alone)
            for row in rows.tolist():
                own: Unknown = Counter()
                try:
                    found.append(read_row(self._message, column[row].as_py()[skip:], own))
                    unknown.update(own)
                except NotProtobuf as error:
                    found.append(None)
                    faults[row] = error.fault
            values = with_rows(values, rows, found)
        self._count(unknown)
        return values, faults or NO_FAULTS

    def _count(self, unknown: Unknown) -> None:
        """Logs each field once, and all of them again when there are ten times as many."""
        shown: list[UnknownField] = []
        for field, times in unknown.items():
            named = field in self.unknown or len(self.unknown) < MOST_NAMED
            counted = field if named else OTHERS
            if counted not in self.unknown:
                shown.append(counted)
            self.unknown[counted] += times
        self.unknown_fields, total = unknown.total(), self.unknown.total()
        if total >= 10 * self._logged:
            self._logged, shown = total, list(self.unknown)
        if shown:
            text = ", ".join(f"{_shown(field)}: {self.unknown[field]}" for field in shown)
            log.warning("%s: values that the schema has no field for are left out: %s", self.name, text)


def _shown(field: UnknownField) -> str:
    name, number = field
    return "others" if field == OTHERS else f"{name} field {number}"


class _Schema:
    """The decoders of a schema's messages: they share what the text gives."""

    def __init__(self, schema: WriterSchema) -> None:
        """Raises `InvalidSchema`."""
        self._file = link(schema)
        self._decoders: dict[str, ProtobufDecoder] = {}

    def decoder(self, path: MessagePath) -> ProtobufDecoder:
        message = message_at(self._file, path)
        if message.full_name not in self._decoders:
            self._decoders[message.full_name] = ProtobufDecoder(message)
        return self._decoders[message.full_name]


_SCHEMAS = TextCache(_Schema, size_of, KEPT_TEXT)


def decoder_of(schema: WriterSchema, path: MessagePath) -> ProtobufDecoder:
    """Kept by the process. Raises `InvalidSchema`."""
    try:
        return _SCHEMAS.of(schema).decoder(path)
    except InvalidSchema:
        raise
    except (TypeError, ValueError, AttributeError, LookupError, RecursionError) as error:
        # A schema that Google's library breaks at makes its own records bad. Any other error would end the Spark job.
        raise InvalidSchema(f"not a Protobuf schema that can be read: {error}") from error
