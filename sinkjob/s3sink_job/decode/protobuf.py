"""Protobuf, as a language of schemas."""

from __future__ import annotations

import numpy as np

from s3sink_job.decode.proto_decoder import ProtobufDecoder, decoder_of
from s3sink_job.decode.proto_files import MessagePath
from s3sink_job.decode.proto_wire import MAX_DEPTH
from s3sink_job.decode.record_bytes import Ints, Records
from s3sink_job.decode.schema_language import Message, SchemaLanguage
from s3sink_job.decode.varints import varints
from s3sink_job.decode.writer_schemas import WriterSchema

FIRST = (0,)
"""The first message of a file. In front of a record it is a single zero byte."""


NAME = 0x0A
"""The tag of the name, in the message that Apicurio's serializers write in place of indexes."""


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
    named = negative & (first >= 3) & (first < 0x80)
    named &= (records.data[at + 1] == NAME) & (records.data[at + 2] == first - 2)
    return np.where(named, first + 1, lengths)


def message_path(message: Message) -> MessagePath:
    """From the bytes behind the id of a schema. No index is negative: such bytes can only be a name."""
    if isinstance(message, int):
        return message
    if isinstance(message, str):
        return message or FIRST
    numbers: list[int] = []
    value = shift = 0
    for byte in message:
        value, shift = value | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            numbers.append(value >> 1 ^ -(value & 1))
            value = shift = 0
    length = len(message) - 3
    if length > 0 and min(numbers) < 0 and message[1:3] == bytes([NAME, length]):
        return message[3:].decode(errors="replace")
    return tuple(numbers[1:]) or FIRST
