"""One step of the loop: observe, plan, write, commit, publish, report.

Whatever fails in a step, the next one starts from what is in the bucket and in Kafka. What a driver remembers between
two steps only makes the next one cheaper.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from s3sink_api.spec import S3Sink, ToLatest
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.commit.committer import Committer
from s3sink_job.commit.letter_publisher import LetterPublisher
from s3sink_job.commit.repairs import Repairs
from s3sink_job.driver.flusher import Flusher
from s3sink_job.driver.full_refresh import FullRefresh
from s3sink_job.driver.observer import Observation, Observer
from s3sink_job.driver.planner import Planner
from s3sink_job.driver.takeover import check_store, take_over
from s3sink_job.flush.kafka_metadata import TopicPartition
from s3sink_job.flush.partition_backoff import PartitionBackoff
from s3sink_job.flush.plan import Plan
from s3sink_job.flush.problem import Problem
from s3sink_job.flush.state import SinkState
from s3sink_job.kafka.connection import KafkaConnection
from s3sink_job.kafka.group_offsets import GroupOffsets
from s3sink_job.kafka.letter_topic import LetterTopic, check_letter_topic
from s3sink_job.kafka.open_transactions import OpenTransactionWatch
from s3sink_job.report.status import Reporter
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.factory import open_bucket
from s3sink_job.task.flush_job import FlushJob
from s3sink_job.task.routing import Routing


class Driver:
    def __init__(
        self,
        sink: S3Sink,
        secrets: Secrets,
        spark: SparkSession,
        reporter: Reporter,
        *,
        cluster: str,
        stop: threading.Event,
        clock: Callable[[], float] = time.time,
        run_id: str = "",
    ) -> None:
        """`run_id`: of a full refresh. A driver with the same id resumes the run; one without begins a new run."""
        self.sink, self.spec, self.secrets, self.spark = sink, sink.spec, secrets, spark
        self.reporter, self.cluster, self.stop, self.clock = reporter, cluster, stop, clock
        self.routing = Routing(sink.spec)
        self.committer: Committer | None = None
        self.problems: Mapping[TopicPartition, Problem] = {}
        self._blocked: Mapping[TopicPartition, Problem] = {}
        """Those that keep a partition from being read."""
        self._nothing_due = False
        self.kafka = self._connect_to_kafka()
        self.flush_job = self._new_flush_job()
        run = (run_id or uuid.uuid4().hex) if self.spec.mode == "FullRefresh" else None
        self.observer = Observer(self.spec, self.kafka, self.routing, self.flush_job.leaders, reporter, clock, run)
        self.planner = Planner(self.spec, self.routing, clock)
        self.flusher = Flusher(self.flush_job, self.kafka, self.planner.backoff, reporter, clock)
        repair_backoff = PartitionBackoff(self.spec.errors.retries, clock, ends=self.spec.ends)
        skip_lost = self.spec.source.on_data_loss == "Skip"
        self.repairs = Repairs(self.flush_job, self.observer.topics, repair_backoff, clock, skip_lost=skip_lost)
        self.refresh = FullRefresh(sink, run, self.flusher, reporter, clock)
        self._open_transactions = OpenTransactionWatch(clock)
        self._group_offsets = GroupOffsets(self.spec.source.publish_offsets_to, reporter, clock)

    def _connect_to_kafka(self) -> KafkaConnection:
        return KafkaConnection(self.spark, self.spec.source, self.secrets)

    def _new_flush_job(self) -> FlushJob:
        retried, throttled = self.reporter.metrics.request_retries.inc, self.reporter.throttled
        return FlushJob(
            *(self.sink, self.secrets, self.routing),
            spark=self.spark,
            stop=self.stop,
            on_request_retries=retried,
            on_throttled=throttled,
        )

    def bucket(self) -> Bucket:
        """Opened for each step, since the mounted credentials may have changed."""
        retries = self.spec.errors.request_retries
        return open_bucket(
            self.spec.destination,
            self.secrets,
            RetryPolicy(retries.max, retries.backoff),
            limit=self.flush_job.request_limit,
            on_retry=self.reporter.metrics.request_retries.inc,
        )

    def open(self) -> Committer:
        """Checks the store and takes the sink over."""
        self.routing.check()
        bucket = self.bucket()
        probed = check_store(self.sink, self.routing, bucket, self.reporter)
        self.flush_job.longest_segment = probed.longest_segment
        conditional = probed.fault is None
        letters = LetterPublisher(self._letter_topic)
        committer = take_over(self.sink, bucket, self.clock, letters, cluster=self.cluster, conditional=conditional)
        self.refresh.taken_over(committer)
        if self.spec.errors.dead_letter and (topic := self.spec.errors.dead_letter.topic):
            check_letter_topic(self.spec, self._letter_topic(topic), self.kafka.admin())
            # After the takeover: it fences the sessions of earlier drivers.
            letters.check(committer.ledger, committer.state, topic)
        self.committer = committer
        return committer

    def _letter_topic(self, name: str) -> LetterTopic:
        return LetterTopic(self.kafka.admin(), name, self.sink)

    def close(self) -> None:
        self.kafka.close()

    def step(self) -> float:
        """Returns the seconds until the next step."""
        committer = self.committer if self.committer and not self.committer.in_doubt else self.open()
        committer.ledger.use(self.bucket())
        repaired = self._finish_earlier_flushes(committer)
        if self.refresh.is_over(committer.state):
            self.reporter.refreshed(committer.state)
            return 0.0
        self.refresh.abandon_other(committer)
        if self.refresh.advance(committer):
            return self._until_next_advance(committer.state, repaired=repaired)
        self.refresh.check_before_it_begins(committer, self.routing)
        observation = self.observer.observe(committer)
        plan = self.planner.plan(committer.state, observation)
        self._report(committer.state, observation, plan)
        self._nothing_due = not plan.slices
        paused = self.spec.state == "Paused"
        if plan.slices and not paused:
            if self.flusher.flush(committer, plan.slices, observation.changes):
                self._report_health()
            self._group_offsets.publish(self.kafka.admin, committer.state, observation.changes.known)
            return 0.0
        self._group_offsets.publish(self.kafka.admin, committer.state, observation.changes.known)
        if paused:
            self.reporter.phase("Paused", "spec.state is Paused: nothing is flushed")
            return self.planner.poll_interval
        self._report_health()
        if self.refresh.is_writing(committer.state) and not self.problems and self._drained(committer.state):
            self.refresh.end_writing(committer, observation.changes.known)
            return 0.0
        return self._until(plan)

    def _until_next_advance(self, state: SinkState, *, repaired: bool) -> float:
        """A full refresh waits for lost objects only, and only if none could be written again just now."""
        self.reporter.refreshed(state)
        self.problems = dict(self.repairs.backoff.problems) if state.lost else {}
        if state.lost:
            self._report_health()
        return self.planner.poll_interval if state.lost and not repaired else 0.0

    def _finish_earlier_flushes(self, committer: Committer) -> bool:
        """Publishes what was committed and not published, and repairs some of what was lost: whether it could."""
        if committer.state.publishing is not None:
            self.flusher.publish(committer, committer.ledger.manifest(committer.state.publishing))
        admin = self.kafka.admin()
        if repaired := self.repairs.repair_some(committer, admin, self.kafka.properties):
            self.reporter.lost(repaired.gaps)
            self.flusher.publish(committer, repaired)
        return repaired is not None

    def _until(self, plan: Plan) -> float:
        poll = self.planner.poll_interval
        return poll if plan.next_due is None else min(poll, max(0.0, plan.next_due - self.clock()))

    @property
    def finished(self) -> bool:
        """`run: Once` or `Scheduled`: everything that was there at the start is published, except what is blocked."""
        if self.committer is None or self.committer.in_doubt or self.committer.state.publishing is not None:
            return False
        state = self.committer.state
        if self.refresh.is_over(state):
            return True
        if state.refresh is not None and state.refresh.unfinished and not self.refresh.is_writing(state):
            return bool(state.lost) and self.repairs.all_given_up(self.committer)
        # One more observation after the last flush reports the final offsets.
        if not self._nothing_due or not self.repairs.all_given_up(self.committer):
            return False
        return self._drained(state) and (bool(self.problems) or self.refresh.appends)

    def _drained(self, state: SinkState) -> bool:
        return self.planner.draining.finished(state, self._blocked, self.planner.backoff)

    def complete(self) -> None:
        """The run is complete. The next one with `Latest` fixes an end of its own."""
        if self.committer is None or self.refresh.is_over(self.committer.state):
            return
        if isinstance(self.spec.source.ending_offsets, ToLatest):
            self.committer.swap(replace(self.committer.state, end=None))

    @property
    def gave_up(self) -> bool:
        """Whether every remaining problem is one that may go away by itself, and was retried often enough."""
        every = (self.planner.backoff, self.repairs.backoff, self.planner.draining.unavailable)
        return all(any(backoff.may_pass(at) for backoff in every) for at in self.problems)

    def _report(self, state: SinkState, observation: Observation, plan: Plan) -> None:
        changes = observation.changes
        self._blocked = {**changes.problems, **self.planner.backoff.problems}
        self.problems = {**self.repairs.backoff.problems, **self._blocked}
        since = self.planner.lagging_since(state, changes.known)
        cause = self._open_transactions.find(self.kafka.admin, state, changes.known)
        if not changes.known and not self.problems:
            cause = Problem("NoTopicMatches", self.observer.topics.none_matches)
        self.reporter.observed(state, changes.known, since, self.problems, plan, self.clock(), cause)

    def _report_health(self) -> None:
        lasting = [problem for at, problem in sorted(self.problems.items()) if not self._will_retry(at)]
        if lasting:
            self.reporter.phase("Degraded", lasting[0].message)
        else:
            progress = self.refresh.progress(self.committer.state) if self.committer else ""
            self.reporter.phase("Running", progress or "the driver runs")
        if not self.problems:
            self.reporter.well()

    def _will_retry(self, at: TopicPartition) -> bool:
        return self.planner.backoff.will_retry(at) or self.repairs.backoff.will_retry(at)
