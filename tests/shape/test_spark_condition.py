"""Conditions in Spark: a record for which DuckDB's result is true is never left out."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from s3sink_api.spec import Transform
from s3sink_job.decode.bad_records import NO_FAULTS, BadRecords
from s3sink_job.kafka.single_headers import header_column
from s3sink_job.shape.origin import Origin
from s3sink_job.shape.spark_condition import MOST_LEVELS, spark_condition
from s3sink_job.shape.transform_settings import TransformSettings
from s3sink_job.shape.transformer import Transformer

TEXTS = ("", "a", "b", "it's", "größe", "\\", "A")
VALUES = (None, *(text.encode() for text in TEXTS), b"\xff", b"a\xff", b"\xc3", b"\xed\xa0\x80", b"a\x00")
ROWS = [(first, second) for first in VALUES for second in VALUES]
NAMES = ("x", "other header")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


texts = st.sampled_from(TEXTS).map(_quoted)
headers = st.sampled_from(NAMES).map(lambda name: f"_headers['{name}']")
leaves = st.one_of(
    st.tuples(headers, st.sampled_from(["=", "<>", "!="]), texts).map(" ".join),
    st.tuples(texts, st.sampled_from(["=", "<>"]), headers).map(" ".join),
    st.tuples(headers, st.sampled_from(["IS NULL", "IS NOT NULL"])).map(" ".join),
    st.tuples(headers, st.sampled_from(["IN", "NOT IN"]), st.lists(texts, min_size=1, max_size=3)).map(
        lambda parts: f"{parts[0]} {parts[1]} ({', '.join(parts[2])})"
    ),
)
conditions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        inner.map(lambda one: f"NOT ({one})"),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: "(" + " AND ".join(parts) + ")"),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: "(" + " OR ".join(parts) + ")"),
    ),
    max_leaves=6,
)


def kept_by_duckdb(where: str) -> list[bool]:
    columns = {header_column(name): pa.array([row[at] for row in ROWS], pa.binary()) for at, name in enumerate(NAMES)}
    batch = pa.RecordBatch.from_pydict({"offset": list(range(len(ROWS))), **columns})
    transformer = Transformer(TransformSettings(Transform(where=where)), Origin("t", 1))
    found = transformer.early(batch, BadRecords(batch), lambda: (pa.nulls(len(ROWS)), NO_FAULTS))
    return [True] * len(ROWS) if found.keep is None else found.keep.to_pylist()


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(given_conditions=st.lists(conditions, min_size=15, max_size=15))
def test_what_duckdb_keeps_is_never_left_out_by_spark(spark: SparkSession, given_conditions: list[str]) -> None:
    schema = ", ".join(f"{header_column(name)} BINARY" for name in NAMES)
    frame = spark.createDataFrame([(n, *row) for n, row in enumerate(ROWS)], f"n INT, {schema}")
    found = [(where, spark_condition(where)) for where in given_conditions]
    assert all(condition for _, condition in found)
    rows = frame.select("n", *(f.expr(sql).alias(f"c{n}") for n, (_, sql) in enumerate(found) if sql)).collect()
    by_spark = {row.n: row for row in rows}
    left_out = 0
    for number, (where, _) in enumerate(found):
        for at, kept in enumerate(kept_by_duckdb(where)):
            result = by_spark[at][f"c{number}"]
            assert result is True or not kept, (where, ROWS[at])
            # Headers that are text have the same result in both.
            if all(value is None or _is_text(value) for value in ROWS[at]):
                assert (result is True) == kept, (where, ROWS[at])
            left_out += result is not True
    assert left_out


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


@pytest.mark.parametrize(
    "where",
    [
        "",
        "amount > 3",
        "_offset > 3",
        "_key = 'a'",
        "_headers['x'] LIKE 'a%'",
        "_headers['x'] = 5",
        "_headers['x'] = NULL",
        "_headers['x'] = _headers['y']",
        "_headers['x'] = 'a' AND CAST(_headers['n'] AS INTEGER) > 3",
        "_headers['x'] = 'a' AND _partition = 3",
        "_headers['x'] IN ('a', upper('b'))",
        "lower(_headers['x']) = 'a'",
        "_headers['x'] IS DISTINCT FROM 'a'",
        "length(_headers) = 0",
    ],
)
def test_a_condition_that_may_fail_or_has_other_parts_is_left_to_duckdb(where: str) -> None:
    assert spark_condition(where) is None


def test_a_condition_too_deep_for_the_stack_of_java_is_left_to_duckdb(spark: SparkSession) -> None:
    def nested(levels: int) -> str:
        return "NOT (" * levels + "_headers['x'] = 'a'" + ")" * levels

    assert spark_condition(nested(MOST_LEVELS + 1)) is None
    deepest = spark_condition(nested(MOST_LEVELS))
    assert deepest is not None
    frame = spark.createDataFrame([(bytearray(b"a"),), (None,)], f"{header_column('x')} BINARY")
    assert frame.where(deepest).count() == 1


def test_conditions_on_the_value_do_not_stop_those_on_headers() -> None:
    assert spark_condition("_headers['x'] = 'a' AND amount > 3") == f"({header_column('x')} = X'61')"
