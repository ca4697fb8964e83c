"""Decodes the records of one JSON Schema."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import NO_FAULTS, Faults, prefixed
from s3sink_job.decode.json_schema import payload_schema
from s3sink_job.decode.json_schema_documents import documents_of
from s3sink_job.decode.json_schema_validation import RecordValidator
from s3sink_job.decode.payload_columns import PayloadReader
from s3sink_job.decode.payload_sources import sources_of
from s3sink_job.decode.record_bytes import Records
from s3sink_job.decode.schema_language import Message, SchemaLanguage
from s3sink_job.decode.settings import NO_OPTIONS, JsonSchemaOptions
from s3sink_job.decode.text_cache import TextCache
from s3sink_job.decode.utf8 import utf8
from s3sink_job.decode.writer_schemas import InvalidSchema, WriterSchema, size_of

KEPT_TEXT = 4 * 2**20
"""Characters of schemas that stay parsed."""
LONGEST = 2**31 - 1
"""Bytes of a value."""


class JsonSchemaDecoder:
    unknown_fields = 0
    """They are in the column `_more`, or the record is bad."""

    def __init__(self, schema: WriterSchema, options: JsonSchemaOptions = NO_OPTIONS) -> None:
        """Raises `InvalidSchema`."""
        try:
            documents = documents_of(schema)
            self._reader = PayloadReader(payload_schema(documents, times_as_text=options.times_as_text))
            self._validator = RecordValidator(documents) if options.validate else None
        except InvalidSchema:
            raise
        except (TypeError, ValueError, AttributeError, LookupError, RecursionError) as error:
            # Libraries expect schemas by the specification: an address that is a list, for example, breaks them.
            raise InvalidSchema(f"no JSON Schema: {error}") from error
        self.type: pa.DataType = self._reader.schema.kind
        self.sources = sources_of(self._reader.schema)

    def decode(self, column: Column, skip: int = 0, records: Records | None = None) -> tuple[Column, Faults]:
        if skip and records is not None and self._validator is None:
            found = self._framed(records, skip)
            if found is not None:
                return found, NO_FAULTS
        text, not_utf8 = utf8(without_first(column, skip))
        values, faults = self._reader.values(pc.fill_null(text, "null") if not_utf8 else text)
        faults |= prefixed(not_utf8, "is")
        if self._validator is not None:
            good = np.setdiff1d(np.arange(len(text)), list(faults))
            invalid = self._validator.faults(text.take(pa.array(good)) if faults else text)
            faults |= {int(good[row]): fault for row, fault in invalid.items()}
        return values, faults or NO_FAULTS

    def _framed(self, records: Records, skip: int) -> Column | None:
        """The values of objects behind frames. None if any of them may be bad.

        With blanks in place of the frames the records are lines already: nothing has to be cut out or joined.
        """
        if not records.enclosed(skip, b"{", b"}"):
            return None
        blank = records.with_blank_frames(skip)
        text, not_utf8 = utf8(blank)
        return None if not_utf8 else self._reader.values_of_lines(blank.buffers()[2], text)


def without_first(column: Column, count: int) -> Column:
    """Each value without its first bytes."""
    # Without an end, Arrow's estimate of the size overflows.
    return pc.binary_slice(column, count, LONGEST) if count else column


_DECODERS: TextCache[tuple[WriterSchema, JsonSchemaOptions], JsonSchemaDecoder] = TextCache(
    lambda key: JsonSchemaDecoder(*key), lambda key: size_of(key[0]), KEPT_TEXT
)


class JsonSchema(SchemaLanguage):
    kind = "JSON"
    frame_shows = True

    def __init__(self, options: JsonSchemaOptions = NO_OPTIONS) -> None:
        self._options = options

    def decoder_of(self, schema: WriterSchema, message: Message = b"") -> JsonSchemaDecoder:
        return _DECODERS.of((schema, self._options))
