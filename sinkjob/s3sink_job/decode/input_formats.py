"""The input formats, by the name that `spec.source` uses. A new one is a line here or in `schema_languages.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from s3sink_job.decode.bytes import BytesInput
from s3sink_job.decode.connect_json import ConnectJsonInput
from s3sink_job.decode.input_format import InputFormat, InputSettings
from s3sink_job.decode.json import JsonInput
from s3sink_job.decode.json_schema_input import JsonSchemaInput
from s3sink_job.decode.schema_input import SchemaInput
from s3sink_job.decode.schema_languages import LANGUAGES
from s3sink_job.decode.string import StringInput

INPUTS: Mapping[str, Callable[[InputSettings], InputFormat]] = {
    "Json": JsonInput,
    "String": StringInput,
    "Bytes": BytesInput,
    "ConnectJson": ConnectJsonInput,
    **{name: partial(SchemaInput, language) for name, language in LANGUAGES.items()},
    "JsonSchema": JsonSchemaInput,
}
