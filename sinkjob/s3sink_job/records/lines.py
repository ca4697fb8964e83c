"""Records as lines of JSON or text. What a null value (a tombstone) is: `null` in JSON, an empty line in Text."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.duck import TooLarge, base64
from s3sink_job.encoding import Encoding
from s3sink_job.records.origin import AIRBYTE_DATA, AIRBYTE_ID, AIRBYTE_TIME, OWN_FIELDS, Origin, millis
from s3sink_job.records.text import Bad, Column, as_json, plain, top_key_among, utf8, without
from s3sink_job.schema.text import concat, holds, quoted

# A name may be written with escapes, so those are worth a second look too.
ESCAPED = r'"_[^"]*\\u|"\\u005[fF]'
INSTEAD = {"Kafka": "use columns.meta None or Quix", "Airbyte": "leave columns.flatten out"}


def text_lines(batch: pa.RecordBatch, encoding: Encoding) -> tuple[Column, Bad]:
    line, bad = plain(batch.column("value"), encoding.value, "value")
    if encoding.value != "Json" and holds(line, "\n"):
        broken = pc.indices_nonzero(pc.fill_null(pc.match_substring(line, "\n"), False)).to_pylist()
        why = "its value holds a line break, and Text is one record a line: use format Json"
        bad = Bad({**dict.fromkeys(broken, why), **bad.rows})
    return pc.fill_null(line.cast(pa.binary()), b""), bad


def json_lines(batch: pa.RecordBatch, encoding: Encoding, origin: Origin) -> tuple[Column, Bad]:
    if encoding.envelope:
        return _enveloped(batch, encoding, origin)
    value, bad = _json(batch, "value", encoding.value)
    if encoding.meta == "None":
        return value, bad
    if encoding.meta == "Airbyte":
        start = (f'{{"{AIRBYTE_ID}":"', origin.ids(batch), f'","{AIRBYTE_TIME}":', _millis(batch))
        if not (encoding.flatten and encoding.value == "Json"):
            return concat(*start, f',"{AIRBYTE_DATA}":', value, "}"), bad
        return concat(*start, _rest_of_object(value, AIRBYTE_DATA)), _or_clash(value, "Airbyte", bad)
    key, bad_keys = _json(batch, "key", encoding.key)
    bad = Bad({**bad_keys.rows, **bad.rows})
    if encoding.meta == "Quix":
        return concat('{"_timestamp":', _millis(batch), ',"_key":', key, ',"_value":', value, "}"), bad
    line = concat(
        *('{"_key":', key, f',"_topic":{json.dumps(origin.topic)},"_partition":', _digits(batch, "partition")),
        *(',"_offset":', _digits(batch, "offset"), ',"_timestamp":', _millis(batch)),
        *(',"_headers":', _headers(batch.column("headers")), _rest_of_object(value, "_value")),
    )
    return line, _or_clash(value, "Kafka", bad)


def _enveloped(batch: pa.RecordBatch, encoding: Encoding, origin: Origin) -> tuple[Column, Bad]:
    parts: list[Column | str] = []
    bad: dict[int, str] = {}
    for part in encoding.envelope:
        parts += [f'{"," if parts else "{"}"{part}":']
        match part:
            case "key" | "value":
                text, odd = _json(batch, part, encoding.key if part == "key" else encoding.value)
                parts.append(text)
                bad |= odd.rows
            case "headers":
                parts.append(_headers(batch.column("headers")))
            case _:
                parts += [f'{{"topic":{json.dumps(origin.topic)},"partition":', _digits(batch, "partition")]
                parts += [',"offset":', _digits(batch, "offset"), ',"timestamp":', _millis(batch), "}"]
    return concat(*parts, "}"), Bad(bad)


def _json(batch: pa.RecordBatch, what: str, format: str) -> tuple[Column, Bad]:
    text, bad = as_json(batch.column(what), format, what)
    return pc.fill_null(text, "null") if text.null_count else text, bad


def _rest_of_object(value: Column, otherwise: str) -> Column:
    """What follows the meta fields: the fields of an object, or one field for anything else."""
    value = pc.utf8_trim_whitespace(value)
    is_object = pc.starts_with(value, "{")
    fields = pc.utf8_ltrim_whitespace(pc.binary_replace_slice(pc.if_else(is_object, value, "{}"), 0, 1, ""))
    merged = pc.if_else(pc.starts_with(fields, "}"), fields, concat(",", fields))
    return pc.if_else(is_object, merged, concat(f',"{otherwise}":', value, "}"))


def _or_clash(value: Column, meta: str, bad: Bad) -> Bad:
    """Objects that already have one of our fields: merging would give one name two values."""
    names = OWN_FIELDS[meta]
    suspects = pc.indices_nonzero(pc.match_substring_regex(value, f'"(?:{"|".join(names)})"|{ESCAPED}'))
    if not len(suspects):
        return bad
    try:
        found = top_key_among(value.take(suspects), names)
    except TooLarge as error:
        large = suspects.take(pa.array(error.rows)).to_pylist()
        too_large = Bad({**bad.rows, **dict.fromkeys(large, f"value is {error}")})
        return _or_clash(pc.fill_null(without(value, large), "null"), meta, too_large)
    rows, clashes = suspects.filter(found.is_valid()).to_pylist(), found.drop_null().to_pylist()
    return Bad({**{row: clash(name, meta) for row, name in zip(rows, clashes, strict=True)}, **bad.rows})


def clash(name: str, meta: str) -> str:
    return f"value already has the field {name!r}: {INSTEAD[meta]}"


def _headers(column: Column) -> Column:
    """`[{"key": …, "value": text}]`; a value that is not UTF-8 stands as base64 under `base64`."""
    items = column.flatten()
    names = quoted(items.field("key"))
    raw = items.field("value")
    text, odd = utf8(raw)
    entry = concat('{"key":', names, ',"value":', pc.fill_null(quoted(text), "null"), "}")
    if odd:
        binary = concat('{"key":', names, ',"base64":"', base64(raw), '"}')
        mask = pa.array([row in odd.rows for row in range(len(raw))], pa.bool_())
        entry = pc.if_else(mask, binary, entry)
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    ends = pc.cumulative_sum(lengths.cast(pa.int32()))
    starts = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    return concat("[", pc.binary_join(pa.ListArray.from_arrays(starts, entry), ","), "]")


def _millis(batch: pa.RecordBatch) -> Column:
    return millis(batch.column("timestamp")).cast(pa.string())


def _digits(batch: pa.RecordBatch, name: str) -> Column:
    return batch.column(name).cast(pa.string())
