"""The output formats, by the name that `spec.format.type` uses. A new format is one line here."""

from __future__ import annotations

from collections.abc import Mapping

from s3sink_job.formats.avro import AvroFormat
from s3sink_job.formats.bytes import BytesFormat
from s3sink_job.formats.csv import CsvFormat
from s3sink_job.formats.json import JsonFormat
from s3sink_job.formats.orc import OrcFormat
from s3sink_job.formats.output_format import OutputFormat
from s3sink_job.formats.parquet import ParquetFormat
from s3sink_job.formats.text import TextFormat

OUTPUT_FORMATS: Mapping[str, OutputFormat] = {
    "Parquet": ParquetFormat(),
    "Avro": AvroFormat(),
    "Json": JsonFormat(),
    "Csv": CsvFormat(),
    "Text": TextFormat(),
    "Bytes": BytesFormat(),
    "Orc": OrcFormat(),
}
