"""What a Protobuf message says about the columns that it gives: the names of messages. No field is required."""

from __future__ import annotations

from s3sink_job.columns.sources import SourceField, SourceRecord, Sources
from s3sink_job.columns.types import ITEM, Path
from s3sink_job.decode.proto_types import Map, Message, ProtoType


def sources_of(kind: ProtoType) -> Sources:
    """By path to the struct that a message becomes."""
    found: dict[Path, dict[str, SourceRecord]] = {}
    _add(found, kind, ())
    return found


def _add(found: dict[Path, dict[str, SourceRecord]], kind: ProtoType, path: Path) -> None:
    match kind:
        case Message(name, fields):
            about = {field.name: SourceField(required=False, nullable=field.presence) for field in fields}
            found[path] = {name: SourceRecord(about)}
            for field in fields:
                inner = (*path, field.name)
                _add(found, field.type, (*inner, ITEM) if field.repeated else inner)
        case Map(entry):
            _add(found, entry.fields[1].type, (*path, ITEM))
