"""Versions of a schema that alternate in a batch: they are decoded together, with the values of each alone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from s3sink_job.columns.text import json_of
from s3sink_job.decode import avro_versions
from s3sink_job.decode.avro_decoder import AvroDecoder
from s3sink_job.decode.input_format import InputFormat
from tests.decode.avro_samples import Sample, records, writer_schema, written
from tests.decode.inputs import batch_of_values, opened_input
from tests.decode.test_avro_input import Schemas, record, wire

MANY = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
OPTIONAL = ["null", "string"]


def opened(*versions: Any, known: pa.StructType | None = None) -> InputFormat:
    schemas = {number: writer_schema(schema) for number, schema in enumerate(versions)}
    return opened_input("Avro", known=known, schemas=Schemas(schemas))


def version_of(sample: Sample, names: set[str]) -> Any:
    return sample.schema | {"fields": [f for f in sample.schema["fields"] if f["name"] in names]}


@MANY
@given(st.data())
def test_versions_together_give_the_values_and_faults_of_each_alone(data: st.DataObject) -> None:
    sample = data.draw(records())
    subsets = st.sets(st.sampled_from([f["name"] for f in sample.schema["fields"]] or [""]))
    versions = [version_of(sample, names) for names in data.draw(st.lists(subsets, min_size=1, max_size=4))]
    raw, expected, bad = [], [], set()
    for number, value in data.draw(st.lists(st.tuples(st.integers(0, len(versions) - 1), sample.values), max_size=9)):
        schema = versions[number]
        own = {f["name"]: value[f["name"]] for f in schema["fields"]}
        encoded = written(schema, own)[0]
        encoded = encoded[: data.draw(st.just(len(encoded)) | st.integers(0, len(encoded)))]
        row, faults = AvroDecoder(writer_schema(schema)).decode(pa.array([encoded], pa.binary()))
        bad |= {len(raw)} if faults else set()
        raw.append(b"\x00" + number.to_bytes(4, "big") + encoded)
        expected.append({} if faults else dict(zip(row.type.names, row.flatten(), strict=True)))
    rows, found = opened(*versions).rows(batch_of_values(*raw))
    rows.validate(full=True)
    assert set(found) == bad
    for row, fields in enumerate(expected):
        for name, cells in zip(rows.schema.names, rows.slice(row, 1).columns, strict=True):
            # As JSON: Python has no dates that far away, and to Arrow two nulls may differ by what is below them.
            assert json_of(cells).to_pylist() == json_of(fields.get(name, pa.nulls(1, cells.type))).to_pylist()


def test_a_fault_names_the_id_of_the_record_though_two_ids_have_one_schema() -> None:
    same = record(a="string")
    value = opened(same, same, record(a="string", b=OPTIONAL))
    good = [wire(n, same, {"a": "x"}) for n in (0, 1)]
    _, faults = value.rows(batch_of_values(*good, wire(2, record(a="string", b=OPTIONAL), {"a": "x"}), good[0][:-1]))
    assert set(faults) == {3}
    assert faults[3].message.startswith("value of schema id 0 ends within $.a")


def test_a_version_that_does_not_fit_the_columns_spares_the_other_versions() -> None:
    old, new = record(a="string"), record(a="string", x="string")
    value = opened(old, new, record(a="string", y="int"), known=pa.struct([("x", pa.int64())]))
    raw = [wire(0, old, {"a": "1"}), wire(1, new, {"a": "2", "x": "t"}), wire(0, old, {"a": "3"})]
    rows, faults = value.rows(batch_of_values(*raw))
    assert {row: fault.reason for row, fault in faults.items()} == {1: "SchemaIncompatible"}
    assert [rows.to_pylist()[row] for row in (0, 2)] == [{"x": None, "a": "1"}, {"x": None, "a": "3"}]
    rows, faults = value.rows(batch_of_values(raw[0], wire(2, record(a="string", y="int"), {"a": "4", "y": 5})))
    assert not faults
    assert rows.to_pylist() == [{"x": None, "a": "1", "y": None}, {"x": None, "a": "4", "y": 5}]


@pytest.mark.parametrize(
    "versions",
    [
        [record(a="int", b="int"), record(b="int", a="int")],
        [record(a="int", b="int"), record(a="int", b="int", c=OPTIONAL), record(c=OPTIONAL, a="int")],
        [record(a="int"), record(a="long")],
        [record(), record(a="int")],
        ["string", record(a="int")],
    ],
    ids=["order", "order-of-three", "type", "no-fields", "no-record"],
)
def test_schemas_that_cannot_be_read_together_are_read_alone(versions: list[Any]) -> None:
    values = [
        "t" if v == "string" else {f["name"]: None if f["type"] == OPTIONAL else 7 for f in v["fields"]}
        for v in versions
    ]
    rows, faults = opened(*versions).rows(batch_of_values(*(wire(n, v, values[n]) for n, v in enumerate(versions))))
    assert not faults
    found = [{name: cell for name, cell in row.items() if cell is not None} for row in rows.to_pylist()]
    assert found == [
        {"value": v} if isinstance(v, str) else {name: cell for name, cell in v.items() if cell is not None}
        for v in values
    ]


def test_more_versions_than_are_remembered_are_still_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_versions, "MOST_VERSIONS", 3)
    monkeypatch.setattr(avro_versions, "MOST_FAMILIES", 2)
    versions = [record(**{f"f{n}": "int" for n in range(count)}) for count in range(1, 11)]
    raw = [wire(n, v, {f["name"]: n for f in v["fields"]}) for n, v in enumerate(versions)]
    rows, faults = opened(*versions).rows(batch_of_values(*raw))
    assert not faults
    assert [sum(cell is not None for cell in row.values()) for row in rows.to_pylist()] == list(range(1, 11))


def test_versions_that_alternate_are_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = [record(**{f"f{n}": "int" for n in range(count)}) for count in range(4, 14)]
    raw = [wire(n % 10, v, {f["name"]: n for f in v["fields"]}) for n, v in enumerate(versions * 5)]
    decoded = []
    decode = avro_versions.AvroVersions.decode

    def counted(self: Any, column: pa.Array, *rest: Any) -> Any:
        decoded.append(len(column))
        return decode(self, column, *rest)

    monkeypatch.setattr(avro_versions.AvroVersions, "decode", counted)
    rows, faults = opened(*versions).rows(batch_of_values(*raw))
    assert not faults
    assert decoded == [50]
    assert rows.column("f0").to_pylist() == list(range(50))
