"""What records get back from objects of an encoding: everything, everything but some losses, or nothing.

Pure. `docs/backup-and-restore.md` has the same rules as a table.
"""

from __future__ import annotations

from dataclasses import dataclass

from s3sink_job.shape.settings import RowKind
from s3sink_job.task.encoding import Encoding

META_PARTS = {
    "Kafka": frozenset({"key", "headers", "timestamp", "offset"}),
    "Quix": frozenset({"key", "timestamp"}),
}
BYTES, JSON = "Bytes", "Json"
RAW = frozenset({"String", BYTES})
"""Input formats that change no byte."""
AS_JSON = "come back as equal JSON: spaces and line breaks between tokens may differ, and a value null is a tombstone"
FROM_COLUMNS = (
    "are made of columns: fields that were null are left out, numbers may be written in another way, "
    "and a value without any field is a tombstone"
)


@dataclass(frozen=True)
class Recovery:
    losses: tuple[str, ...] = ()
    """What differs from the records, in words. Empty if they come back byte for byte."""
    refused: str = ""
    """Why records cannot be made of these objects at all."""

    @property
    def exact(self) -> bool:
        return not (self.losses or self.refused)


def recovery_of(encoding: Encoding) -> Recovery:
    if refused := _refused(encoding):
        return Recovery(refused=refused)
    parts = stored_parts(encoding)
    losses = []
    if "key" not in parts:
        losses.append("keys are not in the objects: all are null")
    elif encoding.decoding.key == JSON:
        losses.append("keys come back as equal JSON: line breaks between tokens may differ")
    if "headers" not in parts:
        losses.append("headers are not in the objects: there are none")
    if "timestamp" not in parts:
        losses.append("timestamps are not in the objects: all are the time at which the restore began")
    losses += _value_losses(encoding)
    if encoding.shape.nulls == "Skip":
        losses.append("tombstones are not in the objects (spec.nullValues was Skip)")
    if encoding.transform is not None:
        losses.append("records that spec.transform left out are not in the objects")
    return Recovery(tuple(losses))


def stored_parts(encoding: Encoding) -> frozenset[str]:
    """Which of key, headers, timestamp and offset the rows hold."""
    if not has_fields(encoding):
        return frozenset()
    envelope = encoding.shape.envelope
    if not envelope:
        return META_PARTS.get(encoding.shape.meta, frozenset())
    return frozenset({"key", "headers"}.intersection(envelope)) | (
        {"timestamp", "offset"} if "metadata" in envelope else frozenset()
    )


def has_fields(encoding: Encoding) -> bool:
    return encoding.format.rows not in {RowKind.TEXT_LINES, RowKind.VALUES}


def spreads(encoding: Encoding) -> bool:
    """Whether the fields of values are columns."""
    return encoding.format.rows.has_columns and encoding.decoding.value == JSON and encoding.shape.spreads_values


def _refused(encoding: Encoding) -> str:
    kind, shape, decoding = encoding.format.rows, encoding.shape, encoding.decoding
    if encoding.transform is not None and encoding.transform.transform.changes_values:
        return "spec.transform changed the values, and what they were is in no object. For a backup use no transform"
    if kind is RowKind.VALUES:
        return ""
    if decoding.value not in {*RAW, JSON}:
        return (
            f"values of format {decoding.value} were decoded, and their bytes cannot be made again. "
            "For a backup set spec.source.value.format to Bytes"
        )
    if kind is RowKind.TEXT_LINES:
        return ""
    if shape.envelope and "value" not in shape.envelope:
        return "the envelope has no values (format.envelope.value was false)"
    if not shape.envelope and shape.meta == "Airbyte":
        return "columns.meta Airbyte keeps neither keys nor headers. For a backup use meta Kafka or an envelope"
    if unlike := _other_shape(encoding):
        return unlike
    if "key" in stored_parts(encoding) and decoding.key not in (RAW if kind is RowKind.JSON_LINES else {*RAW, JSON}):
        return (
            f"keys of format {decoding.key} cannot be read back from {encoding.output.format}. "
            "For a backup set spec.source.key.format to Bytes"
        )
    if kind is RowKind.TEXT_COLUMNS and spreads(encoding):
        return "Csv does not keep the types of columns. For a backup set spec.source.value.format to Bytes or String"
    return ""


def _other_shape(encoding: Encoding) -> str:
    """Shapes for readers of tables, from which the record as it was cannot be told."""
    shape = encoding.shape
    if shape.meta == "Quix" and shape.flatten:
        return "columns.meta Quix with flatten has no headers. For a backup use meta Kafka or an envelope"
    if shape.headers_as == "Map":
        return "the envelope has only the last header of each name. For a backup set format.envelope.headersAs to List"
    if shape.spreads_keys and encoding.format.rows.has_columns:
        return "the envelope has the fields of keys. For a backup set format.envelope.keyAs to Plain"
    return ""


def _value_losses(encoding: Encoding) -> list[str]:
    kind, as_json = encoding.format.rows, encoding.decoding.value == JSON
    if kind is RowKind.VALUES:
        return ["tombstones are empty values"]
    if kind is RowKind.TEXT_LINES:
        return [f"values {AS_JSON}"] * as_json + ["tombstones are empty values"]
    losses = []
    if as_json:
        losses.append(f"values {FROM_COLUMNS if spreads(encoding) else AS_JSON}")
        if kind is RowKind.JSON_LINES and encoding.shape.meta == "Kafka" and not encoding.shape.envelope:
            losses.append("an object whose first field is _value comes back as the value of that field")
    if kind is RowKind.TEXT_COLUMNS and encoding.output.csv.quote == "None":
        losses.append("empty keys and values are null (format.csv.quote was None)")
    return losses
