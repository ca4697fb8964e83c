"""Objects of many folders are sent some at a time: a store that takes its time does not hold the next one up."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from e2e.parts.proxy import Call, FaultProxy, Request, Status, request_is
from e2e.parts.s3 import S3Server
from s3sink_job.engine import sending
from s3sink_job.engine.objects import Objects
from s3sink_job.errors import S3SinkError
from s3sink_job.layout import Item, Layout
from s3sink_job.stores.client import open_bucket
from tests.engine.test_many_values import interleaved
from tests.engine.test_objects import ENCODINGS, Written, ids_in, incompressible, offsets, rows_of, store

__all__ = ["store"]

PART = request_is("PUT", query=r"\bpartNumber=")
WANTED = replace(ENCODINGS["json"], layout=Layout(items=(Item("Topic"), Item("Field", "v", ("v",)))))
VALUES = 40


class Crowd:
    """Keeps requests back until so many are there together, and knows the most there ever were."""

    def __init__(self, wanted: int) -> None:
        self._wanted, self._here = wanted, 0
        self.most = 0
        self._change = threading.Condition()

    def meet(self, _: Request) -> None:
        with self._change:
            self._here += 1
            self.most = max(self.most, self._here)
            self._change.notify_all()
            self._change.wait_for(lambda: self.most >= self._wanted, 5)

    def leave(self, _: Request) -> None:
        with self._change:
            self._here -= 1


@pytest.fixture
def through(store: Written, proxy: FaultProxy) -> Written:
    """The store as the proxy shows it."""
    destination = replace(store.task.destination, endpoint=proxy.endpoint)
    bucket = open_bucket(destination, store.task.secrets, replace(store.task.retrying, max=0))
    return replace(store, task=replace(store.task, destination=destination), bucket=bucket)


def written(store: Written, rows: int = 2_000, **changes: Any) -> Objects:
    objects = store.objects(encoding=WANTED, **changes)
    values = rows_of(incompressible(rows, 0), WANTED)
    objects.write(values, offsets(0, rows), interleaved([n % VALUES for n in range(rows)]))
    return objects


def test_several_objects_are_on_their_way_at_a_time_and_each_is_whole(through: Written, proxy: FaultProxy) -> None:
    crowd = Crowd(sending.PARALLEL)
    proxy.on(PART, Call(before=crowd.meet, after=crowd.leave))
    objects = written(through)
    objects.close()
    objects.tidy()
    assert crowd.most == sending.PARALLEL
    assert [entry.group[0] for entry in objects.done] == [f"v={value}" for value in range(VALUES)]
    for value, entry in enumerate(objects.done):
        assert ids_in(through.content(entry), WANTED) == list(range(value, 2_000, VALUES))


def test_what_is_on_its_way_is_bounded_in_bytes(
    through: Written, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object has 50 rows of some 150 bytes: with room for two, no third sets out."""
    monkeypatch.setattr(sending, "MOST_SENDING", 16_000)
    crowd = Crowd(2)
    proxy.on(PART, Call(before=crowd.meet, after=crowd.leave))
    objects = written(through)
    objects.close()
    objects.tidy()
    assert crowd.most == 2
    assert len(objects.done) == VALUES


def test_one_that_cannot_be_sent_fails_the_slice_and_nothing_stays(
    through: Written, proxy: FaultProxy, s3: S3Server
) -> None:
    proxy.on(PART, Status(503, "SlowDown"), times=1, skip=3)
    objects = written(through)
    with pytest.raises(S3SinkError, match="SlowDown"):
        objects.close()
    objects.abandon()
    assert s3.client().list_multipart_uploads(Bucket=through.bucket.name).get("Uploads", []) == []


def test_objects_under_way_count_where_a_slice_may_make_but_some(through: Written, proxy: FaultProxy) -> None:
    held = threading.Event()
    proxy.on(PART, Call(before=lambda _: held.wait(10)), times=1)
    objects = through.objects(encoding=ENCODINGS["json"], records_per_object=10)
    objects.write(rows_of(incompressible(30, 0), WANTED), offsets(0, 30), None)
    assert objects.with_these(None) == 4
    held.set()
    objects.close()
    objects.tidy()
    assert [entry.rows for entry in objects.done] == [10, 10, 10]
