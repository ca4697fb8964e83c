"""Versions of a schema, decoded together: each field is read once, from all records that have it.

Producers with different versions may alternate record by record. Decoded version by version, a batch would be many
small ones, and a small one costs almost as much as a large one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from s3sink_job.columns.types import Column
from s3sink_job.decode.avro_columns import Reader, cursor_over, reader_of, unreadable
from s3sink_job.decode.avro_decoder import AvroDecoder, completed
from s3sink_job.decode.avro_schema import Field, Record
from s3sink_job.decode.avro_types import column_type, plain_type
from s3sink_job.decode.bad_records import Faults
from s3sink_job.decode.record_bytes import Ints, Mask, Records
from s3sink_job.decode.schema_language import DecoderGroup

MOST_VERSIONS, MOST_FAMILIES = 64, 8
"""Bounds of what a slice remembers. Schemas beyond them are decoded alone."""


@dataclass(frozen=True)
class _SharedField:
    field: Field
    reader: Reader
    versions: frozenset[int]


@dataclass(frozen=True)
class _Plan:
    """How records of some of the versions are read."""

    used: bytes
    readers: list[tuple[Reader, Mask | None]]
    """Each with a mask of the versions that have the field; None for all that are used."""
    root: Record
    plain: list[pa.Field]
    type: pa.DataType


class AvroVersions:
    """Schemas of records. Fields that several of them have are in the same order, and have the same type."""

    def __init__(self) -> None:
        self._numbers: dict[AvroDecoder, int] = {}
        self._decoders: list[AvroDecoder] = []
        self._fields: list[_SharedField] = []
        self._last: _Plan | None = None

    def __contains__(self, decoder: AvroDecoder) -> bool:
        return decoder in self._numbers

    def number(self, decoder: AvroDecoder) -> int:
        return self._numbers[decoder]

    def add(self, decoder: AvroDecoder) -> bool:
        """Whether the schema is one of these versions now."""
        number = len(self._decoders)
        fields = None if number == MOST_VERSIONS else self._with(decoder, number)
        if fields is None:
            return False
        self._numbers[decoder] = number
        self._decoders.append(decoder)
        self._fields = fields
        self._last = None
        return True

    def _with(self, decoder: AvroDecoder, version: int) -> list[_SharedField] | None:
        """The fields together with those of one more version.

        None if order or types differ, or if few fields are shared: passes over records without the field would cost
        more than they save.
        """
        root = decoder.root
        if not isinstance(root, Record) or not root.fields or not decoder.reads_columns:
            return None
        merged: list[_SharedField] = []
        rest = self._fields
        for field in root.fields:
            place = next((n for n, shared in enumerate(rest) if shared.field.name == field.name), None)
            if place is not None:
                shared = rest[place]
                if shared.field.type != field.type:
                    return None
                merged += [*rest[:place], replace(shared, versions=shared.versions | {version})]
                rest = rest[place + 1 :]
            elif any(shared.field.name == field.name for shared in merged):
                return None
            else:
                reader = reader_of(field.type)
                assert reader is not None, "reads_columns excludes recursive types"
                merged.append(_SharedField(field, reader, frozenset({version})))
        new = len(merged) + len(rest) - len(self._fields)
        few = 2 * (len(root.fields) - new) < min(len(root.fields), len(self._fields))
        return None if few else merged + rest

    def decode(
        self, column: Column, skip: int, versions: Ints, records: Records | None = None
    ) -> tuple[Column, Faults]:
        """Like `AvroDecoder.decode`, with the version of each record.

        The values have the fields of these versions. What the version of a record lacks is null.
        """
        plan = self._plan(np.bincount(versions, minlength=len(self._decoders)) > 0)
        cursor = cursor_over(records or Records(column), skip)
        columns = [reader.read(cursor, None if having is None else having[versions]) for reader, having in plan.readers]
        values = pa.StructArray.from_arrays(columns, fields=plan.plain)
        return completed(
            *(values, unreadable(cursor), plan.root, plan.type),
            lambda row: self._decoders[versions[row]].read_alone(column[row].as_py()[skip:]),
        )

    def _plan(self, used: Mask) -> _Plan:
        """Most batches have the same versions as the one before."""
        if self._last is None or self._last.used != used.tobytes():
            fields, readers = [], []
            for shared in self._fields:
                having = np.isin(np.arange(len(used)), list(shared.versions))
                if having[used].any():
                    fields.append(shared.field)
                    readers.append((shared.reader, None if having[used].all() else having))
            root = Record("", tuple(fields))
            self._last = _Plan(used.tobytes(), readers, root, list(plain_type(root)), column_type(root))
        return self._last


class VersionFamilies:
    """Finds the schemas that can be decoded together."""

    def __init__(self) -> None:
        self._families: list[AvroVersions] = []

    def together(self, decoders: Sequence[AvroDecoder]) -> list[DecoderGroup]:
        if len(decoders) == 1:
            return [DecoderGroup(None, [0])]
        found: dict[AvroVersions, list[int]] = {}
        alone = []
        for place, decoder in enumerate(decoders):
            family = self._family(decoder)
            if family is None:
                alone.append(place)
            else:
                found.setdefault(family, []).append(place)
        groups = [DecoderGroup(None, [place]) for place in alone]
        return groups + [DecoderGroup(family if len(places) > 1 else None, places) for family, places in found.items()]

    def _family(self, decoder: AvroDecoder) -> AvroVersions | None:
        for family in self._families:
            if decoder in family:
                return family
        for family in self._families:
            if family.add(decoder):
                return family
        family = AvroVersions()
        if len(self._families) == MOST_FAMILIES or not family.add(decoder):
            return None
        self._families.append(family)
        return family
