"""The input formats, by the name that `spec.source` uses. A new format is one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from s3sink_job.decode.avro import AvroInput
from s3sink_job.decode.bytes import BytesInput
from s3sink_job.decode.connect_json import ConnectJsonInput
from s3sink_job.decode.input_format import InputFormat
from s3sink_job.decode.json import JsonInput
from s3sink_job.decode.string import StringInput
from s3sink_job.decode.writer_schemas import SchemaLookup


class OpenInput(Protocol):
    def __call__(
        self,
        part: str,
        *,
        known: pa.StructType | None = None,
        supplied: pa.StructType | None = None,
        schemas: SchemaLookup | None = None,
    ) -> InputFormat:
        """`part` is `key` or `value`. `known` are the columns found so far, `supplied` those the spec asks for.

        `schemas` is for formats whose records have a schema of their own.
        """
        ...


INPUTS: Mapping[str, OpenInput] = {
    "Json": JsonInput,
    "String": StringInput,
    "Bytes": BytesInput,
    "ConnectJson": ConnectJsonInput,
    "Avro": AvroInput,
}
