"""Protobuf keys and values of a batch: messages by schema id and index, and bad records that stand alone."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from s3sink_api.spec import SchemaEvolution
from s3sink_job.columns.text import json_of
from s3sink_job.columns.types import within
from s3sink_job.decode import proto_decoder
from s3sink_job.decode.input_format import InputFormat
from s3sink_job.decode.proto_files import link
from s3sink_job.decode.protobuf import Protobuf, message_path
from s3sink_job.decode.record_bytes import Records
from s3sink_job.decode.typed_input import TypedInput
from s3sink_job.decode.writer_schemas import InlineSchema, InvalidSchema, SchemaId, WriterSchema
from tests.decode.inputs import batch_of_values, opened_input
from tests.decode.proto_samples import message_class, schema_of, varint

SHOP = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/any.proto";
message Order { int64 id = 1; string name = 2; State state = 3; Tree tree = 4; message Line { string sku = 1; } }
message Payment { int64 id = 1; bool paid = 2; google.protobuf.Timestamp at = 3; }
message Tree { int32 leaf = 1; repeated Tree inner = 2; map<string, Tree> by_name = 3; }
enum State { OPEN = 0; PAID = 1; }
message Extras { google.protobuf.Struct any_json = 1; google.protobuf.Any any = 2; uint64 big = 3; bytes raw = 4; }
"""
ORDER, PAYMENT, TREE, EXTRAS, LINE = b"\x00", b"\x02\x02", b"\x02\x04", b"\x02\x06", b"\x04\x00\x00"
OTHER = 'syntax = "proto3"; package shop; message Order { int64 id = 1; string note = 7; }'
CHANGED = 'syntax = "proto3"; package shop; message Order { string id = 1; }'


@dataclass(frozen=True)
class Schemas:
    inline: WriterSchema | None = None

    def find(self, schema: SchemaId) -> WriterSchema | None:
        texts = {1: SHOP, 2: OTHER, 3: CHANGED, 4: "message {"}
        number = int(schema.value)
        return (
            WriterSchema("AVRO", '"long"') if number == 5 else (schema_of(texts[number]) if number in texts else None)
        )


@dataclass(frozen=True)
class Texts:
    by_id: Mapping[int, str]
    inline: WriterSchema | None = None

    def find(self, schema: SchemaId) -> WriterSchema | None:
        return schema_of(self.by_id[int(schema.value)])


def opened(part: str = "value", known: pa.StructType | None = None) -> InputFormat:
    return opened_input("Protobuf", part, known=known, schemas=Schemas())


def written(path: tuple[int, ...], text: str = SHOP, **fields: Any) -> bytes:
    return bytes(message_class(schema_of(text), path)(**fields).SerializeToString())


def framed(number: int, indexes: bytes, payload: bytes) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + indexes + payload


def order(**fields: Any) -> bytes:
    return framed(1, ORDER, written((0,), **fields))


def faults_of(*values: bytes) -> dict[int, tuple[str, str]]:
    return {row: tuple(fault) for row, fault in opened().rows(batch_of_values(*values))[1].items()}


def test_messages_of_several_schemas_share_a_batch_in_their_order() -> None:
    values = [
        order(id=1, name="a"),
        framed(1, PAYMENT, written((1,), id=2, paid=True)),
        None,
        framed(2, ORDER, written((0,), OTHER, id=3, note="n")),
        framed(1, b"\x02\x00", written((0,), id=4, state="PAID")),
    ]
    rows, faults = opened().rows(batch_of_values(*values))
    assert not faults
    found = [(row["id"], row["name"], row["paid"], row["note"], row["state"]) for row in rows.to_pylist()]
    none = (None,) * 5
    assert found == [
        (1, "a", None, None, "OPEN"),
        (2, None, True, None, None),
        none,
        (3, None, None, "n", None),
        (4, "", None, None, "PAID"),
    ]


MARKS = """
syntax = "proto3";
message Event { int64 id = 1; oneof kind { Created created = 2; Deleted deleted = 3; } %s }
message Created { string by = 1; }
message Deleted { %s }
"""
EVENTS = MARKS % ("repeated Deleted many = 4; map<string, Deleted> named = 5;", "")
DELETED = pa.struct([("_more", pa.string())])


