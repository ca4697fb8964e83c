"""Protobuf schemas: our reader of .proto texts finds what protoc finds, and says what is wrong with a text."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import Any

import google
import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_tools import protoc

from s3sink_job.decode.proto_files import ROOT, link, message_at
from s3sink_job.decode.writer_schemas import InvalidSchema, Reference, WriterSchema
from tests.decode.proto_samples import decoder, schema_of

PROTO2 = r"""
// A comment; with "signs" { in it.
/* And one over
   lines */
package shop . inner;
option java_package = "com.shop";
option (custom).name = { a: "}" b < c: 1 > };
import public "google/protobuf/timestamp.proto";
import "google/protobuf/descriptor.proto";
extend google.protobuf.FieldOptions { optional string note = 50000; }
enum Kind {
  option allow_alias = true;
  ZERO = 0; ONE = 1 [deprecated = true]; ALSO_ONE = 1; LOW = -0x10; reserved 5 to 9;
}
message Order {
  reserved 100 to 199, 300; reserved "gone", 'lost';
  extensions 1000 to max [verification = UNVERIFIED];
  required int32 id = 1 [(note) = "a" "b", default = -07];
  optional group Line = 2 { optional string sku = 1; message Deep { optional Kind kind = 1; } optional Deep deep = 2; }
  repeated sint64 packed_ones = 3 [packed = true, deprecated=false];
  repeated sint64 loose_ones = 4;
  optional .google.protobuf.Timestamp at = 5;
  map<string, Line.Deep> deep_by_name = 6;
  oneof choice {
    option (custom) = true;
    string text = 7; bytes data = 8 [ctype = CORD]; group Part = 9 { optional bool b = 1; }
  }
  optional Kind kind = 10 [default = ONE];
  optional float message = 11 [default = -inf];
  optional string optional = 12; optional int32 group = 13; repeated double reserved = 14; optional Inner oneof = 15;
  message Inner {
    optional Order back = 1; enum Kind { OTHER = 0; } optional Kind kind = 2;
    extend Order { optional int32 more = 1001; }
  }
  ;
}
service Orders { rpc Get (Order) returns (stream Order) { option (x) = "{"; } }
"""
PROTO3 = """
syntax = 'proto3';
package a.b;
import "google/protobuf/wrappers.proto";
message M {
  optional int32 maybe = 1; int32 plain = 2; repeated int32 many = 3; repeated int32 loose = 4 [packed = false];
  oneof one { string s = 5; M self = 6; }
  optional string second = 7;
  map<fixed64, google.protobuf.BytesValue> some_map_of_x = 8;
  b.N n = 9; .a.b.N other = 10;
  E e = 11;
}
message N {}
enum E { A = 0; }
"""
EDITION = """
edition = "2023";
package e;
option features = { field_presence: IMPLICIT repeated_field_encoding: EXPANDED };
message M {
  int32 implicit = 1;
  int32 explicit = 2 [features.field_presence = EXPLICIT];
  repeated int32 loose = 3;
  repeated int32 packed = 4 [features.repeated_field_encoding = PACKED];
  N delimited = 5 [features.message_encoding = DELIMITED];
  E e = 6 [features.field_presence = EXPLICIT];
}
message N { string s = 1; }
enum E { option features.enum_type = CLOSED; ONE = 1; }
"""
COMMON = sorted(
    path
    for folder in google.__path__
    for path in Path(folder).rglob("*.proto")
    if "protobuf" not in path.parts and path.is_file()
)


def by_protoc(folder: Path, text: str) -> FileDescriptor:
    (folder / "schema.proto").write_text(text)
    roots = {str(Path(found).parent) for found in google.__path__} | {str(Path(protoc.__file__).parent / "_proto")}
    out = folder / "out"
    arguments = [f"-I{root}" for root in [str(folder), *sorted(roots)]]
    assert protoc.main(["", *arguments, f"--descriptor_set_out={out}", "--include_imports", ROOT]) == 0
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(out.read_bytes()).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool.FindFileByName(ROOT)


def summary(file: FileDescriptor) -> dict[str, Any]:
    found = {message.full_name: of_message(message) for message in file.message_types_by_name.values()}
    found |= {enum.full_name: of_enum(enum) for enum in file.enum_types_by_name.values()}
    return {"package": file.package, "order": list(file.message_types_by_name), **found}


def of_message(message: Descriptor) -> dict[str, Any]:
    return {
        "fields": [of_field(field) for field in message.fields],
        "nested": {inner.name: of_message(inner) for inner in message.nested_types},
        "enums": {enum.name: of_enum(enum) for enum in message.enum_types},
        "entry": message.GetOptions().map_entry,
    }


def of_field(field: FieldDescriptor) -> tuple[Any, ...]:
    kind = field.message_type or field.enum_type
    oneof = field.containing_oneof
    name = kind.full_name if kind is not None else ""
    of = (field.is_repeated, field.is_packed, field.has_presence, field.is_required, oneof and oneof.name)
    return (field.name, field.number, field.type, name, *of)


def of_enum(enum: EnumDescriptor) -> list[tuple[str, int]]:
    return [(value.name, value.number) for value in enum.values]


WITHOUT_CUSTOM = (
    PROTO2.replace('option (custom).name = { a: "}" b < c: 1 > };', "")
    .replace("option (custom) = true;", "")
    .replace('{ option (x) = "{"; }', "{}")
)


@pytest.mark.parametrize("text", [WITHOUT_CUSTOM, PROTO3, EDITION], ids=["proto2", "proto3", "edition"])
def test_a_text_is_read_as_protoc_reads_it(tmp_path: Path, text: str) -> None:
    assert summary(link(schema_of(text))) == summary(by_protoc(tmp_path, text))


def test_options_of_any_form_are_passed_over() -> None:
    assert summary(link(schema_of(PROTO2))) == summary(link(schema_of(WITHOUT_CUSTOM)))


OPTIONS = [
    "option allow_alias = true; optional int32 a = 1;",
    "option packed = true; optional int32 a = 1;",
    "option (map_entry) = true; optional int32 a = 1;",
    "optional int32 a = 1 [allow_alias = true];",
    "optional int32 a = 1 [(map_entry) = true, (features) = { x: 1 }];",
    "optional int32 a = 1 [features.(pb.cpp).string_type = VIEW];",
    "option features.(pb.cpp) = {string_type: VIEW}; optional int32 a = 1;",
]


@pytest.mark.parametrize("body", OPTIONS)
def test_options_that_are_not_googles_own_for_this_place_change_nothing(body: str) -> None:
    text = f"option (allow_alias) = true; option (features).x = 1; message M {{ {body} }}"
    assert summary(link(schema_of(text))) == summary(link(schema_of("message M { optional int32 a = 1; }")))


def test_googles_own_files_are_read_as_protoc_reads_them(tmp_path: Path) -> None:
    assert len(COMMON) > 30
    for path in COMMON[::3]:
        text = path.read_text()
        assert summary(link(schema_of(text))) == summary(by_protoc(tmp_path, text)), path


def test_messages_are_found_by_the_places_that_the_text_gives_them() -> None:
    text = """
        syntax = "proto3"; package p;
        message A { map<string, int32> m = 1; message B { } message C { message D { } } }
        message E { }
    """
    file = link(schema_of(text))
    paths = {(0,): "A", (0, 0): "A.B", (0, 1): "A.C", (0, 1, 0): "A.C.D", (1,): "E", "E": "E", "p.A.C": "A.C"}
    assert {path: message_at(file, path).full_name for path in paths} == {p: f"p.{name}" for p, name in paths.items()}


def test_a_map_entry_that_the_text_declares_counts_as_a_message() -> None:
    """Confluent's registry writes a descriptor that was registered in this form."""
    text = """
        syntax = "proto3";
        message A {
          repeated MEntry m = 1;
          message MEntry { option map_entry = true; string key = 1; int32 value = 2; }
          message B { int32 b = 1; }
        }
    """
    schema = schema_of(text)
    assert str(decoder(schema).type) == "struct<m: map<string, int32>>"
    assert decoder(schema, (0, 1)).name == "A.B"


