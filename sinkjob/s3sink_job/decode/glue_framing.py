"""Records as the serializers of AWS Glue write them: a byte 3, the kind of compression, the id of the schema's version,
and the payload, which may be compressed. In Protobuf the payload begins with the number of its message."""

from __future__ import annotations

import zlib
from uuid import UUID

import numpy as np
import pyarrow as pa

from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import Fault
from s3sink_job.decode.batch_parts import TooMuchData
from s3sink_job.decode.distinct_bytes import DistinctBytes, distinct_bytes, paired, without_first_bytes
from s3sink_job.decode.framing import Payloads, SchemaKey, leave_out, plain_payloads
from s3sink_job.decode.record_bytes import Mask, Records
from s3sink_job.decode.varints import varints
from s3sink_job.decode.writer_schemas import SchemaId

FRAME, VERSION = 18, 16
FIRST_BYTE, PLAIN, ZLIB = 3, 0, 5
MOST_IN_RECORD, MOST_IN_BATCH = 64 * 2**20, 32 * 2**20
"""Bytes without compression. A record beyond the first is bad; a batch beyond the second is decoded part by part."""
INVALID = "InvalidCompression"
MOST_MESSAGES = 2**32


def glue_payloads(column: Column, part: str, *, messages: bool) -> Payloads:
    """`messages`: whether payloads begin with the number of their message. Raises `TooMuchData`."""
    found = plain_payloads(column)
    if not len(found.rows):
        return found
    records, begin = found.records, found.records.bounds[:-1]
    compression = records.data[begin + 1]
    wrong = (np.diff(records.bounds) < FRAME) | (records.data[begin] != FIRST_BYTE)
    wrong |= (compression != PLAIN) & (compression != ZLIB)
    found.refuse(wrong, lambda place: _no_frame(found.column[place].as_py(), part))
    versions = distinct_bytes(records, begin + 2, VERSION, wrong)
    found.skip = FRAME
    compressed = ~wrong & (compression == ZLIB)
    if compressed.any():
        wrong |= _decompress(found, compressed, part)
    if messages:
        _split_by_message(found, versions, wrong, part)
    else:
        found.keys = [*(_key_of(version) for version in versions.values), None]
        found.codes = np.where(wrong, len(versions.values), versions.codes)
    return found


def _no_frame(value: bytes, part: str) -> str:
    if len(value) < FRAME:
        why = f"has only {len(value)} bytes, and the header of AWS Glue's serializers takes {FRAME}"
    elif value[0] != FIRST_BYTE:
        why = f"begins with the byte 0x{value[0]:02x}, and not with {FIRST_BYTE} as AWS Glue's serializers write it"
    else:
        why = f"has the kind of compression {value[1]}, and only {PLAIN} (none) and {ZLIB} (zlib) are known"
    return f"{part} {why}: check spec.source.{part}.schemaRegistry.type"


def _decompress(found: Payloads, compressed: Mask, part: str) -> Mask:
    """Replaces values by their payloads. Gives those that cannot be decompressed."""
    records, data = found.records, memoryview(found.records.data.data)
    payloads, size, wrong = [], 0, np.zeros(len(compressed), np.bool_)
    for place in np.flatnonzero(compressed).tolist():
        start, end = records.bounds[place : place + 2].tolist()
        payload = _decompressed(data[start + FRAME : end])
        if isinstance(payload, str):
            wrong[place] = True
            found.faults[int(found.rows[place])] = Fault(INVALID, f"{part} {payload}")
            payload = b""
        size += len(payload)
        if size > MOST_IN_BATCH and found.rows[place] > 0:
            raise TooMuchData(int(found.rows[place]))
        payloads.append(payload)
    column = pa.array(payloads, pa.binary())
    if len(column) < len(compressed):
        places = np.arange(len(compressed))
        places[compressed] = len(compressed) + np.arange(len(column))
        plain = without_first_bytes(records, np.where(compressed, np.diff(records.bounds), found.skip))
        column = pa.concat_arrays([plain, column]).take(pa.array(places))
    found.column, found.records, found.skip = column, Records(column), 0
    return wrong


def _decompressed(data: memoryview) -> bytes | str:
    """The payload, or why there is none."""
    opened = zlib.decompressobj()
    try:
        payload = opened.decompress(data, MOST_IN_RECORD + 1)
    except zlib.error as error:
        return f"says that it is compressed, and is not zlib: {error}"
    if len(payload) > MOST_IN_RECORD:
        return f"has more than {MOST_IN_RECORD // 2**20} MiB without its compression"
    return payload if opened.eof else "ends within its compressed data"


def _split_by_message(found: Payloads, versions: DistinctBytes, wrong: Mask, part: str) -> None:
    """Keys of version and message, and the payloads behind the number of the message."""
    records, at = found.records, found.records.bounds[:-1] + found.skip
    numbers, lengths, _ = varints(records.data, records.unaligned("<u8"), np.minimum(at, records.size))
    cut = ~wrong & ((at + lengths > records.bounds[1:]) | (numbers >= MOST_MESSAGES))
    found.refuse(cut, lambda _: f"{part} does not begin with the number of a message")
    wrong = wrong | cut
    messages = distinct_bytes(records, at, lengths, wrong)
    pairs, found.codes = paired(versions.codes, messages.codes, len(messages.values))
    found.keys = [_key_of(versions.values[version], messages.values[message]) for version, message in pairs]
    leave_out(found, found.skip + lengths, wrong)


def _key_of(version: bytes | None, message: bytes | None = b"") -> SchemaKey | None:
    if version is None or message is None:
        return None
    number = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(message))
    return SchemaKey(SchemaId("Glue schema version", str(UUID(bytes=version))), number if message else b"")
