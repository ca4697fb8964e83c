"""Where records name their schema, and where their payloads begin.

In the wire format of schema registries a frame is in front of the payload: a zero byte, the id of the schema in four
bytes, and in Protobuf the indexes of the message. If a header names the schema, there is no zero byte and no id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import Fault
from s3sink_job.decode.distinct_bytes import Widths, distinct_bytes, paired, same_width, without_first_bytes
from s3sink_job.decode.header_schemas import HeaderColumns, HeaderSchemas, header_schemas
from s3sink_job.decode.record_bytes import Ints, Mask, Records
from s3sink_job.decode.schema_language import Message
from s3sink_job.decode.writer_schemas import SchemaId, numbered

ID_FRAME = 5
"""Bytes of a frame without a message: 0, and the id of the schema."""
FIRST_TAG = 8
"""No field of Protobuf begins with a lower byte. Some serializers of Apicurio put indexes in front beside a header."""
NOT_FRAMED = "NotWireFormat"
MessageLengths = Callable[[Records, Ints], Ints]
"""See `SchemaLanguage.message_lengths`."""


class SchemaKey(NamedTuple):
    """Records with the same key are decoded by the same decoder."""

    schema: SchemaId | None
    """None for the inline schema."""
    message: Message = b""


@dataclass
class Payloads:
    """The values of a batch that are not null."""

    column: Column
    rows: Ints
    """The row of each value in the batch."""
    records: Records
    codes: Ints
    """The place of each value's key in `keys`."""
    keys: list[SchemaKey | None] = field(default_factory=list)
    """None for values at fault."""
    skip: int = 0
    """Bytes in front of each payload."""
    faults: dict[int, Fault] = field(default_factory=dict)
    """By the row in the batch."""

    def rows_of(self, code: int) -> list[int]:
        found: list[int] = self.rows[self.codes == code].tolist()
        return found

    def refuse(self, places: Mask, why: Callable[[int], str]) -> None:
        """Makes values bad records. `why` gets the place of the value."""
        for place in np.flatnonzero(places).tolist():
            self.faults[int(self.rows[place])] = Fault(NOT_FRAMED, why(place))


def plain_payloads(column: Column) -> Payloads:
    """Values that are payloads as a whole, of the inline schema."""
    column = column.cast(pa.binary())
    rows: Ints = np.arange(len(column))
    if column.null_count:
        rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        column = column.take(pa.array(rows))
    keys: list[SchemaKey | None] = [SchemaKey(None)] if len(rows) else []
    return Payloads(column, rows, Records(column), np.zeros(len(rows), np.int64), keys)


def framed_payloads(
    column: Column,
    headers: HeaderColumns,
    part: str,
    message_lengths: MessageLengths | None,
    *,
    frame_shows: bool = False,
) -> Payloads:
    """Values that name their schema, each in its own way.

    `message_lengths`: None for languages without messages. `frame_shows`: whether a value that begins with zero has a
    frame for sure, so that its header does not matter.
    """
    found = plain_payloads(column)
    if not len(found.rows):
        return found
    records, begin = found.records, found.records.bounds[:-1]
    named = header_schemas(headers, found.rows)
    lengths_of_values = np.diff(records.bounds)
    if named is None and message_lengths is None:
        frame = _shared_frame(records, int(lengths_of_values.min()))
        if frame is not None:
            found.keys, found.skip = [_key_of(frame)], ID_FRAME
            return found
    if named is not None and frame_shows:
        named = named.except_for((lengths_of_values > 0) & (records.data[begin] == 0))
    wrong = (lengths_of_values < ID_FRAME) | (records.data[begin] != 0)
    widths: Widths = ID_FRAME
    if named is not None:
        wrong &= ~named.in_header
        widths = np.where(named.in_header, 0, ID_FRAME)
    found.refuse(wrong, lambda place: _no_frame(found.column[place].as_py(), part))
    if named is not None and named.invalid.any():
        found.refuse(named.invalid, lambda place: named.why_invalid(place, part))
        wrong |= named.invalid
    if message_lengths is not None:
        lengths = _message_lengths(records, begin + widths, named, message_lengths)
        cut = ~wrong & (lengths < 0)
        found.refuse(cut, lambda _: f"{part} ends within the indexes of its message")
        wrong |= cut
        widths = widths + lengths
    frames, found.codes = distinct_bytes(records, begin, widths, wrong)
    if named is None:
        found.keys = [_key_of(frame) for frame in frames]
    else:
        found.keys, found.codes = _keys_with_headers(named, frames, found.codes, messages=message_lengths is not None)
    leave_out(found, widths, wrong)
    return found


def _shared_frame(records: Records, shortest: int) -> bytes | None:
    """The frame of all values, if they have the same one. Mostly they do, and then nothing else has to be found out."""
    if shortest < ID_FRAME:
        return None
    starts = records.unaligned("<i8")[records.bounds[:-1]] & (256**ID_FRAME - 1)
    frame = int(starts[0]).to_bytes(ID_FRAME, "little")
    return frame if frame[0] == 0 and (starts == starts[0]).all() else None


def _message_lengths(records: Records, at: Ints, named: HeaderSchemas | None, lengths_at: MessageLengths) -> Ints:
    """How many bytes from `at` on say which message a value is; -1 for a value that is cut within them."""
    if named is None:
        return lengths_at(records, at)
    repeated, end = named.repeated_lengths(records), records.bounds[1:]
    at = at + repeated
    without_indexes = named.has_name & ((at >= end) | (records.data[at] >= FIRST_TAG))
    without_indexes |= named.has_message
    lengths = lengths_at(records, np.where(without_indexes, end, at))
    lengths[without_indexes] = 0
    return np.where(lengths < 0, lengths, repeated + lengths)


def _no_frame(value: bytes, part: str) -> str:
    if value[:1] in (b"", b"\x00"):
        why = f"has only {len(value)} bytes, and the id of a schema takes {ID_FRAME}"
    else:
        why = f"begins with the byte 0x{value[0]:02x}, and not with 0 and the id of a schema"
    return f"{part} {why}: check spec.source.{part}.format"


def _key_of(frame: bytes | None) -> SchemaKey | None:
    if frame is None:
        return None
    return SchemaKey(numbered(int.from_bytes(frame[1:ID_FRAME], "big")), frame[ID_FRAME:])


def _keys_with_headers(
    named: HeaderSchemas, frames: list[bytes | None], codes: Ints, *, messages: bool
) -> tuple[list[SchemaKey | None], Ints]:
    """One key for each pair of a header and a frame. `messages`: whether the language has them."""
    pairs, codes = paired(named.codes, codes, len(frames))
    keys: list[SchemaKey | None] = []
    for header, number in pairs:
        frame, name = frames[number], named.distinct[header]
        if frame is None or name is None:
            keys.append(_key_of(frame))
        else:
            in_front = frame.removeprefix(name.repeated)
            keys.append(SchemaKey(name.schema, (in_front or name.message or b"") if messages else b""))
    return keys, codes


def leave_out(found: Payloads, widths: Widths, wrong: Mask) -> None:
    """Leaves out the first bytes of each value: by `skip` if all have the same number of them. If not, by a copy."""
    width = same_width(widths, wrong)
    if width is not None:
        found.skip = width
        return
    found.column, found.skip = without_first_bytes(found.records, np.where(wrong, 0, widths)), 0
    found.records = Records(found.column)
