"""Payloads with maps, which Arrow's reader cannot read.

DuckDB opens structs, arrays and maps down to the parts that have no map inside. It rewrites numbers: a decimal that is
written as a number might be rounded. So the reader of these parts refuses such a decimal.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.duckdb_functions import query
from s3sink_job.columns.types import TEXT, Column
from s3sink_job.decode.connect_logical import required
from s3sink_job.decode.connect_schema import ConnectSchema
from s3sink_job.decode.connect_values import Misfit
from s3sink_job.decode.json_validation import json_text

Read = Callable[[Column, ConnectSchema], Column]
"""Reads JSON texts of a schema without maps."""
JSON_NULL = "null"


def with_maps(payload: Column, schema: ConnectSchema, read: Read) -> Column:
    """Raises `Misfit`, or what `read` raises, if any payload does not fit."""
    # DuckDB would accept more than JSON.
    _, faults = json_text(payload)
    if faults:
        raise Misfit("not JSON")
    return _opened(query("SELECT json_extract(v, '$') AS r FROM batch", payload), schema, read)


def _opened(text: Column, schema: ConnectSchema, read: Read) -> Column:
    """JSON texts in the way DuckDB writes them; null is JSON's null."""
    if not schema.holds("map"):
        return read(pc.fill_null(text, JSON_NULL), schema)
    text = pc.if_else(pc.equal(text, JSON_NULL), pa.scalar(None, TEXT), text)
    if schema.type == "struct":
        return _struct(text, schema, read)
    if schema.type == "array":
        (of_items,) = schema.parts
        lists = _items(text)
        items = required(_opened(lists.values, of_items, read), of_items)
        return pa.ListArray.from_arrays(lists.offsets, items, type=schema.kind, mask=text.is_null())
    return _map(text, schema, read)


def _struct(text: Column, schema: ConnectSchema, read: Read) -> Column:
    names, values = _members(text)
    parents, present = pc.list_parent_indices(names), text.is_valid()
    if not _all(pc.is_in(names.values, pa.array([name for name, _ in schema.fields], TEXT))):
        raise Misfit("a field that the schema does not have")
    children = []
    for name, inner in schema.fields:
        mine = pc.equal(names.values, name)
        places = pc.index_in(pa.array(range(len(text)), parents.type), parents.filter(mine))
        found = values.values.filter(mine).take(places)
        children.append(required(_opened(found, inner, read), inner, present))
    return pa.StructArray.from_arrays(children, fields=list(schema.kind), mask=text.is_null())


def _map(text: Column, schema: ConnectSchema, read: Read) -> Column:
    of_keys, of_items = schema.parts
    if of_keys.type == "string":
        names, values = _members(text)
        offsets, keys, items = names.offsets, names.values, values.values
    else:
        pairs = _items(text)
        if not _all(pc.equal(_kinds(pairs.values), "ARRAY")) or not _all(
            pc.equal(query("SELECT json_array_length(v) AS r FROM batch", pairs.values), 2)
        ):
            raise Misfit("a map that is not an array of keys and values")
        offsets = pairs.offsets
        keys = _opened(query("SELECT json_extract(v, '$[0]') AS r FROM batch", pairs.values), of_keys, read)
        items = query("SELECT json_extract(v, '$[1]') AS r FROM batch", pairs.values)
    if keys.null_count:
        raise Misfit("a map without a key")
    items = required(_opened(items, of_items, read), of_items)
    return pa.MapArray.from_arrays(offsets, keys, items, type=schema.kind, mask=text.is_null())


def _members(text: Column) -> tuple[pa.ListArray, pa.ListArray]:
    """The names and the values of objects."""
    if not _all(pc.equal(_kinds(text), "OBJECT")):
        raise Misfit("not an object")
    names = _lists(query("SELECT coalesce(json_keys(v), []) AS r FROM batch", text))
    values = _lists(query("SELECT coalesce(json_extract(v, '$.*'), []) AS r FROM batch", text))
    distinct = query("SELECT len(list_distinct(json_keys(v))) = len(json_keys(v)) AS r FROM batch", text)
    if not _all(distinct) or not names.offsets.equals(values.offsets):
        raise Misfit("a name twice")
    return names, values


def _items(text: Column) -> pa.ListArray:
    if not _all(pc.equal(_kinds(text), "ARRAY")):
        raise Misfit("not an array")
    return _lists(query("SELECT coalesce(json_extract(v, '$[*]'), []) AS r FROM batch", text))


def _kinds(text: Column) -> Column:
    return query("SELECT json_type(v) AS r FROM batch", text)


def _lists(column: Column) -> pa.ListArray:
    """A copy without an offset."""
    return pa.concat_arrays([column]).cast(pa.list_(TEXT))


def _all(mask: Column) -> bool:
    return bool(pc.all(mask, min_count=0).as_py())
