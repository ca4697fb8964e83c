"""`s3sink run`: a Spark session, the loop, and the ways to look at it."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from s3sink_job.cli.context import Opened
from s3sink_job.engine.driver import Driver
from s3sink_job.engine.loop import FAILED, Loop
from s3sink_job.report import logs
from s3sink_job.report.reporter import Reporter
from s3sink_job.report.server import serve
from s3sink_job.report.terminal import watching

STATUS_BYTES = "S3SINK_STATUS_BYTES"
"""Environment: the longest that the status file may be; Kubernetes cuts termination messages off at 4096."""
PULSE_EVERY, PULSE_LOST = 5.0, 60.0


def run_sink(
    given: Opened,
    session: Future[SparkSession],
    *,
    listen: tuple[str, int],
    grace: float,
    json_logs: bool | None,
    cluster: str,
    status_file: Path | None,
) -> int:
    on_terminal = sys.stderr.isatty()
    logs.set_up(json_lines=not on_terminal if json_logs is None else json_logs)
    sink = given.sink
    if sink.spec.run == "Scheduled":
        logs.info("spec.run is Scheduled: this is one run; the schedule is Kubernetes' to keep")
    reporter = Reporter(generation=sink.metadata.generation)
    stop = threading.Event()
    spark = session.result()
    driver = Driver(sink, given.secrets, spark, reporter, cluster=cluster, stop=stop)
    loop = Loop(driver, grace=grace)
    pulse = Pulse(spark, stop)
    server = serve(reporter, listen, lambda: loop.healthy() and pulse.beats)
    logs.info("listening", status=f"http://{listen[0]}:{server.server_address[1]}/status")
    try:
        with watching(reporter, enabled=on_terminal):
            code = loop.run()
        driver.close()
        spark.stop()
        return code
    except (Py4JError, ConnectionError, EOFError) as error:
        # A gateway without its JVM answers with any of these; only a Java exception proves that it lives.
        if isinstance(error, Py4JJavaError):
            raise
        # Nothing is lost: the next start takes over from the state in the bucket.
        logs.warning("the Spark JVM is gone: start again", error=f"{type(error).__name__}: {error}")
        return FAILED
    finally:
        server.shutdown()
        if status_file is not None:
            status_file.write_text(status_text(reporter.status(), int(os.environ.get(STATUS_BYTES, "0"))))


def status_text(status: dict[str, Any], longest: int = 0) -> str:
    """The status as JSON; with a limit without what is longest, partition by partition, until it fits."""
    if not longest:
        return json.dumps(status, indent=1)
    kept = dict(status)
    text = json.dumps(kept, separators=(",", ":"))
    while len(text.encode()) > longest:
        if kept.get("offsets"):
            kept["offsets"] = kept["offsets"][: len(kept["offsets"]) // 2]
        elif kept.get("gaps", {}).get("recent"):
            kept["gaps"] = {**kept["gaps"], "recent": []}
        else:
            cut = [{**c, "message": c["message"][:200]} for c in kept["conditions"]]
            retry = {k: str(v)[:200] if k == "lastError" else v for k, v in kept["retry"].items()}
            return json.dumps(kept | {"conditions": cut, "retry": retry}, separators=(",", ":"))
        text = json.dumps(kept, separators=(",", ":"))
    return text


class Pulse:
    """Spark ends by itself when too many executors were lost; a driver without it is of no use."""

    def __init__(self, spark: SparkSession, stop: threading.Event) -> None:
        self._spark, self._stop = spark, stop
        self._last = time.monotonic()
        # One thread for all the asking: each thread that asks keeps a connection to the JVM.
        InheritableThread(target=self._ask, name="pulse", daemon=True).start()

    @property
    def beats(self) -> bool:
        return time.monotonic() - self._last < PULSE_LOST

    def _ask(self) -> None:
        try:
            while not self._stop.wait(PULSE_EVERY) and not self._spark.sparkContext._jsc.sc().isStopped():
                self._last = time.monotonic()
        except (Py4JError, AttributeError, OSError):
            # It stays lost, which is what is asked for.
            return
