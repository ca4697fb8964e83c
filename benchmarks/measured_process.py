"""The process that is measured: one Spark session with the product's own settings, one round after another.

It reads orders from standard input, one JSON document per line, and answers the same way. The first round includes the
JVM's start and warm-up, and does not count; each later round starts with an empty state in its own bucket, with the
same sink name, like a restarted driver.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TextIO

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from s3sink_api.exit_codes import DONE
from s3sink_api.spec import S3Sink, parse
from s3sink_job.base.secrets import Secrets
from s3sink_job.driver.driver import Driver
from s3sink_job.driver.loop import Loop
from s3sink_job.flush.manifest import Slice
from s3sink_job.kafka.batch_size import limit_of, without_large
from s3sink_job.kafka.properties import connection
from s3sink_job.kafka.slice_reader import read_slices
from s3sink_job.report import logs
from s3sink_job.report.status import Reporter
from s3sink_job.spark.session import start_session
from s3sink_job.task.encoding import encoding_of
from s3sink_job.task.slice_result import RESULT_SCHEMA


class Round:
    """One order after another, on one session."""

    def __init__(self, sink: S3Sink, secrets: Secrets, spark: SparkSession) -> None:
        self.sink, self.secrets, self.spark = sink, secrets, spark
        self._steady: Driver | None = None

    def limit(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Reads the product's columns with Spark's default reader, and discards them."""
        self.spark.conf.unset("spark.sql.sources.useV1SourceList")
        return self.limit_v2(order)

    def limit_v2(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """The same with the product's reader."""
        self._frame(order).write.format("noop").mode("overwrite").save()
        return {"records": sum(order["ends"])}

    def hand_over(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """The same, passed to the product's Python code, which discards them."""
        with limit_of(self.spark, small=True):
            without_large(self._frame(order)).mapInArrow(_dropped, RESULT_SCHEMA).collect()
        return {"records": sum(order["ends"])}

    def _frame(self, order: Mapping[str, Any]) -> DataFrame:
        spec = self.sink.spec
        slices = [Slice(order["topic"], 1, p, 0, end, "bench") for p, end in enumerate(order["ends"])]
        return read_slices(
            *(self.spark, slices, connection(spec.source, self.secrets)),
            columns=encoding_of(spec).columns,
            group=f"s3sink.default.{self.sink.metadata.name}",
            isolation=spec.source.isolation,
        )

    def drain(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """`s3sink run --once`, from the take-over to the last published object."""
        driver = self._driver(order, run="Once")
        code = Loop(driver, grace=30.0).run()
        driver.close()
        return {"records": _flushed(driver), "code": code} if code == DONE else _failure(driver)

    def flush(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """One flush of a running driver."""
        if self._steady is None:
            self._steady = self._driver(order, run="Continuous")
        before, began = _flushed(self._steady), time.monotonic()
        self._steady.step()
        return {"records": _flushed(self._steady) - before, "seconds": time.monotonic() - began}

    def _driver(self, order: Mapping[str, Any], *, run: Any) -> Driver:
        spec = self.sink.spec
        source = replace(spec.source, topics=(order["topic"],))
        destination = replace(spec.destination, bucket=order["bucket"])
        sink = replace(self.sink, spec=replace(spec, run=run, source=source, destination=destination))
        return Driver(sink, self.secrets, self.spark, Reporter(), cluster="bench", stop=threading.Event())


def _dropped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if not batch.num_rows:
            yield pa.RecordBatch.from_pydict({"result": [""]})


def _flushed(driver: Driver) -> int:
    if driver.committer is None:
        return 0
    topics = driver.committer.state.topics.values()
    return sum(p.offset for topic in topics for p in topic.partitions.values())


def _failure(driver: Driver) -> dict[str, Any]:
    return {"failure": str(driver.reporter.status()["retry"])}


def _private_output() -> TextIO:
    """Sends what Spark and its JVM print to standard error, so that it does not mix with answers."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def main() -> None:
    answers = _private_output()
    logs.set_up(json_lines=False)
    first = json.loads(sys.stdin.readline())
    sink = parse(first["document"])
    rounds = Round(sink, Secrets(first["secrets"]), start_session(sink.spec, sink.metadata.name))
    kinds = {
        "limit": rounds.limit,
        "limit-v2": rounds.limit_v2,
        "hand-over": rounds.hand_over,
        "drain": rounds.drain,
        "flush": rounds.flush,
    }
    run = kinds[first["kind"]]
    for line in sys.stdin:
        answers.write(json.dumps(run(json.loads(line))) + "\n")
        answers.flush()
    rounds.spark.stop()


if __name__ == "__main__":
    main()
