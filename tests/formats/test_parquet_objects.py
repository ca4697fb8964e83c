"""Parquet objects: other readers get every row back, in order, under one schema."""

from __future__ import annotations

import gc
import io
import json
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3sink_api.spec import LEVELS
from s3sink_job.base.spill import Spill, SpillPlace
from s3sink_job.decode.json_columns import JsonColumns
from s3sink_job.formats.output_format import ObjectWriter
from s3sink_job.formats.settings import Output
from tests.encodings import changed_output
from tests.formats.samples import comparable, open_object

PARQUET = Output("Parquet", "Zstd")
TINY = changed_output(PARQUET, row_group_bytes=1)
"""Every batch is a row group."""
CODECS = {"None": "UNCOMPRESSED", "Snappy": "SNAPPY", "Gzip": "GZIP", "Zstd": "ZSTD", "Lz4": "LZ4", "Brotli": "BROTLI"}


@pytest.fixture
def spill(tmp_path: Path) -> Spill:
    return Spill(SpillPlace(str(tmp_path / "spill"), 2**30))


def spilled(spill: Spill) -> list[Path]:
    return [path for path in Path(spill.place.folder).rglob("*") if path.is_file() and path.name != "lock"]


def rows(**columns: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def written(spill: Spill, wanted: Output, *batches: pa.RecordBatch) -> bytes:
    sink = io.BytesIO()
    writer = open_object(wanted, sink, spill)
    for batch in batches:
        writer.write(batch)
    writer.close()
    assert spilled(spill) == []
    assert spill.used == 0
    return sink.getvalue()


def read(data: bytes, tmp_path: Path) -> list[dict[str, Any]]:
    """By DuckDB; Arrow has to agree."""
    path = tmp_path / "object.parquet"
    path.write_bytes(data)
    found = duckdb.sql(f"SELECT * FROM read_parquet('{path}', file_row_number=true) ORDER BY file_row_number")
    names = found.columns[:-1]
    by_duckdb = [dict(zip(names, row[:-1], strict=True)) for row in found.fetchall()]
    assert pq.read_table(io.BytesIO(data)).to_pylist() == by_duckdb
    return by_duckdb


@pytest.mark.parametrize(("codec", "level"), [(c, level) for c in CODECS for level in LEVELS.get(c, ())])
def test_every_level_that_the_resource_allows_is_written(codec: str, level: int, spill: Spill, tmp_path: Path) -> None:
    rows = compressible(500)

    data = written(spill, changed_output(PARQUET, codec=codec, level=level), rows)

    assert read(data, tmp_path) == rows.to_pylist()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("row_group_bytes", [1, 2**20])
def test_every_codec_is_read_by_others(codec: str, row_group_bytes: int, spill: Spill, tmp_path: Path) -> None:
    batches = [rows(n=list(range(k, k + 100)), t=[f"text {k}"] * 100) for k in range(0, 500, 100)]

    data = written(spill, changed_output(PARQUET, codec=codec, row_group_bytes=row_group_bytes), *batches)

    assert read(data, tmp_path) == [row for batch in batches for row in batch.to_pylist()]
    assert pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).compression == CODECS[codec]


def test_nested_values_nulls_and_empty_lists_come_back(spill: Spill, tmp_path: Path) -> None:
    content = [
        {"s": {"a": 1, "b": [1.5, None]}, "l": [{"x": "ä"}, None, {"x": None}]},
        {"s": None, "l": []},
        {"s": {"a": None, "b": []}, "l": None},
        {"s": {"a": 2, "b": None}, "l": [{"x": ""}]},
    ]
    kind = pa.array(content).type

    for part in (pa.array(content, kind), pa.array([None, *content], kind).slice(1)):
        batch = pa.RecordBatch.from_struct_array(part)
        assert read(written(spill, PARQUET, batch), tmp_path) == content
        assert read(written(spill, TINY, batch, batch), tmp_path) == content * 2


