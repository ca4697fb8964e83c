"""Which schema and message a record has, and where its payload begins: by a frame in front, or by a header."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.wrappers_pb2 import BytesValue
from hypothesis import given, settings
from hypothesis import strategies as st

from s3sink_job.decode.framing import Payloads, SchemaKey, framed_payloads
from s3sink_job.decode.header_schemas import HeaderColumns
from s3sink_job.decode.record_bytes import Ints, Records
from s3sink_job.decode.writer_schemas import SchemaId, numbered

GUID = UUID("89791762-2336-4186-9674-299b90a802e2")


@dataclass(frozen=True)
class Framed:
    """A record as some serializer writes it, and what has to be found in it. Without a key it is at fault."""

    value: bytes | None
    header: bytes | None
    key: SchemaKey | None
    payload: bytes = b""
    message: bytes | None = None
    """The name in a header of its own."""


def counted_messages(records: Records, at: Ints) -> Ints:
    """The first byte is the number of bytes that follow."""
    lengths = 1 + records.data[at].astype(np.int64)
    return np.where(at + lengths > records.bounds[1:], -1, lengths)


def payloads_of(
    records: list[Framed], *, messages: bool, before: int = 0, headers: bool = True, apicurio: bool = True
) -> Payloads:
    """Of a slice of a longer column."""
    values, ids, names = (
        pa.array([b"x"] * before + [getattr(record, name) for record in records], pa.binary()).slice(before)
        for name in ("value", "header", "message")
    )
    named = HeaderColumns(ids if headers else None, names if headers else None, apicurio=apicurio)
    return framed_payloads(values, named, "value", counted_messages if messages else None)


def check(records: list[Framed], *, messages: bool, before: int = 0) -> None:
    found = payloads_of(records, messages=messages, before=before)
    assert found.records.size == Records(found.column).size
    keys = [found.keys[code] for code in found.codes]
    assert {
        int(row): (key, value[found.skip :])
        for row, key, value in zip(found.rows, keys, found.column.to_pylist(), strict=True)
        if key is not None
    } == {row: (record.key, record.payload) for row, record in enumerate(records) if record.key is not None}
    bad = {row for row, record in enumerate(records) if record.value is not None and record.key is None}
    assert set(found.faults) == bad
    assert {fault.reason for fault in found.faults.values()} <= {"NotWireFormat"}


numbers = st.integers(0, 2**32 - 1) | st.integers(0, 2)
payloads = st.binary(max_size=4)
fields = st.binary(max_size=12).map(lambda payload: payload and bytes([payload[0] | 8]) + payload[1:])
"""No field begins with a byte below 8."""
names = st.sampled_from(["Order", "A", "Łódź", "Outer.Inner", "x" * 124, "x" * 126, "x" * 300])
content = st.binary(max_size=3).map(lambda message: bytes([len(message)]) + message)


def name_in_front(name: str) -> bytes:
    """As version 3 of Apicurio's serializers writes it."""
    return bytes(BytesValue(value=BytesValue(value=name.encode()).SerializeToString()).SerializeToString())[1:]


@st.composite
def framed(draw: st.DrawFn, *, messages: bool) -> Framed:
    payload, message = draw(payloads), draw(content) if messages else b""
    number, guid = draw(numbers), draw(st.sampled_from([GUID, UUID(int=7)]))
    in_front = b"\x00" + number.to_bytes(4, "big")
    wide = number.to_bytes(8, "big")
    kinds = ["front", "front", "guid", "id", "global", "content", "name", "named front", "null", "bad", "bad header"]
    match draw(st.sampled_from(kinds)):
        case "front":
            return Framed(in_front + message + payload, None, SchemaKey(numbered(number), message), payload)
        case "guid":
            key = SchemaKey(SchemaId("schema GUID", str(guid)), message)
            return Framed(payload, b"\x01" + guid.bytes + message, key, payload)
        case "id":
            return Framed(payload, in_front + message, SchemaKey(numbered(number), message), payload)
        case "global":
            key = SchemaKey(SchemaId("Apicurio global id", str(number)), message)
            return Framed(message + payload, b"g" + wide, key, payload)
        case "content":
            key = SchemaKey(SchemaId("Apicurio content id", str(number)), message)
            return Framed(message + payload, b"c" + wide, key, payload)
        case "name":
            name = draw(names)
            key = SchemaKey(SchemaId("Apicurio content id", str(number)), name if messages else b"")
            payload = draw(fields if messages else payloads)
            in_front = draw(st.booleans()) and messages
            return Framed(name_in_front(name) * in_front + payload, b"c" + wide, key, payload, name.encode())
        case "named front":
            # The indexes count, wherever they are: a nested message has no name of its own.
            key = SchemaKey(SchemaId("Apicurio global id", str(number)), message)
            again = name_in_front("Order") * (draw(st.booleans()) and messages)
            return Framed(again + message + payload, b"g" + wide, key, payload, b"Order")
        case "null":
            return Framed(None, draw(st.none() | st.just(b"\x01" + guid.bytes)), None)
        case "bad":
            return Framed(draw(st.binary(max_size=4) | st.just(b"\x07abcdef")), None, None)
        case _:
            return Framed(
                payload, draw(st.sampled_from([b"", b"\x01ab", b"\x02" + wide, b"\x00abc", b"g", b"cab"])), None
            )


