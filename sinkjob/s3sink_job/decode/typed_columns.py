"""The columns of records that bring their types along: those of all their schemas together.

A record without fields within another one has the column `_more`. So it differs from null in every output format, and
its column widens as any other does when its schema gets fields.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from s3sink_api.spec.format import EvolutionMode
from s3sink_job.columns.evolution import Incompatible, evolved
from s3sink_job.columns.known_columns import NO_COLUMNS, KnownColumns
from s3sink_job.columns.types import MAX_LEAVES, fields_with_more, leaves
from s3sink_job.decode.bad_records import Fault


class TypedColumns:
    """`known` are the columns that earlier slices found, `mode` is that of `format.schemaEvolution`."""

    def __init__(self, known: KnownColumns | None, mode: EvolutionMode = "None") -> None:
        self.known = NO_COLUMNS
        self._mode = mode
        self._names: frozenset[str] = frozenset()
        self._leaves = 0
        # A state may be older than this rule.
        self._set(_with_more(NO_COLUMNS if known is None else known))

    @property
    def record(self) -> pa.StructType:
        return self.known.record

    def take(self, new: KnownColumns) -> Fault | None:
        """Widens the columns to hold those of a schema; a fault, without its subject, if they cannot."""
        new = _with_more(new)
        if self.known == new:
            return None
        if self._has_too_many(new.record):
            why = f"has a schema with other fields than those before it: together more than {MAX_LEAVES} columns"
            return Fault("TooManyColumns", why)
        try:
            self._set(evolved(self.known, new, self._mode))
        except Incompatible as error:
            return Fault("SchemaIncompatible", f"does not fit the known columns: {error}")
        return None

    def _set(self, known: KnownColumns) -> None:
        self.known = known
        self._names = frozenset(known.record.names)
        self._leaves = leaves(known.record) if self._names else 0

    def _has_too_many(self, record: pa.StructType) -> bool:
        """Whether another schema would add too many columns. One schema alone may have any number."""
        more = sum(leaves(field.type) for field in record if field.name not in self._names)
        return more > 0 and self._leaves + more > max(MAX_LEAVES, leaves(record))


def _with_more(known: KnownColumns) -> KnownColumns:
    return replace(known, record=fields_with_more(known.record))
