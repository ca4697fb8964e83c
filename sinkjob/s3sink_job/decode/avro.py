"""Avro, as a language of schemas."""

from __future__ import annotations

from s3sink_job.decode.avro_decoder import AvroDecoder, decoder_of
from s3sink_job.decode.avro_versions import VersionFamilies
from s3sink_job.decode.schema_language import Message, SchemaLanguage
from s3sink_job.decode.writer_schemas import WriterSchema


class Avro(SchemaLanguage):
    kind = "AVRO"

    def decoder_of(self, schema: WriterSchema, message: Message = b"") -> AvroDecoder:
        return decoder_of(schema)

    def families(self) -> VersionFamilies:
        return VersionFamilies()
