"""Protobuf schemas: our reader of .proto texts finds what protoc finds, and says what is wrong with a text."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import google
import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_tools import protoc

from s3sink_job.decode.proto_files import link, message_at
from s3sink_job.decode.writer_schemas import Reference, WriterSchema
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
NAME = "schema.proto"


def compiled(folder: Path, text: str) -> FileDescriptorSet:
    """With the imports, the file of the text last."""
    (folder / NAME).write_text(text)
    roots = {str(Path(found).parent) for found in google.__path__} | {str(Path(protoc.__file__).parent / "_proto")}
    out = folder / "out"
    arguments = [f"-I{root}" for root in [str(folder), *sorted(roots)]]
    assert protoc.main(["", *arguments, f"--descriptor_set_out={out}", "--include_imports", NAME]) == 0
    return FileDescriptorSet.FromString(out.read_bytes())


def by_protoc(folder: Path, text: str) -> FileDescriptor:
    pool = DescriptorPool()
    for file in compiled(folder, text).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool.FindFileByName(NAME)


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


EXTENSIONS = """
message M {
  extensions 4 to 10 [declaration = { number: 4, full_name: ".x", type: "int32" }, verification = DECLARATION];
  extensions 20, 30 to max;
  optional int32 a = 1;
}
"""


def test_declarations_of_extensions_are_passed_over(tmp_path: Path) -> None:
    assert summary(link(schema_of(EXTENSIONS))) == summary(by_protoc(tmp_path, EXTENSIONS))


LIKE_NAMES = {
    "proto2": "message M { optional string foo_bar = 1; optional string fooBar = 2; }",
    "proto3": """
        syntax = "proto3";
        message M {
          option deprecated_legacy_json_field_conflicts = true;
          string foo_bar = 1; string fooBar = 2;
        }
    """,
    "own name": """
        syntax = "proto3";
        message M {
          string a = 1 [json_name = "b"]; map<int32, M> b = 2 [json_name = "a"];
          message Inner { int32 a_b = 1 [json_name = "b"]; int32 b = 2 [json_name = "aB"]; }
        }
    """,
}


@pytest.mark.parametrize("text", LIKE_NAMES.values(), ids=LIKE_NAMES)
def test_fields_with_names_that_json_would_write_alike_are_read(tmp_path: Path, text: str) -> None:
    file = compiled(tmp_path, text).file[0]
    as_descriptor = schema_of(base64.b64encode(file.SerializeToString()).decode())
    for schema in (schema_of(text), as_descriptor):
        found = message_at(link(schema), (0,))
        assert [(one.name, one.number) for one in found.fields] == [
            (one.name, one.number) for one in file.message_type[0].field
        ]
    assert summary(link(schema_of(text))) == summary(link(as_descriptor))


def test_a_reference_may_have_any_name() -> None:
    text = 'import "schema.proto"; message M { optional N n = 1; }'
    schema = schema_of(text, **{"schema.proto": "message N { optional int32 a = 1; }"})
    assert str(decoder(schema).type) == "struct<n: struct<a: int32>>"


def test_a_byte_order_mark_in_front_of_a_text_means_nothing(tmp_path: Path) -> None:
    text = f"\ufeff{PROTO3}"
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


def test_files_that_kafka_connect_of_aws_imports_are_built_in() -> None:
    """Glue has no references. The options are as AWS' converter writes them."""
    text = """
        syntax = "proto3";
        package com.shop;
        import "metadata/metadata.proto"; import "additionalTypes/decimal.proto";
        message M {
          int32 small = 1 [(metadata.metadata_key) = "connect.type", (metadata.metadata_value) = "int8"];
          additionalTypes.Decimal price = 2; optional additionalTypes.Decimal maybe = 3;
        }
    """
    decimal = "struct<units: int64, fraction: int32, precision: int64, scale: int32>"
    assert str(decoder(schema_of(text)).type) == f"struct<small: int32, price: {decimal}, maybe: {decimal}>"


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