@pytest.mark.parametrize("wanted", [PARQUET, TINY], ids=["one group", "a group each"])
def test_a_schema_that_changes_in_the_middle_is_one_object_with_all_rows_in_order(
    wanted: Output, spill: Spill, tmp_path: Path
) -> None:
    batches = [
        rows(n=[1, 2]),
        rows(n=[3], new=["x"]),
        rows(n=[None], new=[None]),
        rows(new=["y"], n=[4.5]),
        rows(n=[5], new=["z"], deep=[{"a": [1]}]),
        rows(n=[6], deep=[{"b": True}]),
    ]

    data = written(spill, wanted, *batches)

    deep = {"a": None, "b": None}
    assert read(data, tmp_path) == [
        {"n": 1.0, "new": None, "deep": None},
        {"n": 2.0, "new": None, "deep": None},
        {"n": 3.0, "new": "x", "deep": None},
        {"n": None, "new": None, "deep": None},
        {"n": 4.5, "new": "y", "deep": None},
        {"n": 5.0, "new": "z", "deep": {**deep, "a": [1]}},
        {"n": 6.0, "new": None, "deep": {**deep, "b": True}},
    ]


LAST = 2**63 - 1
NANOS = [LAST, -LAST - 1, 1_700_000_000_123_456_789, -1, -1_000, 0, None]
MICROS = [LAST // 1000, (-LAST - 1) // 1000, 1_700_000_000_123_456, -1, -1, 0, None]
"""The digits below are cut off, before 1970 too: no time becomes a later one."""
NANO, MICRO = pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC")


def times(values: list[int | None], kind: pa.DataType) -> pa.RecordBatch:
    """The same times in columns of any depth."""
    column, local = pa.array(values, pa.int64()).view(kind), pa.array(values, pa.int64()).view(pa.timestamp(kind.unit))
    bounds = pa.array(range(len(values) + 1), pa.int32())
    nested = pa.StructArray.from_arrays([column, pa.ListArray.from_arrays(bounds, column)], ["at", "all"])
    named = pa.MapArray.from_arrays(bounds, pa.array(["k"] * len(values)), nested)
    lists = pa.ListArray.from_arrays(bounds, nested)
    return pa.RecordBatch.from_arrays([column, local, nested, named, lists], ["at", "local", "in", "named", "lists"])


@pytest.mark.parametrize("groups", [{}, {"row_group_bytes": 1}], ids=["one group", "a group each"])
def test_micros_cuts_nanoseconds_at_any_depth_and_changes_no_other_column(groups: Any, spill: Spill) -> None:
    wanted = changed_output(PARQUET, timestamps="Micros", **groups)
    others = pa.RecordBatch.from_arrays(
        [pa.array(NANOS, pa.int64()).view(kind) for kind in (pa.timestamp("ms", "UTC"), MICRO, pa.int64())],
        ["ms", "us", "n"],
    )
    nanos = pa.RecordBatch.from_arrays(
        [*times(NANOS, NANO).columns, *others.columns], [*times([], NANO).schema.names, *others.schema.names]
    )

    found = pq.read_table(io.BytesIO(written(spill, wanted, nanos, nanos.slice(2, 3), nanos.select(["n", "at"]))))

    micros = times(MICROS, MICRO)
    assert found.schema.equals(pa.schema([*micros.schema, *others.schema]))
    assert found.slice(0, len(NANOS)).select(micros.schema.names).to_batches() == [micros]
    assert found.slice(0, len(NANOS)).select(others.schema.names).to_batches() == [others]
    assert found.column("lists").combine_chunks()[len(NANOS)].as_py() == micros.column("lists")[2].as_py()
    assert found.column("at").to_pylist() == [*(whole := micros.column("at").to_pylist()), *whole[2:5], *whole]
    rows = pa.Table.from_batches([nanos])
    for table in (rows, rows.slice(0, 0)):
        expected = comparable(table, wanted, found.schema)
        assert expected.equals(found.slice(0, table.num_rows))


def test_nanoseconds_stay_without_the_option(spill: Spill) -> None:
    nanos = times(NANOS, NANO)
    assert pq.read_table(io.BytesIO(written(spill, PARQUET, nanos))).to_batches() == [nanos]


@pytest.mark.parametrize("wanted", [PARQUET, TINY], ids=["one group", "a group each"])
def test_a_long_number_before_or_after_doubles_is_text_with_all_digits(
    wanted: Output, spill: Spill, tmp_path: Path
) -> None:
    long = 2**53 + 1
    batches = [
        rows(n=[{"m": [long]}], k=[0]),
        rows(n=[{"m": [0.5, None]}], k=[1.5]),
        rows(n=[{"m": [long - 2]}], k=[2]),
    ]
    sink = io.BytesIO()
    writer = open_object(wanted, sink, spill)
    for batch in batches:
        writer.write(batch)

    texts = writer.close()

    assert set(texts) == {("n", "m", "[]")}
    assert [row["n"]["m"] for row in read(sink.getvalue(), tmp_path)] == [[str(long)], ["0.5", None], [str(long - 2)]]
    assert [row["k"] for row in read(sink.getvalue(), tmp_path)] == [0.0, 1.5, 2.0]


json_objects = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([1, 2, 0.5, "x", ""]),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xy"), inner, max_size=2),
        max_leaves=4,
    ),
    max_size=3,
)


