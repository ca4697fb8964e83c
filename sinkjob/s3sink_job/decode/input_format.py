"""What an input format offers. All functions take batches and give columns; no record is touched one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import pyarrow as pa

from s3sink_api.spec import SchemaEvolution
from s3sink_job.columns.known_columns import KnownColumns
from s3sink_job.columns.types import Column, Path
from s3sink_job.decode.bad_records import Faults, faults_at
from s3sink_job.decode.field_values import FieldValues, field_name
from s3sink_job.decode.settings import NO_OPTIONS, JsonSchemaOptions, RegistryKind
from s3sink_job.decode.writer_schemas import SchemaLookup

ANY_CHANGE = SchemaEvolution(mode="None")


@dataclass(frozen=True)
class InputSettings:
    """What an input format is opened with."""

    part: str
    """`key` or `value`: the column of the batch that it reads."""
    known: KnownColumns | None = None
    """The columns found so far."""
    supplied: pa.StructType | None = None
    """The columns that the spec asks for."""
    schemas: SchemaLookup | None = None
    """For formats whose records have a schema of their own."""
    registry: RegistryKind = "Confluent"
    """Whose serializers wrote the records, unless there is an inline schema."""
    options: JsonSchemaOptions = NO_OPTIONS
    evolution: SchemaEvolution = ANY_CHANGE
    """Which changes of schemas are taken, and whether each schema has objects of its own."""


class InputFormat(Protocol):
    """The keys, or the values, of one slice. Results have as many rows as the batch; null stays null.

    A row at fault holds nothing of use.
    """

    has_fields: bool
    """Whether values have named fields, which `rows` gives as columns."""
    one_line: bool
    """Whether `plain` never holds a line break."""

    def plain(self, batch: pa.RecordBatch) -> tuple[Column, Faults]:
        """The value in one column: text, or bytes as they are."""
        ...

    def json(self, batch: pa.RecordBatch) -> tuple[Column, Faults]:
        """The value as JSON text on one line."""
        ...

    def rows(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Faults]:
        """The fields of the value as typed columns."""
        ...

    def fields(
        self, batch: pa.RecordBatch, paths: Mapping[Path, bool], *, unique_names: bool
    ) -> dict[Path, FieldValues]:
        """Single fields as text; the path `()` is the whole value. True means: numbers exactly as they are written.

        `unique_names` means that records with a field twice are refused elsewhere.
        """
        ...

    @property
    def must_fit(self) -> bool:
        """Whether a schema was supplied that each value has to fit."""
        ...

    @property
    def schema(self) -> KnownColumns | None:
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

    def __init__(self, settings: InputSettings) -> None:
        self.part = settings.part

    def rows(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Faults]:
        raise TypeError(f"{self._name} has no fields")

    def widen_to_text(self, path: Path) -> None:
        raise TypeError(f"{self._name} has no fields")

    @abstractmethod
    def whole(self, batch: pa.RecordBatch) -> FieldValues:
        """The whole value as the name of a folder."""

    def fields(
        self, batch: pa.RecordBatch, paths: Mapping[Path, bool], *, unique_names: bool
    ) -> dict[Path, FieldValues]:
        return {path: self._no_field(batch, path) if path else self.whole(batch) for path in paths}

    def _no_field(self, batch: pa.RecordBatch, path: Path) -> FieldValues:
        why = f"{field_name(self.part, path)}: a {self.part} of format {self._name} has no fields"
        faults = faults_at(range(batch.num_rows), "NoFields", why)
        return FieldValues(pa.array([], pa.string()), pa.nulls(batch.num_rows, pa.int32()), faults)
