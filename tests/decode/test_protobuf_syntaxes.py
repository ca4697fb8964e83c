"""Records of proto2 and of editions: what differs from proto3 has the values that Google's own runtime reads."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import EncodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decode.proto_samples import as_read, decoder, filled, message_class, plain_row, schema_of

PROTO2 = r"""
package old;
import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
enum Kind { option allow_alias = true; LOW = -3; ONE = 1; ALSO_ONE = 1; BIG = 7; }
enum Zeroed { NONE = 0; SOME = 4; }
message M {
  required int32 id = 1;
  required string name = 2 [default = "nobody"];
  optional int64 count = 3 [default = -7];
  optional Kind kind = 4 [default = BIG];
  optional bool yes = 5 [default = true];
  optional bytes raw = 6 [default = "\377"];
  optional double ratio = 7 [default = inf];
  repeated sint32 loose = 8; repeated fixed64 packed = 9 [packed = true];
  repeated Kind kinds = 10; repeated Kind packed_kinds = 11 [packed = true];
  optional group Line = 12 {
    required string sku = 1;
    repeated group Part = 2 { optional float weight = 1; optional Kind kind = 2 [default = LOW]; }
  }
  repeated group Many = 13 { repeated uint32 n = 1 [packed = true]; optional string text = 2; }
  oneof choice { string text = 14; group Deep = 15 { optional M again = 1; } uint64 big = 16; }
  map<string, Zeroed> by_name = 17; map<int32, Other> inner = 18;
  optional google.protobuf.Timestamp at = 19; optional google.protobuf.Int32Value wrapped = 20;
  extensions 100 to max;
}
message Other { optional string text = 1 [default = "other"]; optional float f = 2 [default = 0.5]; }
"""
EDITION = """
edition = "2023";
package new;
import "google/protobuf/timestamp.proto";
option features = { field_presence: IMPLICIT repeated_field_encoding: EXPANDED message_encoding: DELIMITED };
enum Open { ZERO = 0; ONE = 1; }
enum Kind { option features.enum_type = CLOSED; LOW = -3; BIG = 7; }
message M {
  int32 implicit = 1;
  int32 explicit = 2 [features.field_presence = EXPLICIT, default = 5];
  string needed = 3 [features.field_presence = LEGACY_REQUIRED];
  repeated int32 loose = 4;
  repeated int32 packed = 5 [features.repeated_field_encoding = PACKED];
  Other delimited = 6;
  Other prefixed = 7 [features.message_encoding = LENGTH_PREFIXED];
  repeated Other several = 8;
  map<string, Other> by_name = 9;
  Open open = 10;
  Kind kind = 11 [features.field_presence = EXPLICIT, default = BIG];
  repeated Kind kinds = 12;
  oneof choice { string text = 13; Other other = 14; }
  google.protobuf.Timestamp at = 15;
  M again = 16;
}
message Other { string s = 1; Open open = 2; bytes raw = 3; repeated Other inner = 4; }
"""
TEXTS = {"proto2": PROTO2, "edition": EDITION}


def read(text: str, *raw: bytes) -> tuple[list[Any], dict[int, str]]:
    found, faults = decoder(schema_of(text)).decode(pa.array(raw, pa.binary()))
    found.validate(full=True)
    return [plain_row(row) for row in found], {row: fault.message for row, fault in faults.items()}


def as_google_reads(text: str, raw: bytes) -> Message:
    message = message_class(schema_of(text))()
    message.MergeFromString(raw)
    return message


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_values_are_those_that_google_reads(text: str, seed: int, count: int) -> None:
    """Also where a required field is missing, and of messages in several parts."""
    made, chance = message_class(schema_of(text)), random.Random(seed)
    raw = [
        b"".join(filled(made(), chance).SerializePartialToString() for _ in range(chance.choice([1, 1, 2])))
        for _ in range(count)
    ]
    assert read(text, *raw) == ([as_read(as_google_reads(text, one)) for one in raw], {})


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_an_empty_record_has_no_defaults_and_may_lack_what_is_required(text: str) -> None:
    empty = message_class(schema_of(text))()
    with pytest.raises(EncodeError, match="missing required fields"):
        empty.SerializeToString()
    ((row,), faults) = read(text, b"")
    assert faults == {}
    assert row == as_read(empty)
    if text == PROTO2:
        assert {name for name, value in row.items() if value is not None} == {
            *("loose", "packed", "kinds", "packed_kinds", "many", "by_name", "inner")
        }
    else:
        assert (row["implicit"], row["explicit"], row["needed"]) == (0, None, None)
        assert (row["open"], row["kind"]) == ("ZERO", None)


CLOSED = {
    "proto2": (PROTO2, {4: "kind", 10: "kinds", 11: "packed_kinds"}),
    "edition": (EDITION, {11: "kind", 12: "kinds"}),
}


@pytest.mark.parametrize(("text", "fields"), CLOSED.values(), ids=CLOSED)
def test_a_number_without_a_name_of_a_closed_enum_is_text(text: str, fields: dict[int, str]) -> None:
    """Google's runtime has it as an unknown field: it is not lost there either."""
    for number, name in fields.items():
        packed = name == "packed_kinds"
        raw = bytes([8 * number + 2, 2, 7, 9]) if packed else bytes([8 * number, 7, 8 * number, 9])
        google = as_google_reads(text, raw)
        assert [field.field_number for field in UnknownFieldSet(google)] == [number]
        ((row,), faults) = read(text, raw)
        assert (row[name], faults) == ("9" if name == "kind" else ["BIG", "9"], {})


def test_entries_of_maps_without_a_value_have_the_one_that_google_reads() -> None:
    raw = b"\x8a\x01\x03\x0a\x01k" + b"\x92\x01\x02\x08\x05"
    ((row,), faults) = read(PROTO2, raw)
    assert (row, faults) == (as_read(as_google_reads(PROTO2, raw)), {})
    assert (row["by_name"], row["inner"]) == ({"k": "NONE"}, {"5": {"text": None, "f": None}})


NONE = "features.utf8_validation = NONE"
NOT_UTF8 = {
    "proto2": ("message M { optional string s = 1; }", b"\x0a\x01\xff", b"\x0a\x01s"),
    "group": ("message M { optional group G = 1 { optional string s = 1; } }", b"\x0b\x0a\x01\xff\x0c", b"\x0b\x0c"),
    "edition": (f'edition = "2023"; message M {{ string s = 1 [{NONE}]; }}', b"\x0a\x01\xff", b"\x0a\x01s"),
}


@pytest.mark.parametrize(("text", "bad", "good"), NOT_UTF8.values(), ids=NOT_UTF8)
def test_text_that_is_not_utf8_is_bad_where_protobuf_does_not_forbid_it(text: str, bad: bytes, good: bytes) -> None:
    as_google_reads(text, bad)  # raises nothing
    rows, faults = read(text, good, bad, good)
    expected = as_read(as_google_reads(text, good))
    assert (set(faults), rows) == ({1}, [expected, None, expected])
    assert "that is not UTF-8" in faults[1]
