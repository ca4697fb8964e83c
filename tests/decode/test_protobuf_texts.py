"""Any .proto text is read as a schema or refused with a reason: no other error ends the Spark job."""

from __future__ import annotations

import base64
import re
import time
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from s3sink_job.decode.proto_decoder import decoder_of
from s3sink_job.decode.proto_files import link
from s3sink_job.decode.writer_schemas import InvalidSchema, Reference, WriterSchema
from tests.decode.proto_samples import decoder, schema_of
from tests.decode.test_protobuf_decoder import cut_or_changed
from tests.decode.test_protobuf_schemas import EDITION, PROTO2, PROTO3

PIECES = sorted({piece for text in (PROTO2, PROTO3, EDITION) for piece in re.findall(r"\w+|\S", text)})
OPTIONS = [
    "packed",
    "map_entry",
    "allow_alias",
    "message_set_wire_format",
    "features",
    "(features)",
    "(packed)",
    "ctype",
]
VALUES = ["true", "1", "-inf", '"\\ud800"', "{ }", "{ field_presence: IMPLICIT }", "{ [pb.cpp] { } }", "[ 1 ]"]
option = st.tuples(st.sampled_from(OPTIONS), st.sampled_from(VALUES)).map(" = ".join)
IMPORTS = ['import "a.proto";', 'import "google/protobuf/struct.proto";']
STRINGS = ['import "\\ud800";', *IMPORTS, 'json_name = "\\000"', "option x = '\ud800';"]
of_any_characters = st.text(st.characters(exclude_categories=()), max_size=3)
word = st.sampled_from(PIECES) | st.sampled_from(STRINGS) | option | option.map("option {};".format) | of_any_characters
of_words = st.lists(word, max_size=12).map(" ".join)
AROUND = [
    "{}",
    "message M {{ {} }}",
    "enum E {{ {} }}",
    "message M {{ int32 a = 1 [{}]; }}",
    "extend {}",
    'import "{}";',
]


@st.composite
def changed(draw: st.DrawFn) -> str:
    """A text that compiles, with other words somewhere."""
    text = draw(st.sampled_from([PROTO2, PROTO3, EDITION]))
    places = [found.start() for found in re.finditer(r"\s", text)]
    begin = draw(st.sampled_from(places))
    return text[:begin] + " " + draw(of_words) + text[draw(st.sampled_from([at for at in places if at >= begin])) :]


DESCRIPTORS = [link(schema_of(text)).serialized_pb for text in (PROTO2, PROTO3, EDITION)]
descriptor = st.sampled_from(DESCRIPTORS).flatmap(cut_or_changed).map(lambda raw: base64.b64encode(raw).decode())
any_text = st.builds(str.format, st.sampled_from(AROUND), of_words) | changed() | descriptor


NOT_UTF8 = base64.b64encode(DESCRIPTORS[1].replace(b"google/protobuf/wrappers", b"\x80" * 24)).decode()


@settings(max_examples=300, deadline=None)
@given(any_text, any_text, of_any_characters)
@example(NOT_UTF8, "", "")
def test_any_text_is_read_or_refused(text: str, imported: str, name: str) -> None:
    references = (Reference("a.proto", imported), Reference(name, imported))
    with suppress(InvalidSchema):
        found = decoder_of(WriterSchema("PROTOBUF", text, references), (0,))
        found.decode(pa.array([b"", b"\x08\x01", b"{}"], pa.binary()))


BAD = {
    "message M {": "not a Protobuf schema: line 1: a name is expected, and not the end of the text",
    "message M { option a = ": "line 1: the text ends too early",
    "\n\nmessage M { optional int32 a = 1 }\n": "line 3: ';' is expected, and not '}'",
    "message M { optional Missing a = 1; }": "Missing",
    "message M { optional int32 a = 1; optional int32 b = 1; }": "1",
    "message M { optional int32 a = 0; }": "field a has the number 0",
    "message M { optional int32 a = 536870912; }": "field a has the number 536870912",
    "message M { optional int32 a = 1.5; }": "a whole number is expected, and not '1.5'",
    "enum E { A = 99999999999; }": "enum value A has the number 99999999999",
    'syntax = "proto9"; message M {}': "the syntax 'proto9' is neither proto2 nor proto3",
    'edition = "2099"; message M {}': "EDITION_2099 is not known to this release",
    'import "gone.proto"; message M {}': "imports 'gone.proto', which is not among its references",
    'import "google/protobuf/gone.proto"; message M {}': "imports 'google/protobuf/gone.proto'",
    'import "schema.proto"; message M {}': "imports 'schema.proto', which is not among its references",
    "message M {} message M {}": "M",
    "enum E { A = 0; }": "a Protobuf schema without the message [0]: it has 0 messages",
    "": "a Protobuf schema without the message [0]: it has 0 messages",
    "{}": "line 1: '{' is not expected",
    '{"type": "record"}': "line 1: '{' is not expected",
    "message M { ` }": "line 1: '`' is not expected",
    "message M { " * 40 + "}" * 40: "more than 30 messages within each other",
    "AAAA": "neither a .proto text nor a descriptor",
    "extend M ]": "a bracket is expected, and not ']'",
    'import "\\ud800"; message M {}': "imports '\ufffd', which is not among its references",
    "option features.field_presence = NEVER;": "features that this release does not know",
}


@pytest.mark.parametrize(("text", "message"), BAD.items(), ids=range(len(BAD)))
def test_a_text_that_does_not_compile_says_why(text: str, message: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        decoder(schema_of(text))
    assert message in str(refused.value)


BAD_REFERENCES = {
    "\nmessage N { optional int32 }": "not a Protobuf schema: line 2 of a/n.proto: a name is expected, and not '}'",
    "message N { optional Gone g = 1; }": "Gone",
    'import "gone.proto";': "not a Protobuf schema: a/n.proto imports 'gone.proto', which is not among its references",
    'import "a/n.proto";': "a/n.proto imports itself",
    "AAAA": "a/n.proto is neither a .proto text nor a descriptor",
}


@pytest.mark.parametrize(("text", "message"), BAD_REFERENCES.items(), ids=range(len(BAD_REFERENCES)))
def test_a_reference_that_does_not_compile_is_named(text: str, message: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        decoder(schema_of('import "a/n.proto"; message M {}', **{"a/n.proto": text}))
    assert message in str(refused.value)
    assert "a/n.proto" in str(refused.value)


def test_a_schema_of_two_megabytes_is_read_in_seconds() -> None:
    fields = "".join(f"  optional string field_number_{n} = {n + 1}; // comment\n" for n in range(20))
    text = 'syntax = "proto3";\n' + "".join(f"message M{n} {{\n{fields}}}\n" for n in range(2000))
    assert len(text) > 2_000_000
    began = time.process_time()
    assert len(decoder(schema_of(text), (1999,)).type) == 20
    assert time.process_time() - began < 20


def test_a_schema_whose_columns_would_not_end_is_refused() -> None:
    """Each message holds the next one ten times."""
    text = "".join(
        f"message M{n} {{ {' '.join(f'optional M{n + 1} f{m} = {m};' for m in range(1, 11))} }}\n" for n in range(20)
    )
    with pytest.raises(InvalidSchema, match="more than 100000 fields"):
        decoder(schema_of(f"{text} message M20 {{}}"))


@pytest.mark.parametrize("path", [(1,), (0, 0), (-1,), "Other"])
def test_a_message_that_is_not_there_is_named(path: tuple[int, ...] | str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        decoder(schema_of("message M {}"), path)
    assert "without the message" in str(refused.value)