def test_a_message_without_fields_that_is_set_differs_from_null() -> None:
    opened = opened_input("Protobuf", schemas=InlineSchema(schema_of(EVENTS)))
    values = [
        written((0,), EVENTS, id=1, deleted={}, many=[{}, {}], named={"a": {}}),
        written((0,), EVENTS, id=2, created={"by": "b"}),
        written((0,), EVENTS, id=3),
    ]
    batch = batch_of_values(*values, *(3 * [b"\x1a\x00\x1a\x00"]), None)  # twice in one message: read alone
    rows, faults = opened.rows(batch)
    empty = {"_more": None}
    assert not faults
    assert rows.column("deleted").to_pylist() == [empty, None, None, *3 * [empty], None]
    assert rows.column("many").to_pylist() == [[empty, empty], *5 * [[]], None]
    assert rows.column("named").to_pylist() == [[("a", empty)], *5 * [[]], None]
    first = '{"id":1,"deleted":{},"many":[{},{}],"named":{"a":{}}}'
    assert [opened.json(batch)[0][0].as_py(), json_of(rows.to_struct_array())[0].as_py()] == [first, first]


def test_a_message_that_gets_fields_fits_columns_that_lack_it() -> None:
    later = MARKS % ("repeated Deleted many = 4; map<string, Deleted> named = 5;", "int64 at = 1;")
    known = pa.struct([("deleted", pa.struct([])), ("named", pa.map_(pa.string(), pa.struct([])))])
    opened = opened_input("Protobuf", known=known, schemas=Texts({1: EVENTS, 2: later}))
    values = [
        framed(1, ORDER, written((0,), EVENTS, deleted={})),
        framed(2, ORDER, written((0,), later, deleted={"at": 7}, named={"a": {}})),
    ]
    rows, faults = opened.rows(batch_of_values(*values))
    assert not faults
    assert rows.column("deleted").to_pylist() == [{"_more": None, "at": None}, {"_more": None, "at": 7}]
    assert rows.column("named").to_pylist() == [[], [("a", {"_more": None, "at": 0})]]


def test_objects_of_each_schema_have_their_records_without_fields() -> None:
    later = MARKS % ("", "int64 at = 1;")
    rolled = SchemaEvolution(on_change="Roll")
    opened = opened_input("Protobuf", schemas=Texts({1: MARKS % ("", ""), 2: later}), evolution=rolled)
    assert isinstance(opened, TypedInput)
    batch = batch_of_values(*(framed(number, ORDER, b"\x1a\x00") for number in (1, 2)))
    rows, _ = opened.rows(batch)
    own = [opened.columns_of(number) for number in opened.schema_numbers(batch).to_pylist()]
    found = [within(pa.struct(list(rows.schema)), kind).field("deleted").type for kind in own if kind is not None]
    assert found == [DELETED, pa.struct([("at", pa.int64())])]


def test_a_nested_message_is_found_by_its_indexes() -> None:
    rows, faults = opened().rows(batch_of_values(framed(1, LINE, written((0, 0), sku="s"))))
    assert (rows.to_pylist(), faults) == ([{"sku": "s"}], {})


def ref(name: str) -> bytes:
    return bytes([len(name) + 2, 0x0A, len(name)]) + name.encode()


@pytest.mark.parametrize("names", [("Payment", "Order"), ("Http", "Blob"), ("HTTP", "Bright"), ("LBlobs", "Hundred_")])
def test_a_message_that_apicurio_names_is_found_by_its_name(names: tuple[str, str]) -> None:
    """Names of even length may begin with bytes that are indexes as well."""
    text = SHOP.replace("message Payment", f"message {names[0]}").replace("message Order", f"message {names[1]}")
    reader = opened_input("Protobuf", schemas=Texts({1: text}))
    payloads = [written((1,), text, id=7), written((0,), text, id=8)]
    values = [framed(1, ref(name), payload) for name, payload in zip(names, payloads, strict=True)]
    rows, faults = reader.rows(batch_of_values(*values, framed(1, b"\x02\x02", payloads[0])))
    assert not faults
    assert [row["id"] for row in rows.to_pylist()] == [7, 8, 7]


@settings(deadline=None)
@given(st.binary(max_size=12) | st.text("BHt_", min_size=1, max_size=8).map(ref))
@example(b"\x80")
@example(b"\x02\x00\x00")
def test_whatever_a_header_has_behind_its_id_is_a_message_or_refused(message: bytes) -> None:
    with suppress(InvalidSchema):
        found = Protobuf().decoder_of(schema_of(SHOP), message)
        assert found.name.startswith("shop.")
        column = pa.array([message or ORDER], pa.binary())
        assert Protobuf().message_lengths(Records(column), np.zeros(1, np.int64)) == [len(message or ORDER)]


