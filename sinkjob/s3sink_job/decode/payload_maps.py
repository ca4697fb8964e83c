"""Payloads with parts that Arrow's reader cannot read: maps, values of any type, members without a field.

DuckDB opens structs, arrays and maps down to the parts without any of these. It writes JSON anew, and may write a
number in another way, or rounded. So payloads in which it may have done so are read one by one instead.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.duckdb_functions import query, without_rows
from s3sink_job.columns.text import concat, holds, quoted
from s3sink_job.columns.types import TEXT, Column
from s3sink_job.decode.json_inference import MAX_NESTING
from s3sink_job.decode.json_validation import STRING, json_text
from s3sink_job.decode.payload_logical import required
from s3sink_job.decode.payload_reading import Read
from s3sink_job.decode.payload_schema import JSON, PayloadSchema, struct
from s3sink_job.decode.payload_values import Misfit

JSON_NULL = "null"
BEHIND_NUMBER = r"(?:[,\]}\s]|$)"
MAY_CHANGE = (
    rf"[0-9]{{19}}|[0-9.]{{17}}|[0-9][eE]|\.[0-9]+0{BEHIND_NUMBER}|\.00{BEHIND_NUMBER}|0\.0000|-0{BEHIND_NUMBER}"
)
"""Numbers that may be rounded, or that have other texts: with many digits, an exponent, or zeros at the end."""
CONTROL = r"\\u00[01]"
"""An escape that has several spellings."""


def unsure_rows(payload: Column) -> tuple[Column, npt.NDArray[np.bool_]]:
    """The payloads in DuckDB's JSON, and which of them have to be read one by one: bad ones, and changed ones."""
    _, faults = json_text(payload)
    text = query("SELECT json_extract(v, '$') AS r FROM batch", without_rows(payload, faults) if faults else payload)
    unsure = np.zeros(len(payload), np.bool_)
    unsure[list(faults)] = True
    brackets = pc.add(pc.count_substring(payload, "["), pc.count_substring(payload, "{"))
    unsure |= _true(pc.greater(brackets, MAX_NESTING))
    if holds(payload, "\\u00"):
        unsure |= _true(pc.match_substring_regex(payload, CONTROL))
    changed = np.flatnonzero(~unsure & _true(pc.not_equal(text, payload)))
    if len(changed):
        rows = pa.array(changed)
        # White space between tokens does not count.
        dense = pc.replace_substring_regex(payload.take(rows), rf"({STRING})|[ \t\r\n]+", r"\1")
        other = pc.and_(pc.not_equal(dense, text.take(rows)), pc.match_substring_regex(dense, MAY_CHANGE))
        unsure[changed[_true(other)]] = True
    return text, unsure


def opened(text: Column, schema: PayloadSchema, read: Read) -> Column:
    """JSON texts as DuckDB writes them; null is JSON's null. Raises `Misfit`, or what `read` raises."""
    if not schema.has_open_parts:
        return read(pc.fill_null(text, JSON_NULL), schema)
    text = pc.if_else(pc.equal(text, JSON_NULL), pa.scalar(None, TEXT), text)
    if schema.type == JSON:
        return text
    if schema.type == "struct":
        return _struct(text, schema, read)
    if schema.type == "array":
        (of_items,) = schema.parts
        lists = _items(text)
        items = required(opened(lists.values, of_items, read), of_items)
        return pa.ListArray.from_arrays(lists.offsets, items, type=schema.kind, mask=text.is_null())
    return _map(text, schema, read)


def _struct(text: Column, schema: PayloadSchema, read: Read) -> Column:
    names, present = _names(text), text.is_valid()
    unknown = pc.invert(pc.is_in(names.values, pa.array([name for name, _ in schema.fields], TEXT)))
    has_rest = pc.any(unknown, min_count=0).as_py()
    if has_rest and not schema.rest:
        raise Misfit("a field that the schema does not have")
    flat = struct(tuple((name, inner) for name, inner in schema.fields if _is_flat(inner)))
    found: dict[str, Column] = {}
    if flat.fields:
        whole = read(pc.fill_null(text, JSON_NULL), flat, ignore=True)
        found = dict(zip(flat.kind.names, whole.flatten(), strict=True))
    if len(flat.fields) < len(schema.fields) or has_rest:
        values = _values(text, names)
        parents = pc.list_parent_indices(names).to_numpy()
        for name, inner in schema.fields:
            if name not in found:
                mine = _true(pc.equal(names.values, name))
                places = np.full(len(text), -1, np.int64)
                places[parents[mine]] = np.flatnonzero(mine)
                found[name] = opened(values.take(pa.array(places, mask=places < 0)), inner, read)
    children = [required(found[name], inner, present) for name, inner in schema.fields]
    if schema.rest:
        children.append(_rest(names, values, parents, _true(unknown)) if has_rest else pa.nulls(len(text), TEXT))
    return pa.StructArray.from_arrays(children, fields=list(schema.kind), mask=text.is_null())


def _is_flat(schema: PayloadSchema) -> bool:
    """Whether it has no members of its own: Arrow's reader would ignore unknown ones."""
    return not schema.holds("struct") and not schema.has_open_parts


def _rest(names: pa.ListArray, values: Column, parents: npt.NDArray[np.int64], mine: npt.NDArray[np.bool_]) -> Column:
    """Some members of objects as objects of their own; null where there are none."""
    wanted = pa.array(mine)
    entries = concat(quoted(names.values.filter(wanted)), ":", values.filter(wanted))
    counts = np.bincount(parents[mine], minlength=len(names))
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(ends), entries, mask=pa.array(counts == 0))
    return concat("{", pc.binary_join(lists, ","), "}")


def _map(text: Column, schema: PayloadSchema, read: Read) -> Column:
    of_keys, of_items = schema.parts
    if of_keys.type == "string":
        names = _names(text)
        offsets, keys, items = names.offsets, names.values, _values(text, names)
    else:
        pairs = _items(text)
        if not _all(pc.equal(_kinds(pairs.values), "ARRAY")) or not _all(
            pc.equal(query("SELECT json_array_length(v) AS r FROM batch", pairs.values), 2)
        ):
            raise Misfit("a map that is not an array of keys and values")
        offsets = pairs.offsets
        keys = opened(query("SELECT json_extract(v, '$[0]') AS r FROM batch", pairs.values), of_keys, read)
        items = query("SELECT json_extract(v, '$[1]') AS r FROM batch", pairs.values)
    if keys.null_count:
        raise Misfit("a map without a key")
    items = required(opened(items, of_items, read), of_items)
    return pa.MapArray.from_arrays(offsets, keys, items, type=schema.kind, mask=text.is_null())


def _names(text: Column) -> pa.ListArray:
    """The names of the members of objects."""
    if not _all(pc.equal(_kinds(text), "OBJECT")):
        raise Misfit("not an object")
    distinct = query("SELECT len(list_distinct(json_keys(v))) = len(json_keys(v)) AS r FROM batch", text)
    if not _all(distinct):
        raise Misfit("a name twice")
    return _lists(query("SELECT coalesce(json_keys(v), []) AS r FROM batch", text))


def _values(text: Column, names: pa.ListArray) -> Column:
    """The values of all these members."""
    values = _lists(query("SELECT coalesce(json_extract(v, '$.*'), []) AS r FROM batch", text))
    if not names.offsets.equals(values.offsets):
        raise Misfit("a name twice")
    return values.values


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


def _true(mask: Column) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
    return found
