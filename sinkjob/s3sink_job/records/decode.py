"""A batch of Kafka records as rows for a format, and the records that cannot be rows.

Formats of lines take one column `line`. What a null value (a tombstone) is: `null` in JSON, an empty line
in Text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.encoding import Encoding
from s3sink_job.records.tables import META_FIELDS, ColumnDecoder, millis
from s3sink_job.records.text import (
    NONE_BAD,
    Bad,
    Column,
    Decoded,
    base64,
    holds,
    json_text,
    quoted,
    top_key_among,
    utf8,
)

# A name may be written with escapes, so those are worth a second look too.
MAY_CLASH = r'"_(?:key|topic|partition|offset|timestamp|headers)"|"_[^"]*\\u|"\\u005[fF]'


class Decoder(Protocol):
    """Of one slice. `schema` is what it knows of the values' columns, as text; nothing where there are none."""

    def decode(self, batch: pa.RecordBatch) -> Decoded: ...

    @property
    def schema(self) -> str: ...

    def as_text(self, path: tuple[str, ...]) -> None:
        """A column that the format had to write as text, and that will be text from now on."""
        ...


def open_decoder(encoding: Encoding, topic: str, schema: str = "") -> Decoder:
    if encoding.format == "Parquet":
        return ColumnDecoder(encoding, topic, schema)
    return LineDecoder(encoding, topic)


@dataclass
class LineDecoder:
    encoding: Encoding
    topic: str
    schema: str = ""

    def decode(self, batch: pa.RecordBatch) -> Decoded:
        if self.encoding.format == "Text":
            line, bad = _text_lines(batch, self.encoding)
        else:
            line, bad = _json_lines(batch, self.encoding, self.topic)
        return Decoded(pa.RecordBatch.from_arrays([line], ["line"]), bad)

    def as_text(self, path: tuple[str, ...]) -> None:
        raise TypeError("lines have no columns")


def _text_lines(batch: pa.RecordBatch, encoding: Encoding) -> tuple[Column, Bad]:
    value = batch.column("value")
    match encoding.value:
        case "Json":
            line, bad = json_text(value)
        case "String":
            line, bad = utf8(value)
        case _:
            line, bad = value, NONE_BAD
    if encoding.value != "Json" and holds(line, "\n"):
        broken = pc.indices_nonzero(pc.fill_null(pc.match_substring(line, "\n"), False)).to_pylist()
        why = "its value holds a line break, and Text is one record a line: use format Json"
        bad = Bad({**dict.fromkeys(broken, why), **bad.rows})
    return pc.fill_null(line.cast(pa.binary()), b""), bad


def _json_lines(batch: pa.RecordBatch, encoding: Encoding, topic: str) -> tuple[Column, Bad]:
    value, bad = _as_json(batch.column("value"), encoding.value, "value")
    if encoding.meta == "None":
        return value.cast(pa.binary()), bad
    key, bad_keys = _as_json(batch.column("key"), encoding.key, "key")
    timestamp = _text_of(millis(batch.column("timestamp")))
    bad = Bad({**bad_keys.rows, **bad.rows})
    if encoding.meta == "Quix":
        line = _concat('{"_timestamp":', timestamp, ',"_key":', key, ',"_value":', value, "}")
        return line.cast(pa.binary()), bad
    line = _concat(
        *(
            '{"_key":',
            key,
            f',"_topic":{json.dumps(topic)},"_partition":',
            _text_of(batch.column("partition")),
        ),
        *(',"_offset":', _text_of(batch.column("offset")), ',"_timestamp":', timestamp),
        *(',"_headers":', _headers(batch.column("headers")), _rest_of_object(value)),
    )
    return line.cast(pa.binary()), Bad({**_clashes(value), **bad.rows})


def _as_json(column: Column, format: str, what: str) -> tuple[Column, Bad]:
    match format:
        case "Json":
            text, bad = json_text(column)
        case "String":
            plain, bad = utf8(column)
            text = quoted(plain)
        case _:
            text, bad = _concat('"', base64(column), '"'), NONE_BAD
    text = pc.fill_null(text, "null") if text.null_count else text
    return text, Bad({row: f"{what} is {why}" for row, why in bad.rows.items()})


def _rest_of_object(value: Column) -> Column:
    """What follows the meta fields: the fields of an object, or `_value` for anything else."""
    value = pc.utf8_trim_whitespace(value)
    fields = pc.utf8_ltrim_whitespace(pc.utf8_slice_codeunits(value, start=1))
    merged = pc.if_else(pc.starts_with(fields, "}"), fields, _concat(",", fields))
    return pc.if_else(pc.starts_with(value, "{"), merged, _concat(',"_value":', value, "}"))


def _clashes(value: Column) -> dict[int, str]:
    """Objects that already have one of our fields: merging would give one name two values."""
    suspects = pc.indices_nonzero(pc.match_substring_regex(value, MAY_CLASH))
    if not len(suspects):
        return {}
    names = top_key_among(value.take(suspects), META_FIELDS)
    clash = pc.is_valid(names)
    found = zip(suspects.filter(clash).to_pylist(), names.filter(clash).to_pylist(), strict=True)
    return {row: f"value already has the field {name!r}: use columns.meta None or Quix" for row, name in found}


def _headers(column: Column) -> Column:
    """`[{"key": …, "value": text}]`; a value that is not UTF-8 stands as base64 under `base64`."""
    items = column.flatten()
    names = quoted(items.field("key"))
    raw = items.field("value")
    text, odd = utf8(raw)
    entry = _concat('{"key":', names, ',"value":', pc.fill_null(quoted(text), "null"), "}")
    if odd:
        binary = _concat('{"key":', names, ',"base64":"', base64(raw), '"}')
        mask = pa.array([row in odd.rows for row in range(len(raw))], pa.bool_())
        entry = pc.if_else(mask, binary, entry)
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    ends = pc.cumulative_sum(lengths.cast(pa.int32()))
    starts = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    return _concat("[", pc.binary_join(pa.ListArray.from_arrays(starts, entry), ","), "]")


def _text_of(column: Column) -> Column:
    return column.cast(pa.string())


def _concat(*parts: Column | str) -> Column:
    return pc.binary_join_element_wise(*parts, "")
