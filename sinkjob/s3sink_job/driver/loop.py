"""Runs the driver's steps as a process: waits between them, retries, gives up, and shuts down gracefully.

Signals only set an event. The loop has a thread of its own, so that the main thread can cancel a Spark job while the
loop waits for it.
"""

from __future__ import annotations

import signal
import time
from types import FrameType

from pyspark import InheritableThread

from s3sink_api.exit_codes import DONE, FAILED, FENCED, FINAL, SIGNALLED
from s3sink_job.base.errors import FencedError, S3SinkError
from s3sink_job.driver.driver import Driver
from s3sink_job.flush.partition_backoff import RECHECK_AFTER, backoff
from s3sink_job.report import logs

JOB_TAG = "s3sink"
CANCEL_MARGIN = 5.0
"""Seconds of the grace period that are kept for cancelling a job."""


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
        """Runs until the work is done, fails for good, or a signal stops it. Returns the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        self._thread = thread = InheritableThread(target=self._run_thread, name="driver", daemon=True)
        thread.start()
        while thread.is_alive() and not self.stop.wait(0.2):
            continue
        deadline = time.monotonic() + self.grace - CANCEL_MARGIN
        while thread.is_alive() and time.monotonic() < deadline and not self._hurry:
            thread.join(0.2)
        if thread.is_alive():
            logs.info(
                "graceful shutdown: the flush did not finish within the grace period and is cancelled; "
                "the next start resumes from the committed offsets"
            )
            self.driver.spark.sparkContext.cancelJobsWithTag(JOB_TAG)
            thread.join(CANCEL_MARGIN)
        if self._crash is not None:
            raise self._crash
        # If the thread is still alive, the store hangs. The next driver finishes or repeats what it was doing.
        return self._code_when_stopped() if thread.is_alive() else self._code

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """A second signal ends the wait for the flush."""
        self._hurry = self.stop.is_set()
        self._signal = number
        self.stop.set()

    def _run_thread(self) -> None:
        try:
            self.driver.spark.sparkContext.addJobTag(JOB_TAG)
            self._code = self._run_steps()
        except BaseException as error:
            self._crash = error

    def _run_steps(self) -> int:
        while not self.stop.is_set():
            try:
                wait = self.driver.step()
                self._failures = 0
                if self.driver.finished:
                    return self._code_when_finished()
            except FencedError as error:
                self.driver.reporter.failed(error, None)
                self.driver.reporter.phase("Failed", str(error))
                logs.warning(str(error))
                return FENCED
            except S3SinkError as error:
                if self.stop.is_set():
                    break
                if (code := self._code_if_given_up(error)) is not None:
                    return code
                wait = self._backoff_after(error)
            self.stop.wait(wait)
        return self._code_when_stopped()

    def _code_when_stopped(self) -> int:
        """A run that should drain and was stopped before must not look complete."""
        return SIGNALLED + self._signal if self.driver.spec.ends and self._signal else DONE

    def _code_when_finished(self) -> int:
        reporter = self.driver.reporter
        if self.driver.problems:
            _, problem = next(iter(sorted(self.driver.problems.items())))
            reporter.phase("Failed", problem.message)
            logs.warning(
                "run ended, but not all partitions are written completely", reason=problem.reason, cause=problem.message
            )
            return FAILED if self.driver.gave_up else FINAL
        self.driver.complete()
        reporter.well()
        bounded = self.driver.spec.source.ending_offsets is not None
        what = "everything below endingOffsets" if bounded else "everything that was there at the start"
        if self.driver.spec.mode == "FullRefresh":
            what = "the full refresh is complete: everything up to its end"
        reporter.phase("Completed", f"{what} is in the bucket")
        return DONE

    def _code_if_given_up(self, error: S3SinkError) -> int | None:
        """A run that ends does so with an exit code. Continuous stays up, reports the cause and retries."""
        if not self.driver.spec.ends:
            return None
        if error.retryable and self._failures < self.driver.spec.errors.retries.max:
            return None
        self.driver.reporter.failed(error, None)
        self.driver.reporter.phase("Failed", str(error))
        logs.warning(str(error), reason=error.reason)
        return FAILED if error.retryable else FINAL

    def _backoff_after(self, error: S3SinkError) -> float:
        retries = self.driver.spec.errors.retries
        self._failures += 1
        wait = RECHECK_AFTER
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
        """Only a dead loop is unhealthy: every request has a timeout, and a flush may take long."""
        return self._thread is not None and self._thread.is_alive()
