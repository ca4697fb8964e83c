"""Whether Spark still runs. It stops by itself when it loses too many executors, and the driver cannot go on then."""

from __future__ import annotations

import threading
import time

from py4j.protocol import Py4JError
from pyspark import InheritableThread
from pyspark.sql import SparkSession

EVERY = 5.0
LOST_AFTER = 60.0


class SparkHeartbeat:
    def __init__(self, spark: SparkSession, stop: threading.Event) -> None:
        self._spark, self._stop = spark, stop
        self._last = time.monotonic()
        # A single thread sends all requests: each thread that does keeps a connection to the JVM.
        InheritableThread(target=self._beat, name="spark-heartbeat", daemon=True).start()

    @property
    def alive(self) -> bool:
        return time.monotonic() - self._last < LOST_AFTER

    def _beat(self) -> None:
        try:
            while not self._stop.wait(EVERY) and not self._spark.sparkContext._jsc.sc().isStopped():
                self._last = time.monotonic()
        except (Py4JError, AttributeError, OSError):
            # The JVM is gone. `alive` turns false after a while.
            return