def test_a_name_in_a_header_counts_alone_and_is_cut_off_in_front() -> None:
    """Also names that could be indexes if they were in front. Another one of the same schema stands alone."""
    payment, ref = written((1,), id=7, paid=True), b"\x09\x0a\x07Payment"
    values = [payment, ref + payment, written((0,), id=8), b"", payment]
    names = [b"Payment", b"Payment", b"shop.Order", b"Payment", b"Http"]
    batch = batch_of_values(*values)
    for name, column in {"value_schema_id": [b"c" + (1).to_bytes(8, "big")] * 5, "value_message": names}.items():
        batch = batch.append_column(name, pa.array(column, pa.binary()))
    rows, faults = opened_input("Protobuf", schemas=Schemas(), registry="Apicurio").rows(batch)
    assert {row: fault.reason for row, fault in faults.items()} == {4: "InvalidSchema"}
    assert "without the message Http" in faults[4].message
    assert [row["id"] for row in rows.to_pylist()[:4]] == [7, 7, 8, 0]


zigzag = st.integers(0, 2**20).map(lambda n: n if n % 3 else n % 40)


@settings(deadline=None)
@given(st.lists(st.tuples(st.lists(zigzag, max_size=5), st.binary(max_size=3)), min_size=1, max_size=6))
def test_indexes_of_any_length_end_where_the_record_begins(drawn: list[tuple[list[int], bytes]]) -> None:
    frames = [b"".join(map(varint, [2 * len(path), *(2 * index for index in path)])) for path, _ in drawn]
    column = pa.array([frame + payload for frame, (_, payload) in zip(frames, drawn, strict=True)], pa.binary())
    records = Records(column)
    lengths = Protobuf().message_lengths(records, records.bounds[:-1]).tolist()
    assert lengths == [len(frame) for frame in frames]
    assert [message_path(frame) for frame in frames] == [tuple(path) or (0,) for path, _ in drawn]
    cut = Records(pa.array([frame[:-1] for frame in frames], pa.binary()))
    assert Protobuf().message_lengths(cut, cut.bounds[:-1]).tolist() == [-1] * len(frames)


def nested(levels: int) -> bytes:
    inner = nested(levels - 1) if levels else b""
    return b"\x12" + varint(len(inner)) + inner


LONG_INDEXES = b"\x78" + (b"\xff" * 9 + b"\x01") * 60
BAD = {
    "no frame": (b"{}", "NotWireFormat", "begins with the byte 0x7b"),
    "no indexes": (framed(1, b"", b""), "NotWireFormat", "value ends within the indexes of its message"),
    "cut indexes": (framed(1, b"\x04\x02", b""), "NotWireFormat", "value ends within the indexes of its message"),
    "negative index": (framed(1, b"\x02\x01", b""), "InvalidSchema", "without the message [-1]"),
    "long indexes": (framed(1, LONG_INDEXES, b""), "InvalidSchema", "without the message [-9223372036854775808, -92"),
    "far index": (framed(1, b"\x02\x12", b""), "InvalidSchema", "without the message [9]: it has 4 messages"),
    "id of 8 bytes": (framed(0, b"\x00\x00\x00\x07", b""), "UnknownSchemaId", "apicurio.registry.as-confluent=true"),
    "unknown id": (framed(99, ORDER, b""), "UnknownSchemaId", "schema id 99"),
    "no schema": (framed(4, ORDER, b""), "InvalidSchema", "schema id 4 is not a Protobuf schema: line 1: a name is"),
    "other kind": (framed(5, ORDER, b""), "WrongSchemaType", "which is AVRO and not PROTOBUF"),
    "cut": (order(id=7, name="abc")[:-1], "InvalidProtobuf", "value of schema id 1 ends within $.name: it was cut"),
    "text": (framed(1, ORDER, b"\x12\x01\xff"), "InvalidProtobuf", "has text at $.name that is not UTF-8"),
    "trailing": (order(id=7) + b"\x80", "InvalidProtobuf", "ends within $"),
    "tag": (order(id=7) + b"\x00", "InvalidProtobuf", "has the tag 0 within $"),
    "group": (order(id=7) + b"\x7b", "InvalidProtobuf", "ends within"),
    "deep": (framed(1, TREE, nested(120)), "InvalidProtobuf", "more than 100 messages within each other"),
    "time": (
        framed(1, PAYMENT, written((1,), at={"seconds": 253402300799})),
        "InvalidProtobuf",
        "has a time at $.at that no column holds: 253402300799 seconds",
    ),
    "nanos": (
        framed(1, PAYMENT, written((1,), at={"seconds": 1, "nanos": -1})),
        "InvalidProtobuf",
        "it has wrong nanoseconds",
    ),
}


