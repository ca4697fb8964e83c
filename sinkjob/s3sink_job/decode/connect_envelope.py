"""Splits Connect's JSON into the text of the schema and that of the payload, whole columns at a time.

Records of a batch mostly share the very same schema text. So values are cut at the name `"payload"`. What is before it
is checked once for each distinct text. What is behind it is a payload if it is JSON, which the caller checks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.columns.types import TEXT, Column
from s3sink_job.decode.bad_records import Fault, Faults, prefixed
from s3sink_job.decode.json_inference import NotARow, json_value
from s3sink_job.decode.utf8 import utf8

NOT_CONNECT_JSON = "NotConnectJson"
NO_ENVELOPE = 'is JSON without "schema" and "payload": set the producer\'s schemas.enable=true, or use format Json'
SPACE = r"[ \t\r\n]*"
SCHEMA_FIRST = re.compile(rf'{SPACE}\{{{SPACE}"schema"{SPACE}:(.*),{SPACE}', re.DOTALL)
SCHEMA_LAST = re.compile(rf"(.*)\}}{SPACE}", re.DOTALL)
PAYLOAD_FIRST = rf'(?s)^{SPACE}\{{{SPACE}"payload"{SPACE}:(?P<payload>.*),{SPACE}$'
AFTER_NAME = re.compile(rf"{SPACE}:{SPACE}")
BETWEEN = re.compile(r"[ \t\r\n,{]*")


@dataclass(frozen=True)
class Cut:
    """A way to cut a value in two: the schema is before the mark or behind it."""

    mark: str
    schema_first: bool


CUTS = (Cut('"payload":', True), Cut('"payload" :', True), Cut('"schema":', False))
"""As JsonConverter writes it, as pretty printers do, and with names in order."""


@dataclass(frozen=True)
class Envelopes:
    text: Column
    schemas: list[str]
    """The distinct texts of schemas."""
    codes: npt.NDArray[np.int64]
    """For each row the place of its schema, or -1 where there is none: no value, or a fault."""
    payload: Column
    """JSON, if the whole value is; null where there is no schema."""
    faults: Faults

    def by_schema(self) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
        """Each schema with its rows. A schema of bad records alone has none and is left out."""
        order = np.argsort(self.codes, kind="stable")
        starts = np.searchsorted(self.codes[order], np.arange(len(self.schemas) + 1))
        for number, schema in enumerate(self.schemas):
            if starts[number] < starts[number + 1]:
                yield schema, order[starts[number] : starts[number + 1]]

    def why_not_json(self, row: int) -> Fault:
        """Why the value of a row, whose payload is not JSON, is no envelope."""
        try:
            envelope(self.text[row].as_py())
        except NotARow as error:
            return error.fault
        return Fault("NotJson", "is not JSON")


def envelopes(column: Column) -> Envelopes:
    text, not_utf8 = utf8(column)
    split = _Split(text)
    for cut in CUTS:
        split.cut(cut)
    split.each()
    return Envelopes(
        text, list(split.schemas), split.codes, split.payload, {**split.faults, **prefixed(not_utf8, "is")}
    )


class _Split:
    """The rows that are split so far."""

    def __init__(self, text: Column) -> None:
        self.text = text
        self.schemas: dict[str, int] = {}
        self.codes = np.full(len(text), -1, np.int64)
        self.payload: Column = pa.nulls(len(text), TEXT)
        self.faults: dict[int, Fault] = {}
        self._left = np.flatnonzero(text.is_valid().to_numpy(zero_copy_only=False))

    def cut(self, cut: Cut) -> None:
        if not len(self._left):
            return
        whole = len(self._left) == len(self.text)
        first, last = _halves(self.text if whole else self.text.take(pa.array(self._left)), cut)
        schema, rest = (first, last) if cut.schema_first else (last, first)
        encoded = schema.dictionary_encode()
        known = np.array([self._code(half, cut) for half in encoded.dictionary.to_pylist()] + [-1])
        codes = known[pc.fill_null(encoded.indices, len(known) - 1).to_numpy(zero_copy_only=False)]
        payload = _without_brace(rest) if cut.schema_first else _behind_name(rest)
        codes[payload.is_null().to_numpy(zero_copy_only=False)] = -1
        self._keep(codes, payload, whole=whole)

    def _code(self, half: str, cut: Cut) -> int:
        """The place of the schema that is half of a value; -1 if there is none."""
        found = (SCHEMA_FIRST if cut.schema_first else SCHEMA_LAST).fullmatch(half)
        if found is None:
            return -1
        try:
            json_value(found[1])
        except NotARow:
            return -1
        return self._number(found[1])

    def _number(self, schema: str) -> int:
        return self.schemas.setdefault(schema.strip(), len(self.schemas))

    def _keep(self, codes: npt.NDArray[np.int64], payload: Column, *, whole: bool) -> None:
        done = codes >= 0
        if whole and done.all():
            self.payload = payload
        elif done.any():
            places = np.full(len(self.text), -1, np.int64)
            places[self._left[done]] = np.flatnonzero(done)
            found = payload.take(pa.array(places, mask=places < 0))
            self.payload = pc.coalesce(self.payload, found)
        self.codes[self._left] = codes
        self._left = self._left[~done]

    def each(self) -> None:
        """The rows that are left, one by one: bad ones, and names with escapes."""
        found: dict[int, str] = {}
        for row in self._left.tolist():
            try:
                schema, payload = envelope(self.text[row].as_py())
            except NotARow as error:
                self.faults[row] = error.fault
            else:
                self.codes[row], found[row] = self._number(schema), payload
        if found:
            rows = pa.array([found.get(row) for row in range(len(self.text))], TEXT)
            self.payload = pc.coalesce(self.payload, rows)


def _halves(text: Column, cut: Cut) -> tuple[Column, Column]:
    """What is before and behind the first mark, or the last one where the schema comes last; null without a mark."""
    parts = pc.split_pattern(text, cut.mark, max_splits=1, reverse=not cut.schema_first)
    starts = parts.offsets.to_numpy()
    uncut = np.diff(starts) < 2
    values = parts.values
    return (
        values.take(pa.array(starts[:-1], mask=uncut)),
        values.take(pa.array(starts[1:] - 1, mask=uncut)),
    )


def _without_brace(rest: Column) -> Column:
    """The payload at the end of values; null where the last brace is missing."""
    ends = pc.ends_with(rest, "}")
    if not pc.all(ends, min_count=0).as_py():
        rest = pc.ascii_rtrim(rest, " \t\r\n")
        rest = pc.if_else(pc.ends_with(rest, "}"), rest, pa.scalar(None, TEXT))
    return pc.binary_slice(rest.view(pa.binary()), 0, -1).view(TEXT)


def _behind_name(rest: Column) -> Column:
    return pc.struct_field(pc.extract_regex(rest, PAYLOAD_FIRST), "payload")


def envelope(text: str) -> tuple[str, str]:
    """Schema and payload of one value, as they are written. Raises `NotARow`."""
    value = json_value(text)
    if not isinstance(value, dict) or not {"schema", "payload"} <= value.keys():
        raise NotARow(NOT_CONNECT_JSON, NO_ENVELOPE)
    if more := [name for name in value if name not in ("schema", "payload")]:
        raise NotARow(NOT_CONNECT_JSON, f'has the field {more[0]!r} beside "schema" and "payload"')
    found: dict[str, str] = {}
    at = 0
    while len(found) < 2:
        name, at = _DECODER.raw_decode(text, _behind(BETWEEN, text, at))
        start = _behind(AFTER_NAME, text, at)
        _, at = _DECODER.raw_decode(text, start)
        found[name] = text[start:at]
    return found["schema"], found["payload"]


def _behind(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


_DECODER = json.JSONDecoder(parse_int=str)
