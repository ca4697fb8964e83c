"""Objects keep what the schemas of their records say: Avro names and docs, Parquet the schemas themselves."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s3sink_job.columns.sources import SourceField, SourceRecord, Sources
from s3sink_job.columns.types import ITEM
from s3sink_job.decode.writer_schemas import Reference, SchemaId, SourceSchema, WriterSchema, numbered
from s3sink_job.formats.avro import read_avro
from s3sink_job.formats.avro_schema import avro_schema
from s3sink_job.formats.registry import OUTPUT_FORMATS
from s3sink_job.formats.source_notes import MOST_TEXT, SourceNotes
from tests.encodings import output
from tests.formats.samples import NO_DISK

ADDRESS = pa.struct([("street", pa.string())])
ORDER = pa.struct(
    [
        ("id", pa.int64()),
        ("note", pa.string()),
        ("count", pa.int32()),
        ("items", pa.list_(pa.struct([("sku", pa.string())]))),
        ("billing", ADDRESS),
        ("shipping", ADDRESS),
    ]
)
ANY = SourceField(required=True)
SOURCES: Sources = {
    (): {
        "shop.Order": SourceRecord(
            {
                "id": SourceField(True, doc="The order's number."),
                "note": SourceField(False, nullable=True, aliases=("remark",), default="null"),
                "count": SourceField(False, default="7"),
                "items": ANY,
                "billing": ANY,
                "shipping": ANY,
            },
            doc="An order.",
            aliases=("shop.Purchase",),
        )
    },
    ("items", ITEM): {"shop.Item": SourceRecord({"sku": ANY})},
    ("billing",): {"shop.Address": SourceRecord({"street": ANY})},
    ("shipping",): {"shop.Address": SourceRecord({"street": ANY})},
}
ROWS: list[dict[str, Any]] = [
    {"id": 1, "note": None, "count": None, "items": [{"sku": "a"}], "billing": {"street": "x"}, "shipping": None},
    {"id": 2, "note": "n", "count": 0, "items": [], "billing": None, "shipping": {"street": "y"}},
]


def written(kind: str, rows: pa.RecordBatch, notes: SourceNotes) -> bytes:
    out = io.BytesIO()
    wanted = output(kind)
    writer = OUTPUT_FORMATS[wanted.format].open(wanted, out, NO_DISK, notes)
    writer.write(rows)
    writer.close()
    return out.getvalue()


def batch(rows: list[dict[str, Any]], kind: pa.StructType) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(pa.array(rows, kind))


def test_avro_keeps_names_docs_aliases_and_defaults() -> None:
    schema = avro_schema(ORDER, SOURCES)
    assert (schema["namespace"], schema["name"]) == ("shop", "Order")
    assert (schema["doc"], schema["aliases"]) == ("An order.", ["shop.Purchase"])
    fields = {field["name"]: field for field in schema["fields"]}
    assert fields["id"]["doc"] == "The order's number."
    assert (fields["note"]["type"], fields["note"]["default"]) == (["null", "string"], None)
    assert fields["note"]["aliases"] == ["remark"]
    assert (fields["count"]["type"], fields["count"]["default"]) == (["int", "null"], 7)
    item = fields["items"]["type"][1]["items"][1]
    assert (item["namespace"], item["name"]) == ("shop", "Item")


def test_an_alias_that_is_the_name_of_an_older_field_is_left_out() -> None:
    """Java's reader would rename the older field, and find two of the same name."""
    sources = {(): {"R": SourceRecord({"old": ANY, "new": SourceField(True, aliases=("old", "older"))})}}
    schema = avro_schema(pa.struct([("old", pa.string()), ("new", pa.string())]), sources)
    assert schema["fields"][1]["aliases"] == ["older"]


def test_a_record_at_two_places_keeps_its_name_and_is_defined_once() -> None:
    """Avro's readers compare names without their namespaces."""
    fields = {field["name"]: field["type"][1] for field in avro_schema(ORDER, SOURCES)["fields"]}
    assert (fields["billing"]["namespace"], fields["billing"]["name"]) == ("shop", "Address")
    assert (fields["shipping"]["namespace"], fields["shipping"]["name"]) == ("s3sink.shipping", "Address")


