"""The columns of records that bring their types along: those of all their schemas together."""

from __future__ import annotations

import pyarrow as pa

from s3sink_job.columns.evolution import Incompatible, widened
from s3sink_job.columns.types import EMPTY, MAX_LEAVES, leaves
from s3sink_job.decode.bad_records import Fault


class TypedColumns:
    """`known` are the columns that earlier slices found."""

    def __init__(self, known: pa.StructType | None) -> None:
        self.record: pa.StructType = EMPTY
        self._names: frozenset[str] = frozenset()
        self._leaves = 0
        self._set(EMPTY if known is None else known)

    def take(self, record: pa.StructType) -> Fault | None:
        """Widens the columns to hold those of the record; a fault, without its subject, if they cannot."""
        if self.record.equals(record):
            return None
        if self._has_too_many(record):
            why = f"has a schema with other fields than those before it: together more than {MAX_LEAVES} columns"
            return Fault("TooManyColumns", why)
        try:
            self._set(widened(self.record, record))
        except Incompatible as error:
            return Fault("SchemaIncompatible", f"does not fit the known columns: {error}, and no type holds both")
        return None

    def _set(self, record: pa.StructType) -> None:
        if not self.record.equals(record):
            self.record = record
            self._names, self._leaves = frozenset(record.names), leaves(record)

    def _has_too_many(self, record: pa.StructType) -> bool:
        """Whether another schema would add too many columns. One schema alone may have any number."""
        more = sum(leaves(field.type) for field in record if field.name not in self._names)
        return more > 0 and self._leaves + more > max(MAX_LEAVES, leaves(record))
