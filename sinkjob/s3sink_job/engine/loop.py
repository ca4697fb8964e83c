"""Turning the driver's steps into a process: waiting, trying again, giving up, and stopping when asked.

Signals only set an event. The loop runs in a thread of its own, so that a job can be cancelled from the
main thread while the loop waits for it.
"""

from __future__ import annotations

import signal
import time
from types import FrameType

from pyspark import InheritableThread

from s3sink_job.engine.driver import Driver
from s3sink_job.engine.holds import LOOK_AGAIN, backoff
from s3sink_job.errors import FencedError, S3SinkError
from s3sink_job.report import logs

JOB_TAG = "s3sink"
CANCEL_MARGIN = 5.0
DONE, FAILED, FINAL, FENCED, SIGNALLED = 0, 1, 2, 3, 128


class Loop:
    def __init__(self, driver: Driver, *, grace: float) -> None:
        self.driver = driver
        self.stop = driver.stop
        self.grace = grace
        self._thread: InheritableThread | None = None
        self._code = FAILED
        self._crash: BaseException | None = None
        self._failures = 0
        self._signal = 0
        self._hurry = False

    def run(self) -> int:
        """Runs until done, failed for good or stopped by a signal. Returns the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        self._thread = thread = InheritableThread(target=self._guarded, name="driver", daemon=True)
        thread.start()
        while thread.is_alive() and not self.stop.wait(0.2):
            continue
        deadline = time.monotonic() + self.grace - CANCEL_MARGIN
        while thread.is_alive() and time.monotonic() < deadline and not self._hurry:
            thread.join(0.2)
        if thread.is_alive():
            logs.info("the flush takes longer than the grace period: given up; the next start goes on from the state")
            self.driver.spark.sparkContext.cancelJobsWithTag(JOB_TAG)
            thread.join(CANCEL_MARGIN)
        if self._crash is not None:
            raise self._crash
        # Still alive: a store that hangs. Whatever it was at, the next driver finishes or repeats it.
        return self._stopped() if thread.is_alive() else self._code

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._hurry = self.stop.is_set()
        self._signal = number
        self.stop.set()

    def _guarded(self) -> None:
        try:
            self.driver.spark.sparkContext.addJobTag(JOB_TAG)
            self._code = self._turn()
        except BaseException as error:
            self._crash = error

    def _turn(self) -> int:
        while not self.stop.is_set():
            try:
                wait = self.driver.step()
                self._failures = 0
                if self.driver.finished:
                    return self._end()
            except FencedError as error:
                self.driver.reporter.failed(error, None)
                self.driver.reporter.phase("Failed", str(error))
                logs.warning(str(error))
                return FENCED
            except S3SinkError as error:
                if self.stop.is_set():
                    break
                if (code := self._give_up(error)) is not None:
                    return code
                wait = self._after(error)
            self.stop.wait(wait)
        return self._stopped()

    def _stopped(self) -> int:
        """A job that was told to drain and did not must not look complete to whoever started it."""
        return SIGNALLED + self._signal if self.driver.spec.ends and self._signal else DONE

    def _end(self) -> int:
        reporter = self.driver.reporter
        if self.driver.problems:
            _, problem = next(iter(sorted(self.driver.problems.items())))
            reporter.phase("Failed", problem.message)
            logs.warning("ended with partitions left behind", reason=problem.reason, cause=problem.message)
            return FAILED if self.driver.gave_up else FINAL
        reporter.well()
        reporter.phase("Completed", "everything that was there at the start is in the bucket")
        return DONE

    def _give_up(self, error: S3SinkError) -> int | None:
        """A run that ends does so with an exit code; Continuous stays up, shows the cause and looks again."""
        if not self.driver.spec.ends:
            return None
        if error.retryable and self._failures < self.driver.spec.errors.retries.max:
            return None
        self.driver.reporter.failed(error, None)
        self.driver.reporter.phase("Failed", str(error))
        logs.warning(str(error), reason=error.reason)
        return FAILED if error.retryable else FINAL

    def _after(self, error: S3SinkError) -> float:
        retries = self.driver.spec.errors.retries
        self._failures += 1
        wait = LOOK_AGAIN
        if error.retryable:
            wait = backoff(retries, self._failures)
        self.driver.reporter.failed(error, self.driver.clock() + wait)
        if not error.retryable:
            self.driver.reporter.phase("Failed", str(error))
        elif self._failures > retries.max:
            self.driver.reporter.phase("Degraded", str(error))
        logs.warning(str(error), reason=error.reason, retry_in=round(wait, 1), attempt=self._failures)
        return wait

    def healthy(self) -> bool:
        """Every call has a time-out of its own, and a flush may take long: only a dead loop is unhealthy."""
        return self._thread is not None and self._thread.is_alive()
