"""Schemas by id: requested once, bounded in memory, and an id that appears later is not lost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from s3sink_api.spec import SchemaRegistry as Registry
from s3sink_job.base.errors import TransientError
from s3sink_job.base.retry import NO_RETRIES
from s3sink_job.base.secrets import Secrets
from s3sink_job.decode.registry_client import registry_client
from s3sink_job.decode.registry_schemas import MOST_REPORTED, RegistrySchemas, SchemaCache
from s3sink_job.decode.writer_schemas import Reference, SchemaId, SchemaLookup, WriterSchema, numbered
from tools.parts.registry import SchemaRegistry


@dataclass
class CountedRequests:
    """Schemas by id, and which ids were requested."""

    schemas: dict[int, WriterSchema] = field(default_factory=dict)
    name: str = "http://r"
    requested: list[int] = field(default_factory=list)

    def schema(self, schema: SchemaId) -> WriterSchema | None:
        self.requested.append(int(schema.value))
        return self.schemas.get(int(schema.value))


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def of(text: str) -> WriterSchema:
    return WriterSchema("AVRO", text)


def test_many_tasks_of_a_process_request_an_id_once() -> None:
    client, cache = CountedRequests({1: of("a")}), SchemaCache()
    tasks: list[SchemaLookup] = [RegistrySchemas(client, cache=cache) for _ in range(3)]
    assert [task.find(numbered(1)) for task in tasks for _ in range(5)] == [of("a")] * 15
    assert client.requested == [1]
    assert tasks[0].inline is None


def test_what_the_driver_handed_out_is_never_requested() -> None:
    client = CountedRequests()
    task = RegistrySchemas(client, {numbered(1): of("a")}, SchemaCache())
    assert task.find(numbered(1)) == of("a")
    assert (client.requested, task.found) == ([], {})


def test_a_task_reports_what_it_requested_and_nothing_else() -> None:
    client, cache = CountedRequests({1: of("a"), 2: of("b"), 4: of("c")}), SchemaCache()
    RegistrySchemas(client, cache=cache).find(numbered(4))
    task = RegistrySchemas(client, {numbered(1): of("a")}, cache)
    for number in (1, 2, 2, 3, 4):
        task.find(numbered(number))
    assert task.found == {numbered(2): of("b")}


def test_a_report_is_limited_in_size() -> None:
    half = "x" * (MOST_REPORTED // 2)
    task = RegistrySchemas(CountedRequests({n: of(half) for n in range(5)}), cache=SchemaCache())
    for number in range(5):
        assert task.find(numbered(number)) == of(half)
    assert sorted(task.found) == [numbered(0), numbered(1)]


def test_an_id_that_is_registered_later_is_found_half_a_minute_later() -> None:
    client, clock = CountedRequests(), Clock()
    task = RegistrySchemas(client, cache=SchemaCache(clock=clock))
    assert [task.find(numbered(1)), task.find(numbered(1))] == [None, None]
    client.schemas[1] = of("a")
    clock.now += 29
    assert task.find(numbered(1)) is None
    clock.now += 2
    assert task.find(numbered(1)) == of("a")
    assert client.requested == [1, 1]


def test_registries_do_not_share_ids() -> None:
    cache = SchemaCache()
    one, other = CountedRequests({1: of("a")}), CountedRequests({1: of("b")}, name="http://other")
    assert RegistrySchemas(one, cache=cache).find(numbered(1)) == of("a")
    assert RegistrySchemas(other, cache=cache).find(numbered(1)) == of("b")


def test_ten_thousand_more_ids_than_fit_do_not_fill_the_memory() -> None:
    client = CountedRequests({n: of(f"{n:05}") for n in range(300)})
    task = RegistrySchemas(client, cache=SchemaCache(most=100))
    for number in range(300):
        assert task.find(numbered(0)) == of("00000")
        assert task.find(numbered(number)) == of(f"{number:05}")
    assert client.requested.count(0) == 1, "what is used stays"
    task.find(numbered(250))
    assert client.requested.count(250) == 1
    task.find(numbered(5))
    assert client.requested.count(5) == 2
    for number in range(1000, 1300):
        task.find(numbered(number))
    assert len(task._cache._unknown) == 100


def test_large_schemas_do_not_fill_the_memory() -> None:
    client = CountedRequests({n: WriterSchema("AVRO", "x" * 30, (Reference("R", "y" * 20),)) for n in range(10)})
    cache = SchemaCache(most_text=120)
    task = RegistrySchemas(client, cache=cache)
    for number in range(10):
        task.find(numbered(number))
    assert (len(cache._schemas), cache._text) == (2, 100)
    cache.put(("http://r", numbered(99)), of("z" * 500))
    assert cache.get(("http://r", numbered(99))) == of("z" * 500)
    assert len(cache._schemas) == 1


def test_an_unreachable_registry_is_not_remembered_as_an_unknown_id() -> None:
    class Down(CountedRequests):
        def schema(self, schema: SchemaId) -> WriterSchema | None:
            self.requested.append(int(schema.value))
            raise TransientError("down", reason="RegistryUnavailable")

    client = Down()
    task = RegistrySchemas(client, cache=SchemaCache())
    for _ in range(2):
        with pytest.raises(TransientError):
            task.find(numbered(1))
    assert client.requested == [1, 1]


def test_threads_share_the_cache_without_losing_count() -> None:
    cache = SchemaCache(most=50)
    client = CountedRequests({n: of("x" * n) for n in range(200)})
    barrier = threading.Barrier(8)

    def use(seed: int) -> None:
        barrier.wait()
        task = RegistrySchemas(client, cache=cache)
        for step in range(2000):
            number = (step * 7 + seed * 31) % 200
            assert task.find(numbered(number)) == of("x" * number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))
    assert cache._text == sum(len(schema.text) for schema in cache._schemas.values())
    assert len(cache._schemas) == 50


def test_a_process_outlives_the_registry_once_it_has_the_schema(topic_name: str) -> None:
    with SchemaRegistry() as registry:
        number = registry.register(f"{topic_name}-value", '"long"')
        client = registry_client(Registry(url=registry.url), Secrets("/nonexistent"), NO_RETRIES)
        assert RegistrySchemas(client).find(numbered(number)) == of('"long"')
        registry.kill()
        assert RegistrySchemas(client).find(numbered(number)) == of('"long"')
        with pytest.raises(TransientError):
            RegistrySchemas(client).find(numbered(number + 1))
