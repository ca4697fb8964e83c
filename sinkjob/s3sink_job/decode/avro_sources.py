"""What an Avro schema says about the columns that it gives: names, docs, aliases, defaults."""

from __future__ import annotations

from s3sink_job.columns.sources import SourceRecord, Sources
from s3sink_job.columns.types import ITEM, Path
from s3sink_job.decode.avro_schema import Array, AvroType, Map, Record, Union, branch_names


def sources_of(kind: AvroType, path: Path = ()) -> Sources:
    """By path to the struct that a record becomes: see `avro_types.py`."""
    found: dict[Path, dict[str, SourceRecord]] = {}
    _add(found, kind, path)
    return found


def _add(found: dict[Path, dict[str, SourceRecord]], kind: AvroType, path: Path) -> None:
    match kind:
        case Record(name, fields):
            found[path] = {name: kind.source}
            for field in fields:
                _add(found, field.type, (*path, field.name))
        case Array(inner) | Map(inner):
            _add(found, inner, (*path, ITEM))
        case Union():
            several = len(kind.values) > 1
            for name, (_, branch) in zip(branch_names(kind), kind.values, strict=True):
                _add(found, branch, (*path, name) if several else path)
