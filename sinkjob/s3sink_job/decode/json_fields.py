"""Single fields of JSON texts, exactly as they are written there.

DuckDB finds the fields of a whole column in one query. It rewrites numbers, and takes the first of two fields of the
same name. So records with either are read again one by one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.duckdb_functions import TooLarge, query, without_rows
from s3sink_job.columns.types import Column, Path
from s3sink_job.decode.bad_records import Fault, faults_at, prefixed
from s3sink_job.decode.field_values import FieldValues, faults_by_row, field_name, field_values, without_empty
from s3sink_job.decode.json_validation import NOT_JSON, json_text
from s3sink_job.decode.utf8 import utf8

Mask: TypeAlias = npt.NDArray[np.bool_]
PLAIN = r'^(?:"[^"\\]*"|0|-?[1-9][0-9]*|true|false)$'
"""JSON scalars that are their own text, apart from quotes."""
WHOLE = re.compile(r"0|-?[1-9][0-9]*")
NOTHING = pa.array(["null", '""'])
ESCAPED_ASCII, ESCAPED = r"\\u00[2-7]", r"\\"


class NotPlain(ValueError):
    """Why a field has no text."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.fault = Fault(reason, message)


def json_fields(
    column: Column, paths: Mapping[Path, bool], part: str, *, unique_names: bool = False
) -> dict[Path, FieldValues]:
    """The fields at the paths. True means: numbers exactly as they are written.

    `unique_names` means that records with a field twice are refused elsewhere.
    """
    try:
        text, raw, faults = _extract(column, list(paths), part)
        return {
            path: _field(text, raw[path], path, faults, part, exact=exact, unique_names=unique_names)
            for path, exact in paths.items()
        }
    except TooLarge as error:
        too_large = faults_at(error.rows, "TooLarge", f"{part} is {error}")
        rest = json_fields(without_rows(column, error.rows), paths, part, unique_names=unique_names)
        return {path: replace(values, faults={**values.faults, **too_large}) for path, values in rest.items()}


def _extract(column: Column, paths: list[Path], part: str) -> tuple[Column, dict[Path, Column], dict[int, Fault]]:
    """Each field as JSON, by one query. Rows that are not JSON have none."""
    text, not_utf8 = utf8(column)
    faults = dict(not_utf8)
    wanted = f"SELECT {_all(paths)} AS r FROM batch"  # noqa: S608 - ours, and quoted
    try:
        found = query(wanted, text)
    except duckdb.InvalidInputException:
        _, not_json = json_text(column)
        faults |= not_json
        valid = pc.fill_null(query("SELECT json_valid(v) AS r FROM batch", text), True).to_pylist()
        faults |= faults_at([r for r, fine in enumerate(valid) if not fine and r not in faults], NOT_JSON, "not JSON")
        fine = pa.array([row not in faults for row in range(len(text))], pa.bool_())
        text = pc.if_else(fine, text, pa.scalar(None, pa.string()))
        found = query(wanted, text)
    faults = prefixed(faults, f"{part} is")
    if len(paths) == 1:
        return text, {paths[0]: found}, faults
    return text, {path: pc.list_element(found, number) for number, path in enumerate(paths)}, faults


def _field(
    text: Column, raw: Column, path: Path, faults: dict[int, Fault], part: str, *, exact: bool, unique_names: bool
) -> FieldValues:
    found = len(raw) - raw.null_count
    nothing = pc.is_in(raw, NOTHING)
    if pc.any(nothing, min_count=0).as_py():
        raw = pc.if_else(nothing, pa.scalar(None, pa.string()), raw)
    encoded, name = raw.dictionary_encode(), field_name(part, path)
    codes = encoded.indices
    plain, refused, doubtful = _plain(encoded.dictionary, exact=exact)
    faults = {**faults_by_row(codes, prefixed(refused, name)), **faults}
    again = {*([] if unique_names else _twice(text, path, found)), *_rows_with(codes, doubtful)}
    if exact and (zeros := _rows_with(codes, [encoded.dictionary.index("0").as_py()])):
        again.update(zeros[row] for row in _nonzero(pc.match_substring(text.take(pa.array(zeros)), "-0")))
    if not again:
        return without_empty(plain, codes, faults)
    texts = plain.take(codes).to_pylist()
    for row in sorted(again):
        try:
            texts[row] = field_text(text[row].as_py(), path)
        except NotPlain as error:
            faults.setdefault(row, error.fault.prefixed(name))
    return field_values(pa.array(texts, pa.string()), faults)


def field_text(text: str, path: Path) -> str | None:
    """A field of one JSON text as it is written there; None if there is none."""
    try:
        value: Any = _DECODER.decode(text)
    except RecursionError:
        raise NotPlain("TooDeep", "is in JSON that is nested too deeply to be read") from None
    except NotPlain:
        raise
    except ValueError as error:
        raise NotPlain(NOT_JSON, f"is in a value that is not JSON: {error}") from None
    for name in path:
        if not isinstance(value, _Object):
            return None
        inner = [pair[1] for pair in value.pairs if pair[0] == name]
        if len(inner) > 1:
            raise NotPlain("FieldTwice", f"has no single value: the record has {name!r} twice")
        value = inner[0] if inner else None
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case _:
            raise NotPlain("NotAScalar", _non_primitive(isinstance(value, _Object)))