@pytest.mark.parametrize(("bad", "reason", "message"), BAD.values(), ids=BAD)
def test_a_bad_record_says_why_and_leaves_its_neighbours_alone(bad: bytes, reason: str, message: str) -> None:
    values = [order(id=1), bad, order(id=2)]
    rows, faults = opened().rows(batch_of_values(*values))
    assert set(faults) == {1}
    assert faults[1].reason == reason
    assert message in faults[1].message
    assert [row["id"] for row in rows.to_pylist()][::2] == [1, 2]


def test_a_type_that_no_column_can_take_is_a_bad_record() -> None:
    faults = faults_of(order(id=1), framed(3, ORDER, written((0,), CHANGED, id="x")))
    assert set(faults) == {1}
    assert faults[1][0] == "SchemaIncompatible"


def test_a_message_inside_of_itself_is_json_where_it_comes_again() -> None:
    tree = {"leaf": 1, "inner": [{"leaf": 2, "inner": [{"leaf": 3}]}], "by_name": {"k": {}}}
    rows, _ = opened().rows(batch_of_values(framed(1, TREE, written((2,), **tree))))
    assert rows.to_pylist() == [
        {
            "leaf": 1,
            "inner": ['{"leaf":2,"inner":[{"leaf":3,"inner":[],"by_name":{}}],"by_name":{}}'],
            "by_name": [("k", '{"leaf":0,"inner":[],"by_name":{}}')],
        }
    ]


def test_json_values_are_text_and_any_keeps_its_bytes() -> None:
    made = message_class(schema_of(SHOP), (3,))()
    made.any_json.update({"a": [1, 2.5, None, True, "x"], "b": {}})  # type: ignore[attr-defined]
    made.any.Pack(made)  # type: ignore[attr-defined]
    made.big, made.raw = 2**64 - 1, b"\xff"  # type: ignore[attr-defined]
    rows, _ = opened().rows(batch_of_values(framed(1, EXTRAS, made.SerializeToString())))
    (row,) = rows.to_pylist()
    assert row["any_json"] in ('{"a":[1,2.5,null,true,"x"],"b":{}}', '{"b":{},"a":[1,2.5,null,true,"x"]}')
    assert row["any"]["type_url"] == "type.googleapis.com/shop.Extras"
    assert (row["big"], row["raw"]) == (Decimal(2**64 - 1), b"\xff")


def test_an_enum_number_without_a_name_is_its_own_text() -> None:
    rows, faults = opened().rows(batch_of_values(*(framed(1, ORDER, b"\x18" + varint(n)) for n in (0, 1, 9))))
    assert not faults
    assert [row["state"] for row in rows.to_pylist()] == ["OPEN", "PAID", "9"]


def test_fields_name_folders_and_keys_are_json() -> None:
    batch = batch_of_values(order(id=7, name="n", tree={"leaf": 3}), framed(1, PAYMENT, b""))
    found = opened("key").fields(batch, {("tree", "leaf"): True, ("name",): True}, unique_names=False)
    assert found["tree", "leaf"].rows().to_pylist() == ["3", None]
    assert found["name",].rows().to_pylist() == ["n", None]
    texts, _ = opened("key").plain(batch)
    assert texts.to_pylist()[1] == '{"id":0,"paid":false}'


def test_an_inline_schema_has_no_frame_and_means_its_first_message() -> None:
    opened_inline = opened_input("Protobuf", schemas=InlineSchema(schema_of(SHOP)))
    rows, faults = opened_inline.rows(batch_of_values(written((0,), id=5), b"\x08"))
    assert rows.column("id").to_pylist() == [5, None]
    assert "value of spec.source.value.schema ends within $.id" in faults[1].message


def test_one_bad_record_in_a_large_group_is_read_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = []
    read_row = proto_decoder.read_row
    monkeypatch.setattr(proto_decoder, "read_row", lambda *given: (alone.append(1), read_row(*given))[1])
    values = [order(id=n) for n in range(2_000)]
    values[700] = values[700][:-1]
    rows, faults = opened().rows(batch_of_values(*values))
    assert (set(faults), len(alone)) == ({700}, 1)
    assert rows.column("id").to_pylist()[701] == 701


def test_a_schema_is_read_once_for_all_of_its_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    linked = []
    monkeypatch.setattr(proto_decoder, "link", lambda schema: (linked.append(schema), link(schema))[1])
    schema = schema_of(SHOP + "// read once")
    found = [Protobuf().decoder_of(schema, path) for path in (ORDER, b"\x02\x00", PAYMENT, LINE, "Payment", b"")]
    assert len(linked) == 1
    assert [one.name for one in found] == [
        *("shop.Order", "shop.Order", "shop.Payment", "shop.Order.Line", "shop.Payment", "shop.Order")
    ]
    assert found[0] is found[1] is found[5]
