"""Reading stays fast with ids of schemas and headers: Java compiles only methods of a limited size."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_job.flush.manifest import Slice
from s3sink_job.kafka.batch_size import without_large
from s3sink_job.kafka.schema_ids import MESSAGES, SCHEMA_IDS
from s3sink_job.kafka.single_headers import header_column
from s3sink_job.kafka.slice_reader import read_slices
from s3sink_job.task.encoding import KAFKA_COLUMNS
from tests.harness import World

COMPILED = 8000
"""Bytes of code. Java interprets a method with more of them (its option DontCompileHugeMethods)."""
HEADER = header_column("kind")


def generated(world: World, columns: tuple[str, ...], condition: str | None = None) -> int:
    """Bytes of the largest method of the code that Spark generates to read these columns."""
    world.kafka.create_topic(world.topic, 1)
    frame = read_slices(
        *(world.spark, [Slice(world.topic, 1, 0, 0, 10, "test")], {"bootstrap.servers": world.kafka.bootstrap}),
        columns=columns,
        group="test",
        isolation="ReadCommitted",
        conditions={world.topic: condition} if condition else None,
    )
    execution: Any = without_large(frame)._jdf.queryExecution()
    stages = execution.debug().codegenToSeq()
    return max(stages.apply(number)._3().maxMethodCodeSize() for number in range(stages.size()))


@pytest.mark.parametrize(
    ("columns", "condition"),
    [
        (("value",), None),
        (("key", "value", *SCHEMA_IDS.values()), None),
        (("key", "value", *SCHEMA_IDS.values(), *MESSAGES.values()), None),
        (KAFKA_COLUMNS, None),
        (("value", HEADER, SCHEMA_IDS["value"]), f"{HEADER} = X'61'"),
    ],
    ids=["value", "both ids", "both ids and messages", "all columns", "an id and a condition"],
)
def test_code_that_reads_usual_columns_is_small_enough_to_be_compiled(
    world: World, columns: tuple[str, ...], condition: str | None
) -> None:
    assert 0 < generated(world, columns, condition) <= COMPILED


def test_spark_does_without_code_that_is_too_large_to_be_compiled(world: World) -> None:
    many = tuple(header_column(f"header-{number}") for number in range(32))
    assert generated(world, ("value", *many)) > COMPILED
    assert world.spark.conf.get("spark.sql.codegen.hugeMethodLimit") == str(COMPILED)
