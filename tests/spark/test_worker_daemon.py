"""What the worker daemon imports."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pyarrow as pa

from tests.harness import World

FORMATS = ("Parquet", "Avro", "Csv", "Orc", "Json")


def test_workers_do_not_import_pandas(world: World) -> None:
    """It takes half of the import time, and Arrow is the only one that would import it."""
    world.kafka.create_topic(world.topic)
    world.produce([{"n": 1, "v": {"w": "x"}, "list": [1.5, None]}])
    layout = {"partitionBy": [{"type": "Field", "path": ["v", "w"]}]}
    for format in FORMATS:
        apart = {"prefix": format, "statePrefix": f".{format}"}
        world.drain(destination=apart, format={"type": format}, layout=layout)
    assert world.verify(world.drain(format={"type": "Parquet"}, layout=layout)).ok

    def loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"name": [name for name in sys.modules if "." not in name]})

    names = {row.name for row in world.spark.range(0, 8, 1, 2).mapInArrow(loaded, "name string").collect()}
    assert "pyarrow" in names
    assert "duckdb" in names
    assert "pandas" not in names
