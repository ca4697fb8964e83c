"""A batch of Kafka records as columns: those that say where a record came from, then those of its value."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.encoding import Encoding
from s3sink_job.records.columns import JsonColumns, SuppliedColumns
from s3sink_job.records.text import NONE_BAD, Bad, Column, Decoded, json_text, utf8

META_FIELDS = ("_key", "_topic", "_partition", "_offset", "_timestamp", "_headers")
VALUE = "value"
TIME = pa.timestamp("ms", "UTC")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class ColumnDecoder:
    def __init__(self, encoding: Encoding, topic: str, schema: str = "") -> None:
        self._encoding, self._topic = encoding, topic
        self._columns = SuppliedColumns(encoding.supplied) if encoding.supplied else JsonColumns(schema)

    @property
    def schema(self) -> str:
        return self._columns.schema if self._inferred else ""

    def as_text(self, path: tuple[str, ...]) -> None:
        self._columns.as_text(path)

    def decode(self, batch: pa.RecordBatch) -> Decoded:
        rows, bad = self._values(batch.column("value"))
        if self._encoding.meta == "None":
            return Decoded(rows, bad)
        key, bad_keys = _plain(batch.column("key"), self._encoding.key)
        bad = Bad({**{row: f"key is {why}" for row, why in bad_keys.rows.items()}, **bad.rows})
        meta = self._quix(batch, key) if self._encoding.meta == "Quix" else self._kafka(batch, key)
        rows, clashes = _without_clashes(rows)
        fields = [pa.field(name, column.type) for name, column in meta.items()]
        schema = pa.schema([*fields, *rows.schema])
        return Decoded(
            pa.RecordBatch.from_arrays([*meta.values(), *rows.columns], schema=schema), Bad({**clashes, **bad.rows})
        )

    @property
    def _inferred(self) -> bool:
        return self._encoding.value == "Json" and self._encoding.meta != "Quix"

    def _values(self, values: Column) -> tuple[pa.RecordBatch, Bad]:
        if self._inferred:
            return self._columns.decode(values)
        column, bad = _plain(values, self._encoding.value)
        name = "_value" if self._encoding.meta == "Quix" else VALUE
        why = {row: f"value is {text}" for row, text in bad.rows.items()}
        if self._encoding.supplied:
            # Quix keeps the value as text, and it has to fit all the same.
            why = {**self._columns.decode(values)[1].rows, **why}
        return pa.RecordBatch.from_arrays([column], [name]), Bad(why)

    def _quix(self, batch: pa.RecordBatch, key: Column) -> dict[str, Column]:
        return {"_timestamp": millis(batch.column("timestamp")), "_key": key}

    def _kafka(self, batch: pa.RecordBatch, key: Column) -> dict[str, Column]:
        return {
            "_key": key,
            "_topic": pa.repeat(pa.scalar(self._topic, pa.string()), batch.num_rows),
            "_partition": batch.column("partition").cast(pa.int32()),
            "_offset": batch.column("offset"),
            "_timestamp": millis(batch.column("timestamp")).cast(TIME),
            "_headers": _headers(batch.column("headers")),
        }


def _plain(column: Column, format: str) -> tuple[Column, Bad]:
    """A key or value that stays one column: text, or the bytes as they are."""
    match format:
        case "Json":
            return json_text(column)
        case "String":
            return utf8(column)
        case _:
            return column.cast(pa.binary()), NONE_BAD


def _without_clashes(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[int, str]]:
    """Values that have one of our fields themselves: one name cannot stand for two columns."""
    found: dict[int, str] = {}
    for name in META_FIELDS:
        if name in rows.schema.names:
            for row in pc.indices_nonzero(rows.column(name).is_valid()).to_pylist():
                found[row] = f"value already has the field {name!r}: use columns.meta None or Quix"
    if not found and not set(META_FIELDS) & set(rows.schema.names):
        return rows, found
    kept = [name for name in rows.schema.names if name not in META_FIELDS]
    return rows.select(kept), found


def _headers(column: Column) -> Column:
    """Spark's list of headers, null for a record without any; an empty list says the same more plainly."""
    plain = pa.concat_arrays([column])
    items = plain.flatten()
    structs = pa.StructArray.from_arrays(
        [items.field("key").cast(pa.string()), items.field("value").cast(pa.binary())],
        fields=list(HEADERS.value_type),
    )
    ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(plain), 0).cast(pa.int32()))
    starts = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    return pa.ListArray.from_arrays(starts, structs, type=HEADERS)


def millis(column: Column) -> Column:
    return pc.divide(column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()), 1000)
