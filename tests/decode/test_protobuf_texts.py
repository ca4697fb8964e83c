"""Any .proto text is read as a schema or refused with a reason: no other error ends the Spark job."""

from __future__ import annotations

import base64
import re
from contextlib import suppress

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from s3sink_job.decode.proto_decoder import decoder_of
from s3sink_job.decode.proto_files import link
from s3sink_job.decode.writer_schemas import InvalidSchema, Reference, WriterSchema
from tests.decode.proto_samples import schema_of
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
