"""`s3sink check` for typed records: the registry answers, and the latest schema of each topic as its columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

import pyarrow as pa

from s3sink_api.spec import Spec
from s3sink_job.base.errors import S3SinkError
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.columns.microseconds import is_nanoseconds
from s3sink_job.columns.nested import any_leaf
from s3sink_job.decode.registries import SchemaClient, open_client
from s3sink_job.decode.schema_languages import columns_of, kind_of
from s3sink_job.decode.settings import PartDecoding, decoding_of
from s3sink_job.decode.writer_schemas import InvalidSchema, WriterSchema
from s3sink_job.formats.registry import OUTPUT_FORMATS
from s3sink_job.formats.settings import output_of
from s3sink_job.shape.settings import shape_of

CHECK = "schema"
NANOSECONDS = "timestamps"
"""A check whose sentence is a warning."""
Finding: TypeAlias = tuple[str, bool, str]
"""What was tested, whether it is well, and a sentence."""


def registry_checks(spec: Spec, secrets: Secrets) -> Iterator[Finding]:
    routes = [(route.topics, spec.for_route(route)) for route in spec.routes]
    routed = {topic for topics, _ in routes for topic in topics}
    own = tuple(topic for topic in spec.source.topics if topic not in routed)
    answered: set[str] = set()
    shown: set[PartDecoding] = set()
    for number, (topics, one) in enumerate(((own, spec), *routes)):
        retries = one.errors.request_retries
        for part in decoding_of(one).parts:
            findings = _check(topics, part, secrets, RetryPolicy(retries.max, retries.backoff), answered)
            if part.schemas.inline and part not in shown:
                shown.add(part)
                findings = chain(_inline("spec" if not number else f"spec.routes[{number - 1}]", part), findings)
            try:
                for found in findings:
                    if found[0] != NANOSECONDS or _keeps_spark_out(one, part):
                        yield found
            except S3SinkError as error:
                yield "registry", False, f"{error.reason}: {error}"


def _keeps_spark_out(spec: Spec, part: PartDecoding) -> bool:
    """Whether objects get columns of the key or value, and Spark does not open them if these have nanoseconds."""
    shape = shape_of(spec)
    spread = shape.spreads_keys if part.part == "key" else shape.spreads_values
    return spread and not OUTPUT_FORMATS[spec.format.type].opens_in_spark_with_nanoseconds(output_of(spec))


def _check(
    topics: tuple[str, ...], part: PartDecoding, secrets: Secrets, retry: RetryPolicy, answered: set[str]
) -> Iterator[Finding]:
    if part.schemas.registry is None:
        return
    client = open_client(part.schemas.registry, secrets, retry)
    for topic in topics or ("",):
        found = list(_latest(client, topic, part))
        if client.url not in answered:
            answered.add(client.url)
            yield "registry", True, f"{client.url} answers"
        if topic and client.usual_name(topic, part.part):
            yield from found


def _inline(place: str, part: PartDecoding) -> Iterator[Finding]:
    """A route may have the schema of the spec: it is shown once."""
    schema = WriterSchema(kind_of(part.format), part.schemas.inline)
    yield from _columns(f"{place}.source.{part.part}.schema", schema, part)


def _latest(client: SchemaClient, topic: str, part: PartDecoding) -> Iterator[Finding]:
    latest = client.latest(topic, part.part)
    if latest is None:
        elsewhere = "records are read by the id they carry, whatever the name of their schema"
        yield CHECK, True, f"the registry has no {client.usual_name(topic, part.part)}; {elsewhere}"
    else:
        yield from _columns(latest.name, latest.schema, part)


def _columns(name: str, schema: WriterSchema, part: PartDecoding) -> Iterator[Finding]:
    if schema.kind != kind_of(part.format):
        yield CHECK, False, f"{name} is {schema.kind}, and the format in the manifest is {part.format}"
        return
    try:
        columns = columns_of(schema, part.format, part.schemas.options)
    except InvalidSchema as error:
        yield CHECK, False, f"{name} is {error}"
        return
    yield CHECK, True, f"{name}: {_text(columns)}"
    if any_leaf(columns, is_nanoseconds):
        why = "Spark cannot open Parquet objects with timestamps in nanoseconds unless it is configured for them"
        yield NANOSECONDS, True, f"{name}: {why}; format.parquet.timestamps: Micros writes microseconds"


def _text(kind: pa.DataType) -> str:
    if not pa.types.is_struct(kind):
        return str(kind)
    return ", ".join(f"{field.name} {field.type}" for field in kind) or "a record without fields"
