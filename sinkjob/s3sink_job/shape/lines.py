"""Records as lines of JSON or text. A tombstone is `null` in JSON, and an empty line in Text."""

from __future__ import annotations

import json
from collections.abc import Container

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.duckdb_functions import TooLarge, base64, without_rows
from s3sink_job.columns.text import concat, holds, quoted
from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import BadRecords, Fault, Stage, faults_at
from s3sink_job.decode.decoder import DecodedBatch
from s3sink_job.decode.json_fields import first_name_among
from s3sink_job.decode.utf8 import utf8
from s3sink_job.shape.headers import header_starts, last_headers
from s3sink_job.shape.origin import (
    AIRBYTE_DATA,
    AIRBYTE_ID,
    AIRBYTE_TIME,
    OWN_FIELDS,
    QUIX_KEY,
    QUIX_TIME,
    QUIX_VALUE,
    Origin,
    millis,
)
from s3sink_job.shape.settings import Shape

# A name may also be written with escapes.
ESCAPED = r'"_[^"]*\\u|"\\u005[fF]'
INSTEAD = {
    "Kafka": "use columns.meta None or Quix",
    **dict.fromkeys(("Airbyte", "Quix"), "leave columns.flatten out"),
}


def text_lines(decoded: DecodedBatch) -> pa.RecordBatch:
    line = decoded.plain("value")
    if not decoded.input("value").one_line and holds(line, "\n"):
        broken = pc.indices_nonzero(pc.fill_null(pc.match_substring(line, "\n"), False)).to_pylist()
        why = "its value holds a line break, and Text is one record a line: use format Json"
        decoded.bad.add(Stage.SHAPE, faults_at(broken, "LineBreak", why))
    return _lines(pc.fill_null(line.cast(pa.binary()), b""))


class JsonLineShaper:
    def __init__(self, shape: Shape, origin: Origin) -> None:
        self._shape, self._origin = shape, origin

    def __call__(self, decoded: DecodedBatch) -> pa.RecordBatch:
        return _lines(self._enveloped(decoded) if self._shape.envelope else self._beside(decoded))

    def _beside(self, decoded: DecodedBatch) -> Column:
        """The value, beside its meta fields where there are any."""
        batch, value = decoded.batch, _json(decoded, "value")
        match self._shape.meta:
            case "None":
                return value
            case "Airbyte":
                return self._airbyte(decoded, value)
            case "Quix":
                return self._quix(decoded, value)
        key = _json(decoded, "key")
        _refuse_clashes(value, "Kafka", decoded.bad)
        return concat(
            *(
                '{"_key":',
                key,
                f',"_topic":{json.dumps(self._origin.topic)},"_partition":',
                _digits(batch, "partition"),
            ),
            *(',"_offset":', _digits(batch, "offset"), ',"_timestamp":', _millis(batch)),
            *(',"_headers":', _headers(batch.column("headers")), _rest_of_object(value, "_value")),
        )

    def _airbyte(self, decoded: DecodedBatch, value: Column) -> Column:
        batch = decoded.batch
        start = (f'{{"{AIRBYTE_ID}":"', self._origin.ids(batch), f'","{AIRBYTE_TIME}":', _millis(batch))
        return concat(*start, self._flat_or_whole(decoded, value, AIRBYTE_DATA))

    def _quix(self, decoded: DecodedBatch, value: Column) -> Column:
        start = (f'{{"{QUIX_TIME}":', _millis(decoded.batch), f',"{QUIX_KEY}":', _json(decoded, "key"))
        return concat(*start, self._flat_or_whole(decoded, value, QUIX_VALUE))

    def _flat_or_whole(self, decoded: DecodedBatch, value: Column, name: str) -> Column:
        """The rest of the line: the fields of the value, or one field with the value."""
        if not (self._shape.flatten and decoded.input("value").has_fields):
            return concat(f',"{name}":', value, "}")
        _refuse_clashes(value, self._shape.meta, decoded.bad)
        return _rest_of_object(value, name)

    def _enveloped(self, decoded: DecodedBatch) -> Column:
        batch, envelope = decoded.batch, self._shape.envelope
        # The value first: if both are bad, it is the value's fault that counts.
        texts = {part: _json(decoded, part) for part in ("value", "key") if part in envelope}
        parts: list[Column | str] = []
        for part in envelope:
            parts += [f'{"," if parts else "{"}"{part}":']
            match part:
                case "key" | "value":
                    parts.append(texts[part])
                case "headers":
                    headers = _header_map if self._shape.headers_as == "Map" else _headers
                    parts.append(headers(batch.column("headers")))
                case _:
                    parts += [f'{{"topic":{json.dumps(self._origin.topic)},"partition":', _digits(batch, "partition")]
                    parts += [',"offset":', _digits(batch, "offset"), ',"timestamp":', _millis(batch), "}"]
        return concat(*parts, "}")


