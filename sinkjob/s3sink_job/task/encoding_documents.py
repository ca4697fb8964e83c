"""Encodings as documents, as manifests hold them, also those of older releases.

A document is flat. Its keys and their order stay the same, so that manifests stay the same byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from pydantic import TypeAdapter

from s3sink_api.spec import SchemaEvolution, SchemaRegistry
from s3sink_job.columns.types import from_text, to_doc
from s3sink_job.decode.settings import NO_OPTIONS, Decoding, JsonSchemaOptions, SchemaSource
from s3sink_job.flush.rollback import OF_TYPED_RECORDS, SINCE_0_2
from s3sink_job.formats.settings import CsvOptions, Output, ParquetOptions
from s3sink_job.layout.settings import DEFAULT_LAYOUT, Grouping, LayoutItem, ObjectLayout
from s3sink_job.layout.topic_names import TopicNames
from s3sink_job.shape.settings import Shape
from s3sink_job.shape.transform_settings import transform_from_doc, transform_to_doc
from s3sink_job.task.encoding import Encoding

_REGISTRY = TypeAdapter(SchemaRegistry)
NULLS_APART = "Separate"
DEFAULTS: Mapping[str, Any] = {
    "row_group_bytes": ParquetOptions.row_group_bytes,
    "dictionary": ParquetOptions.dictionary,
    "statistics": ParquetOptions.statistics,
    "timestamps": ParquetOptions.timestamps,
    "window": None,
    "supplied": "",
    "header": CsvOptions.header,
    "delimiter": CsvOptions.delimiter,
    "quote": CsvOptions.quote,
    "flatten": Shape.flatten,
    "envelope": Shape.envelope,
    "nulls": Shape.nulls,
    "headers_as": Shape.headers_as,
    "key_as": Shape.key_as,
    **dict.fromkeys(OF_TYPED_RECORDS, ""),
    "transform": "",
}
"""Fields that a document may lack."""


def encoding_to_doc(encoding: Encoding) -> dict[str, Any]:
    """Without the fields that 0.1.0 does not accept and that have their default, so that 0.1.0 reads it."""
    doc = whole_doc(encoding)
    # The usual layout does not use the flush's time, and the manifest has it as well.
    timeless = {**doc, "layout": replace(encoding.layout, stamp=0)}
    usual = {**DEFAULTS, "layout": DEFAULT_LAYOUT}
    unused = {name for name in SINCE_0_2 if timeless[name] == usual[name]}
    return {name: value for name, value in doc.items() if name not in unused}


def whole_doc(encoding: Encoding) -> dict[str, Any]:
    """With all fields."""
    decoding, shape, grouping, output = encoding.decoding, encoding.shape, encoding.grouping, encoding.output
    supplied = decoding.supplied
    return {
        "format": output.format,
        "codec": output.codec,
        "level": output.level,
        "meta": shape.meta,
        "key": decoding.key,
        "value": decoding.value,
        **asdict(output.parquet),
        "window": grouping.window,
        "supplied": "" if supplied is None else json.dumps(to_doc(supplied)),
        **asdict(output.csv),
        "flatten": shape.flatten,
        "envelope": shape.envelope,
        "nulls": NULLS_APART if grouping.tombstones_apart else shape.nulls,
        "layout": _layout_to_doc(grouping.layout),
        "key_schema": decoding.key_schemas.inline,
        "value_schema": decoding.value_schemas.inline,
        "key_registry": _registry_to_doc(decoding.key_schemas),
        "value_registry": _registry_to_doc(decoding.value_schemas),
        "key_options": _options_to_doc(decoding.key_schemas),
        "value_options": _options_to_doc(decoding.value_schemas),
        "headers_as": shape.headers_as,
        "key_as": shape.key_as,
        "evolution": "" if decoding.evolution == SchemaEvolution() else asdict(decoding.evolution),
        "transform": transform_to_doc(encoding.transform),
    }


def _registry_to_doc(schemas: SchemaSource) -> dict[str, Any] | str:
    """Names of Secrets, never their content."""
    return "" if schemas.registry is None else asdict(schemas.registry)


def _options_to_doc(schemas: SchemaSource) -> dict[str, Any] | str:
    return "" if schemas.options == NO_OPTIONS else asdict(schemas.options)


def encoding_from_doc(doc: Mapping[str, Any]) -> Encoding:
    """Of a manifest, which may be older than some of the fields."""
    known = {**DEFAULTS, **doc}
    apart = known["nulls"] == NULLS_APART
    return Encoding(
        Decoding(
            *(doc["key"], doc["value"], from_text(known["supplied"]) if known["supplied"] else None),
            *(_schemas_from_doc(known, "key"), _schemas_from_doc(known, "value")),
            SchemaEvolution(**known["evolution"]) if known["evolution"] else SchemaEvolution(),
        ),
        Shape(
            *(doc["meta"], known["flatten"], tuple(known["envelope"]), Shape.nulls if apart else known["nulls"]),
            *(known["headers_as"], known["key_as"]),
        ),
        Grouping(_layout_from_doc(doc["layout"]) if "layout" in doc else DEFAULT_LAYOUT, known["window"], apart),
        Output(
            *(doc["format"], doc["codec"], doc["level"]),
            ParquetOptions(known["row_group_bytes"], known["dictionary"], known["statistics"], known["timestamps"]),
            CsvOptions(known["header"], known["delimiter"], known["quote"]),
        ),
        transform_from_doc(known["transform"]),
    )


def _schemas_from_doc(doc: Mapping[str, Any], part: str) -> SchemaSource:
    registry, options = doc[f"{part}_registry"], doc[f"{part}_options"] or {}
    found = _REGISTRY.validate_python(registry) if registry else None
    return SchemaSource(doc[f"{part}_schema"], found, JsonSchemaOptions(**options))


def _layout_to_doc(layout: ObjectLayout) -> dict[str, Any]:
    doc = asdict(layout)
    return doc if layout.topics else {name: value for name, value in doc.items() if name != "topics"}


def _layout_from_doc(doc: Mapping[str, Any]) -> ObjectLayout:
    items = tuple(LayoutItem(**{**item, "path": tuple(item["path"])}) for item in doc["items"])
    named = dict(doc.get("topics", {}))
    topics = TopicNames(**{**named, "names": tuple((topic, folder) for topic, folder in named.get("names", ()))})
    return ObjectLayout(**{**doc, "items": items, "topics": topics})
