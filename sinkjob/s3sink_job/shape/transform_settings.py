"""What a transform does, as plain data, and the types that it was evaluated with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter

from s3sink_api.spec import Spec, Transform
from s3sink_job.columns.types import EMPTY, Path, from_doc
from s3sink_job.flush.manifest import InputTypes

_TRANSFORM = TypeAdapter(Transform)


@dataclass(frozen=True)
class TransformSettings:
    transform: Transform
    inputs: InputTypes = ()
    """Of records that were written: the types that their fields had then. An expression may depend on them."""

    @property
    def without_filter(self) -> TransformSettings | None:
        """For records that were written: which ones is decided already."""
        if not self.transform.changes_values:
            return None
        return replace(self, transform=replace(self.transform, where=None))

    @property
    def drops(self) -> bool:
        """Whether records may be left out."""
        return bool(self.transform.where or self.transform.unwrap)


def transform_of(spec: Spec) -> TransformSettings | None:
    return None if spec.transform is None else TransformSettings(spec.transform)


def transform_to_doc(settings: TransformSettings | None) -> dict[str, Any] | str:
    if settings is None:
        return ""
    doc: dict[str, Any] = _TRANSFORM.dump_python(settings.transform, mode="json", by_alias=True, exclude_none=True)
    return doc


def transform_from_doc(doc: Mapping[str, Any] | str) -> TransformSettings | None:
    """Texts are checked again: a manifest in the bucket is no more to be trusted than a spec."""
    return TransformSettings(_TRANSFORM.validate_json(json.dumps(doc), by_alias=True, by_name=False)) if doc else None


def type_at(kind: pa.DataType, path: Path) -> pa.DataType:
    """Null if there is no such field. Behind a map it is the type of its values."""
    for name in path:
        if pa.types.is_struct(kind):
            kind = kind.field(name).type if name in kind.names else pa.null()
        else:
            kind = kind.item_type if pa.types.is_map(kind) else pa.null()
    return kind


def changed(before: pa.DataType, now: pa.DataType) -> bool:
    """Whether a value that had a type has another one. New fields of records change nothing."""
    if before.equals(now) or pa.types.is_null(before) or pa.types.is_null(now):
        return False
    if pa.types.is_struct(before) and pa.types.is_struct(now):
        return any(changed(field.type, type_at(now, (field.name,))) for field in before)
    if pa.types.is_list(before) and pa.types.is_list(now):
        return changed(before.value_type, now.value_type)
    if pa.types.is_map(before) and pa.types.is_map(now):
        return changed(before.item_type, now.item_type)
    return True


def with_input_types(record: pa.StructType, inputs: InputTypes) -> pa.StructType:
    """The record with these types of fields."""
    for path, text in inputs:
        record = _with_type(record, path, from_doc(json.loads(text)))
    return record


def _with_type(record: pa.DataType, path: Path, kind: pa.DataType) -> pa.DataType:
    if not path:
        return kind
    if pa.types.is_map(record):
        return pa.map_(record.key_type, _with_type(record.item_type, path[1:], kind))
    fields = {field.name: field.type for field in (record if pa.types.is_struct(record) else EMPTY)}
    fields[path[0]] = _with_type(fields.get(path[0], EMPTY), path[1:], kind)
    return pa.struct(list(fields.items()))
