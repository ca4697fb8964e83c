"""Records of AWS Glue's serializers: which schema each has, and its payload, compressed or not."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from unittest.mock import patch
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3sink_job.decode import glue_framing
from s3sink_job.decode.batch_parts import TooMuchData, in_parts
from s3sink_job.decode.framing import Payloads, SchemaKey
from s3sink_job.decode.glue_framing import MOST_IN_RECORD, glue_payloads
from s3sink_job.decode.record_bytes import Records
from s3sink_job.decode.writer_schemas import SchemaId

ONE, TWO = UUID("b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63"), UUID(int=7)
VERSIONS = {version: SchemaId("Glue schema version", str(version)) for version in (ONE, TWO)}


def written(payload: bytes, version: UUID = ONE, *, compressed: bool = False) -> bytes:
    body = zlib.compress(payload) if compressed else payload
    return bytes([3, 5 if compressed else 0]) + version.bytes + body


@dataclass(frozen=True)
class Written:
    """A record, and what has to be found in it. Without a key it is at fault."""

    value: bytes | None
    key: SchemaKey | None
    payload: bytes = b""


def varint(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + varint(number >> 7)


bad = st.sampled_from(
    [b"", b"\x03", written(b"")[:-1], b"\x00" + written(b"x")[1:], b"\x03\x01" + bytes(17), b"\x03\x05" + bytes(20)]
)


@st.composite
def records(draw: st.DrawFn, *, messages: bool) -> Written:
    match draw(st.sampled_from(["good", "good", "good", "null", "bad", "cut"])):
        case "null":
            return Written(None, None)
        case "bad":
            return Written(draw(bad), None)
        case "cut":
            return Written(written(b"x" * 30, compressed=True)[: draw(st.integers(18, 25))], None)
    version, payload = draw(st.sampled_from([ONE, TWO])), draw(st.binary(max_size=20))
    number = draw(st.integers(0, 3) | st.integers(0, 2**32 - 1)) if messages else None
    front = b"" if number is None else varint(number)
    key = SchemaKey(VERSIONS[version], b"" if number is None else number)
    return Written(written(front + payload, version, compressed=draw(st.booleans())), key, payload)


def payloads_of(found: Payloads) -> dict[int, tuple[SchemaKey, bytes]]:
    assert found.records.size == Records(found.column).size
    keys = [found.keys[code] for code in found.codes]
    return {
        int(row): (key, value[found.skip :])
        for row, key, value in zip(found.rows, keys, found.column.to_pylist(), strict=True)
        if key is not None
    }


@settings(deadline=None, max_examples=300)
@given(st.data(), st.booleans())
def test_each_record_has_its_own_schema_and_payload(data: st.DataObject, messages: bool) -> None:
    """Compressed or not, between nulls and records that are at fault."""
    drawn = data.draw(st.lists(records(messages=messages), max_size=8))
    column = pa.array([b"x", *(record.value for record in drawn)], pa.binary()).slice(1)
    found = glue_payloads(column, "value", messages=messages)
    assert payloads_of(found) == {row: (r.key, r.payload) for row, r in enumerate(drawn) if r.key is not None}
    assert set(found.faults) == {row for row, r in enumerate(drawn) if r.key is None and r.value is not None}


@pytest.mark.parametrize(
    ("value", "reason", "why"),
    [
        (b"\x03", "NotWireFormat", "value has only 1 bytes, and the header of AWS Glue's serializers takes 18"),
        (b"\x00" + bytes(20), "NotWireFormat", "value begins with the byte 0x00, and not with 3"),
        (b"\x03\x07" + bytes(20), "NotWireFormat", "value has the kind of compression 7"),
        (b"\x03\x05" + bytes(20), "InvalidCompression", "value says that it is compressed, and is not zlib"),
        (written(b"abc" * 9, compressed=True)[:-1], "InvalidCompression", "value ends within its compressed data"),
    ],
)
def test_a_record_that_is_not_glues_says_what_is_wrong(value: bytes, reason: str, why: str) -> None:
    found = glue_payloads(pa.array([written(b"good"), value], pa.binary()), "value", messages=False)
    assert (found.faults[1].reason, why in found.faults[1].message) == (reason, True)
    assert payloads_of(found) == {0: (SchemaKey(VERSIONS[ONE]), b"good")}


def test_a_record_without_the_number_of_its_message_is_at_fault() -> None:
    found = glue_payloads(pa.array([written(b""), written(b"\xff" * 20)], pa.binary()), "key", messages=True)
    assert {fault.message for fault in found.faults.values()} == {"key does not begin with the number of a message"}


def test_a_zip_bomb_is_a_bad_record_and_is_never_unpacked() -> None:
    bomb = bytes([3, 5]) + ONE.bytes + zlib.compress(bytes(MOST_IN_RECORD + 1))
    assert len(bomb) < 100_000
    found = glue_payloads(pa.array([bomb, written(b"good")], pa.binary()), "value", messages=False)
    assert found.faults[0].message == "value has more than 64 MiB without its compression"
    assert payloads_of(found) == {1: (SchemaKey(VERSIONS[ONE]), b"good")}


@pytest.fixture
def small_batches() -> Iterator[None]:
    with patch.object(glue_framing, "MOST_IN_BATCH", 100):
        yield


@pytest.mark.usefixtures("small_batches")
def test_a_batch_of_much_compressed_data_is_decoded_part_by_part() -> None:
    sizes = [30, 30, 30, 30, 500, 10, 60, 60]
    values = [written(b"x" * size, compressed=True) for size in sizes]
    batch = pa.RecordBatch.from_pydict({"value": pa.array([None, *values, written(b"plain")], pa.binary())})

    def payloads(part: pa.RecordBatch) -> list[int]:
        return [len(payload) for _, payload in payloads_of(_decoded(part)).values()]

    def _decoded(part: pa.RecordBatch) -> Payloads:
        return glue_payloads(part.column("value"), "value", messages=False)

    with pytest.raises(TooMuchData):
        payloads(batch)
    assert list(in_parts(batch, payloads)) == [[30, 30, 30], [30], [500], [10, 60], [60, 5]]
