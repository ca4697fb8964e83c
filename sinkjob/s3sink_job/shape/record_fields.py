"""The fields that expressions name: those of the value, and what a record has beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3sink_api.spec.sql_expressions import HEADERS, META_FIELDS
from s3sink_job.columns.types import TEXT, Column, Path
from s3sink_job.decode.utf8 import utf8
from s3sink_job.kafka.single_headers import header_column
from s3sink_job.shape.headers import header_list
from s3sink_job.shape.origin import Origin, millis

TIME = pa.timestamp("ms", "UTC")
KAFKA_COLUMNS = {"_key": "key", "_timestamp": "timestamp", HEADERS: "headers"}
"""The Kafka columns that the fields beside the value are made of."""


class NoSuchField(Exception):
    """A path that leads into a value without fields: into `column`, if that is a field of the value."""

    def __init__(self, text: str, column: Column | None = None) -> None:
        super().__init__(text)
        self.column = column


class MetaFields:
    """`_key` and the like, of one batch."""

    def __init__(self, batch: pa.RecordBatch, origin: Origin, key: Callable[[], Column]) -> None:
        self._batch, self._origin, self._key = batch, origin, key

    def column(self, path: Path) -> Column:
        batch, name = self._batch, path[0]
        if name == HEADERS:
            return header_list(batch.column("headers")) if len(path) == 1 else self._header(path)
        if len(path) > 1:
            raise NoSuchField(f"{name} has no fields: {'.'.join(path)} does not exist")
        match name:
            case "_key":
                return self._key()
            case "_topic":
                return self._origin.topics(batch.num_rows)
            case "_partition":
                return batch.column("partition").cast(pa.int32())
            case "_offset":
                return batch.column("offset")
        return millis(batch.column("timestamp")).cast(TIME)

    def _header(self, path: Path) -> Column:
        if len(path) > 2:
            raise NoSuchField(f"a header has no fields: {'.'.join(path)} does not exist")
        single = header_column(path[1])
        if single in self._batch.schema.names:
            return utf8(self._batch.column(single).cast(pa.binary()))[0]
        return header_text(self._batch.column("headers"), path[1])


def header_text(headers: Column, name: str) -> Column:
    """The last header of the name in each record, as text; null without one, and where it is not UTF-8."""
    count = len(headers)
    items = headers.flatten()
    mine = pc.equal(items.field("key").cast(TEXT), name)
    places = np.flatnonzero(pc.fill_null(mine, False).to_numpy(zero_copy_only=False))
    owner = pc.list_parent_indices(headers).to_numpy()[places]
    last = np.full(count, -1, np.int64)
    last[owner] = places
    return utf8(items.field("value").take(pa.array(last, mask=last < 0)).cast(pa.binary()))[0]


def field_at(columns: Mapping[str, Column], path: Path, count: int) -> Column:
    """The field of the values; nulls without a type if no value has it. May raise `NoSuchField`."""
    if path[0] not in columns:
        return pa.nulls(count)
    column = columns[path[0]]
    for number, name in enumerate(path[1:], 1):
        if pa.types.is_null(column.type):
            return column
        if pa.types.is_struct(column.type):
            place = column.type.get_field_index(name)
            column = pa.nulls(count) if place < 0 else column.flatten()[place]
        elif pa.types.is_map(column.type):
            column = pc.map_lookup(column, pa.scalar(name, column.type.key_type), "last")
        else:
            whole = ".".join(path[:number])
            text = f"field {whole} is {column.type} and has no fields: {whole}.{name} does not exist"
            raise NoSuchField(text + odd_value(column.type), column)
    return column


def odd_value(kind: pa.DataType) -> str:
    """The cause, and the way out, if a field is text that other records have as a record."""
    if not kind.equals(TEXT):
        return ""
    return (
        ". If it is a record elsewhere, one record with another value, maybe an earlier one, has made it text for all: "
        "give its type in source.value.schema"
    )


def is_meta(path: Path) -> bool:
    return path[0] in META_FIELDS
