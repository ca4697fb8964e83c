"""Folders by values of records: each record is in the folder of its values, or a bad record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from s3sink_job.decode.decoder import Decoder
from s3sink_job.layout.escaping import MISSING
from s3sink_job.layout.folders import folders_of
from s3sink_job.layout.settings import PARTITION, TOMBSTONES, TOPIC, LayoutItem, ObjectLayout
from tests.decode.batches import Record, batch_of, json_values, texts
from tests.encodings import changed, encoding

ROOM = 900
KEY, COUNTRY = LayoutItem("Key"), LayoutItem("Field", "country", ("customer", "country"))


def field(*path: str) -> LayoutItem:
    return LayoutItem("Field", "", path)


def folders(
    batch: pa.RecordBatch,
    *items: LayoutItem,
    missing: str = "Default",
    nulls: str = "Write",
    room: int = ROOM,
    key: str = "String",
    value: str = "Json",
) -> tuple[list[str] | None, dict[int, str]]:
    wanted = changed(encoding(key=key, value=value), nulls=nulls, layout=ObjectLayout(items=items, missing=missing))
    decoded = Decoder(wanted.decoding).decode(batch.select(["partition", "offset", *wanted.columns]))
    found = folders_of(decoded, wanted.grouping, "orders", 3, room)
    if found is None:
        return None, decoded.bad.messages
    assert found.type == pa.string()
    assert found.null_count == 0
    assert len(found) == batch.num_rows
    return found.to_pylist(), decoded.bad.messages


def one(record: Record | bytes | None, *items: LayoutItem, **how: Any) -> str:
    """The folder of one record, or what is wrong with it."""
    found, bad = folders(batch_of(record), *items, **how)
    assert found is not None
    return bad.get(0, found[0])


def test_folders_that_all_records_share_are_not_written_out() -> None:
    assert folders(batch_of(b"{}", b"{}"), TOPIC, PARTITION) == (None, {})


def test_each_item_is_a_folder_in_the_order_of_the_layout() -> None:
    record = Record(b'{"customer":{"country":"DE"}}', key=b"k1", headers=[("region", b"eu")])
    items = (LayoutItem("Topic", "topic"), COUNTRY, KEY, PARTITION, LayoutItem("Header", "", ("region",)))

    assert one(record, *items) == "topic=orders/country=DE/k1/3/eu"


@pytest.mark.parametrize(
    ("written", "folder"),
    [
        ('"text"', "text"),
        ('"\\u00fc \\" \\/"', "ü %22 %2F"),
        ("1", "1"),
        ("1.50", "1.50"),
        ("-0", "-0"),
        ("0", "0"),
        ("1E+2", "1E+2"),
        ("1e400", "1e400"),
        ("12345678901234567890123", "12345678901234567890123"),
        ("9223372036854775808", "9223372036854775808"),
        ("true", "true"),
        ("false", "false"),
        ('"null"', "null"),
        ("null", MISSING),
        ('""', MISSING),
        ('" "', " "),
        ('"\\u0000"', "%00"),
        (f'"{MISSING}"', "%5F_HIVE_DEFAULT_PARTITION__"),
        ('".s3sink"', "%2Es3sink"),
        ('"_private"', "%5Fprivate"),
        ('".."', "%2E%2E"),
        ('"."', "%2E"),
        (f'"{TOMBSTONES}"', "%5Ftombstones"),
        ('"{}"', "%7B%7D"),
    ],
)
def test_a_value_is_taken_as_it_is_written(written: str, folder: str) -> None:
    assert one(b'{"f": %b}' % written.encode(), field("f")) == folder


@pytest.mark.parametrize(("written", "name"), [("{}", "an object"), ('{"a":1}', "an object"), ("[1]", "an array")])
def test_a_value_that_is_no_scalar_is_an_error_that_names_its_path(written: str, name: str) -> None:
    why = one(b'{"a":{"f":%b}}' % written.encode(), field("a", "f"))

    assert why == f"value field a.f is non-primitive: {name} cannot name a folder"


@pytest.mark.parametrize("value", [b"{}", b'{"a":1}', b'{"a":[{"f":1}]}', b'{"a":null}', b"[1]", b"null", b'"f"', None])
def test_a_missing_field_has_hives_default_folder(value: bytes | None) -> None:
    assert one(value, replace(field("a", "f"), name="f")) == f"f={MISSING}"


@pytest.mark.parametrize("missing", ["Fail", "DeadLetter"])
def test_a_missing_field_is_an_error_if_the_layout_asks_for_it(missing: str) -> None:
    found, bad = folders(batch_of(b'{"f":1}', b"{}", b'{"f":""}', None), field("f"), missing=missing)

    assert bad == dict.fromkeys([1, 2, 3], f"value field f is missing, and spec.layout.onMissingValue is {missing}")
    assert found is not None
    assert found[0] == "1"


@pytest.mark.parametrize(
    "value",
    [
        b'{"a":{"f":1,"f":2}}',
        b'{"a":{"f":1,"f":1}}',
        b'{"a":{"f":1,"\\u0066":2}}',
        b'{"a":{"\\u0066":1,"f":2}}',
        b'{"a":{"f":1},"a":{}}',
        b'{"a":{},"a":{"f":1}}',
        b'{"a":{"f":1},"a":{"f":1}}',
        b'{"\\u0061":{"f":1},"a":{"f":1}}',
    ],
)
def test_a_field_twice_is_an_error(value: bytes) -> None:
    found, bad = folders(batch_of(b'{"a":{"f":1}}', value, b'{"a":{"f":"x"}}'), field("a", "f"))

    assert list(bad) == [1]
    assert "twice" in bad[1]
    assert found is not None
    assert (found[0], found[2]) == ("1", "x")


def test_a_name_may_occur_again_elsewhere_in_the_record() -> None:
    value = b'{"f":1,"a":{"f":2,"f":3},"b":"f","c":["f","f"],"d":{"a":{"f":9}},"d":1}'

    assert one(value, field("f")) == "1"


@pytest.mark.parametrize(
    "path",
    [("b.c",), ('q"x',), ("q\\x",), ("a/b",), ("a~b",), ("~1",), ("0",), ("*",), ("0", "*"), ("$",), ("ü",), ("'",),
     ("[0]",), ("a b", "#-1"), ("-",), ("?",), ("$1",), ("%s",), ("", "")],
)  # fmt: skip
def test_a_field_may_have_any_name(path: tuple[str, ...]) -> None:
    inner: Any = "x"
    for name in reversed(path):
        inner = {"other": 1, name: inner, "b": {"c": 2}}
    plain, escaped = (json.dumps(inner, ensure_ascii=ascii_only).encode() for ascii_only in (False, True))

    assert folders(batch_of(plain, escaped, b"[[1],2]", b'[["*"]]'), field(*path)) == (["x", "x", MISSING, MISSING], {})


@pytest.mark.parametrize("value", [b"{", b"", b"not json", b'{"f":1}}', b'{"f":"\\ud800"}', b"\xff", b'{"f":NaN}'])
def test_a_value_that_is_not_json_is_an_error_of_that_record_only(value: bytes) -> None:
    found, bad = folders(batch_of(b'{"f":1}', value, b'{"f":"x"}', None), field("f"), field("g"))

    assert list(bad) == [1]
    assert bad[1].startswith("value ")
    assert found is not None
    assert [found[0], *found[2:]] == [f"1/{MISSING}", f"x/{MISSING}", f"{MISSING}/{MISSING}"]


def test_a_field_is_found_beside_one_that_is_nested_too_deeply() -> None:
    deep = b'{"f":%b,"g":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    found, bad = folders(batch_of(deep.replace(b"%b", b'"x"'), deep.replace(b"%b", b"1.50")), field("f"))

    assert found is not None
    assert found[0] == "x"
    assert bad == {1: "value field f is in JSON that is nested too deeply to be read"}


def test_a_field_that_is_a_value_and_a_time_is_taken_as_it_is_written() -> None:
    time = LayoutItem("Time", source="Field", path=("t",), format="yyyy")

    assert one(b'{"t":1700000000.50}', field("t"), time) == "1700000000.50/2023"
    assert one(b'{"t":1700000000.50}', time, field("t")) == "2023/1700000000.50"


@pytest.mark.parametrize("format", ["String", "Bytes"])
def test_the_message_for_a_format_without_fields_names_it(format: str) -> None:
    assert one(b'{"f":1}', field("f"), value=format) == f"value field f: a value of format {format} has no fields"


@pytest.mark.parametrize(
    ("key", "format", "folder"),
    [
        (b"k/1", "String", "k%2F1"),
        (None, "String", MISSING),
        (b"", "String", MISSING),
        (b"\xff", "String", "key is not UTF-8: invalid start byte at byte 0"),
        (b"\xff\xfe", "Bytes", "%2F%2F4%3D"),
        (b'"k"', "Json", "k"),
        (b" 1.50 ", "Json", "1.50"),
        (b"null", "Json", MISSING),
        (b"{}", "Json", "key is non-primitive: an object cannot name a folder"),
    ],
)
def test_the_whole_key_can_be_a_folder(key: bytes | None, format: str, folder: str) -> None:
    assert one(Record(b"{}", key=key), KEY, key=format) == folder


def test_a_field_of_the_key_can_be_a_folder() -> None:
    item = LayoutItem("Key", "id", ("id",))

    assert one(Record(b'{"id":2}', key=b'{"id":1}'), item, field("id"), key="Json") == "id=1/2"
    assert one(Record(b"{}", key=b"1"), item) == "key field id: a key of format String has no fields"


def test_the_last_of_several_headers_with_one_name_counts() -> None:
    item = LayoutItem("Header", "", ("h",))
    batch = batch_of(
        Record(b"", headers=[("h", b"1"), ("x", b"9"), ("h", b"2"), ("H", b"3")]),
        Record(b"", headers=[("h", b"1"), ("h", None)]),
        Record(b"", headers=[]),
        Record(b"", headers=None),
        Record(b"", headers=[("h", b"\xff")]),
        Record(b"", headers=[("h", b"")]),
        Record(b"", headers=[("h", b"4")]),
    )

    found, bad = folders(batch, item)
    assert found == ["2", MISSING, MISSING, MISSING, MISSING, MISSING, "4"]
    assert bad == {4: "header h is not UTF-8: invalid start byte at byte 0"}
    assert folders(batch.slice(2), item) == (found[2:], {2: bad[4]})


def test_tombstones_have_a_folder_of_their_own() -> None:
    batch = batch_of(b'{"f":1}', None)

    assert folders(batch, TOPIC, nulls="Separate") == (["orders", f"{TOMBSTONES}/orders"], {})
    assert folders(batch, nulls="Separate") == (["", TOMBSTONES], {})
    assert folders(batch, field("f"), KEY, nulls="Separate") == (["1/k", f"{TOMBSTONES}/{MISSING}/k"], {})


def test_a_tombstone_that_is_kept_apart_has_no_missing_fields() -> None:
    batch = batch_of(None, b"{}", Record(None, key=None))

    _, bad = folders(batch, field("f"), KEY, nulls="Separate", missing="Fail")

    assert set(bad) == {1, 2}
    assert bad[1].startswith("value field f is missing")
    assert bad[2].startswith("key is missing")


def test_a_folder_too_long_for_the_store_is_an_error_that_names_the_longest_item() -> None:
    batch = batch_of(Record(b'{"f":"%b"}' % ("ä" * 30).encode(), key=b"k" * 20), Record(b'{"f":"x"}', key=b"k"))

    found, bad = folders(batch, TOPIC, field("f"), KEY, room=60)

    assert bad == {0: "key longer than 1,024 bytes: value field f makes a folder of 60"}
    assert found is not None
    assert found[1] == "orders/x/k"
    assert folders(batch, TOPIC, field("f"), KEY, room=len("orders//") + 80)[1] == {}


@given(st.lists(json_values | st.fixed_dictionaries({"a": json_values}), min_size=1, max_size=8), st.booleans())
@example([{"a": "x"}, {"a": 1.5}], True)
def test_folders_of_a_batch_are_those_of_its_single_records(values: list[Any], ascii_only: bool) -> None:
    batch = batch_of(*(json.dumps(value, ensure_ascii=ascii_only).encode() for value in values))

    found, bad = folders(batch, TOPIC, replace(field("a"), name="n"))

    assert found is not None
    for row, value in enumerate(values):
        mine = value.get("a") if isinstance(value, dict) else None
        if isinstance(mine, (dict, list)):
            assert row in bad
        else:
            assert row not in bad
            assert unquote(found[row]) == f"orders/n={_shown(mine)}"
    assert folders(batch.slice(0, 1), TOPIC, replace(field("a"), name="n"))[0] == found[:1]


def _shown(value: Any) -> str:
    if value is None or value == "":
        return MISSING
    return value if isinstance(value, str) else json.dumps(value)


@given(st.lists(texts.filter(bool), min_size=1, max_size=5))
def test_hive_readers_get_the_values_back(values: list[str]) -> None:
    batch = batch_of(*(json.dumps({"a": value}).encode() for value in values))

    found, bad = folders(batch, replace(field("a"), name="a"))

    assert not bad
    assert found is not None
    assert [unquote(folder, errors="strict") for folder in found] == [f"a={value}" for value in values]


def test_duckdb_reads_the_partition_column_back(tmp_path: Path) -> None:
    values = ["plain", "a/b", "ü =%", "'\"*:?#[]^{}", "..", "x\\y", "\x01\x7f", None, MISSING.lower(), "<|>`"]
    batch = batch_of(*(json.dumps({"a": value}).encode() for value in values))

    found, _ = folders(batch, replace(field("a"), name="a"))

    assert found is not None
    for number, folder in enumerate(found):
        (tmp_path / folder).mkdir()
        duckdb.sql(f"SELECT {number} AS n").write_parquet(str(tmp_path / folder / "0.parquet"))
    files, how = f"'{tmp_path}/*/*.parquet'", "hive_partitioning = true, hive_types_autocast = false"
    rows = duckdb.sql(f"SELECT n, a FROM read_parquet({files}, {how}) ORDER BY n").fetchall()
    assert [value for _, value in rows] == values


def test_characters_that_xml_does_not_allow_are_escaped() -> None:
    """Stores answer in XML with the key in it: the answer could not be read."""
    assert one(json.dumps({"v": "a\ufffeb\uffff"}).encode(), field("v")) == "a%EF%BF%BEb%EF%BF%BF"
