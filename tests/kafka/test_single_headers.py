"""Single headers as columns: the last one of each name, whatever the name, and no other header leaves Spark."""

from __future__ import annotations

import pyarrow as pa

from s3sink_job.flush.manifest import Slice
from s3sink_job.kafka.batch_size import SMALL, can_be_small, without_large
from s3sink_job.kafka.single_headers import header_column
from s3sink_job.kafka.slice_reader import read_slices
from tests.harness import World

ODD = ("a.b", "it's", 'say "x"', "back\\slash", "`tick`", "größe", "a b", "${user.name}")


def test_the_last_header_of_a_name_is_read_whatever_the_name(world: World) -> None:
    world.kafka.create_topic(world.topic, 1)
    headers = [
        None,
        [("other", b"x")],
        [("a.b", b"1"), ("a.b", b"2"), ("other", b"x")],
        [("a.b", None)],
        [("a.b", b"")],
        [(name, name.encode()) for name in ODD],
        [("a.b", b"x" * 2 * SMALL)],
    ]
    world.kafka.produce(world.topic, [(None, b"v", given, None) for given in headers], 0)
    columns = ("value", *map(header_column, ODD))
    assert can_be_small(columns)
    frame = read_slices(
        world.spark,
        [Slice(world.topic, 1, 0, 0, len(headers), "test")],
        {"bootstrap.servers": world.kafka.bootstrap},
        columns=columns,
        group=f"test.{world.topic}",
        isolation="ReadCommitted",
    )
    assert frame.columns == ["partition", "offset", *columns]
    found: pa.Table = without_large(frame).toArrow().sort_by("offset")

    assert found.column(header_column("a.b")).to_pylist() == [None, None, b"2", None, b"", b"a.b", None]
    assert [found.column(header_column(name))[5].as_py() for name in ODD] == [name.encode() for name in ODD]
    # The last one is large: neither its value nor its header passes on.
    assert found.column("large").to_pylist() == [False] * 6 + [True]
    assert found.column("value").to_pylist() == [b"v"] * 6 + [None]
