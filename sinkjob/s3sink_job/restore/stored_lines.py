"""Records in lines of JSON. Strings are parsed; a value that is JSON itself is cut out of its line as it is."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from s3sink_job.columns.duckdb_functions import query
from s3sink_job.columns.types import Column
from s3sink_job.restore.recovery import JSON, stored_parts
from s3sink_job.shape.dead_letters import HEADERS
from s3sink_job.task.encoding import Encoding

_TEXT = r'"(?:[^"\\]|\\.)*"'
_KEY = rf"(?:null|{_TEXT})"
_HEADER_LIST = rf'\[(?:[^"\]]|{_TEXT})*\]'
_HEADER = pa.struct([("key", pa.string()), ("value", pa.string()), ("base64", pa.string())])
_PLACE = pa.struct([("offset", pa.int64()), ("timestamp", pa.int64())])
BEFORE = {
    "Kafka": rf'^\{{"_key":{_KEY},"_topic":{_TEXT},"_partition":[0-9]+,"_offset":[0-9]+,"_timestamp":-?[0-9]+'
    rf',"_headers":{_HEADER_LIST}',
    "Quix": rf'^\{{"_timestamp":-?[0-9]+,"_key":{_KEY},"_value":',
}
"""The part of a line before the value."""


def parsed_lines(lines: Column, encoding: Encoding) -> dict[str, Column]:
    """Key, headers, timestamp and offset, and the value unless it is JSON."""
    shape, parts = encoding.shape, stored_parts(encoding)
    types: dict[str, pa.DataType] = {"key": pa.string(), "headers": pa.list_(_HEADER)}
    types |= {"timestamp": pa.int64(), "offset": pa.int64()}
    if shape.envelope:
        names = {part: part for part in parts & {"key", "headers"}}
        wanted = {names[part]: types[part] for part in names}
        wanted |= {"metadata": _PLACE} if "offset" in parts else {}
    else:
        names = {part: f"_{part}" for part in parts}
        wanted = {names[part]: types[part] for part in names}
    value = "value" if shape.envelope else "_value"
    if encoding.decoding.value != JSON:
        if not shape.envelope and shape.meta == "None":
            # The line itself is the value, a JSON string.
            lines = pc.binary_join_element_wise('{"_value":', lines, "}", "")
        names["value"], wanted[value] = value, pa.string()
    if not wanted:
        return {}
    rows = parse_lines(lines, pa.schema(list(wanted.items())))
    found = {part: rows.column(name) for part, name in names.items()}
    if "metadata" in wanted:
        found |= {part: rows.column("metadata").field(part) for part in ("offset", "timestamp")}
    if "headers" in found:
        found["headers"] = _headers(found["headers"])
    return found


def json_values(lines: Column, encoding: Encoding) -> Column:
    """The text of each value; null for a tombstone."""
    shape = encoding.shape
    if shape.envelope:
        text = _in_envelope(lines, shape.envelope)
    elif shape.meta == "Kafka":
        text = _merged(pc.replace_substring_regex(lines, BEFORE["Kafka"], ""))
    elif shape.meta == "Quix":
        text = pc.binary_replace_slice(pc.replace_substring_regex(lines, BEFORE["Quix"], ""), -1, 2**31 - 1, "")
    else:
        text = lines
    return pc.if_else(pc.equal(pc.utf8_trim_whitespace(text), "null"), pa.scalar(None, pa.string()), text)


def _merged(rest: Column) -> Column:
    """The fields of an object that follow the meta fields, or one field for any other value."""
    other = ',"_value":'
    fields = pc.binary_join_element_wise("{", pc.binary_replace_slice(rest, 0, 1, ""), "")
    value = pc.binary_replace_slice(pc.binary_replace_slice(rest, 0, len(other), ""), -1, 2**31 - 1, "")
    found = pc.if_else(pc.starts_with(rest, other), value, fields)
    return pc.if_else(pc.equal(rest, "}"), "{}", found)


def _in_envelope(lines: Column, envelope: tuple[str, ...]) -> Column:
    """The parts before and after the value are cut off. No valid JSON of a value can look like what is after it."""
    before = r"^\{" + (rf'"key":{_KEY},' if "key" in envelope else "") + '"value":'
    after = rf',"headers":{_HEADER_LIST}' if "headers" in envelope else ""
    if "metadata" in envelope:
        after += rf',"metadata":\{{"topic":{_TEXT},"partition":[0-9]+,"offset":[0-9]+,"timestamp":-?[0-9]+\}}'
    return pc.replace_substring_regex(pc.replace_substring_regex(lines, before, ""), rf"{after}\}}$", "")


def parse_lines(lines: Column, schema: pa.Schema) -> pa.RecordBatch:
    """The wanted fields of JSON objects, one on each line."""
    if not len(lines):
        return pa.RecordBatch.from_pylist([], schema)
    content = b"\n".join(lines.cast(pa.binary()).to_pylist()) + b"\n"
    table = pj.read_json(
        io.BytesIO(content),
        pj.ReadOptions(use_threads=False, block_size=len(content)),
        pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    )
    return table.combine_chunks().to_batches()[0]


def from_base64(texts: Column) -> Column:
    return query("SELECT from_base64(v) AS r FROM batch", texts.cast(pa.string())).cast(pa.binary())


def _headers(lists: Column) -> Column:
    items = lists.values
    values = pc.coalesce(from_base64(items.field("base64")), items.field("value").cast(pa.binary()))
    structs = pa.StructArray.from_arrays([items.field("key"), values], fields=list(HEADERS.value_type))
    return pa.ListArray.from_arrays(lists.offsets, structs, type=HEADERS)
