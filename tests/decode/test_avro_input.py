"""Avro keys and values of a batch: schemas by id, put together in order, and bad records that stand alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from s3sink_job.base.errors import TransientError
from s3sink_job.decode.input_format import InputFormat
from s3sink_job.decode.writer_schemas import InlineSchema, SchemaId, WriterSchema
from tests.decode.avro_samples import writer_schema, written
from tests.decode.inputs import batch_of_values, columns_of, opened_input


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "fields": [{"name": n, "type": t} for n, t in fields.items()]}


@dataclass
class Schemas:
    """A lookup by id, which counts."""

    by_number: Mapping[int, WriterSchema]
    inline: WriterSchema | None = None
    asked: list[int] = field(default_factory=list)

    def find(self, schema: SchemaId) -> WriterSchema | None:
        self.asked.append(int(schema.value))
        return self.by_number.get(int(schema.value))


ONE = record(id="long", name="string")
TWO = record(
    id="long", name=["null", "string"], amount={"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
)
SCHEMAS = {
    1: writer_schema(ONE),
    2: writer_schema(TWO),
    3: writer_schema(record(id="string")),
    4: WriterSchema("JSON", "{}"),
}
SCHEMAS |= {
    5: WriterSchema("AVRO", '{"type": "record"}'),
    6: writer_schema("string"),
    7: writer_schema(record(id="int")),
}


def wire(number: int, schema: Any, value: Any) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + written(schema, value)[0]


def opened(part: str = "value", known: pa.StructType | None = None) -> InputFormat:
    return opened_input("Avro", part, known=known, schemas=Schemas(SCHEMAS))


A = wire(1, ONE, {"id": 1, "name": "a"})
B = wire(2, TWO, {"id": 2, "name": None, "amount": b"\x7b"})


def test_records_of_two_schemas_keep_their_order() -> None:
    rows, faults = opened().rows(batch_of_values(A, B, A, None, B))
    assert not faults
    assert [row["id"] for row in rows.to_pylist()] == [1, 2, 1, None, 2]
    assert [str(row["amount"]) for row in rows.to_pylist()] == ["None", "1.23", "None", "None", "1.23"]
    assert rows.schema.names == ["id", "name", "amount"]


def test_a_batch_asks_for_each_schema_once() -> None:
    schemas = Schemas(SCHEMAS)
    opened_input("Avro", schemas=schemas).rows(batch_of_values(A, B, A, B))
    assert schemas.asked == [1, 2]


def test_columns_that_are_known_stay_though_no_record_has_them() -> None:
    known = pa.struct([("old", pa.date32()), ("id", pa.int64())])
    rows, faults = opened(known=known).rows(batch_of_values(A))
    assert not faults
    assert rows.to_pylist() == [{"old": None, "id": 1, "name": "a"}]


def test_a_narrower_number_is_cast_to_the_known_column() -> None:
    value = opened(known=pa.struct([("id", pa.int64())]))
    rows, faults = value.rows(batch_of_values(wire(7, record(id="int"), {"id": 5})))
    assert not faults
    assert rows.schema.field("id").type == pa.int64()
    assert columns_of(value) == pa.struct([("id", pa.int64())])


def test_a_change_that_no_column_can_hold_is_a_bad_record_and_changes_nothing() -> None:
    value = opened()
    rows, faults = value.rows(batch_of_values(A, wire(3, record(id="string"), {"id": "x"}), A))
    assert set(faults) == {1}
    assert faults[1].reason == "SchemaIncompatible"
    assert "value of schema id 3 does not fit the known columns" in faults[1].message
    assert "'id'" in faults[1].message
    assert [row["id"] for row in rows.to_pylist()] == [1, None, 1]
    assert columns_of(value) == pa.struct([("id", pa.int64()), ("name", pa.string())])


@pytest.mark.parametrize(
    ("raw", "reason", "why"),
    [
        (b'{"a":1}', "NotWireFormat", "value begins with the byte 0x7b, and not with 0 and the id of a schema"),
        (b"\x00\x00", "NotWireFormat", "value has only 2 bytes"),
        (b"", "NotWireFormat", "value has only 0 bytes"),
        (
            b"\x00\x00\x00\x00\x63",
            "UnknownSchemaId",
            "value has the schema id 99, which the schema registry does not have",
        ),
        (b"\x00\x00\x00\x00\x04{}", "WrongSchemaType", "schema id 4, which is JSON and not AVRO"),
        (b"\x00\x00\x00\x00\x05x", "InvalidSchema", "value: schema id 5 is not an Avro schema"),
        (A[:-1], "InvalidAvro", "value of schema id 1 ends within $.name"),
        (A + b"x", "InvalidAvro", "value of schema id 1 has 1 bytes behind its last field"),
    ],
)
def test_a_bad_record_is_named_with_its_cause_and_spares_the_others(raw: bytes, reason: str, why: str) -> None:
    rows, faults = opened().rows(batch_of_values(A, raw, B))
    assert set(faults) == {1}
    assert faults[1].reason == reason
    assert why in faults[1].message
    assert [row["id"] for row in rows.to_pylist()] == [1, None, 2]
    texts, again = opened().json(batch_of_values(A, raw, B))
    assert again == faults
    assert texts.is_valid().to_pylist() == [True, False, True]


def test_a_registry_that_does_not_answer_is_no_bad_record() -> None:
    class Down:
        inline = None

        def find(self, schema: SchemaId) -> WriterSchema | None:
            raise TransientError("the registry does not answer")

    with pytest.raises(TransientError):
        opened_input("Avro", schemas=Down()).rows(batch_of_values(A))


def test_ten_thousand_schema_ids_are_read_batch_by_batch() -> None:
    schemas = Schemas({n: writer_schema(record(**{f"f{n}": "int"})) for n in range(10_000)})
    value = opened_input("Avro", schemas=schemas)
    for start in range(0, 10_000, 2_500):
        raw = [wire(n, record(**{f"f{n}": "int"}), {f"f{n}": n}) for n in range(start, start + 2_500, 250)]
        rows, faults = value.rows(batch_of_values(*raw))
        assert not faults
        assert rows.num_rows == 10
    assert len(rows.schema) == 40


def test_schemas_that_share_no_field_cannot_add_columns_without_end() -> None:
    schemas = {n: writer_schema(record(**{f"f{n}": "int"})) for n in range(1_100)}
    value = opened_input("Avro", schemas=Schemas(schemas))
    rows, faults = value.rows(batch_of_values(*(wire(n, record(**{f"f{n}": "int"}), {f"f{n}": n}) for n in schemas)))
    assert len(rows.schema) == 1_000
    assert set(faults) == set(range(1_000, 1_100))
    assert {fault.reason for fault in faults.values()} == {"TooManyColumns"}


def test_whole_numbers_and_fractions_share_a_column_only_if_it_holds_both_exactly() -> None:
    schemas = {n: writer_schema(record(f=kind)) for n, kind in enumerate(("long", "double", "int", "float"))}
    raw = [wire(n, record(f=kind), {"f": 1}) for n, kind in enumerate(("long", "double", "int", "float"))]
    exact = opened_input("Avro", schemas=Schemas(schemas))
    rows, faults = exact.rows(batch_of_values(*raw[1:]))
    assert not faults
    assert rows.schema.field("f").type == pa.float64()
    _, faults = opened_input("Avro", schemas=Schemas(schemas)).rows(batch_of_values(raw[0], raw[1]))
    assert {row: fault.reason for row, fault in faults.items()} == {1: "SchemaIncompatible"}


def test_a_schema_without_a_good_record_does_not_decide_on_columns() -> None:
    value = opened()
    garbage = b"\x00" + (3).to_bytes(4, "big") + b"\xff\xff"
    _, faults = value.rows(batch_of_values(garbage))
    assert set(faults) == {0}
    assert columns_of(value) == pa.struct([])
    rows, faults = value.rows(batch_of_values(garbage, A))
    assert set(faults) == {0}
    assert rows.to_pylist()[1] == {"id": 1, "name": "a"}


def test_json_and_plain_text_of_records() -> None:
    texts, faults = opened().json(batch_of_values(A, B, None))
    assert not faults
    found = [None if text is None else json.loads(text) for text in texts.to_pylist()]
    assert found == [{"id": 1, "name": "a"}, {"id": 2, "amount": "1.23"}, None]
    assert opened().plain(batch_of_values(A))[0].to_pylist() == ['{"id":1,"name":"a"}']


def test_a_key_that_is_plain_text_is_that_text() -> None:
    key = wire(6, "string", 'a "b"')
    assert opened("key").plain(batch_of_values(key))[0].to_pylist() == ['a "b"']
    assert opened("key").json(batch_of_values(key))[0].to_pylist() == ['"a \\"b\\""']
    assert opened("key").rows(batch_of_values(key))[0].to_pylist() == [{"value": 'a "b"'}]


def test_an_inline_schema_reads_records_without_an_id() -> None:
    value = opened_input("Avro", schemas=InlineSchema(writer_schema(ONE)))
    rows, faults = value.rows(batch_of_values(A[5:], A[5:7], None))
    assert rows.to_pylist() == [{"id": 1, "name": "a"}, *[{"id": None, "name": None}] * 2]
    assert faults[1].message.startswith("value of spec.source.value.schema ends within $.name")


def test_folders_are_named_by_fields_of_records_and_by_entries_of_maps() -> None:
    day = {"type": "int", "logicalType": "date"}
    schema = record(
        day=["null", day], tags={"type": "map", "values": "string"}, inner=record(x="boolean") | {"name": "I"}
    )
    value = opened_input("Avro", schemas=InlineSchema(writer_schema(schema)))
    raw = written(
        schema,
        {"day": 1, "tags": {"env": "dev"}, "inner": {"x": True}},
        {"day": None, "tags": {}, "inner": {"x": False}},
    )
    paths = {("day",): True, ("tags", "env"): True, ("inner", "x"): True, ("nobody",): True, ("inner",): True}
    found = value.fields(batch_of_values(*raw), paths, unique_names=False)
    assert found["day",].rows().to_pylist() == ["1970-01-02", None]
    assert found["tags", "env"].rows().to_pylist() == ["dev", None]
    assert found["inner", "x"].rows().to_pylist() == ["true", "false"]
    assert found["nobody",].rows().to_pylist() == [None, None]
    assert found["inner",].faults[0].message == "value field inner is non-primitive: a record cannot name a folder"


def test_an_empty_batch_has_the_known_columns() -> None:
    rows, faults = opened(known=pa.struct([("id", pa.int64())])).rows(batch_of_values())
    assert not faults
    assert rows.schema.names == ["id"]
    assert rows.num_rows == 0


def test_records_without_fields_are_rows() -> None:
    value = opened_input("Avro", schemas=InlineSchema(writer_schema(record())))
    rows, faults = value.rows(batch_of_values(b"", b""))
    assert not faults
    assert rows.num_rows == 2
