"""`s3sink check` for typed records: the registry answers, and the latest schema of each topic as its columns."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from s3sink_api.spec import Spec
from s3sink_job.base.errors import S3SinkError
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.registries import SchemaClient, open_client
from s3sink_job.decode.schema_languages import columns_of, kind_of
from s3sink_job.decode.settings import PartDecoding, decoding_of
from s3sink_job.decode.writer_schemas import InvalidSchema, WriterSchema

CHECK = "schema"


def registry_checks(spec: Spec, secrets: Secrets) -> Iterator[tuple[str, bool, str]]:
    """What was tested, whether it is well, and a sentence."""
    routes = [(route.topics, spec.for_route(route)) for route in spec.routes]
    routed = {topic for topics, _ in routes for topic in topics}
    own = tuple(topic for topic in spec.source.topics if topic not in routed)
    answered: set[str] = set()
    shown: set[PartDecoding] = set()
    for number, (topics, one) in enumerate(((own, spec), *routes)):
        retries = one.errors.request_retries
        for part in decoding_of(one).parts:
            if part.schemas.inline and part not in shown:
                shown.add(part)
                yield _inline("spec" if not number else f"spec.routes[{number - 1}]", part)
            try:
                yield from _check(topics, part, secrets, RetryPolicy(retries.max, retries.backoff), answered)
            except S3SinkError as error:
                yield "registry", False, f"{error.reason}: {error}"


def _check(
    topics: tuple[str, ...], part: PartDecoding, secrets: Secrets, retry: RetryPolicy, answered: set[str]
) -> Iterator[tuple[str, bool, str]]:
    if part.schemas.registry is None:
        return
    client = open_client(part.schemas.registry, secrets, retry)
    for topic in topics or ("",):
        found = _latest(client, topic, part)
        if client.url not in answered:
            answered.add(client.url)
            yield "registry", True, f"{client.url} answers"
        if topic and client.usual_name(topic, part.part):
            yield found


def _inline(place: str, part: PartDecoding) -> tuple[str, bool, str]:
    """A route may have the schema of the spec: it is shown once."""
    return _columns(f"{place}.source.{part.part}.schema", WriterSchema(kind_of(part.format), part.schemas.inline), part)


def _latest(client: SchemaClient, topic: str, part: PartDecoding) -> tuple[str, bool, str]:
    latest = client.latest(topic, part.part)
    if latest is None:
        elsewhere = "records are read by the id they carry, whatever the name of their schema"
        return CHECK, True, f"the registry has no {client.usual_name(topic, part.part)}; {elsewhere}"
    return _columns(latest.name, latest.schema, part)


def _columns(name: str, schema: WriterSchema, part: PartDecoding) -> tuple[str, bool, str]:
    if schema.kind != kind_of(part.format):
        return CHECK, False, f"{name} is {schema.kind}, and the format in the manifest is {part.format}"
    try:
        return CHECK, True, f"{name}: {_text(columns_of(schema, part.format, part.schemas.options))}"
    except InvalidSchema as error:
        return CHECK, False, f"{name} is {error}"


def _text(kind: pa.DataType) -> str:
    if not pa.types.is_struct(kind):
        return str(kind)
    return ", ".join(f"{field.name} {field.type}" for field in kind) or "a record without fields"
