"""The languages of schemas, by the input format in `spec.source` whose records have them."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from s3sink_job.columns.types import fields_with_more, with_more
from s3sink_job.decode.avro import Avro
from s3sink_job.decode.json_schema_decoder import JsonSchema
from s3sink_job.decode.protobuf import Protobuf
from s3sink_job.decode.schema_language import SchemaLanguage
from s3sink_job.decode.settings import JsonSchemaOptions
from s3sink_job.decode.writer_schemas import WriterSchema

LANGUAGES: Mapping[str, SchemaLanguage] = {"Avro": Avro(), "Protobuf": Protobuf(), "JsonSchema": JsonSchema()}


def kind_of(input_format: str) -> str:
    """The kind of its schemas; empty for formats without schemas."""
    language = LANGUAGES.get(input_format)
    return language.kind if language else ""


def columns_of(schema: WriterSchema, input_format: str, options: JsonSchemaOptions) -> pa.DataType:
    """What records of a schema become. Raises `InvalidSchema`."""
    language = JsonSchema(options) if input_format == "JsonSchema" else LANGUAGES[input_format]
    found = language.decoder_of(schema).type
    return fields_with_more(found) if pa.types.is_struct(found) else with_more(found)
