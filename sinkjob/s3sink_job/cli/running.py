"""`s3sink run`: a Spark session, the loop, and the ways to look at it."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from py4j.protocol import Py4JNetworkError

from s3sink_job.cli.context import Opened
from s3sink_job.engine.driver import Driver
from s3sink_job.engine.loop import DONE, FAILED, Loop
from s3sink_job.engine.session import start_session
from s3sink_job.report import logs
from s3sink_job.report.reporter import Reporter
from s3sink_job.report.server import serve
from s3sink_job.report.terminal import watching


def run_sink(
    given: Opened,
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
    if sink.spec.state == "Stopped":
        logs.info("spec.state is Stopped: nothing to do")
        return DONE
    reporter = Reporter(generation=sink.metadata.generation)
    stop = threading.Event()
    spark = start_session(sink.spec, sink.metadata.name)
    driver = Driver(sink, given.secrets, spark, reporter, cluster=cluster, stop=stop)
    loop = Loop(driver, grace=grace)
    server = serve(reporter, listen, loop.healthy)
    logs.info("listening", status=f"http://{listen[0]}:{server.server_address[1]}/status")
    try:
        with watching(reporter, enabled=on_terminal):
            code = loop.run()
        driver.close()
        spark.stop()
        return code
    except (Py4JNetworkError, ConnectionError, EOFError) as error:
        # Nothing is lost: the next start takes over from the state in the bucket.
        logs.warning("the Spark JVM is gone: start again", error=f"{type(error).__name__}: {error}")
        return FAILED
    finally:
        server.shutdown()
        if status_file is not None:
            status_file.write_text(json.dumps(reporter.status(), indent=1))
