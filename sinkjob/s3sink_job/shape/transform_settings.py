"""What a transform does, as plain data, and the types that it was evaluated with: see `input_fields.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from s3sink_api.spec import Spec, Transform
from s3sink_api.spec.transform_steps import Extract
from s3sink_job.flush.manifest import InputTypes

_TRANSFORM = TypeAdapter(Transform)


@dataclass(frozen=True)
class TransformSettings:
    transform: Transform
    inputs: InputTypes | None = None
    """Of records that were written: the types that their fields had then. An expression may depend on them."""

    @property
    def without_filter(self) -> TransformSettings | None:
        """For records that were written: which ones is decided already."""
        if not self.transform.changes_values:
            return None
        return replace(self, transform=replace(self.transform, where=None))

    @property
    def drops(self) -> bool:
        """Whether records may be left out. Extract makes tombstones, which `nullValues` may leave out."""
        extracts = any(isinstance(step, Extract) for step in self.transform.steps)
        return bool(self.transform.where or self.transform.unwrap or extracts)


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
