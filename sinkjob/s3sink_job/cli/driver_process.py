"""The process of `s3sink run`: the driver's loop, its HTTP server, and the line on the terminal."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future
from pathlib import Path

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from s3sink_api.exit_codes import FAILED
from s3sink_api.spec import warnings_of
from s3sink_job.cli.opened_sink import OpenedSink, cluster_id
from s3sink_job.cli.status_file import write_status
from s3sink_job.driver.driver import Driver
from s3sink_job.driver.loop import Loop
from s3sink_job.report import logs
from s3sink_job.report.server import serve
from s3sink_job.report.status import Reporter
from s3sink_job.report.terminal import progress_line
from s3sink_job.spark.heartbeat import SparkHeartbeat


def run_driver(
    opened: OpenedSink,
    session: Future[SparkSession],
    *,
    listen: tuple[str, int],
    grace: float,
    json_logs: bool | None,
    status_file: Path | None,
    run_id: str = "",
) -> int:
    """Runs until done or stopped. Returns the exit code."""
    on_terminal = sys.stderr.isatty()
    logs.set_up(json_lines=not on_terminal if json_logs is None else json_logs)
    sink = opened.sink
    if sink.spec.run == "Scheduled":
        logs.info("spec.run is Scheduled: this is a single run; Kubernetes runs the schedule")
    for found in warnings_of(sink.spec):
        logs.warning(str(found))
    reporter = Reporter(generation=sink.metadata.generation)
    stop = threading.Event()
    spark = session.result()
    driver = Driver(sink, opened.secrets, spark, reporter, cluster=cluster_id(), stop=stop, run_id=run_id)
    loop = Loop(driver, grace=grace)
    heartbeat = SparkHeartbeat(spark, stop)
    server = serve(reporter, listen, lambda: loop.healthy() and heartbeat.alive)
    logs.info("listening", status=f"http://{listen[0]}:{server.server_address[1]}/status")
    try:
        with progress_line(reporter, enabled=on_terminal):
            code = loop.run()
        driver.close()
        spark.stop()
        return code
    except (Py4JError, ConnectionError, EOFError) as error:
        # A gateway without its JVM raises any of these. Only a Java exception proves that the JVM lives.
        if isinstance(error, Py4JJavaError):
            raise
        logs.warning(
            "the Spark JVM is gone, often killed for memory: start again; the sink resumes from the committed offsets",
            error=f"{type(error).__name__}: {error}",
        )
        return FAILED
    finally:
        server.shutdown()
        if status_file is not None:
            write_status(status_file, reporter.status())
