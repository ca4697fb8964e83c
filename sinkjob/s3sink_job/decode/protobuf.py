"""Protobuf, as a language of schemas."""

from __future__ import annotations

import re

import numpy as np

from s3sink_job.decode.proto_decoder import ProtobufDecoder, decoder_of
from s3sink_job.decode.proto_files import MessagePath
from s3sink_job.decode.proto_wire import MAX_DEPTH
from s3sink_job.decode.record_bytes import Ints, Mask, Records
from s3sink_job.decode.schema_language import Message, SchemaLanguage
from s3sink_job.decode.varints import varints
from s3sink_job.decode.writer_schemas import InvalidSchema, WriterSchema

FIRST = (0,)
"""The first message of a file. In front of a record it is a single zero byte."""
NAME = 0x0A
"""The tag of the name, in the message that Apicurio's serializers write in place of indexes."""
LONGEST_NAME = 0x7D
NAMES = re.compile(rb"[A-Za-z_][A-Za-z0-9_.]{2,}")
"""Names that count also where their bytes are indexes: these would be the 34th message, or a later one, within a
message within a message. Those of two letters are usual indexes."""
IN_NAMES = np.array([bool(re.fullmatch(rb"[A-Za-z0-9_.]", bytes([byte]))) for byte in range(256)])


class Protobuf(SchemaLanguage):
    kind = "PROTOBUF"
    has_messages = True

    def decoder_of(self, schema: WriterSchema, message: Message = b"") -> ProtobufDecoder:
        return decoder_of(schema, message_path(message))

    def message_lengths(self, records: Records, at: Ints) -> Ints:
        """Of the indexes with their number in front, all as zigzag numbers; or of a name as Apicurio writes it."""
        end = records.bounds[1:]
        lengths = np.ones(len(at), np.int64)
        several = np.flatnonzero((records.data[at] != 0) & (at < end))
        if len(several):
            lengths[several] = _lengths(records, at[several], end[several])
        lengths[at + lengths > end] = -1
        return lengths


def _lengths(records: Records, at: Ints, end: Ints) -> Ints:
    def numbers(rows: Ints) -> tuple[Ints, Ints]:
        raw, length, wrong = varints(records.data, records.unaligned("<u8"), np.minimum(position[rows], end[rows]))
        length[wrong] = records.size + 1
        return (raw >> np.uint64(1)).view(np.int64) ^ -(raw & np.uint64(1)).view(np.int64), length

    position = at.copy()
    count, length = numbers(np.arange(len(at)))
    position += length
    wrong = (count < 0) | (count > MAX_DEPTH)
    negative = wrong.copy()
    count[wrong] = 0
    for number in range(int(count.max(initial=0))):
        having = np.flatnonzero(count > number)
        index, length = numbers(having)
        negative[having] |= index < 0
        position[having] += length
    lengths = np.where(wrong | (position > end), -1, position - at)
    first = records.data[at].astype(np.int64)
    named = (first >= 3) & (first < 0x80) & (records.data[at + 1] == NAME) & (records.data[at + 2] == first - 2)
    unsure = np.flatnonzero(named & ~negative)
    if len(unsure):
        named[unsure] = _are_names(records, at[unsure] + 3, first[unsure] - 2)
    return np.where(named, first + 1, lengths)


def _are_names(records: Records, at: Ints, length: Ints) -> Mask:
    """Whether there are names of these lengths, as `NAMES`."""
    digits = (records.data[at] >= ord("0")) & (records.data[at] <= ord("9"))
    found: Mask = (length > 2) & ~digits & (records.data[at] != ord("."))
    for place in range(int(length.max())):
        found &= (place >= length) | IN_NAMES[records.data[np.minimum(at + place, records.size)]]
    return found


def message_path(message: Message) -> MessagePath:
    """From the bytes behind the id of a schema. No index is negative: such bytes can only be a name.

    Raises `InvalidSchema`: in a header there may be anything.
    """
    if isinstance(message, int):
        return message
    if isinstance(message, str) or not message:
        return message or FIRST
    numbers: list[int] = []
    value = shift = 0
    for byte in message:
        value, shift = value | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            numbers.append(value >> 1 ^ -(value & 1))
            value = shift = 0
    name = message[3:]
    named = 0 < len(name) <= LONGEST_NAME and message[:3] == bytes([len(name) + 2, NAME, len(name)])
    if named and (min(numbers) < 0 or NAMES.fullmatch(name)):
        return name.decode(errors="replace")
    if shift or numbers[0] != len(numbers) - 1:
        raise InvalidSchema(f"a Protobuf schema without the message 0x{message[:20].hex()}, which are no indexes")
    return tuple(numbers[1:]) or FIRST
