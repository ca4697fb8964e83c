"""Changes of schemas that records bring along: what is taken, and what is refused.

Inferred columns of two types become text. Columns with declared types never do: a reader would see a number in one
object and text in the next. `spec.format.schemaEvolution.mode` may refuse more. It compares a schema with all schemas
of records of the same name before it.

What was taken once is always taken again, in any order: producers with two versions may alternate.
"""

from __future__ import annotations

from typing import NoReturn

import pyarrow as pa

from s3sink_api.spec.format import EvolutionMode
from s3sink_job.columns.known_columns import KnownColumns
from s3sink_job.columns.sources import SourceRecord, merged_sources
from s3sink_job.columns.types import ITEM, Path, joined

FOR_NEW_READERS: frozenset[EvolutionMode] = frozenset({"Backward", "Full"})
"""Modes in which a reader with the newest schema can read all older objects."""
FOR_OLD_READERS: frozenset[EvolutionMode] = frozenset({"Forward", "Full"})
"""Modes in which a reader with an older schema can read all newer objects."""


class Incompatible(ValueError):
    """A schema that the known columns cannot take, or that the mode refuses."""


def evolved(known: KnownColumns, new: KnownColumns, mode: EvolutionMode = "None") -> KnownColumns:
    """The columns that hold records of both. Either may lack fields. May raise `Incompatible`."""
    record = joined(known.record, new.record, _refuse)
    if mode in FOR_OLD_READERS:
        _refuse_wider(known, record, mode)
    if mode != "None":
        for path, records in new.sources.items():
            for name, source in records.items():
                if before := known.sources.get(path, {}).get(name):
                    _refuse_fields(before, source, path, name, mode)
    return KnownColumns(record, merged_sources(known.sources, new.sources))


def _refuse(path: Path, known: pa.DataType, new: pa.DataType) -> NoReturn:
    raise Incompatible(f"field {_name(path)} was {known} and is now {new}, and no type holds both")


def _refuse_fields(known: SourceRecord, new: SourceRecord, path: Path, name: str, mode: EvolutionMode) -> None:
    of = f" of {name}" if name else ""
    for field, source in new.fields.items():
        full = _name((*path, field))
        before = known.fields.get(field)
        if before is None and source.required and mode in FOR_NEW_READERS:
            raise Incompatible(f"field {full}{of} is new, and has neither null nor a default{_because(mode)}")
        if before is not None and before.required and source.nullable and mode in FOR_OLD_READERS:
            raise Incompatible(f"field {full}{of} had a value in every record, and may be null now{_because(mode)}")
    for field, before in known.fields.items():
        if before.required and field not in new.fields and mode in FOR_OLD_READERS:
            full = _name((*path, field))
            raise Incompatible(f"field {full}{of} had a value in every record, and is gone{_because(mode)}")


def _refuse_wider(known: KnownColumns, record: pa.StructType, mode: EvolutionMode) -> None:
    """Refuses a column with another type than it had. Records may have new fields, unions no new branches."""

    def compare(before: pa.DataType, now: pa.DataType, path: Path) -> None:
        if before.equals(now):
            return
        if pa.types.is_struct(before) and pa.types.is_struct(now):
            if len(now) > len(before) and known.sources and path not in known.sources:
                raise Incompatible(f"field {_name(path)} has one more type in its union{_because(mode)}")
            for field in before:
                compare(field.type, now.field(field.name).type, (*path, field.name))
        elif pa.types.is_list(before) and pa.types.is_list(now):
            compare(before.value_type, now.value_type, (*path, ITEM))
        elif pa.types.is_map(before) and pa.types.is_map(now):
            compare(before.item_type, now.item_type, (*path, ITEM))
        else:
            raise Incompatible(f"field {_name(path)} was {before} and is now {now}{_because(mode)}")

    compare(known.record, record, ())


def _because(mode: EvolutionMode) -> str:
    return f": format.schemaEvolution.mode {mode} refuses that"


def _name(path: Path) -> str:
    return repr(".".join(path))
