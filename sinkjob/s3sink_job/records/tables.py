"""A batch of Kafka records as columns: those that say where a record came from, then those of its value.

What a null value (a tombstone) is: nulls in all columns of the value, or a null `value` in an envelope.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_job.encoding import WITH_COLUMNS, Encoding
from s3sink_job.records.columns import JsonColumns, SuppliedColumns
from s3sink_job.records.lines import clash
from s3sink_job.records.origin import AIRBYTE_DATA, AIRBYTE_ID, AIRBYTE_TIME, KAFKA_FIELDS, OWN_FIELDS, Origin, millis
from s3sink_job.records.text import Bad, Column, Decoded, as_json, plain
from s3sink_job.schema.types import NAMES, TEXT, holds_something, to_text
from s3sink_job.spec import MORE

META_FIELDS = KAFKA_FIELDS
VALUE = "value"
TIME = pa.timestamp("ms", "UTC")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class ColumnDecoder:
    def __init__(self, encoding: Encoding, origin: Origin, schema: str = "") -> None:
        self._encoding, self._origin = encoding, origin
        self._columns = SuppliedColumns(encoding.supplied) if encoding.supplied else JsonColumns(schema)

    @property
    def schema(self) -> str:
        return self._columns.schema if takes_apart(self._encoding) else ""

    def as_text(self, path: tuple[str, ...]) -> None:
        self._columns.as_text(path[1:] if self._encoding.envelope else path)

    def decode(self, batch: pa.RecordBatch) -> Decoded:
        return self._enveloped(batch) if self._encoding.envelope else self._beside(batch)

    def _beside(self, batch: pa.RecordBatch) -> Decoded:
        """The value's columns beside those of its origin."""
        rows, bad = self._rows(batch.column("value"))
        meta, bad_keys = self._meta(batch)
        if not meta:
            return Decoded(rows, bad)
        clashes: dict[int, str] = {}
        if takes_apart(self._encoding):
            rows, clashes = _without_clashes(rows, self._encoding.meta)
        whole = {**meta, **dict(zip(rows.schema.names, rows.columns, strict=True))}
        return Decoded(_batch(whole), Bad({**clashes, **bad_keys.rows, **bad.rows}))

    def _enveloped(self, batch: pa.RecordBatch) -> Decoded:
        parts: dict[str, Column] = {}
        bad: dict[int, str] = {}
        for part in self._encoding.envelope:
            match part:
                case "key":
                    parts[part], odd = plain(batch.column("key"), self._encoding.key, "key")
                    bad |= odd.rows
                case "value":
                    parts[part], odd = self._whole(batch.column("value"))
                    bad |= odd.rows
                case "headers":
                    parts[part] = _headers(batch.column("headers"))
                case _:
                    parts[part] = _struct(self._place(batch))
        return Decoded(_batch(parts), Bad(bad))

    def _rows(self, values: Column) -> tuple[pa.RecordBatch, Bad]:
        if takes_apart(self._encoding):
            return self._columns.decode(values)
        match self._encoding.meta:
            case "Quix":
                name, (column, bad) = "_value", plain(values, self._encoding.value, "value")
            case "Airbyte":
                name, (column, bad) = AIRBYTE_DATA, as_json(values, self._encoding.value, "value")
            case _:
                name, (column, bad) = VALUE, plain(values, self._encoding.value, "value")
        if self._encoding.supplied:
            # The value is kept as text, and it has to fit all the same.
            bad = Bad({**self._columns.decode(values)[1].rows, **bad.rows})
        return _batch({name: column}), bad

    def _whole(self, values: Column) -> tuple[Column, Bad]:
        """The value as one column, of structs where it has fields."""
        if not takes_apart(self._encoding):
            return plain(values, self._encoding.value, "value")
        rows, bad = self._columns.decode(values)
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        if not holds_something(pa.struct(list(rows.schema))):
            # Formats have no struct without fields, and `{}` has to be told from a tombstone.
            columns[MORE] = pa.nulls(len(values), TEXT)
        return _struct(columns, pc.is_null(values)), bad

    def _meta(self, batch: pa.RecordBatch) -> tuple[dict[str, Column], Bad]:
        if self._encoding.meta == "None":
            return {}, Bad({})
        time = millis(batch.column("timestamp"))
        if self._encoding.meta == "Airbyte":
            emitted = time if self._encoding.format == "Csv" else time.cast(TIME)
            return {AIRBYTE_ID: self._origin.ids(batch), AIRBYTE_TIME: emitted}, Bad({})
        key, bad = plain(batch.column("key"), self._encoding.key, "key")
        if self._encoding.meta == "Quix":
            return {"_timestamp": time, "_key": key}, bad
        place = {f"_{name}": column for name, column in self._place(batch).items()}
        return {"_key": key, **place, "_headers": _headers(batch.column("headers"))}, bad

    def _place(self, batch: pa.RecordBatch) -> dict[str, Column]:
        return {
            "topic": self._origin.topics(batch.num_rows),
            "partition": batch.column("partition").cast(pa.int32()),
            "offset": batch.column("offset"),
            "timestamp": millis(batch.column("timestamp")).cast(TIME),
        }


def takes_apart(encoding: Encoding) -> bool:
    """Whether the fields of values become columns, whose types are inferred or supplied."""
    if encoding.value != "Json" or encoding.format not in WITH_COLUMNS:
        return False
    if encoding.envelope:
        return "value" in encoding.envelope
    return encoding.meta in ("None", "Kafka") or (encoding.meta == "Airbyte" and encoding.flatten)


def known_of(schema: pa.Schema, encoding: Encoding) -> str:
    """What the columns of an object tell a decoder of its values; nothing where they tell nothing."""
    if not takes_apart(encoding):
        return ""
    if encoding.envelope:
        values = list(schema.field(VALUE).type) if VALUE in schema.names else []
    else:
        values = [field for field in schema if field.name not in OWN_FIELDS.get(encoding.meta, ())]
    return to_text(pa.struct(values)) if all(_inferred(field.type) for field in values) else ""


def _inferred(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return all(_inferred(field.type) for field in kind)
    return _inferred(kind.value_type) if pa.types.is_list(kind) else kind in NAMES


def _batch(columns: Mapping[str, Column]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _struct(columns: Mapping[str, Column], null: Column | None = None) -> Column:
    fields = [pa.field(name, column.type) for name, column in columns.items()]
    return pa.StructArray.from_arrays(list(columns.values()), fields=fields, mask=null)


def _without_clashes(rows: pa.RecordBatch, meta: str) -> tuple[pa.RecordBatch, dict[int, str]]:
    """Values that have one of our fields themselves: one name cannot stand for two columns."""
    own = [name for name in OWN_FIELDS[meta] if name in rows.schema.names]
    if not own:
        return rows, {}
    found: dict[int, str] = {}
    for name in own:
        for row in pc.indices_nonzero(rows.column(name).is_valid()).to_pylist():
            found[row] = clash(name, meta)
    return rows.select([name for name in rows.schema.names if name not in own]), found


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


__all__ = ["HEADERS", "META_FIELDS", "TIME", "VALUE", "ColumnDecoder", "known_of", "millis", "takes_apart"]