def test_a_descriptor_in_base64_is_a_schema_too() -> None:
    file = FileDescriptorProto()
    link(schema_of(PROTO3)).CopyToProto(file)
    text = base64.b64encode(file.SerializeToString()).decode()
    assert summary(link(schema_of(text))) == summary(link(schema_of(PROTO3)))


def test_imports_are_references_or_built_in() -> None:
    text = """
        syntax = "proto3";
        import "shop/customer.proto"; import "google/type/date.proto"; import "confluent/meta.proto";
        import "confluent/type/decimal.proto"; import "confluent/types/decimal.proto";
        message M {
          shop.Customer by = 1; google.type.Date on = 2; confluent.type.Decimal price = 3; shop.Address to = 4;
        }
    """
    customer = 'package shop; import public "shop/address.proto"; message Customer { optional Address home = 1; }'
    references = {
        "shop/address.proto": "package shop; message Address { optional string city = 1; }",
        "shop/customer.proto": customer,
    }
    schema = WriterSchema("PROTOBUF", text, tuple(Reference(*one) for one in references.items()))
    assert str(decoder(schema).type) == (
        "struct<by: struct<home: struct<city: string>>, on: struct<year: int32, month: int32, day: int32>, "
        "price: struct<value: binary, precision: int64, scale: int32>, to: struct<city: string>>"
    )


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
    'import "schema.proto"; message M {}': "schema.proto imports itself",
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


@pytest.mark.parametrize("path", [(1,), (0, 0), (-1,), "Other"])
def test_a_message_that_is_not_there_is_named(path: tuple[int, ...] | str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        decoder(schema_of("message M {}"), path)
    assert "without the message" in str(refused.value)


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
