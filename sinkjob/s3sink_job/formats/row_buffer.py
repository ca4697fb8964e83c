"""Rows in memory until they are encoded, under one schema that holds all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import pyarrow as pa

from s3sink_api.spec import MORE
from s3sink_job.columns.cast import Inexact, as_text_at, cast_rows, may_round
from s3sink_job.columns.types import TEXT, Path, merge_all, writable


class RowBuffer:
    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self.held = 0
        self.texts: list[Path] = []
        """The columns that had to become text."""

    def __bool__(self) -> bool:
        return bool(self._batches)

    def add(self, rows: pa.RecordBatch) -> None:
        self._batches.append(rows)
        self.held += rows.nbytes

    def take(self) -> pa.Table:
        """All rows, cast to the narrowest schema that holds them."""
        batches, self._batches, self.held = self._batches, [], 0
        record = common_record(pa.struct(list(b.schema)) for b in batches)
        while True:
            try:
                return exactly(batches, record)
            except Inexact as error:
                record = self.as_text(record, error)

    def take_as(self, record: pa.StructType) -> pa.Table:
        """All rows, by a schema that is known to hold them."""
        batches, self._batches, self.held = self._batches, [], 0
        return exactly(batches, record)

    def as_text(self, record: pa.StructType, error: Inexact) -> pa.StructType:
        self.texts.append(error.path)
        return as_text_at(record, error.path)


class Encoder(Protocol):
    """Encodes one object with a fixed schema."""

    @property
    def size(self) -> int: ...

    @property
    def held(self) -> int: ...

    def write(self, rows: pa.Table) -> None: ...

    def settle(self) -> None: ...

    def close(self) -> None: ...


class FixedSchemaObject:
    """An object with a schema that widens until its first rows are encoded, and is fixed from then on."""

    def __init__(self, begin: Callable[[pa.StructType], Encoder], enough: int) -> None:
        self._begin, self._enough = begin, enough
        self._pending = RowBuffer()
        self._record: pa.StructType | None = None
        self._encoder: Encoder | None = None
        self._ratio = 1.0
        self._within = 0
        """Bytes of rows that the encoder took and has not written yet: some encoders write whole blocks only."""

    @property
    def held(self) -> int:
        return self._pending.held + (0 if self._encoder is None else self._encoder.held)

    @property
    def size(self) -> int:
        """Exact for encoded rows; the rest is estimated by the ratio of the last rows that were encoded."""
        waiting = self._pending.held + self._within
        return (0 if self._encoder is None else self._encoder.size) + int(waiting * self._ratio)

    def expected(self, rows: pa.RecordBatch) -> float:
        """The expected ratio of encoded bytes to bytes in memory, before any rows were encoded."""
        return 1.0

    def takes(self, rows: pa.RecordBatch) -> bool:
        return self._record is None or fits(rows, self._record)

    def write(self, rows: pa.RecordBatch) -> None:
        if not self.takes(rows):
            raise ValueError("these rows need a wider schema than the object already has")
        if self._encoder is None and not self._pending:
            self._ratio = self.expected(rows)
        self._pending.add(rows)
        if self._pending.held >= self._enough:
            self._encode()

    def settle(self) -> None:
        self._encode()
        if self._encoder is not None:
            self._encoder.settle()

    def close(self) -> tuple[Path, ...]:
        self._encode(even_nothing=True)
        assert self._encoder is not None
        self._encoder.close()
        return tuple(self._pending.texts)

    def abandon(self) -> None:
        return

    def _encode(self, *, even_nothing: bool = False) -> None:
        if not self._pending and not (even_nothing and self._encoder is None):
            return
        rows = self._pending.take() if self._record is None else self._pending.take_as(self._record)
        if self._encoder is None:
            self._record = pa.struct(list(rows.schema))
            self._encoder = self._begin(self._record)
        before = self._encoder.size
        self._encoder.write(rows)
        self._within += rows.nbytes
        if came := self._encoder.size - before:
            self._ratio, self._within = came / max(1, self._within), 0


def fits(rows: pa.RecordBatch, record: pa.StructType) -> bool:
    """Whether the record holds all rows without a change."""
    have = pa.struct(list(rows.schema))
    if not common_record([record, have]).equals(record):
        return False
    if may_round(have, record):
        try:
            cast_rows(rows, record)
        except Inexact:
            return False
    return True


def common_record(records: Iterable[pa.StructType]) -> pa.StructType:
    """The narrowest type that holds all of them. It has at least one column: without any, rows have no number."""
    record = writable(merge_all(records))
    return record if len(record) else pa.struct([pa.field(MORE, TEXT)])


def exactly(batches: list[pa.RecordBatch], record: pa.StructType) -> pa.Table:
    return pa.Table.from_batches([cast_rows(b, record) for b in batches], pa.schema(list(record)))
