"""Output and input formats, with a row for each. The spec, the definition and the job read here what a format supports.

A new format is a new row, and its name in the Literal above the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

FormatType = Literal["Parquet", "Avro", "Json", "Csv", "Text", "Bytes", "Orc"]
Codec = Literal["None", "Gzip", "Snappy", "Lz4", "Zstd", "Brotli", "Bzip2", "Deflate", "Xz"]
Rows = Literal["Columns", "Lines", "Values"]


@dataclass(frozen=True, kw_only=True)
class FormatTraits:
    """What an output format supports (`spec.format.type`)."""

    codecs: tuple[Codec, ...]
    default_codec: Codec = "None"
    levels: bool = True
    """Whether `compression.level` may be set."""
    rows: Rows
    """What an object is made of: columns, lines of text, or plain values."""
    meta_columns: bool = True
    """Whether `columns.meta` may be set."""
    envelope: bool = True
    """Whether `envelope.enabled` may be set."""
    one_record_objects: bool = False
    """Whether each record is an object of its own."""
    options: str = ""
    """The section of `spec.format` with options of this format alone."""


_FOR_LINES: tuple[Codec, ...] = ("None", "Gzip", "Lz4", "Zstd", "Brotli", "Bzip2", "Xz")

FORMATS: Mapping[FormatType, FormatTraits] = MappingProxyType(
    {
        "Parquet": FormatTraits(
            codecs=("None", "Gzip", "Snappy", "Lz4", "Zstd", "Brotli"),
            default_codec="Zstd",
            rows="Columns",
            options="parquet",
        ),
        "Avro": FormatTraits(
            codecs=("None", "Snappy", "Zstd", "Bzip2", "Deflate", "Xz"), default_codec="Zstd", rows="Columns"
        ),
        "Json": FormatTraits(codecs=_FOR_LINES, rows="Lines"),
        "Csv": FormatTraits(codecs=_FOR_LINES, rows="Columns", envelope=False, options="csv"),
        "Text": FormatTraits(codecs=_FOR_LINES, rows="Lines", meta_columns=False, envelope=False),
        "Bytes": FormatTraits(
            codecs=("None", "Gzip", "Zstd"), rows="Values", meta_columns=False, envelope=False, one_record_objects=True
        ),
        "Orc": FormatTraits(
            codecs=("None", "Snappy", "Lz4", "Zstd", "Deflate"), default_codec="Zstd", levels=False, rows="Columns"
        ),
    }
)
DEFAULT_FORMAT: FormatType = "Parquet"
LetterFormat = Literal["Parquet", "Json"]
"""Formats of dead letters."""
DEFAULT_LETTER_FORMAT: LetterFormat = "Parquet"
CODECS: Mapping[FormatType, tuple[Codec, ...]] = {kind: traits.codecs for kind, traits in FORMATS.items()}
LEVELS: Mapping[Codec, tuple[int, int]] = {
    "Gzip": (0, 9),
    "Lz4": (1, 12),
    "Zstd": (1, 22),
    "Brotli": (0, 11),
    "Bzip2": (1, 9),
    "Deflate": (0, 9),
    "Xz": (0, 9),
}
"""The lowest and the highest level of each codec that has levels."""


def formats_where(holds: Callable[[FormatTraits], bool]) -> tuple[FormatType, ...]:
    return tuple(kind for kind, traits in FORMATS.items() if holds(traits))


InputFormat = Literal["String", "Bytes", "Json", "ConnectJson", "Avro", "Protobuf", "JsonSchema"]


@dataclass(frozen=True, kw_only=True)
class InputTraits:
    """What an input format is (`spec.source.key.format`, `spec.source.value.format`)."""

    fields: bool
    """Whether it has fields that a path can name."""
    registry: bool = False
    """Whether `schemaRegistry` may be set."""
    inline_schema: Literal["", "JSON Schema", "Avro", "Protobuf"] = ""
    """The language of `schema`; empty where none may be set."""
    schema_read_by_job: bool = False
    """Whether only the job can tell if an inline schema is right."""
    needs_schema: bool = False
    """Whether one must be set, in either of these ways."""
    json_schema: bool = False
    """Whether `validate` and `times` may be set."""
    messages: bool = False
    """Whether a schema may have several messages, so that a record names its own."""
    typed: bool = False
    """Whether records bring the types of their fields along: nothing is inferred, and no column becomes text."""


INPUT_FORMATS: Mapping[InputFormat, InputTraits] = MappingProxyType(
    {
        "String": InputTraits(fields=False),
        "Bytes": InputTraits(fields=False),
        "Json": InputTraits(fields=True, inline_schema="JSON Schema"),
        "ConnectJson": InputTraits(fields=True, typed=True),
        "Avro": InputTraits(fields=True, registry=True, inline_schema="Avro", needs_schema=True, typed=True),
        "Protobuf": InputTraits(
            fields=True,
            registry=True,
            inline_schema="Protobuf",
            schema_read_by_job=True,
            needs_schema=True,
            messages=True,
            typed=True,
        ),
        "JsonSchema": InputTraits(
            fields=True, registry=True, inline_schema="JSON Schema", needs_schema=True, json_schema=True, typed=True
        ),
    }
)


def inputs_where(holds: Callable[[InputTraits], bool]) -> tuple[InputFormat, ...]:
    return tuple(kind for kind, traits in INPUT_FORMATS.items() if holds(traits))