def bare(value: Any) -> Any:
    """Without nulls and empty values: they may have no column yet. Lists with a value keep their length."""
    if isinstance(value, dict):
        return {name: inner for name, v in value.items() if (inner := bare(v)) is not None} or None
    if isinstance(value, list):
        items = [bare(item) for item in value]
        return items if any(item is not None for item in items) else None
    return value


def says(value: Any, cell: Any) -> bool:
    """Whether the cell holds the value: text holds strings as they are, or the JSON of anything else."""
    if isinstance(cell, str) and not isinstance(value, str):
        return says(value, json.loads(cell))
    if isinstance(value, dict) and isinstance(cell, dict):
        return all(says(inner, cell.get(name)) for name, inner in value.items())
    if isinstance(value, list) and isinstance(cell, list):
        return len(value) == len(cell) and all(map(says, value, cell))
    if cell is None:
        return bare(value) is None
    return isinstance(value, bool) == isinstance(cell, bool) and bool(value == cell)


@settings(max_examples=80)
@given(
    batches=st.lists(st.lists(json_objects, min_size=1, max_size=3), min_size=1, max_size=5),
    row_group_bytes=st.sampled_from([1, 60, 2**20]),
)
def test_every_value_is_in_its_row_for_any_size_of_row_groups(
    batches: list[list[dict[str, Any]]], row_group_bytes: int
) -> None:
    columns = JsonColumns()
    decoded = []
    for values in batches:
        rows, bad = columns.decode(pa.array([json.dumps(value).encode() for value in values], pa.binary()))
        assert not bad
        decoded.append(rows)

    with TemporaryDirectory() as folder:
        spill = Spill(SpillPlace(folder, 2**30))
        data = written(spill, changed_output(PARQUET, row_group_bytes=row_group_bytes), *decoded)
        spill.close()

    found = pq.read_table(io.BytesIO(data)).to_pylist()
    for value, row in zip([value for values in batches for value in values], found, strict=True):
        assert says(value, row)