def _plain(distinct: Column, *, exact: bool) -> tuple[Column, dict[int, Fault], list[int]]:
    """JSON scalars as text, the faults of objects and arrays, and the numbers that may be written in another way."""
    if pc.all(pc.match_substring_regex(distinct, PLAIN), min_count=0).as_py():
        return pc.ascii_trim(distinct, '"'), {}, []
    texts: list[str | None] = []
    refused: dict[int, Fault] = {}
    doubtful: list[int] = []
    for code, value in enumerate(distinct.to_pylist()):
        texts.append(json.loads(value) if value[0] == '"' else value)
        if value[0] in "{[":
            refused[code] = Fault("NotAScalar", _non_primitive(value[0] == "{"))
        elif exact and value[0] in "-0123456789NI" and not WHOLE.fullmatch(value):
            doubtful.append(code)
    return pa.array(texts, pa.string()), refused, doubtful


def _twice(text: Column, path: Path, found: int) -> list[int]:
    """Rows that have one of the path's names twice in one object."""
    rows = np.flatnonzero(_maybe_twice(text, path, found))
    if not len(rows):
        return []
    some = text if len(rows) == len(text) else text.take(pa.array(rows))
    twice = np.zeros(len(rows), np.bool_)
    for depth, name in enumerate(path):
        try:
            names = query(f"SELECT json_keys({_step_by_step(path[:depth])}) AS r FROM batch", some)  # noqa: S608 - quoted
        except TooLarge as error:
            raise TooLarge(rows[error.rows].tolist()) from None
        mine = pc.list_parent_indices(names).filter(pc.equal(names.flatten(), name))
        twice |= np.bincount(mine.to_numpy(), minlength=len(rows)) > 1
    again: list[int] = rows[twice].tolist()
    return again


def _maybe_twice(text: Column, path: Path, found: int) -> Mask:
    """The rows that may have a name twice.

    If all texts together hold the name as often as the field was found, each holds it once. A name may also be
    written with escapes, but only with a backslash.
    """
    suspects = np.zeros(len(text), np.bool_)
    data = text.buffers()[2]
    written = b"" if data is None else memoryview(data).cast("B").tobytes()
    for name in path:
        quoted = json.dumps(name, ensure_ascii=False)
        if written.count(quoted.encode()) > found:
            suspects |= _true(pc.greater(pc.count_substring(text, quoted), 1))
        if b"\\" in written:
            plain = name.isascii() and quoted == f'"{name}"' and "/" not in name
            suspects |= _true(pc.match_substring_regex(text, ESCAPED_ASCII if plain else ESCAPED))
    return suspects


def _all(paths: list[Path]) -> str:
    """SQL for a list of the fields, or for the only field."""
    if len(paths) == 1:
        return _step_by_step(paths[0])
    if any(name.isdigit() for path in paths for name in path):
        return f"[{', '.join(_step_by_step(path) for path in paths)}]"
    return f"json_extract(v, [{', '.join(_quoted(_pointer(path)) for path in paths)}])"


def _step_by_step(path: Path) -> str:
    """SQL for one field. A pointer with a name of digits also finds items of arrays, a path with `*` every field."""
    if not any(name.isdigit() for name in path):
        return f"json_extract(v, {_quoted(_pointer(path))})"
    found = "v"
    for name in path:
        step = f'$."{name}"' if name.isdigit() else _pointer((name,))
        found = f"json_extract({found}, {_quoted(step)})"
    return found


def _pointer(path: Path) -> str:
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in path) or "$"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _rows_with(codes: Column, wanted: list[int]) -> list[int]:
    if not wanted:
        return []
    return _nonzero(pc.is_in(codes, pa.array(wanted, codes.type)))


def _nonzero(mask: Column) -> list[int]:
    rows: list[int] = np.flatnonzero(_true(mask)).tolist()
    return rows


def _true(mask: Column) -> Mask:
    found: Mask = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
    return found


def _non_primitive(of_fields: bool) -> str:
    return f"is non-primitive: {'an object' if of_fields else 'an array'} cannot name a folder"


class _Object:
    """A JSON object with all its fields, also those with the same name."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


def _no_number(text: str) -> Any:
    raise NotPlain(NOT_JSON, f"is in a value that is not JSON: {text}")


_DECODER = json.JSONDecoder(object_pairs_hook=_Object, parse_int=str, parse_float=str, parse_constant=_no_number)


def first_name_among(text: Column, names: tuple[str, ...]) -> Column:
    """The first of the names that a JSON object has at its top level, also with escapes; null if it has none."""
    first = f"list_intersect({list(names)!r}, json_keys(v))[1]"
    # DuckDB would fail the whole column because of one value that is not JSON.
    return query(f"SELECT CASE WHEN json_valid(v) THEN {first} END AS r FROM batch", text)  # noqa: S608 - ours
