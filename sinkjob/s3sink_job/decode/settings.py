"""How keys and values are decoded, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from s3sink_api.formats import INPUT_FORMATS
from s3sink_api.spec import Spec, columns_of
from s3sink_job.columns.types import from_doc


@dataclass(frozen=True)
class Decoding:
    key: str
    value: str
    """Names of input formats: see `registry.py`."""
    supplied: pa.StructType | None = None
    """The columns that the spec asks for; without any they are inferred."""


def decoding_of(spec: Spec) -> Decoding:
    value = spec.source.value
    by_json_schema = INPUT_FORMATS[value.format].inline_schema == "JSON Schema"
    supplied = from_doc(columns_of(value.schema)) if by_json_schema and value.schema else None
    return Decoding(spec.source.key.format, value.format, supplied)