def _lines(line: Column) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([line.cast(pa.binary())], ["line"])


def _json(decoded: DecodedBatch, part: str) -> Column:
    text = decoded.json(part)
    return pc.fill_null(text, "null") if text.null_count else text


def _rest_of_object(value: Column, otherwise: str) -> Column:
    """The text behind the meta fields: the fields of an object, or one field for any other value."""
    value = pc.utf8_trim_whitespace(value)
    is_object = pc.starts_with(value, "{")
    fields = pc.utf8_ltrim_whitespace(pc.binary_replace_slice(pc.if_else(is_object, value, "{}"), 0, 1, ""))
    merged = pc.if_else(pc.starts_with(fields, "}"), fields, concat(",", fields))
    return pc.if_else(is_object, merged, concat(f',"{otherwise}":', value, "}"))


def _refuse_clashes(value: Column, meta: str, bad: BadRecords) -> None:
    """Objects that have one of the meta fields themselves: merging would give one name two values."""
    names = OWN_FIELDS[meta]
    suspects = pc.indices_nonzero(pc.match_substring_regex(value, f'"(?:{"|".join(names)})"|{ESCAPED}'))
    if not len(suspects):
        return
    try:
        found = first_name_among(value.take(suspects), names)
    except TooLarge as error:
        large = suspects.take(pa.array(error.rows)).to_pylist()
        bad.add(Stage.SHAPE, faults_at(large, "TooLarge", f"value is {error}"))
        _refuse_clashes(pc.fill_null(without_rows(value, large), "null"), meta, bad)
        return
    rows, clashes = suspects.filter(found.is_valid()).to_pylist(), found.drop_null().to_pylist()
    bad.add(Stage.SHAPE, {row: clash(name, meta) for row, name in zip(rows, clashes, strict=True)})


def clash(name: str, meta: str) -> Fault:
    return Fault("FieldTaken", f"value already has the field {name!r}: {INSTEAD[meta]}")


def _headers(column: Column) -> Column:
    """`[{"key": …, "value": text}]`; a value that is not UTF-8 is base64, under the name `base64`."""
    items = column.flatten()
    names = quoted(items.field("key"))
    raw = items.field("value")
    text, not_utf8 = utf8(raw)
    entry = concat('{"key":', names, ',"value":', pc.fill_null(quoted(text), "null"), "}")
    if not_utf8:
        binary = concat('{"key":', names, ',"base64":"', base64(raw), '"}')
        entry = pc.if_else(_mask(not_utf8, len(raw)), binary, entry)
    return concat("[", _joined(header_starts(column), entry), "]")


def _header_map(column: Column) -> Column:
    """`{name: text}`; a value that is not UTF-8 is `{"base64": text}`. Of several with one name the last counts."""
    starts, items = last_headers(column)
    raw = items.field("value")
    text, not_utf8 = utf8(raw)
    value = pc.fill_null(quoted(text), "null")
    if not_utf8:
        value = pc.if_else(_mask(not_utf8, len(raw)), concat('{"base64":"', base64(raw), '"}'), value)
    return concat("{", _joined(starts, concat(quoted(items.field("key")), ":", value)), "}")


def _mask(rows: Container[int], count: int) -> Column:
    return pa.array([row in rows for row in range(count)], pa.bool_())


def _joined(starts: Column, entries: Column) -> Column:
    """The entries of each row, with commas between them."""
    return pc.binary_join(pa.ListArray.from_arrays(starts, entries), ",")


def _millis(batch: pa.RecordBatch) -> Column:
    return millis(batch.column("timestamp")).cast(pa.string())


def _digits(batch: pa.RecordBatch, name: str) -> Column:
    return batch.column(name).cast(pa.string())
