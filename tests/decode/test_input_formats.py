"""Input formats: a module and a line in the registry for each, and all offer the same functions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from s3sink_api.formats import INPUT_FORMATS
from s3sink_job.columns.known_columns import KnownColumns
from s3sink_job.decode.decoder import Decoder
from s3sink_job.decode.input_format import InputFormat
from s3sink_job.decode.input_formats import INPUTS
from s3sink_job.decode.settings import Decoding
from s3sink_job.decode.writer_schemas import InlineSchema, WriterSchema
from tests.decode.batches import batch_of
from tests.decode.inputs import batch_of_values, opened_input

VALUES = {
    "Json": ([b'{"a":1}', None, b" 2\n"], ['{"a":1}', None, " 2 "], ['{"a":1}', None, " 2 "]),
    "String": ([b"x", None, b"\xc3\xa4"], ["x", None, "ä"], ['"x"', None, '"ä"']),
    "Bytes": ([b"x", None, b"\xff"], [b"x", None, b"\xff"], ['"eA=="', None, '"/w=="']),
    "ConnectJson": (
        [b'{"schema":{"type":"string"},"payload":"x"}', None, b'{"schema":{"type":"int32"},"payload":2}'],
        ['"x"', None, "2"],
        ['"x"', None, "2"],
    ),
    "Avro": ([b"\x02\x02x", None, b"\x00"], ["x", None, None], ['"x"', None, None]),
    "Protobuf": ([b"\x0a\x01x", None, b""], ['{"s":"x"}', None, '{"s":""}'], ['{"s":"x"}', None, '{"s":""}']),
    "JsonSchema": ([b'"x"', None, b"null"], ["x", None, "null"], ['"x"', None, "null"]),
}


INLINE = {
    "Avro": InlineSchema(WriterSchema("AVRO", '["null", "string"]')),
    "Protobuf": InlineSchema(WriterSchema("PROTOBUF", 'syntax = "proto3"; message M { string s = 1; }')),
    "JsonSchema": InlineSchema(WriterSchema("JSON", '{"type": ["string", "null"]}')),
}


def opened(name: str, part: str = "value") -> InputFormat:
    return opened_input(name, part, schemas=INLINE.get(name))


def test_every_input_format_that_is_built_is_in_the_registry() -> None:
    assert set(INPUTS) == set(INPUT_FORMATS)


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_format_has_fields_where_the_contract_says_so(name: str) -> None:
    found = opened(name)

    assert found.has_fields == INPUT_FORMATS[name].fields  # type: ignore[index]
    assert (found.schema is not None) == found.has_fields


@pytest.mark.parametrize("name", INPUTS)
def test_values_are_given_as_one_column_and_as_json(name: str) -> None:
    raw, plain, as_json = VALUES[name]
    found, batch = opened(name), batch_of_values(*raw)

    assert (found.plain(batch)[0].to_pylist(), found.plain(batch)[1]) == (plain, {})
    assert (found.json(batch)[0].to_pylist(), found.json(batch)[1]) == (as_json, {})


@pytest.mark.parametrize(("name", "folder"), [("Json", "7"), ("String", "7"), ("Bytes", "Nw==")])
def test_the_whole_value_is_the_field_with_the_empty_path(name: str, folder: str) -> None:
    found = opened(name, "key").fields(batch_of_values(b"7", None), {(): True}, unique_names=False)

    assert found[()].rows().to_pylist() == [folder, None]
    assert found[()].faults == {}


@pytest.mark.parametrize("name", ["String", "Bytes"])
def test_a_field_of_a_format_without_fields_is_a_fault(name: str) -> None:
    found = opened(name, "key").fields(batch_of_values(b"7"), {("a",): True}, unique_names=False)

    assert found["a",].faults[0].reason == "NoFields"
    with pytest.raises(TypeError, match=name):
        opened(name, "key").rows(batch_of_values(b"7"))


def test_key_and_value_are_decoded_each_by_its_own_format() -> None:
    decoded = Decoder(Decoding(key="Bytes", value="Json")).decode(batch_of(b'{"a":1}', b"{"))

    assert decoded.plain("key").to_pylist() == [b"k", b"k"]
    assert not decoded.bad
    assert decoded.rows().to_pylist()[0] == {"a": 1}
    assert set(decoded.bad.messages) == {1}


def test_a_known_schema_and_the_one_that_is_learned_are_types() -> None:
    known = KnownColumns(pa.struct([("a", pa.int64())]))
    decoder = Decoder(Decoding("String", "Json"), known)

    decoder.decode(batch_of(b'{"b":"x"}')).rows()

    assert decoder.value.schema == KnownColumns(pa.struct([("a", pa.int64()), ("b", pa.string())]))
