"""Objects are sent in parallel, so that a slow store does not delay the next object."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from s3sink_job.base.errors import S3SinkError
from s3sink_job.base.retry import NO_RETRIES
from s3sink_job.layout.settings import LayoutItem, ObjectLayout
from s3sink_job.stores.factory import open_bucket
from s3sink_job.task import upload_pool
from s3sink_job.task.open_objects import OpenObjects
from tests.encodings import changed
from tests.task.test_many_values import interleaved
from tests.task.test_objects import ENCODINGS, Written, ids_in, incompressible, offsets, rows_of, store, work_with
from tools.parts.proxy import Call, FaultProxy, Request, Status, request_is
from tools.parts.s3 import S3Server

__all__ = ["store"]

PART = request_is("PUT", query=r"\bpartNumber=")
WANTED = changed(ENCODINGS["json"], layout=ObjectLayout(items=(LayoutItem("Topic"), LayoutItem("Field", "v", ("v",)))))
VALUES = 40


class Crowd:
    """Delays requests until enough of them are in flight, and counts the most that ever were."""

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
    """The store behind the proxy."""
    destination = replace(store.destination, endpoint=proxy.endpoint)
    bucket = open_bucket(destination, store.settings.secrets, NO_RETRIES)
    return replace(store, work=work_with(store.work, destination=destination), bucket=bucket)


def written(store: Written, rows: int = 2_000, **changes: Any) -> OpenObjects:
    objects = store.objects(encoding=WANTED, **changes)
    values = rows_of(incompressible(rows, 0), WANTED)
    objects.write(values, offsets(0, rows), interleaved([n % VALUES for n in range(rows)]))
    return objects


def test_several_objects_are_sent_in_parallel_and_each_is_complete(through: Written, proxy: FaultProxy) -> None:
    crowd = Crowd(upload_pool.PARALLEL)
    proxy.on(PART, Call(before=crowd.meet, after=crowd.leave))
    objects = written(through)
    objects.close()
    objects.release()
    assert crowd.most == upload_pool.PARALLEL
    assert [entry.group[0] for entry in objects.done] == [f"v={value}" for value in range(VALUES)]
    for value, entry in enumerate(objects.done):
        assert ids_in(through.content(entry), WANTED) == list(range(value, 2_000, VALUES))


def test_bytes_in_flight_are_bounded(through: Written, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object has 50 rows of about 150 bytes: with room for two, a third has to wait."""
    monkeypatch.setattr(upload_pool, "MOST_IN_FLIGHT", 16_000)
    crowd = Crowd(2)
    proxy.on(PART, Call(before=crowd.meet, after=crowd.leave))
    objects = written(through)
    objects.close()
    objects.release()
    assert crowd.most == 2
    assert len(objects.done) == VALUES


def test_an_object_that_cannot_be_sent_fails_the_slice_and_leaves_nothing(
    through: Written, proxy: FaultProxy, s3: S3Server
) -> None:
    proxy.on(PART, Status(503, "SlowDown"), times=1, skip=3)
    objects = written(through)
    with pytest.raises(S3SinkError, match="SlowDown"):
        objects.close()
    objects.abandon()
    assert s3.client().list_multipart_uploads(Bucket=through.bucket.name).get("Uploads", []) == []


def test_objects_in_flight_count_towards_the_object_limit(through: Written, proxy: FaultProxy) -> None:
    held = threading.Event()
    proxy.on(PART, Call(before=lambda _: held.wait(10)), times=1)
    objects = through.objects(encoding=ENCODINGS["json"], records_per_object=10)
    objects.write(rows_of(incompressible(30, 0), WANTED), offsets(0, 30), None)
    assert objects.count_with(None) == 4
    held.set()
    objects.close()
    objects.release()
    assert [entry.rows for entry in objects.done] == [10, 10, 10]
