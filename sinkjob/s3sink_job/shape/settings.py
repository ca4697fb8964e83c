"""What the rows of an output look like, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from s3sink_api.spec import Spec

META_COLUMNS = {"Kafka": ("key", "timestamp", "headers"), "Quix": ("key", "timestamp"), "Airbyte": ("timestamp",)}
"""The Kafka columns that meta columns are made of."""
ENVELOPE = ("key", "value", "headers", "metadata")


class RowKind(StrEnum):
    """What an output format takes."""

    COLUMNS = "Columns"
    TEXT_COLUMNS = "TextColumns"
    """Columns whose types the object does not keep."""
    JSON_LINES = "JsonLines"
    """One column `line`, of JSON."""
    TEXT_LINES = "TextLines"
    """One column `line`, of any text."""
    VALUES = "Values"
    """One column `value`, of bytes."""

    @property
    def has_columns(self) -> bool:
        return self in {RowKind.COLUMNS, RowKind.TEXT_COLUMNS}


@dataclass(frozen=True)
class Shape:
    meta: str = "None"
    """The columns beside the value, as in `spec.format.columns.meta`."""
    flatten: bool = False
    envelope: tuple[str, ...] = ()
    """The parts that are written, in the order of `ENVELOPE`; empty without an envelope."""
    nulls: str = "Write"
    """What happens to tombstones: Write, Skip or Fail. Whether they are kept apart is a matter of grouping."""
    headers_as: str = "List"
    """How an envelope has headers: List or Map."""
    key_as: str = "Plain"
    """How an envelope has keys: Plain or Fields."""

    @property
    def kafka_columns(self) -> frozenset[str]:
        """The Kafka columns it needs beside partition and offset."""
        parts = {"timestamp" if part == "metadata" else part for part in self.envelope}
        return frozenset({"value", *META_COLUMNS.get(self.meta, ()), *parts})

    @property
    def spreads_values(self) -> bool:
        """Whether the fields of values become columns, in formats that have columns."""
        if self.envelope:
            return "value" in self.envelope
        return self.meta in {"None", "Kafka"} or self.flatten

    @property
    def spreads_keys(self) -> bool:
        """The same for the fields of keys."""
        return "key" in self.envelope and self.key_as == "Fields"


def shape_of(spec: Spec) -> Shape:
    envelope = spec.format.envelope
    return Shape(
        meta=spec.format.columns.meta,
        flatten=spec.format.columns.flatten,
        envelope=tuple(part for part in ENVELOPE if envelope.enabled and getattr(envelope, part)),
        nulls="Write" if spec.null_values == "Separate" else spec.null_values,
        headers_as=envelope.headers_as if envelope.enabled and envelope.headers else Shape.headers_as,
        key_as=envelope.key_as if envelope.enabled and envelope.key else Shape.key_as,
    )
