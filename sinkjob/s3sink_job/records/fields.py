"""Single fields of JSON texts, as they are written there, whatever columns the texts are decoded to.

DuckDB finds the fields of a whole column in one go. It shows a number as it would write it, and of a field that is
there twice the first, so records with either are read again one by one.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.duck import TooLarge, query
from s3sink_job.records.text import Column, json_text, utf8, without

Path: TypeAlias = tuple[str, ...]
Mask: TypeAlias = npt.NDArray[np.bool_]
PLAIN = r'^(?:"[^"\\]*"|0|-?[1-9][0-9]*|true|false)$'
"""JSON scalars that are what they say once the quotes are gone."""
WHOLE = re.compile(r"0|-?[1-9][0-9]*")
NOTHING = pa.array(["null", '""'])
ESCAPED_ASCII, ESCAPED = r"\\u00[2-7]", r"\\"


@dataclass(frozen=True)
class Values:
    """One value for each row, by its number among the distinct ones: null where there is none."""

    distinct: Column
    codes: Column
    bad: dict[int, str]

    def rows(self) -> Column:
        return self.distinct.take(self.codes)


class NotPlain(ValueError):
    """Why a field cannot be told as text, in words."""


def values_of(texts: Column, bad: dict[int, str]) -> Values:
    """Of a column of text."""
    encoded = texts.dictionary_encode()
    return settled(encoded.dictionary, encoded.indices, bad)


def settled(distinct: Column, codes: Column, bad: dict[int, str]) -> Values:
    """An empty text is as good as none, as it is for Hive."""
    some = pc.fill_null(pc.not_equal(distinct, ""), False)
    if not pc.all(some, min_count=0).as_py():
        codes = pc.if_else(some.take(codes), codes, pa.scalar(None, pa.int32()))
    return Values(distinct, codes, bad)


def name_of(what: str, path: Path) -> str:
    return f"{what} field {'.'.join(path)}" if path else what


def json_fields(column: Column, paths: dict[Path, bool], what: str, *, once: bool = False) -> dict[Path, Values]:
    """The fields at the paths. Where it is said so of a path, numbers are given just as they are written.

    `once` means that others see to it that no record has a field twice.
    """
    try:
        text, raw, bad = _extract(column, list(paths), what)
        return {path: _field(text, raw[path], path, bad, what, verbatim=paths[path], once=once) for path in paths}
    except TooLarge as error:
        told = dict.fromkeys(error.rows, f"{what} is {error}")
        rest = json_fields(without(column, error.rows), paths, what, once=once)
        return {path: replace(values, bad={**values.bad, **told}) for path, values in rest.items()}


def _extract(column: Column, paths: list[Path], what: str) -> tuple[Column, dict[Path, Column], dict[int, str]]:
    """Each field as JSON, by one look at each text. Rows that are no JSON have none."""
    text, odd = utf8(column)
    bad = {row: f"{what} is {why}" for row, why in odd.rows.items()}
    wanted = f"SELECT {_all(paths)} AS r FROM batch"  # noqa: S608 - ours, and quoted
    try:
        found = query(wanted, text)
    except duckdb.InvalidInputException:
        _, odd = json_text(column)
        bad |= {row: f"{what} is {why}" for row, why in odd.rows.items()}
        valid = pc.fill_null(query("SELECT json_valid(v) AS r FROM batch", text), True).to_pylist()
        bad |= {row: f"{what} is not JSON" for row, fine in enumerate(valid) if not fine and row not in bad}
        fine = pa.array([row not in bad for row in range(len(text))], pa.bool_())
        text = pc.if_else(fine, text, pa.scalar(None, pa.string()))
        found = query(wanted, text)
    if len(paths) == 1:
        return text, {paths[0]: found}, bad
    return text, {path: pc.list_element(found, number) for number, path in enumerate(paths)}, bad


def _field(
    text: Column, raw: Column, path: Path, bad: dict[int, str], what: str, *, verbatim: bool, once: bool
) -> Values:
    found = len(raw) - raw.null_count
    nothing = pc.is_in(raw, NOTHING)
    if pc.any(nothing, min_count=0).as_py():
        raw = pc.if_else(nothing, pa.scalar(None, pa.string()), raw)
    encoded, where = raw.dictionary_encode(), name_of(what, path)
    codes = encoded.indices
    plain, refused, doubtful = _plain(encoded.dictionary, verbatim=verbatim)
    bad = {**rows_of(codes, {code: f"{where} {why}" for code, why in refused.items()}), **bad}
    again = {*([] if once else _twice(text, path, found)), *_rows_with(codes, doubtful)}
    if verbatim and (zeros := _rows_with(codes, [encoded.dictionary.index("0").as_py()])):
        again.update(zeros[row] for row in _nonzero(pc.match_substring(text.take(pa.array(zeros)), "-0")))
    if not again:
        return settled(plain, codes, bad)
    texts = plain.take(codes).to_pylist()
    for row in sorted(again):
        try:
            texts[row] = exact(text[row].as_py(), path)
        except NotPlain as error:
            bad.setdefault(row, f"{where} {error}")
    return values_of(pa.array(texts, pa.string()), bad)


def exact(text: str, path: Path) -> str | None:
    """A field as it is written, by a look at nothing but this one text; None if there is none."""
    try:
        value: Any = _DECODER.decode(text)
    except RecursionError:
        raise NotPlain("is in JSON that is nested too deeply to be read") from None
    except NotPlain:
        raise
    except ValueError as error:
        raise NotPlain(f"is in what is not JSON: {error}") from None
    for name in path:
        if not isinstance(value, _Object):
            return None
        inner = [pair[1] for pair in value.pairs if pair[0] == name]
        if len(inner) > 1:
            raise NotPlain(f"cannot be told: {name!r} is there twice")
        value = inner[0] if inner else None
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case _:
            raise NotPlain(_non_primitive(isinstance(value, _Object)))


def _plain(distinct: Column, *, verbatim: bool) -> tuple[Column, dict[int, str], list[int]]:
    """JSON scalars as text; which of them are none, and which numbers may be written in another way."""
    if pc.all(pc.match_substring_regex(distinct, PLAIN), min_count=0).as_py():
        return pc.ascii_trim(distinct, '"'), {}, []
    texts: list[str | None] = []
    refused: dict[int, str] = {}
    doubtful: list[int] = []
    for code, value in enumerate(distinct.to_pylist()):
        texts.append(json.loads(value) if value[0] == '"' else value)
        if value[0] in "{[":
            refused[code] = _non_primitive(value[0] == "{")
        elif verbatim and value[0] in "-0123456789NI" and not WHOLE.fullmatch(value):
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
    """A name that is in all the texts together as often as the field was found is there once in each.

    It may be spelled in other ways, too, but only with a backslash.
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
    """The fields as a list, or the only one as it is, in SQL."""
    if len(paths) == 1:
        return _step_by_step(paths[0])
    if any(name.isdigit() for path in paths for name in path):
        return f"[{', '.join(_step_by_step(path) for path in paths)}]"
    return f"json_extract(v, [{', '.join(_quoted(_pointer(path)) for path in paths)}])"


def _step_by_step(path: Path) -> str:
    """By pointer a name of digits would find an array's element too, by path a star every field."""
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


def rows_of(codes: Column, refused: dict[int, str]) -> dict[int, str]:
    """What is wrong with distinct values, by the rows that have them."""
    if not refused:
        return {}
    return {row: refused[code] for row, code in enumerate(codes.to_pylist()) if code in refused}


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
    """A JSON object with all that is in it, a name twice if need be."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


def _no_number(text: str) -> Any:
    raise NotPlain(f"is in what is not JSON: {text}")


_DECODER = json.JSONDecoder(object_pairs_hook=_Object, parse_int=str, parse_float=str, parse_constant=_no_number)
