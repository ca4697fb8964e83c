"""The independent reader must fail for a damaged bucket: here it is damaged by hand, without a driver."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.crash.conftest import MakeSink
from tests.crash.harness import PREFIX, Sink
from tests.crash.reader import in_kafka


def write(sink: Sink, key: str, offsets: range) -> None:
    """An object as the sink would write it, for partition 0."""
    records = in_kafka(sink.kafka.bootstrap, sink.topic)
    rows = [{**json.loads(records[0, o]), "_partition": 0, "_offset": o} for o in offsets]
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    sink.client.put_object(Bucket=sink.bucket, Key=f"{PREFIX}/{key}", Body=gzip.compress(body))


@pytest.mark.parametrize("meta", [True, False])
def test_missing_duplicate_and_changed_objects_are_found(make_sink: MakeSink, meta: bool) -> None:
    sink = make_sink(meta=meta)
    sink.produce(20)
    write(sink, "a", range(5))
    sink.check_nothing_twice()
    with pytest.raises(AssertionError, match="missing"):
        sink.check_exactly_once()
    write(sink, "b", range(4, 10))
    with pytest.raises(AssertionError, match="twice"):
        sink.check_nothing_twice()
    write(sink, "b", range(5, 10))
    with pytest.raises(AssertionError, match="raw/b was"):
        sink.check_nothing_twice()