@settings(deadline=None, max_examples=300)
@given(st.data(), st.booleans(), st.integers(0, 3))
def test_each_record_has_its_own_schema_message_and_payload(data: st.DataObject, messages: bool, before: int) -> None:
    """Frames and headers in any order, between nulls and records that are at fault."""
    check(data.draw(st.lists(framed(messages=messages), max_size=8)), messages=messages, before=before)


def test_a_payload_that_looks_like_a_frame_is_none_if_a_header_names_the_schema() -> None:
    key = SchemaKey(SchemaId("schema GUID", str(GUID)))
    check([Framed(b"\x00\x00\x00\x00\x01", b"\x01" + GUID.bytes, key, b"\x00\x00\x00\x00\x01")], messages=False)


def test_a_frame_wins_over_a_header_where_no_payload_can_look_like_one() -> None:
    values = pa.array([b"\x00\x00\x00\x00\x01{}", b"{}", b"\x00", b""], pa.binary())
    headers = pa.array([b"\x01" + GUID.bytes] * 4, pa.binary())
    found = framed_payloads(values, HeaderColumns(headers), "value", None, frame_shows=True)
    guid = SchemaKey(SchemaId("schema GUID", str(GUID)))
    assert [found.keys[code] for code in found.codes] == [SchemaKey(numbered(1)), guid, None, guid]
    assert found.column.to_pylist()[:2] == [b"{}", b"{}"]
    assert list(found.faults) == [2]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (Framed(b"\x00\x00\x00\x00\x01\x09ab", None, None), "value ends within the indexes of its message"),
        (Framed(b"\x09ab", b"g" + bytes(8), None), "value ends within the indexes of its message"),
        (
            Framed(b"ab", b"\x01\x02", None),
            "value has a header __value_schema_id of 2 bytes that is no schema id: 0x0102",
        ),
        (Framed(b"ab", b"c\x02", None), "value has a header of Apicurio with 1 bytes, and an id takes 8"),
    ],
)
def test_a_record_that_names_no_schema_says_what_is_wrong(record: Framed, why: str) -> None:
    good = Framed(b"\x00\x00\x00\x00\x01\x00x", None, SchemaKey(numbered(1), b"\x00"), b"x")
    check([record, good], messages=True)
    assert payloads_of([record, good], messages=True).faults[0].message == why


def test_a_payload_is_cut_only_behind_the_name_that_its_header_has() -> None:
    """Any bytes may be a payload: the name of another message is a part of it."""
    key = SchemaKey(SchemaId("Apicurio content id", "0"), "Customer")
    for payload in (b"", b"\x0a", b"\x0a\x0a\x08Custome", name_in_front("Consumer"), name_in_front("Customers")):
        for front in (b"", name_in_front("Customer")):
            check([Framed(front + payload, b"c" + bytes(8), key, payload, b"Customer")] * 2, messages=True)


def test_a_thousand_headers_in_a_batch_are_told_apart() -> None:
    """Each has its own id, and every other one its own name."""
    records = [
        Framed(
            b"\x08x",
            b"c" + number.to_bytes(8, "big"),
            SchemaKey(SchemaId("Apicurio content id", str(number)), f"M{number}" if number % 2 else b""),
            b"\x08x",
            b"M%d" % number if number % 2 else None,
        )
        for number in range(1000)
    ]
    named = [record for record in records if record.message]
    check(named, messages=True)
    found = payloads_of(records, messages=False)
    assert [found.keys[code] for code in found.codes] == [
        SchemaKey(record.key.schema) for record in records if record.key
    ]


def test_headers_of_apicurio_mean_nothing_to_another_registry() -> None:
    """A program that reads records of Apicurio and writes others may keep the headers."""
    header = b"g" + bytes(8)
    kept = Framed(b"\x00\x00\x00\x00\x01x", header, SchemaKey(numbered(1)), b"x")
    guid = Framed(b"y", b"\x01" + GUID.bytes, SchemaKey(SchemaId("schema GUID", str(GUID))), b"y")
    for records in ([kept], [kept, guid, Framed(b"z", header, None)]):
        found = payloads_of(records, messages=False, apicurio=False)
        keys = [found.keys[code] for code in found.codes]
        assert keys == [record.key for record in records]
        bodies = [value[found.skip :] for value in found.column.to_pylist()]
        assert bodies[: len(bodies) - len(found.faults)] == [record.payload for record in records if record.key]
        assert len(found.faults) == sum(record.key is None for record in records)


def test_records_without_headers_are_read_in_place() -> None:
    """Neither their bytes nor their ids are copied."""
    records = [Framed(b"\x00\x00\x00\x00\x01x", None, None)] * 3
    for headers in (True, False):
        found = payloads_of(records, messages=False, headers=headers)
        assert (found.skip, found.column.to_pylist()) == (5, [record.value for record in records])
