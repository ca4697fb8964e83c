"""The loop's turn: observe, plan, write, commit, publish, report.

Whatever fails in a turn, the next one starts from what is in the bucket and in Kafka; what is kept between
turns is only what makes the next one cheaper.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from s3sink_job.engine.books import Books
from s3sink_job.engine.draining import Draining
from s3sink_job.engine.held import Held
from s3sink_job.engine.holds import Holds
from s3sink_job.engine.leaders import logs_of
from s3sink_job.engine.ledger import ADOPT, Ledger
from s3sink_job.engine.mirror import Mirror
from s3sink_job.engine.repair import Repairs
from s3sink_job.engine.routing import Routing
from s3sink_job.engine.topics import Topics
from s3sink_job.engine.write import SliceResult
from s3sink_job.engine.writing import Writing
from s3sink_job.errors import FinalError, TransientError
from s3sink_job.flush.contact import (
    Contact,
    Topic,
    begin_anew,
    due_reset,
    first_contact,
    follow,
    in_words,
    starting_offsets,
)
from s3sink_job.flush.cut import limits_of
from s3sink_job.flush.manifest import Manifest, Slice, manifest_name
from s3sink_job.flush.plan import (
    Offsets,
    Plan,
    TopicPartition,
    Watch,
    behind_since,
    make_plan,
    observe,
)
from s3sink_job.flush.problem import Problem
from s3sink_job.flush.state import Owner, Resource, State
from s3sink_job.kafka.admin import Admin, KafkaUnavailable
from s3sink_job.kafka.properties import connection
from s3sink_job.report import logs
from s3sink_job.report.reporter import Reporter
from s3sink_job.secrets import Secrets
from s3sink_job.spec import FromEarliest, FromTimestamp, Metadata, Reset, S3Sink
from s3sink_job.stores.bucket import Bucket, Retrying
from s3sink_job.stores.client import open_bucket
from s3sink_job.stores.probe import probe

LOST_SHOWN = 20


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
        self.routing = Routing(sink.spec)
        self.books: Books | None = None
        self.limits = limits_of(sink.spec, spread=self.routing.spread)
        self.problems: Mapping[TopicPartition, Problem] = {}
        self._blocked: Mapping[TopicPartition, Problem] = {}
        """Those of them that keep a partition from being read."""
        retried, throttled = reporter.metrics.request_retries.inc, reporter.throttled
        self._writing = Writing(sink, secrets, spark, stop, self.routing, retried, throttled)
        self._topics = Topics(sink.spec.source, clock)
        self._held = Held(clock)
        self._mirror = Mirror(sink.spec.source.publish_offsets_to, reporter, clock)
        retries, ends = sink.spec.errors.retries, sink.spec.ends
        self._holds, repairs = Holds(retries, clock, ends=ends), Holds(retries, clock, ends=ends)
        self._draining = Draining(retries, clock, ends=ends)
        skip_lost = sink.spec.source.on_data_loss == "Skip"
        self._repairs = Repairs(self._writing, self._topics, repairs, clock, skip_lost=skip_lost)
        self._without_id: set[str] = set()
        self._nothing_due = False
        self._watch = Watch()
        self._ends: dict[TopicPartition, int] = {}
        self._began = clock()
        self._admin: Admin | None = None
        self._connection: dict[str, str] = {}

    def open(self) -> Books:
        """Checks the store and takes the sink over from whoever had it."""
        self.routing.check()
        bucket = self._bucket()
        for name in ("", *self.routing.other_buckets):
            bucket.named(name).check()
        folder = f"{self.spec.destination.state_prefix}/{self.sink.id}"
        probed = probe(bucket, folder)
        self.reporter.probed(probed.fault, self.spec.delivery, probed.reason)
        if probed.fault is not None and self.spec.delivery == "ExactlyOnce":
            raise FinalError(
                f"the store of bucket {bucket.name} cannot give exactly once: {probed.fault}. "
                "Use a store that keeps conditions and metadata, or set spec.delivery to AtLeastOnce",
                reason=probed.reason,
            )
        self._writing.longest_segment = probed.longest_segment
        metadata = self.sink.metadata
        owner = Owner(self.cluster, metadata.namespace, metadata.name, metadata.uid)
        ledger = Ledger(bucket, folder, owner, conditional=probed.fault is None)
        state = ledger.open(metadata.annotations.get(ADOPT, ""), _resource(metadata))
        logs.info("took over", epoch=state.epoch, flush=state.flush, writer=ledger.writer)
        self.books = Books(ledger, state, self.clock)
        return self.books

    def _bucket(self) -> Bucket:
        retries = self.spec.errors.request_retries
        bucket = open_bucket(self.spec.destination, self.secrets, Retrying(retries.max, retries.backoff))
        bucket.on_retry = lambda what: self.reporter.metrics.request_retries.inc()
        bucket.share = self._writing.share
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
        """One turn. Returns for how many seconds there is nothing to do."""
        books = self.books if self.books and not self.books.in_doubt else self.open()
        books.ledger.bucket = self._bucket()
        if books.state.publishing is not None:
            self._publish(books, books.ledger.manifest(books.state.publishing))
        if again := self._repairs.mend(books, self._kafka(), self._connection):
            self.reporter.lost(again.gaps)
            self._publish(books, again)
        contact, plan = self.look(books)
        self._report(books.state, contact, plan)
        self._nothing_due = not plan.slices
        paused = self.spec.state == "Paused"
        if plan.slices and not paused:
            self._flush(books, plan.slices, contact)
            self._mirror.tell(self._kafka, books.state, contact.known)
            return 0.0
        self._mirror.tell(self._kafka, books.state, contact.known)
        if paused:
            self.reporter.phase("Paused", "spec.state is Paused: nothing is flushed")
            return self._poll()
        self._well()
        return self._poll() if plan.next_due is None else min(self._poll(), max(0.0, plan.next_due - self.clock()))

    def look(self, books: Books) -> tuple[Contact, Plan]:
        """What Kafka has beside what the books say, and what is to be written now."""
        contact = self.routing.without_overlaps(self._contact(books))
        truncations = books.state.truncations
        self._settle(books, contact)
        cut = [event for event in books.state.truncations if event not in truncations]
        self._draining.look(books.state, contact, cut)
        # Only now: until that is settled, the ends of another log must not hide those of the old one.
        self._ends |= {at: o.end for at, o in contact.known.items() if at not in contact.problems}
        now = self.clock()
        self._watch = observe(self._watch, books.state, contact.seen, now)
        self._drop_old_holds(books.state, contact)
        self._watch = replace(self._watch, held_until=self._holds.until)
        rules = self.routing.rules(self._draining.to)
        return contact, make_plan(books.state, contact.seen, self._watch, rules, now, self.limits)

    @property
    def finished(self) -> bool:
        """`run: Once` or `Scheduled`: everything that was there at the start is published, but for what is blocked."""
        if self.books is None or self.books.in_doubt or self.books.state.publishing is not None:
            return False
        # A look after the last flush reports what is there in the end.
        if not self._nothing_due or not self._repairs.stuck(self.books):
            return False
        return self._draining.over(self.books.state, self._blocked, self._holds)

    @property
    def gave_up(self) -> bool:
        """Whether what is left behind is only what kept failing for causes that may pass."""
        every = (self._holds, self._repairs.holds, self._draining.unavailable)
        return all(any(holds.may_pass(at) for holds in every) for at in self.problems)

    def _poll(self) -> float:
        """How often Kafka is asked for its offsets: often enough for the interval, never a burden."""
        return min(5.0, max(0.2, self.routing.shortest_interval / 10))

    def _contact(self, books: Books) -> Contact:
        admin = self._kafka()
        topics = self._topics.look(admin, books.state.topics)
        known = {name: topic for name, topic in topics.items() if topic is not None}
        self.routing.look(admin.matches, known)
        first, reset = not books.state.contacted, due_reset(self.spec.reset, books.state)
        if not topics and self.spec.ends:
            raise FinalError(self._topics.none_matches, reason="NoTopicMatches")
        if len(known) < len(topics) and (first or self._waits_for_all(reset)):
            missing = ", ".join(sorted(set(topics) - set(known)))
            waits = f", and the reset to {in_words(reset.to)} waits for it" if reset else ""
            raise FinalError(
                f"spec.source.topics: no such topic on {self.spec.source.bootstrap_servers}: {missing}{waits}",
                reason="TopicMissing",
            )
        partitions = [(name, p) for name, topic in known.items() for p in topic.partitions]
        committed = self.spec.source.isolation == "ReadCommitted"
        # Who has no leader is not asked for: that would hold up all the others.
        led = [(name, p) for name, p in partitions if p not in known[name].leaderless]
        seen = admin.offsets(led, committed=committed)
        if admin.describe(known) != known:
            raise KafkaUnavailable("a topic changed while its offsets were looked up: looking again")
        notes = self._unnoticed(known)
        if reset and books.state.lost:
            count = sum(map(len, books.state.lost.values()))
            raise TransientError(
                f"the reset {reset.nonce!r} waits until {count} lost objects are written again or given up",
                reason="RepairUnderWay",
            )
        if first or reset:
            if len(seen) < len(partitions):
                what = "a reset" if reset else "first contact"
                silent = ", ".join(f"{name}-{p}" for name, p in partitions if (name, p) not in seen)
                raise KafkaUnavailable(f"{what} needs every partition, and Kafka does not tell of {silent}")
            notes += self._begin(books, known, seen, reset)
        ids = {name: topic.id for name, topic in known.items()}
        contact = follow(
            *(books.state, topics, seen, self._ends),
            skip_lost=self._repairs.skip_lost,
            now=self.clock(),
            gone=self._topics.gone,
            validated=self._writing.leaders.validate(admin, books.state, ids, seen),
        )
        return replace(contact, notes=(*notes, *contact.notes))

    def _unnoticed(self, topics: Mapping[str, Topic]) -> tuple[str, ...]:
        """A warning, once for each topic without an id."""
        new = sorted({name for name, topic in topics.items() if not topic.id} - self._without_id)
        self._without_id.update(new)
        return tuple(
            f"the brokers give topic {name} no id (Kafka before 2.8): if it is deleted and recreated, that may go "
            "unnoticed, and records of the new topic be skipped"
            for name in new
        )

    def _waits_for_all(self, reset: Reset | None) -> bool:
        """One that is listed and missing would begin at its earliest offset once it is there, whatever is asked for."""
        return reset is not None and bool(self.spec.source.topics) and not isinstance(reset.to, FromEarliest)

    def _begin(
        self, books: Books, topics: Mapping[str, Topic], seen: Mapping[TopicPartition, Offsets], reset: Reset | None
    ) -> tuple[str, ...]:
        """First contact, or a reset. Stored before anything is read: after a crash `Latest` still means this moment."""
        wanted = reset.to if reset else self.spec.source.starting_offsets
        at_time: dict[TopicPartition, int | None] = {}
        if isinstance(wanted, FromTimestamp):
            at_time = self._kafka().offsets_at(seen, int(wanted.timestamp.timestamp() * 1000))
        epochs = {at: offsets.leader_epoch for at, offsets in seen.items()}
        if reset is None:
            starts = starting_offsets(wanted, seen, at_time)
            books.swap(first_contact(books.state, topics, starts, self.clock(), epochs))
            return ()
        starts = starting_offsets(wanted, seen, at_time, "spec.reset.to")
        again = ": object names have its next generation" if books.state.topics else ""
        books.swap(begin_anew(books.state, reset.nonce, topics, starts, self.clock(), epochs))
        return (f"reset {reset.nonce!r}: every topic begins at {in_words(wanted)}{again}",)

    def _settle(self, books: Books, contact: Contact) -> None:
        """Commits what contact found: new partitions, new generations, gaps."""
        for note in contact.notes:
            logs.warning(note)
        if contact.gaps:
            for gap in contact.gaps:
                logs.warning("offsets lost", topic=gap.topic, partition=gap.partition, start=gap.start, end=gap.end)
            encodings = self.routing.encodings({gap.topic for gap in contact.gaps})
            moved = [(gap.topic, gap.partition) for gap in contact.gaps if gap.moves]
            logs_read = logs_of(contact.state, (at for at in moved if at in contact.known), contact.known)
            manifest = books.manifest(contact.state, encodings, gaps=contact.gaps, logs=logs_read)
            books.commit(contact.state, manifest)
            self.reporter.lost(contact.gaps)
        elif contact.state != books.state:
            books.swap(contact.state)

    def _drop_old_holds(self, state: State, contact: Contact) -> None:
        """A partition that is level, or cannot be read for another reason, is no longer held for the old one."""
        self._holds.keep_only(at for at, o in contact.seen.items() if state.offset(*at) < o.stable)

    def _report(self, state: State, contact: Contact, plan: Plan) -> None:
        self._blocked = {**contact.problems, **self._holds.problems}
        self.problems = {**self._repairs.holds.problems, **self._blocked}
        since = {at: behind_since(state, self._watch, at) for at in contact.known}
        cause = self._held.look(self._kafka, state, contact.known)
        if not contact.known and not self.problems:
            cause = Problem("NoTopicMatches", self._topics.none_matches)
        self.reporter.observed(state, contact.known, since, self.problems, plan, self.clock(), cause)

    def _well(self) -> None:
        lasting = [problem for at, problem in sorted(self.problems.items()) if not self._will_retry(at)]
        if lasting:
            self.reporter.phase("Degraded", lasting[0].message)
        else:
            self.reporter.phase("Running", "the driver runs")
        if not self.problems:
            self.reporter.well()

    def _will_retry(self, at: TopicPartition) -> bool:
        return self._holds.will_retry(at) or self._repairs.holds.will_retry(at)

    def _flush(self, books: Books, slices: tuple[Slice, ...], contact: Contact) -> None:
        self._began = self.clock()
        self.reporter.flushing()
        state, ledger = books.state, books.ledger
        number = ledger.next_number(state)
        name = manifest_name(number, ledger.writer)
        topics = {part.topic for part in slices}
        schemas = books.schemas.known(state, topics)
        encodings = self.routing.encodings(topics).at(max(int(self.clock() * 1000), state.stamp + 1))
        task = self._writing.task(slices, name, encodings, schemas, conditional=ledger.conditional)
        results = self._writing.write(task, state, self._connection)
        logs_read = logs_of(state, (part.at for part in slices), contact.known)
        results = self._writing.keep_committable(results, state, self._kafka(), ledger.bucket, logs_read)
        self._take_failures(results)
        moved = [r for r in results if r.end > r.slice.start]
        if not moved:
            return
        manifest = books.manifest(state, encodings, number=number, results=moved, logs=logs_read)
        books.commit(state, manifest)
        self._publish(books, manifest)
        if not any(r.failure for r in results):
            self._well()

    def _take_failures(self, results: list[SliceResult]) -> None:
        """Holds each partition that failed for a while of its own; the others go on."""
        for result in results:
            at, failure = result.slice.at, result.failure
            if failure is None:
                self._holds.drop(at)
                continue
            problem = Problem(failure.reason, failure.message)
            until = self._holds.hold(at, problem, retryable=failure.retryable)
            error = TransientError if failure.retryable else FinalError
            self.reporter.failed(error(failure.message, reason=failure.reason), until)
            logs.warning("a slice stopped", slice=str(result.slice), reason=failure.reason, cause=failure.message)

    def _publish(self, books: Books, manifest: Manifest) -> None:
        lost = books.publish(manifest)
        if lost:
            logs.warning("uploads vanished between commit and publish", keys=[o.key for o in lost[:LOST_SHOWN]])
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


def _resource(metadata: Metadata) -> Resource | None:
    """Runs by hand have no place in the order of a resource's generations."""
    if not metadata.creation_timestamp:
        return None
    return Resource(metadata.uid, metadata.creation_timestamp, metadata.generation)
