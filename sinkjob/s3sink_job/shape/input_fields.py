"""The decoded fields whose types a transform depends on. They are the same for all records of a slice.

A manifest notes them, so that the records are transformed again in the same way. A field that no record had is noted as
null: it may have a type by then.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from s3sink_api.spec import Transform
from s3sink_api.spec.sql_expressions import Expression
from s3sink_api.spec.transform_steps import Cast, Debezium, Extract, Mask
from s3sink_job.columns.types import EMPTY, Path, from_doc
from s3sink_job.flush.manifest import InputTypes
from s3sink_job.shape.debezium import added_paths, event_paths
from s3sink_job.shape.field_steps import source_paths
from s3sink_job.shape.record_fields import is_meta

NO_UNWRAP = Debezium()


@dataclass(frozen=True)
class InputFields:
    exact: frozenset[Path]
    records: frozenset[Path]
    """Of these only matters whether they are records."""

    def types_in(self, record: pa.StructType) -> dict[Path, pa.DataType]:
        found = {}
        for path in self.records:
            at, kind = noted_type(record, path)
            found[at] = EMPTY if pa.types.is_struct(kind) else kind
        return found | dict(noted_type(record, path) for path in self.exact)

    def with_types(self, record: pa.StructType, inputs: InputTypes) -> pa.StructType:
        """The record with exactly these types of fields."""
        for path, text in inputs:
            kind = from_doc(json.loads(text))
            is_one = path in self.records and kind.equals(EMPTY)
            if not (is_one and pa.types.is_struct(noted_type(record, path)[1])):
                record = _with_type(record, path, kind)
        return record


def input_fields(transform: Transform, expressions: Iterable[Expression]) -> InputFields:
    """`expressions` are those that are computed, and read fields of the value."""
    found = {path for one in expressions for path in one.paths if not is_meta(path)}
    records: set[Path] = set()
    for step in reversed(transform.steps):
        own = {(name,) for name in step.fields} if isinstance(step, Mask | Cast) else set()
        found = {before for path in found for before in source_paths(path, step)} | own
        own = {(step.field,)} if isinstance(step, Extract) else set()
        records = {before for path in records for before in source_paths(path, step)} | own
    if transform.unwrap:
        options = transform.debezium or NO_UNWRAP
        found = {before for path in found for before in event_paths(path, options)} | {("op",)}
        parents = {path[:end] for path in added_paths(options).values() for end in range(1, len(path))}
        records = {before for path in records for before in event_paths(path, options)} | parents
        records |= {("after",), ("before",)}
    return InputFields(frozenset(_outermost(found, found)), frozenset(_outermost(records - found, found)))


def _outermost(paths: Iterable[Path], within: Collection[Path]) -> Iterator[Path]:
    """Without fields of fields: their types are noted with those."""
    return (path for path in paths if not any(path[:end] in within for end in range(len(path))))


def noted_type(kind: pa.DataType, path: Path) -> tuple[Path, pa.DataType]:
    """The type of a field. Of one that no record has, or that lies in a value without fields, it is that of the parent.

    Behind a map it is the type of its values.
    """
    for number, name in enumerate(path):
        if pa.types.is_struct(kind):
            kind = kind.field(name).type if name in kind.names else pa.null()
        elif pa.types.is_map(kind):
            kind = kind.item_type
        else:
            return path[:number], kind
    return path, kind


def _with_type(record: pa.DataType, path: Path, kind: pa.DataType) -> pa.DataType:
    if not path:
        return kind
    if pa.types.is_map(record):
        return pa.map_(record.key_type, _with_type(record.item_type, path[1:], kind))
    fields = {field.name: field.type for field in (record if pa.types.is_struct(record) else EMPTY)}
    fields[path[0]] = _with_type(fields.get(path[0], EMPTY), path[1:], kind)
    return pa.struct(list(fields.items()))
