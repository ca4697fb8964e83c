"""Records as columns: meta columns and those of the value, or an envelope around both.

A tombstone is null in all columns of the value, or a null `value` in an envelope.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_api.spec import MORE
from s3sink_job.columns.types import TEXT, Column, has_doc, holds_something, within
from s3sink_job.decode.bad_records import Fault, Stage
from s3sink_job.decode.decoder import DecodedBatch
from s3sink_job.shape.headers import header_list, header_map
from s3sink_job.shape.lines import clash
from s3sink_job.shape.origin import (
    AIRBYTE_DATA,
    AIRBYTE_ID,
    AIRBYTE_TIME,
    OWN_FIELDS,
    QUIX_KEY,
    QUIX_TIME,
    QUIX_VALUE,
    Origin,
    millis,
)
from s3sink_job.shape.record_fields import TIME
from s3sink_job.shape.settings import Shape

KEY, VALUE = "key", "value"


class ColumnShaper:
    def __init__(self, shape: Shape, origin: Origin, *, typed: bool = True) -> None:
        """`typed` is whether the format keeps the types of columns."""
        self._shape, self._origin, self._typed = shape, origin, typed

    def __call__(self, decoded: DecodedBatch) -> pa.RecordBatch:
        return self._enveloped(decoded) if self._shape.envelope else self._beside(decoded)

    def _beside(self, decoded: DecodedBatch) -> pa.RecordBatch:
        """The value's columns beside the meta columns."""
        rows = self._values(decoded)
        meta = self._meta(decoded)
        if not meta:
            return rows
        if self._spreads(decoded):
            rows, clashes = _without_clashes(rows, self._shape.meta)
            decoded.bad.add(Stage.SHAPE, clashes)
        return _batch({**meta, **dict(zip(rows.schema.names, rows.columns, strict=True))})

    def _enveloped(self, decoded: DecodedBatch) -> pa.RecordBatch:
        batch, envelope = decoded.batch, self._shape.envelope
        parts: dict[str, Column] = {}
        # The value first: if both are bad, it is the value's fault that counts.
        if "value" in envelope:
            parts["value"] = self._whole(decoded)
        if "key" in envelope:
            parts["key"] = self._key(decoded)
        if "headers" in envelope:
            headers = header_map if self._shape.headers_as == "Map" else header_list
            parts["headers"] = headers(batch.column("headers"))
        if "metadata" in envelope:
            parts["metadata"] = _struct(self._place(batch))
        return _batch({part: parts[part] for part in envelope})

    def _spreads(self, decoded: DecodedBatch) -> bool:
        return self._shape.spreads_values and decoded.input("value").has_fields

    def _values(self, decoded: DecodedBatch) -> pa.RecordBatch:
        if self._spreads(decoded):
            return decoded.rows()
        match self._shape.meta:
            case "Quix":
                rows = _batch({QUIX_VALUE: decoded.plain("value")})
            case "Airbyte":
                rows = _batch({AIRBYTE_DATA: decoded.json("value")})
            case _:
                rows = _batch({VALUE: decoded.plain("value")})
        if decoded.input("value").must_fit:
            # The value is kept as text, but has to fit the supplied schema: decoding it finds those that do not.
            decoded.rows()
        return rows

    def _whole(self, decoded: DecodedBatch) -> Column:
        """The value as one column, of structs where it has fields."""
        return _as_structs(decoded, "value") if self._spreads(decoded) else decoded.plain("value")

    def _key(self, decoded: DecodedBatch) -> Column:
        spreads = self._shape.spreads_keys and decoded.input("key").has_fields
        return _as_structs(decoded, "key") if spreads else decoded.plain("key")

    def _meta(self, decoded: DecodedBatch) -> dict[str, Column]:
        batch = decoded.batch
        if self._shape.meta == "None":
            return {}
        time = millis(batch.column("timestamp"))
        if self._shape.meta == "Airbyte":
            return {AIRBYTE_ID: self._origin.ids(batch), AIRBYTE_TIME: time.cast(TIME) if self._typed else time}
        key = decoded.plain("key")
        if self._shape.meta == "Quix":
            return {QUIX_TIME: time, QUIX_KEY: key}
        place = {f"_{name}": column for name, column in self._place(batch).items()}
        return {"_key": key, **place, "_headers": header_list(batch.column("headers"))}

    def _place(self, batch: pa.RecordBatch) -> dict[str, Column]:
        return {
            "topic": self._origin.topics(batch.num_rows),
            "partition": batch.column("partition").cast(pa.int32()),
            "offset": batch.column("offset"),
            "timestamp": millis(batch.column("timestamp")).cast(TIME),
        }


def value_columns(schema: pa.Schema, shape: Shape) -> pa.StructType | None:
    """The columns of values in an object that spreads them; None if one has a type that no schema holds."""
    if shape.envelope:
        values = list(schema.field(VALUE).type) if VALUE in schema.names else []
    else:
        values = [field for field in schema if field.name not in OWN_FIELDS.get(shape.meta, ())]
    return pa.struct(values) if all(has_doc(field.type) for field in values) else None


def key_columns(schema: pa.Schema, shape: Shape) -> pa.StructType | None:
    """The columns of keys in such an object; None if it has none, or one with a type that no schema holds."""
    found = schema.field(KEY).type if shape.spreads_keys and KEY in schema.names else None
    return found if found is not None and pa.types.is_struct(found) and has_doc(found) else None


def columns_within(schema: pa.Schema, shape: Shape, own: pa.StructType) -> pa.StructType:
    """The columns of such rows without the fields of values that `own` lacks."""
    own = pa.struct([*own, (MORE, TEXT)])  # a value without fields has this one
    if shape.envelope:
        return pa.struct([pa.field(f.name, within(f.type, own)) if f.name == VALUE else f for f in schema])
    beside = OWN_FIELDS.get(shape.meta, ())
    meta = [field for field in schema if field.name in beside]
    values = pa.struct([field for field in schema if field.name not in beside])
    return pa.struct([*meta, *within(values, own)])


def _as_structs(decoded: DecodedBatch, part: str) -> Column:
    """The fields of keys or values in one column. Null stays null."""
    rows, whole = decoded.rows(part), decoded.batch.column(part)
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    if not holds_something(pa.struct(list(rows.schema))):
        # Formats have no struct without fields, and `{}` must differ from a tombstone.
        columns[MORE] = pa.nulls(len(whole), TEXT)
    return _struct(columns, pc.is_null(whole))


def _batch(columns: Mapping[str, Column]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _struct(columns: Mapping[str, Column], null: Column | None = None) -> Column:
    fields = [pa.field(name, column.type) for name, column in columns.items()]
    return pa.StructArray.from_arrays(list(columns.values()), fields=fields, mask=null)


def _without_clashes(rows: pa.RecordBatch, meta: str) -> tuple[pa.RecordBatch, dict[int, Fault]]:
    """Without the values' columns that are named like meta columns: records that use them are bad."""
    own = [name for name in OWN_FIELDS[meta] if name in rows.schema.names]
    if not own:
        return rows, {}
    found: dict[int, Fault] = {}
    for name in own:
        for row in pc.indices_nonzero(rows.column(name).is_valid()).to_pylist():
            found[row] = clash(name, meta)
    return rows.select([name for name in rows.schema.names if name not in own]), found
