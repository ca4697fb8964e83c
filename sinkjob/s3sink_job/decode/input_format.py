"""What an input format offers. All functions take and give whole Arrow columns; no record is touched one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol

import pyarrow as pa

from s3sink_job.columns.types import Column, Path
from s3sink_job.decode.bad_records import Faults, faults_at
from s3sink_job.decode.field_values import FieldValues, field_name
from s3sink_job.decode.writer_schemas import SchemaLookup


class InputFormat(Protocol):
    """The keys, or the values, of one slice. Results have as many rows as the column; null stays null.

    A row at fault holds nothing of use.
    """

    has_fields: bool
    """Whether values have named fields, which `rows` gives as columns."""
    one_line: bool
    """Whether `plain` never holds a line break."""

    def plain(self, column: Column) -> tuple[Column, Faults]:
        """The value in one column: text, or bytes as they are."""
        ...

    def json(self, column: Column) -> tuple[Column, Faults]:
        """The value as JSON text on one line."""
        ...

    def rows(self, column: Column) -> tuple[pa.RecordBatch, Faults]:
        """The fields of the value as typed columns."""
        ...

    def fields(self, column: Column, paths: Mapping[Path, bool], *, unique_names: bool) -> dict[Path, FieldValues]:
        """Single fields as text; the path `()` is the whole value. True means: numbers exactly as they are written.

        `unique_names` means that records with a field twice are refused elsewhere.
        """
        ...

    @property
    def must_fit(self) -> bool:
        """Whether a schema was supplied that each value has to fit."""
        ...

    @property
    def schema(self) -> pa.StructType | None:
        """The columns known so far; None where they are not inferred."""
        ...

    def widen_to_text(self, path: Path) -> None:
        """Makes a column text from now on, because the output had to write it so."""
        ...


class WithoutFields(ABC):
    """The part that formats without named fields share."""

    has_fields = False
    must_fit = False
    one_line = False
    schema = None
    _name: ClassVar[str]

    def __init__(
        self,
        part: str,
        *,
        known: pa.StructType | None = None,
        supplied: pa.StructType | None = None,
        schemas: SchemaLookup | None = None,
    ) -> None:
        """There are no columns, so nothing of them is needed."""
        self.part = part

    def rows(self, column: Column) -> tuple[pa.RecordBatch, Faults]:
        raise TypeError(f"{self._name} has no fields")

    def widen_to_text(self, path: Path) -> None:
        raise TypeError(f"{self._name} has no fields")

    @abstractmethod
    def whole(self, column: Column) -> FieldValues:
        """The whole value as the name of a folder."""

    def fields(self, column: Column, paths: Mapping[Path, bool], *, unique_names: bool) -> dict[Path, FieldValues]:
        return {path: self._no_field(column, path) if path else self.whole(column) for path in paths}

    def _no_field(self, column: Column, path: Path) -> FieldValues:
        why = f"{field_name(self.part, path)}: a {self.part} of format {self._name} has no fields"
        faults = faults_at(range(len(column)), "NoFields", why)
        return FieldValues(pa.array([], pa.string()), pa.nulls(len(column), pa.int32()), faults)
