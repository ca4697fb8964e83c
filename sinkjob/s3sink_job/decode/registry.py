"""The input formats, by the name that `spec.source` uses. A new format is one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from s3sink_job.decode.bytes import BytesInput
from s3sink_job.decode.input_format import InputFormat
from s3sink_job.decode.json import JsonInput
from s3sink_job.decode.string import StringInput


class OpenInput(Protocol):
    def __call__(
        self, part: str, *, known: pa.StructType | None = None, supplied: pa.StructType | None = None
    ) -> InputFormat:
        """`part` is `key` or `value`. `known` are the columns inferred so far, `supplied` those the spec asks for."""
        ...


INPUTS: Mapping[str, OpenInput] = {
    "Json": JsonInput,
    "String": StringInput,
    "Bytes": BytesInput,
}
