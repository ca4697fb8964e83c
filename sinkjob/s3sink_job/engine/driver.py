"""The loop: observe, plan, write, commit, publish, report.

One `step` is one turn. Whatever fails in it, the next step starts from what is in the bucket and in Kafka;
what is kept between steps is only what makes the next one cheaper.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from s3sink_job.encoding import Encoding, encoding_from_doc, encoding_of
from s3sink_job.engine.job import JobFailed, run_job
from s3sink_job.engine.ledger import Ledger
from s3sink_job.engine.publish import publish
from s3sink_job.engine.write import Failure, SliceResult, WriteTask
from s3sink_job.errors import FinalError, S3SinkError, TransientError
from s3sink_job.flush.contact import Contact, Problem, Topic, first_contact, follow, starting_offsets
from s3sink_job.flush.manifest import Gap, GapReason, Manifest, ObjectEntry, Slice, SliceEntry, manifest_name
from s3sink_job.flush.plan import Offsets, Rules, TopicPartition, Watch, drained, make_plan, observe
from s3sink_job.flush.state import Owner, State, commit, published
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.properties import connection
from s3sink_job.report import logs
from s3sink_job.report.reporter import Reporter
from s3sink_job.secrets import Secrets
from s3sink_job.spec import FromTimestamp, Retries, S3Sink
from s3sink_job.stores.bucket import Bucket, Retrying
from s3sink_job.stores.client import open_bucket
from s3sink_job.stores.probe import probe

LOOK_AGAIN = 30.0
"""Seconds until a cause that only a person can mend is looked at again."""
ADOPT = "s3sink.dev/adopt-from"


def backoff(retries: Retries, attempts: int) -> float:
    """Seconds until the next attempt: doubling from `backoff`, capped, spread so that drivers do not meet."""
    return min(retries.max_backoff, retries.backoff * 2.0 ** min(attempts - 1, 30)) * random.uniform(0.5, 1.0)


@dataclass
class Hold:
    """A partition that failed: when it is tried again, and why it waits."""

    until: float
    attempts: int
    problem: Problem


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
    ) -> None:
        self.sink, self.spec, self.secrets, self.spark = sink, sink.spec, secrets, spark
        self.reporter, self.cluster, self.stop, self.clock = reporter, cluster, stop, clock
        self.encoding = encoding_of(sink.spec)
        self.state: State | None = None
        self.drain_to: dict[TopicPartition, int] | None = None
        self._watch = Watch()
        self._holds: dict[TopicPartition, Hold] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._unnoted = False
        self._began = clock()
        self._admin: Admin | None = None
        self._connection: dict[str, str] = {}
        self._problems: Mapping[TopicPartition, Problem] = {}

    def open(self) -> State:
        """Checks the store, takes the sink over from whoever had it, and finishes what was committed."""
        self.state = None
        bucket = self._bucket()
        bucket.check()
        destination = self.spec.destination
        folder = f"{destination.state_prefix}/{self.sink.id}"
        fault = probe(bucket, folder)
        self.reporter.probed(fault, self.spec.delivery)
        if fault is not None and self.spec.delivery == "ExactlyOnce":
            raise FinalError(
                f"the store of bucket {bucket.name} cannot give exactly once: {fault}. "
                "Use a store with conditional writes, or set spec.delivery to AtLeastOnce",
                reason="NoConditionalWrites",
            )
        owner = Owner(self.cluster, self.sink.metadata.namespace, self.sink.metadata.name, self.sink.metadata.uid)
        self.ledger = Ledger(bucket, folder, owner, conditional=fault is None)
        state = self.ledger.open(self.sink.metadata.annotations.get(ADOPT, ""))
        logs.info("took over", epoch=state.epoch, flush=state.flush, writer=self.ledger.writer)
        self._unnoted = False
        self.state = state
        return state

    def _bucket(self) -> Bucket:
        retries = self.spec.errors.request_retries
        bucket = open_bucket(self.spec.destination, self.secrets, Retrying(retries.max, retries.backoff))
        bucket.on_retry = lambda what: self.reporter.metrics.request_retries.inc()
        return bucket

    def _kafka(self) -> Admin:
        """The admin client, made anew when the mounted secrets changed."""
        wanted = connection(self.spec.source, self.secrets)
        if self._admin is None or wanted != self._connection:
            self.close()
            self._admin, self._connection = Admin(self.spark._jvm, wanted), wanted
        return self._admin

    def close(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def step(self) -> float:
        """One turn of the loop. Returns for how many seconds there is nothing to do."""
        state = self.state or self.open()
        self.ledger.bucket = self._bucket()
        if state.publishing is not None:
            state = self._publish(state, self.ledger.manifest(state.publishing))
        contact = self._contact(state)
        state = self._settle(state, contact)
        now = self.clock()
        self._watch = observe(self._watch, state, contact.seen, now)
        self._watch = replace(self._watch, held_until={at: h.until for at, h in self._holds.items()})
        plan = make_plan(state, contact.seen, self._watch, self._rules(contact), now)
        self._report(state, contact, plan.next_due)
        paused = self.spec.state == "Paused"
        if plan.slices and not paused:
            self._flush(state, plan.slices)
            return 0.0
        if self._unnoted:
            self._swap(state)
        if paused:
            self.reporter.phase("Paused", "spec.state is Paused: nothing is flushed")
            return self._poll()
        self._well()
        return self._poll() if plan.next_due is None else min(self._poll(), max(0.0, plan.next_due - now))

    @property
    def finished(self) -> bool:
        """`run: Once`: everything that was there at the start is published, but for what is blocked."""
        if self.drain_to is None or self.state is None or self.state.publishing is not None or self._unnoted:
            return False
        blocked = {at for at in self._problems if not self._will_retry(at)}
        return drained(self.state, {at: end for at, end in self.drain_to.items() if at not in blocked})

    @property
    def problems(self) -> Mapping[TopicPartition, Problem]:
        return self._problems

    @property
    def gave_up(self) -> bool:
        """Whether what is left behind is only what kept failing for causes that may pass."""
        return all(at in self._holds and self._holds[at].attempts for at in self._problems)

    def _will_retry(self, at: TopicPartition) -> bool:
        hold = self._holds.get(at)
        return hold is not None and 0 < hold.attempts <= self.spec.errors.retries.max

    def _poll(self) -> float:
        """How often Kafka is asked for its offsets: often enough for the interval, never a burden."""
        return min(5.0, max(0.2, self.spec.flush.interval / 10))

    def _rules(self, contact: Contact) -> Rules:
        if self.spec.run == "Once" and self.drain_to is None:
            self.drain_to = {at: o.stable for at, o in contact.seen.items()}
        return Rules(self.spec.flush.records, self.spec.flush.interval, self.drain_to)

    def _contact(self, state: State) -> Contact:
        admin = self._kafka()
        topics = admin.describe(self.spec.source.topics)
        known = {name: topic for name, topic in topics.items() if topic is not None}
        if not state.topics and len(known) < len(topics):
            missing = ", ".join(sorted(set(topics) - set(known)))
            raise FinalError(
                f"spec.source.topics: no such topic on {self.spec.source.bootstrap_servers}: {missing}",
                reason="TopicMissing",
            )
        partitions = [(name, p) for name, topic in known.items() for p in topic.partitions]
        seen = admin.offsets(partitions, committed=self.spec.source.isolation == "ReadCommitted")
        now = self.clock()
        if not state.topics:
            state = self._first_contact(state, known, seen)
        contact = follow(state, topics, seen, self._ends, skip_lost=self.spec.source.on_data_loss == "Skip", now=now)
        self._ends = {at: o.end for at, o in seen.items()}
        return contact

    def _first_contact(
        self, state: State, topics: Mapping[str, Topic], seen: Mapping[TopicPartition, Offsets]
    ) -> State:
        """Stored before anything is read: after a crash `Latest` still means the time of first contact."""
        wanted = self.spec.source.starting_offsets
        at_time: dict[TopicPartition, int | None] = {}
        if isinstance(wanted, FromTimestamp):
            at_time = self._kafka().offsets_at(seen, int(wanted.timestamp.timestamp() * 1000))
        starts = starting_offsets(wanted, seen, at_time)
        return self._swap(first_contact(state, topics, starts, self.clock()))

    def _settle(self, state: State, contact: Contact) -> State:
        """Commits what contact found: new partitions, new generations, gaps."""
        for note in contact.notes:
            logs.warning(note)
        if contact.gaps:
            for gap in contact.gaps:
                logs.warning("offsets lost", topic=gap.topic, partition=gap.partition, start=gap.start, end=gap.end)
            return self._commit(contact.state, self._manifest(contact.state, gaps=contact.gaps))
        return state if contact.state == state else self._swap(contact.state)

    def _report(self, state: State, contact: Contact, next_due: float | None) -> None:
        held = {at: hold.problem for at, hold in self._holds.items()}
        self._problems = {**contact.problems, **held}
        since = {
            at: max(state.topics[at[0]].partitions[at[1]].flushed_at, self._watch.level_at.get(at, 0.0))
            for at in contact.seen
        }
        self.reporter.observed(state, contact.seen, since, self._problems, next_due, self.clock())

    def _well(self) -> None:
        lasting = [problem for at, problem in sorted(self._problems.items()) if not self._will_retry(at)]
        if lasting:
            self.reporter.phase("Degraded", lasting[0].message)
        else:
            self.reporter.phase("Running", "the driver runs")
        if not self._problems:
            self.reporter.well()

    def _flush(self, state: State, slices: tuple[Slice, ...]) -> None:
        self._began = self.clock()
        number = self.ledger.next_number(state)
        task = self._task(slices, manifest_name(number, self.ledger.writer), self.encoding)
        results = self._drop_remade(state, self._write(task))
        self._limit_skips(results)
        self._take_failures(results)
        moved = [r for r in results if r.end > r.slice.start]
        if not moved:
            return
        manifest = self._manifest(state, moved, number=number)
        state = self._commit(state, manifest)
        self._publish(state, manifest)

    def _task(self, slices: tuple[Slice, ...], flush: str, encoding: Encoding, *, whole: bool = False) -> WriteTask:
        errors = self.spec.errors
        return WriteTask(
            slices=slices,
            sink=self.sink.id,
            flush=flush,
            encoding=encoding,
            destination=self.spec.destination,
            secrets=self.secrets,
            retrying=Retrying(errors.request_retries.max, errors.request_retries.backoff),
            records_per_object=None if whole else self.spec.flush.records,
            skip_bad=errors.records == "Skip",
            max_bad=errors.max_per_flush,
            mark="" if self.ledger.conditional else flush,
        )

    def _write(self, task: WriteTask) -> list[SliceResult]:
        """All slices in one job; if that fails, each in a job of its own, so that one cannot hold up all."""
        try:
            return self._run(task)
        except JobFailed as error:
            if self.stop.is_set():
                raise
            if len(task.slices) > 1:
                logs.warning("the job failed; running its slices one by one", error=str(error))
        results = []
        for slice in task.slices:
            try:
                results += self._run(replace(task, slices=(slice,)))
            except JobFailed as error:
                if self.stop.is_set():
                    raise
                failure = Failure(error.reason, str(error), retryable=True)
                results.append(SliceResult(slice, slice.start, failure=failure))
        return results

    def _run(self, task: WriteTask) -> list[SliceResult]:
        # A topic made anew needs consumers of its own: cached ones remember positions in the old log.
        remade = sum(t.generation - 1 for t in self.state.topics.values()) if self.state else 0
        group = f"s3sink.{self.sink.metadata.namespace}.{self.sink.metadata.name}" + (f".{remade}" if remade else "")
        results = run_job(self.spark, task, self._connection, group=group, isolation=self.spec.source.isolation)
        self.reporter.metrics.request_retries.inc(sum(r.request_retries for r in results))
        return results

    def _drop_remade(self, state: State, results: list[SliceResult]) -> list[SliceResult]:
        """A topic that was made anew while it was read gives nothing: old and new records may be mixed."""
        topics = self._kafka().describe(sorted({r.slice.topic for r in results}))
        kept = []
        for result in results:
            topic = topics[result.slice.topic]
            if topic is not None and topic.id == state.topics[result.slice.topic].id:
                kept.append(result)
            else:
                self._abandon(result.objects)
        return kept

    def _limit_skips(self, results: list[SliceResult]) -> None:
        skipped = sum(len(r.skipped) for r in results)
        if skipped > self.spec.errors.max_per_flush:
            for result in results:
                self._abandon(result.objects)
            raise FinalError(
                f"{skipped} bad records in one flush are more than errors.maxPerFlush = "
                f"{self.spec.errors.max_per_flush}: nothing of it was committed",
                reason="TooManyBadRecords",
            )

    def _abandon(self, objects: tuple[ObjectEntry, ...]) -> None:
        for entry in objects:
            try:
                self.ledger.bucket.abort_upload(entry.key, entry.upload_id)
            except S3SinkError as error:
                logs.warning("an upload could not be aborted; s3sink gc will", key=entry.key, error=str(error))

    def _take_failures(self, results: list[SliceResult]) -> None:
        """Holds each partition that failed for a while of its own; the others go on."""
        retries = self.spec.errors.retries
        for result in results:
            at, failure = result.slice.at, result.failure
            before = self._holds.pop(at, None)
            if failure is None:
                continue
            attempts = (before.attempts if before else 0) + 1 if failure.retryable else 0
            wait = backoff(retries, attempts) if failure.retryable else LOOK_AGAIN
            problem = Problem(failure.reason, failure.message)
            self._holds[at] = Hold(self.clock() + wait, attempts, problem)
            error = TransientError if failure.retryable else FinalError
            self.reporter.failed(error(failure.message, reason=failure.reason), self.clock() + wait)
            logs.warning(
                "a slice stopped", slice=result.slice, reason=failure.reason, cause=failure.message, retry_in=wait
            )

    def _manifest(
        self,
        state: State,
        results: list[SliceResult] | None = None,
        gaps: tuple[Gap, ...] = (),
        *,
        number: int | None = None,
    ) -> Manifest:
        results = results or []
        return Manifest(
            number=self.ledger.next_number(state) if number is None else number,
            writer=self.ledger.writer,
            epoch=state.epoch,
            committed_at=self.clock(),
            encoding=self.encoding.to_doc(),
            previous=state.last,
            slices=tuple(_entry(r) for r in results),
            objects=tuple(o for r in results for o in r.objects),
            gaps=gaps,
        )

    def _commit(self, state: State, manifest: Manifest) -> State:
        self.ledger.put_manifest(manifest)
        return self._swap(commit(state, manifest))

    def _swap(self, state: State) -> State:
        """Any doubt about the outcome, and the ledger is opened anew before anything else happens."""
        self.state = None
        self.state = self.ledger.swap(state)
        self._unnoted = False
        return self.state

    def _publish(self, state: State, manifest: Manifest) -> State:
        lost = publish(self.ledger.bucket, manifest, exclusive=self.ledger.conditional)
        self.state = state = published(state)
        self._unnoted = True
        now = self.clock()
        self.reporter.flushed(manifest, now - self._began, now, lost)
        logs.info(
            "flushed",
            flush=manifest.number,
            records=manifest.rows,
            objects=len(manifest.objects),
            bytes=manifest.size,
            reason=",".join(sorted({s.reason for s in manifest.slices})),
            seconds=round(now - self._began, 3),
        )
        return self._repair(state, manifest, lost) if lost else state

    def _repair(self, state: State, manifest: Manifest, lost: list[ObjectEntry]) -> State:
        """Objects whose uploads somebody aborted after the commit: written again from Kafka, or noted as gaps."""
        logs.warning("uploads vanished between commit and publish", keys=[o.key for o in lost])
        self._kafka()
        slices, gaps = self._what_is_left(state, lost)
        results: list[SliceResult] = []
        number = self.ledger.next_number(state)
        if slices:
            encoding = encoding_from_doc(manifest.encoding)
            name = manifest_name(number, self.ledger.writer)
            task = self._task(slices, name, encoding, whole=True)
            results = [r for part in slices for r in self._run(replace(task, slices=(part,)))]
            failed = next((r.failure for r in results if r.failure is not None), None)
            if failed is not None:
                raise TransientError(f"writing a lost object again: {failed.message}", reason=failed.reason)
        repair = replace(
            self._manifest(state, results, gaps, number=number),
            slices=(),
            encoding=manifest.encoding,
            replaces=tuple(o.key for o in lost),
        )
        return self._publish(self._commit(state, repair), repair)

    def _what_is_left(self, state: State, lost: list[ObjectEntry]) -> tuple[tuple[Slice, ...], tuple[Gap, ...]]:
        admin = self._kafka()
        topics = admin.describe(sorted({o.topic for o in lost}))
        slices, gaps = [], []
        for entry in lost:
            topic, known = topics[entry.topic], state.topics.get(entry.topic)
            at = (entry.topic, entry.partition)
            same = topic and known and topic.id == known.id and known.generation == entry.generation
            earliest = admin.offsets([at], committed=False)[at].earliest if same else entry.last + 1
            start = min(max(entry.first, earliest), entry.last + 1)
            place = (entry.topic, entry.generation, entry.partition)
            if start > entry.first:
                gaps.append(Gap(*place, entry.first, start, GapReason.UPLOAD_LOST, self.clock()))
            if start <= entry.last:
                slices.append(Slice(*place, start, entry.last + 1, "Repair"))
        return tuple(slices), tuple(gaps)


def _entry(result: SliceResult) -> SliceEntry:
    part = result.slice
    rows = sum(o.rows for o in result.objects)
    return SliceEntry(
        *(part.topic, part.generation, part.partition, part.start, result.end, part.reason),
        rows,
        result.skipped,
    )
