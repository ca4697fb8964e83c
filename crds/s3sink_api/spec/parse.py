"""Parses a manifest into the resource, or into every error of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from s3sink_api.spec.error_messages import field_error
from s3sink_api.spec.field_errors import FieldError, SpecError
from s3sink_api.spec.json_document import JsonDocument
from s3sink_api.spec.not_built import not_built
from s3sink_api.spec.sink import S3Sink
from s3sink_api.spec.topic_checks import topic_errors

_SINK = TypeAdapter(S3Sink)


def parse(document: Mapping[str, Any], *, built_only: bool = True) -> S3Sink:
    """The sink that a manifest describes. Raises a SpecError with all mistakes at once.

    Without `built_only` it also accepts what is not built yet, like the API server.
    """
    if not isinstance(document, Mapping):
        raise SpecError([FieldError("document", f"must be a mapping, got {type(document).__name__}")])
    plain = JsonDocument(document)
    errors = list(plain.errors)
    try:
        # Strict JSON: "5" is no number, while lists become tuples and text becomes instants.
        sink = _SINK.validate_json(json.dumps(plain.document), strict=True, by_alias=True, by_name=False)
        errors += topic_errors(sink.spec)
    except ValidationError as error:
        errors += map(field_error, error.errors(include_url=False))
    if built_only:
        errors += [late for late in not_built(plain.document) if not _covered(late.path, errors)]
    if errors:
        raise SpecError(_first_of_each(errors))
    return sink


def to_document(sink: S3Sink) -> dict[str, Any]:
    """The manifest of a sink, with all defaults."""
    document: dict[str, Any] = _SINK.dump_python(sink, mode="json", by_alias=True, exclude_none=True)
    return document


def _covered(path: str, errors: Iterable[FieldError]) -> bool:
    return any(path == error.path or path.startswith(f"{error.path}.") for error in errors)


def _first_of_each(errors: Iterable[FieldError]) -> tuple[FieldError, ...]:
    first: dict[str, FieldError] = {}
    for error in errors:
        first.setdefault(error.path, error)
    return tuple(first.values())
