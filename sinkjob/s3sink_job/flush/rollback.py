"""Which encodings release 0.1.0 reads, so that a sink can be rolled back to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OF_TYPED_RECORDS = (
    *("key_schema", "value_schema", "key_registry", "value_registry"),
    *("key_options", "value_options", "evolution"),
)
SINCE_0_2 = (
    *("header", "delimiter", "quote", "flatten", "envelope", "headers_as", "key_as", "nulls", "layout"),
    *(*OF_TYPED_RECORDS, "transform", "timestamps"),
)
"""Fields of an encoding's document that 0.1.0 does not accept."""

TYPED_SCHEMA = "typed-"
"""The beginning of the name of a schema with types that 0.1.0 does not read."""


def known_to_0_1(doc: Mapping[str, Any]) -> bool:
    """Whether 0.1.0 makes the same objects of it. 0.1.0 does not check: a `meta` that it lacks would count as none."""
    codecs = doc.get("format") == "Parquet" or doc.get("codec") in {"None", "Gzip", "Zstd"}
    formats = doc.get("format") in {"Parquet", "Json", "Text"} and doc.get("meta") in {"None", "Kafka", "Quix"}
    untyped = {doc.get("key"), doc.get("value")} <= {"String", "Bytes", "Json"}
    return codecs and formats and untyped and not any(name in doc for name in SINCE_0_2)