def compressible(count: int) -> pa.RecordBatch:
    return rows(n=[k // 100 for k in range(count)], t=[f"the same text, {k % 7}" for k in range(count)])


def incompressible(count: int) -> pa.RecordBatch:
    chance = random.Random(7)
    return rows(n=[chance.getrandbits(62) for _ in range(count)], t=[chance.randbytes(30).hex() for _ in range(count)])


@pytest.mark.parametrize("make", [compressible, incompressible])
@pytest.mark.parametrize("codec", ["None", "Zstd", "Gzip"])
def test_the_size_of_an_object_is_known_before_it_is_closed(codec: str, make: Any, spill: Spill) -> None:
    sink = io.BytesIO()
    writer = open_object(changed_output(PARQUET, codec=codec, row_group_bytes=2**20), sink, spill)
    for _ in range(10):
        writer.write(make(20_000))
    writer.settle()

    size = writer.size
    writer.close()

    assert writer.held == 0
    assert size == pytest.approx(len(sink.getvalue()), rel=0.05, abs=2_000)


def test_a_row_group_is_written_when_it_has_the_bytes_asked_for(spill: Spill) -> None:
    batch = incompressible(1_000)
    data = written(spill, changed_output(PARQUET, row_group_bytes=batch.nbytes * 2), *[batch] * 5)

    file = pq.ParquetFile(io.BytesIO(data)).metadata
    assert [file.row_group(i).num_rows for i in range(file.num_row_groups)] == [2_000, 2_000, 1_000]


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("row_group_bytes", [1, 2**20])
def test_dictionaries_and_statistics_are_written_as_asked(
    dictionary: bool, statistics: bool, row_group_bytes: int, spill: Spill
) -> None:
    wanted = changed_output(PARQUET, dictionary=dictionary, statistics=statistics, row_group_bytes=row_group_bytes)

    data = written(spill, wanted, rows(t=["a", "a", "b"]), rows(t=["c"], u=[1]))

    column = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0)
    assert column.has_dictionary_page == dictionary
    assert column.is_stats_set == statistics


@pytest.mark.parametrize("wanted", [PARQUET, TINY], ids=["one group", "a group each"])
def test_tombstones_alone_are_rows_that_can_be_counted(wanted: Output, spill: Spill, tmp_path: Path) -> None:
    columns = JsonColumns()
    batches = [columns.decode(pa.nulls(3, pa.binary()))[0], columns.decode(pa.array([b"{}", None]))[0]]

    assert len(read(written(spill, wanted, *batches), tmp_path)) == 5


def test_an_object_of_one_row_group_never_touches_the_disk(tmp_path: Path) -> None:
    nowhere = Spill(SpillPlace(str(tmp_path / "never" / "made"), 0))

    assert read(written(nowhere, PARQUET, rows(n=[1]), rows(n=[2.5])), tmp_path) == [{"n": 1.0}, {"n": 2.5}]
    assert not (tmp_path / "never").exists()


class Broken(Exception):
    pass


class BreakingSink:
    def __init__(self, after: int) -> None:
        self.left = after

    def write(self, data: bytes | memoryview) -> int:
        self.left -= 1
        if self.left < 0:
            raise Broken("no more")
        return len(data)


def filled(wanted: Output, spill: Spill, after: int, *batches: pa.RecordBatch) -> ObjectWriter:
    writer = open_object(wanted, BreakingSink(after), spill)
    for batch in batches:
        writer.write(batch)
    return writer


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("after", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("wanted", "batches"),
    [
        (PARQUET, [rows(n=[1])]),
        (TINY, [rows(n=[1])] * 2),
        (TINY, [rows(n=[1]), rows(n=[1.5])]),
    ],
    ids=["in memory", "one run", "several runs"],
)
def test_what_the_upload_raises_is_raised_and_nothing_is_left_behind(
    wanted: Output, batches: list[pa.RecordBatch], after: int, spill: Spill
) -> None:
    writer = filled(wanted, spill, after, *batches)
    if wanted is TINY and after and len(batches) == 2 and batches[0].schema == batches[1].schema:
        after = 0  # A run's file goes to the sink at once.
        writer.abandon()
        writer = filled(wanted, spill, after, *batches)

    with pytest.raises(Broken, match="no more"):
        writer.close()
    writer.abandon()

    assert spilled(spill) == []
    assert spill.used == 0
    del writer
    gc.collect()


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_an_abandoned_object_leaves_no_file_and_raises_nothing(spill: Spill) -> None:
    writer = filled(TINY, spill, 0, rows(n=[1]), rows(n=["x"]), rows(n=["y"]))
    assert len(spilled(spill)) == 2

    writer.abandon()

    assert spilled(spill) == []
    assert spill.used == 0
    del writer
    gc.collect()
