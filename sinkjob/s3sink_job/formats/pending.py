"""Rows that wait to be encoded, under the one schema that all of them fit into."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import pyarrow as pa

from s3sink_job.schema.cast import Inexact, as_text_at, cast_rows, may_round
from s3sink_job.schema.types import TEXT, merge_all, writable
from s3sink_job.spec import MORE


class Pending:
    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self.held = 0
        self.texts: list[tuple[str, ...]] = []
        """The columns, as paths, that had to become text."""

    def __bool__(self) -> bool:
        return bool(self._batches)

    def add(self, rows: pa.RecordBatch) -> None:
        self._batches.append(rows)
        self.held += rows.nbytes

    def take(self) -> pa.Table:
        """All of them, widened to what they have in common."""
        batches, self._batches, self.held = self._batches, [], 0
        record = common_record(pa.struct(list(b.schema)) for b in batches)
        while True:
            try:
                return exactly(batches, record)
            except Inexact as error:
                record = self.as_text(record, error)

    def take_as(self, record: pa.StructType) -> pa.Table:
        """All of them, by a schema that they are known to fit."""
        batches, self._batches, self.held = self._batches, [], 0
        return exactly(batches, record)

    def as_text(self, record: pa.StructType, error: Inexact) -> pa.StructType:
        self.texts.append(error.path)
        return as_text_at(record, error.path)


class Encoder(Protocol):
    """Of one object, from its first encoded row on: its schema is fixed."""

    @property
    def size(self) -> int: ...

    @property
    def held(self) -> int: ...

    def write(self, rows: pa.Table) -> None: ...

    def settle(self) -> None: ...

    def close(self) -> None: ...


class FixedObject:
    """An object whose schema is fixed by the first rows that are encoded. Until then it widens."""

    def __init__(self, begin: Callable[[pa.StructType], Encoder], enough: int) -> None:
        self._begin, self._enough = begin, enough
        self._pending = Pending()
        self._record: pa.StructType | None = None
        self._encoder: Encoder | None = None
        self._ratio = 1.0
        self._within = 0
        """Bytes of rows that the encoder took and has not put out yet: some do so by whole blocks only."""

    @property
    def held(self) -> int:
        return self._pending.held + (0 if self._encoder is None else self._encoder.held)

    @property
    def size(self) -> int:
        """Of what is encoded, and by the ratio of what was encoded last for the rest."""
        waiting = self._pending.held + self._within
        return (0 if self._encoder is None else self._encoder.size) + int(waiting * self._ratio)

    def expected(self, rows: pa.RecordBatch) -> float:
        """How long rows come out for each byte of them, before any were encoded."""
        return 1.0

    def takes(self, rows: pa.RecordBatch) -> bool:
        return self._record is None or fits(rows, self._record)

    def write(self, rows: pa.RecordBatch) -> None:
        if not self.takes(rows):
            raise ValueError("these rows need a wider schema than the one that the object already has")
        if self._encoder is None and not self._pending:
            self._ratio = self.expected(rows)
        self._pending.add(rows)
        if self._pending.held >= self._enough:
            self._encode()

    def settle(self) -> None:
        self._encode()
        if self._encoder is not None:
            self._encoder.settle()

    def close(self) -> tuple[tuple[str, ...], ...]:
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
    """Whether the record holds all of the rows as they are."""
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
    """What all of them fit into, and a table can hold: at least one column, or the rows could not be counted."""
    record = writable(merge_all(records))
    return record if len(record) else pa.struct([pa.field(MORE, TEXT)])


def exactly(batches: list[pa.RecordBatch], record: pa.StructType) -> pa.Table:
    return pa.Table.from_batches([cast_rows(b, record) for b in batches], pa.schema(list(record)))
