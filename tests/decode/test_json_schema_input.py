"""Keys and values of format JsonSchema in a batch: schemas by id, in order, and JSON as it was written."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from s3sink_job.decode.input_format import InputFormat
from s3sink_job.decode.settings import JsonSchemaOptions
from s3sink_job.decode.writer_schemas import InlineSchema, SchemaId, WriterSchema
from tests.decode.inputs import batch_of_values, opened_input
from tests.decode.json_schema_samples import writer_schema

ONE = {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date"}}}
TWO = {"type": "object", "properties": {"id": {"type": "number"}, "note": {}}, "additionalProperties": False}
SCHEMAS = {
    1: writer_schema(ONE),
    2: writer_schema({**ONE, "properties": {**ONE["properties"], "name": {"type": "string"}}}),
    3: writer_schema({"type": "object", "properties": {"id": {"type": "string"}}}),
    4: writer_schema({"type": "string"}),
    5: WriterSchema("AVRO", '"string"'),
    6: writer_schema({"$ref": "#/nowhere"}),
    7: writer_schema({"type": "object", "properties": {"id": {}}, "required": ["id"]}),
}


class Schemas:
    inline = None

    def find(self, schema: SchemaId) -> WriterSchema | None:
        return SCHEMAS.get(int(schema.value))


def opened(part: str = "value", **settings: Any) -> InputFormat:
    return opened_input("JsonSchema", part, schemas=Schemas(), **settings)


def wire(number: int, value: str) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + value.encode()


def test_records_of_two_schemas_keep_their_order() -> None:
    batch = batch_of_values(wire(1, '{"id":1}'), None, wire(2, '{"id":2,"name":"n"}'), wire(1, '{"id":3,"x":0}'))
    rows, faults = opened().rows(batch)

    assert not faults
    assert rows.schema.names == ["id", "at", "_more", "name"]
    assert [(row["id"], row["name"], row["_more"]) for row in rows.to_pylist()] == [
        (1, None, None),
        (None, None, None),
        (2, "n", None),
        (3, None, '{"x":0}'),
    ]


def test_each_kind_of_bad_record_is_named_and_alone() -> None:
    bad = [
        b"{}",
        wire(9, "{}"),
        wire(5, "{}"),
        wire(6, "{}"),
        wire(3, '{"id":"x"}'),
        wire(1, "{"),
        wire(1, '{"id":"x"}'),
    ]
    rows, faults = opened().rows(batch_of_values(wire(1, '{"id":1}'), *bad, wire(1, '{"id":2}')))

    assert [row["id"] for row in rows.to_pylist()] == [1, *[None] * 7, 2]
    assert [faults[row].reason for row in sorted(faults)] == [
        "NotWireFormat",
        "UnknownSchemaId",
        "WrongSchemaType",
        "InvalidSchema",
        "SchemaIncompatible",
        "NotJson",
        "SchemaMismatch",
    ]
    assert faults[7].message == (
        "value of schema id 1 does not fit its own schema: $.id is a string, and should be integer"
    )
    assert faults[6].message.startswith("value of schema id 1 is not JSON: ")


def test_lines_have_the_json_as_it_was_written() -> None:
    written = '{"id": 1.0,\n "at": "2026-01-31", "z": 1.50}'
    found, faults = opened().json(batch_of_values(wire(1, written), None, wire(1, '{"id":""}')))

    assert found.to_pylist()[:2] == [written.replace("\n", " "), None]
    assert list(faults) == [2]


def test_keys_are_text() -> None:
    keys = opened("key")
    found, faults = keys.plain(batch_of_values(wire(4, '"k"'), wire(1, '{"id": 1}'), None, wire(4, "1")))

    assert found.to_pylist()[:3] == ["k", '{"id": 1}', None]
    assert list(faults) == [3]


def test_folders_are_found_in_columns_in_text_and_in_more() -> None:
    batch = batch_of_values(wire(7, '{"id":{"a":"x"},"b":2}'), wire(7, '{"id":"q"}'), wire(7, '{"id":true}'))
    for decode_first in (False, True):
        value = opened()
        if decode_first:
            value.rows(batch)
        found = value.fields(batch, {("id", "a"): True, ("b",): True, ("id",): True}, unique_names=decode_first)
        assert found[("id", "a")].rows().to_pylist() == ["x", None, None]
        assert found[("b",)].rows().to_pylist() == ["2", None, None]
        assert found[("id",)].rows().to_pylist()[1:] == ["q", "true"]
        assert found[("id",)].faults[0].reason == "NotAScalar"


def test_an_inline_schema_reads_records_without_an_id() -> None:
    value = opened_input("JsonSchema", schemas=InlineSchema(writer_schema(TWO)))
    rows, faults = value.rows(batch_of_values(b'{"id":1,"note":[1.50]}', b'{"id":2,"x":1}'))

    assert rows.to_pylist()[0] == {"id": 1.0, "note": "[1.50]"}
    assert "$ has the field 'x'" in faults[1].message


def test_validation_is_a_choice() -> None:
    batch = batch_of_values(wire(7, "{}"))
    assert not opened().rows(batch)[1]
    (fault,) = opened(options=JsonSchemaOptions(validate=True)).rows(batch)[1].values()
    assert fault.message == (
        'value of schema id 7 is not valid by its own schema: $: "id" is a required property (rule required)'
    )


def test_a_schema_that_changes_a_type_does_not_change_columns() -> None:
    value = opened(known=pa.struct([("id", pa.int64())]))
    rows, faults = value.rows(batch_of_values(wire(3, json.dumps({"id": "x"}))))
    assert rows.schema.names == ["id"]
    assert faults[0].reason == "SchemaIncompatible"