def test_a_reader_with_the_sources_schema_reads_avro_objects() -> None:
    data = written("Avro", batch(ROWS, ORDER), SourceNotes(lambda: SOURCES))
    assert read_avro(data).to_pylist() == ROWS
    address = {"type": "record", "name": "Address", "fields": [{"name": "street", "type": "string"}]}
    source = {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "remark", "type": ["null", "string"], "aliases": ["note"]},
            {"name": "billing", "type": ["null", address]},
            {"name": "shipping", "type": ["null", "Address"]},
            {"name": "new", "type": "int", "default": 3},
        ],
    }
    found = list(fastavro.reader(io.BytesIO(data), source))
    assert found == [
        {"id": 1, "remark": None, "billing": {"street": "x"}, "shipping": None, "new": 3},
        {"id": 2, "remark": "n", "billing": None, "shipping": {"street": "y"}, "new": 3},
    ]


@pytest.mark.parametrize(
    ("kind", "default", "kept"),
    [
        (pa.int64(), "7", 7),
        (pa.float64(), "7", 7),
        (pa.float64(), "1.5", 1.5),
        (pa.bool_(), "true", True),
        (pa.int32(), "true", None),
        (pa.string(), '"x"', "x"),
        (pa.binary(), '"\\u00ff"', "\xff"),
        (pa.binary(), '"\\u0100"', None),
        (pa.timestamp("ms", "UTC"), "0", 0),
        (pa.list_(pa.int32()), "[]", []),
        (pa.list_(pa.int32()), "[1]", None),
        (pa.map_(pa.string(), pa.int32()), "{}", {}),
        (ADDRESS, '{"street": "x"}', None),
        (pa.string(), "null", None),
    ],
)
def test_a_default_is_kept_where_the_written_type_can_have_it(kind: pa.DataType, default: str, kept: Any) -> None:
    sources = {(): {"R": SourceRecord({"a": SourceField(False, default=default)})}}
    schema = avro_schema(pa.struct([("a", kind)]), sources)
    fastavro.parse_schema(schema)
    field = schema["fields"][0]
    assert field["default"] == kept
    assert (field["type"][0] == "null") == (kept is None)


def test_two_types_of_records_at_one_place_have_no_name() -> None:
    sources = {(): {"shop.A": SourceRecord({"a": ANY}), "shop.B": SourceRecord({"a": ANY})}}
    schema = avro_schema(pa.struct([("a", pa.string())]), sources)
    assert (schema["namespace"], schema["name"]) == ("s3sink", "Row")


@pytest.mark.parametrize("name", ["", "no name", "1st", "a..b", "Row", "s3sink.x.Row"])
def test_any_name_of_a_record_gives_a_schema(name: str) -> None:
    sources = {path: {name: SourceRecord({"x": ANY})} for path in [(), ("x",), ("y",)]}
    kind = pa.struct([("x", pa.struct([("x", pa.string())])), ("y", pa.struct([("x", pa.string())]))])
    fastavro.parse_schema(avro_schema(kind, sources))


def schema_of(number: int, text: str = '"long"') -> SourceSchema:
    return SourceSchema(numbered(number), WriterSchema("AVRO", text))


def metadata(data: bytes) -> Any:
    found = pq.ParquetFile(io.BytesIO(data)).metadata.metadata or {}
    return json.loads(found[b"s3sink.schemas"]) if b"s3sink.schemas" in found else None


def test_parquet_has_the_schemas_of_its_records() -> None:
    rows = batch(ROWS, ORDER)
    referring = SourceSchema(numbered(8), WriterSchema("AVRO", '"A"', (Reference("A", '"int"'),)))
    notes = SourceNotes(schemas={0: schema_of(7), 1: referring})
    assert metadata(written("Parquet", rows, notes)) == [
        {"id": 7, "type": "AVRO", "schema": '"long"'},
        {"id": 8, "type": "AVRO", "schema": '"A"', "references": [{"name": "A", "schema": '"int"'}]},
    ]
    assert metadata(written("Parquet", rows, SourceNotes())) is None


def test_an_id_that_is_no_number_of_confluents_registry_says_what_it_is() -> None:
    version = SchemaId("Glue schema version", "b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63")
    notes = SourceNotes(schemas={0: SourceSchema(version, WriterSchema("AVRO", '"long"'))})
    (found,) = metadata(written("Parquet", batch(ROWS, ORDER), notes))
    assert (found["id"], found["idType"]) == (version.value, "Glue schema version")


def test_many_large_schemas_do_not_fill_an_object() -> None:
    notes = SourceNotes(schemas={n: schema_of(n + 1, "x" * (MOST_TEXT // 2)) for n in range(4)})
    found = metadata(written("Parquet", batch(ROWS, ORDER), notes))
    assert [set(one) for one in found] == [{"id", "type", "schema"}] * 2 + [{"id", "type"}] * 2
