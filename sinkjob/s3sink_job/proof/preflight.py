"""Tests of everything a sink needs, before it runs. They write only temporary objects beside the state."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass

from s3sink_api.spec import EndingOffsets, S3Sink, Source, ToTimestamp, warnings_of
from s3sink_job.base.errors import FinalError, S3SinkError
from s3sink_job.base.secrets import Secrets
from s3sink_job.base.times import iso
from s3sink_job.commit.current_pointer import CurrentPointer
from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.ending_offsets import describe_end, ending_offsets, left_to_end, must_fix_end
from s3sink_job.flush.kafka_metadata import Offsets, TopicPartition
from s3sink_job.flush.refresh import as_if_finished, describe_totals, replaced_totals
from s3sink_job.flush.resets import pending_reset
from s3sink_job.flush.starting_offsets import describe_start
from s3sink_job.flush.state import SinkState
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.group_offsets import refuse_members
from s3sink_job.kafka.letter_topic import LetterTopic, refuse_source
from s3sink_job.proof.registry_check import NANOSECONDS, registry_checks
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.probe import probe
from s3sink_job.stores.uploads import try_upload
from s3sink_job.task.routing import Routing


@dataclass(frozen=True)
class CheckResult:
    what: str
    ok: bool
    text: str
    warning: bool = False
    """Whether the sink works, but a person should look at this."""

    @property
    def outcome(self) -> str:
        return "FAIL" if not self.ok else "warn" if self.warning else "ok"


def preflight_checks(
    sink: S3Sink,
    open_bucket: Callable[[], Bucket],
    ledger_of: Callable[[Bucket], Ledger],
    open_admin: Callable[[], Admin],
    secrets: Secrets,
) -> Iterator[CheckResult]:
    """One result after the other. What cannot be tested after a failure is left out."""
    yield CheckResult("manifest", True, f"{sink.id} is valid")
    yield from (CheckResult("manifest", True, str(found), warning=True) for found in warnings_of(sink.spec))
    state = yield from _check_store(sink, open_bucket, ledger_of)
    yield from _check_kafka(sink, open_admin, state)
    for found in registry_checks(sink.spec, secrets):
        yield CheckResult(*found, warning=found[0] == NANOSECONDS)


def _check_store(
    sink: S3Sink, open_bucket: Callable[[], Bucket], ledger_of: Callable[[Bucket], Ledger]
) -> Generator[CheckResult, None, SinkState | None]:
    """Returns the state, if there is one."""
    destination = sink.spec.destination
    try:
        routing = Routing(sink.spec)
        routing.check()
        bucket = open_bucket()
        for name in ("", *routing.other_buckets):
            bucket.named(name).check()
            yield CheckResult("bucket", True, f"{name or destination.bucket} exists and can be listed")
        probed = probe(bucket, f"{destination.state_prefix}/{sink.id}")
        for place in routing.destinations:
            try_upload(bucket.named(place.bucket), place.prefix)
        yield CheckResult("permissions", True, "objects and uploads can be written below prefix and statePrefix")
        if probed.fault is None:
            yield CheckResult("conditional writes", True, "they work: delivery is exactly once")
        else:
            ok = sink.spec.delivery == "AtLeastOnce"
            yield CheckResult("conditional writes", ok, f"{probed.fault}: only delivery AtLeastOnce is possible")
        if probed.longest_segment is not None:
            limit = f"the store takes at most {probed.longest_segment} bytes between two slashes of a key"
            yield CheckResult("keys", True, f"{limit}; a record that needs a longer folder name is a bad record")
        ledger = ledger_of(bucket)
        state = ledger.load()
        if state is not None and not state.owner.same_sink(ledger.owner):
            raise FinalError(f"{ledger.state_key} belongs to another sink, {state.owner}", reason="ForeignState")
        if state is not None:
            ledger.refuse_rolled_back(state)
        yield from _check_state(sink, state)
        yield from _check_refresh(sink, ledger, state, conditional=probed.fault is None)
        return state
    except S3SinkError as error:
        yield CheckResult("store", False, f"{error.reason}: {error}")
        return None


def _check_state(sink: S3Sink, state: SinkState | None) -> Iterator[CheckResult]:
    reset = sink.spec.reset
    if state is None:
        start = f"reset.to, {describe_start(reset.to)}" if reset else "startingOffsets"
        yield CheckResult("state", True, f"none yet; the first run starts at {start}")
        return
    yield CheckResult("state", True, f"at flush {state.flush}")
    if reset is not None:
        again = f"the next run starts every topic again at {describe_start(reset.to)}; existing objects stay"
        yield CheckResult("reset", True, f"{reset.nonce}: {again if pending_reset(reset, state) else 'already done'}")


def _check_refresh(
    sink: S3Sink, ledger: Ledger, state: SinkState | None, *, conditional: bool
) -> Iterator[CheckResult]:
    """What the next run of `mode: FullRefresh` would replace."""
    if sink.spec.mode != "FullRefresh":
        return
    CurrentPointer(ledger, sink.id, sink.spec.destination.prefix).check()
    if not conditional:
        yield CheckResult("refresh", False, "mode: FullRefresh needs a store with conditional writes")
    elif state is None:
        yield CheckResult("refresh", True, "the next run is the first one")
    else:
        unfinished = state.refresh if state.refresh and state.refresh.unfinished else None
        note = f"; run {unfinished.run} is not finished ({unfinished.phase})" if unfinished else ""
        former = describe_totals(replaced_totals(as_if_finished(state)))
        yield CheckResult("refresh", True, f"the next run replaces {former}{note}")


def _check_kafka(sink: S3Sink, open_admin: Callable[[], Admin], state: SinkState | None) -> Iterator[CheckResult]:
    source = sink.spec.source
    seen: dict[TopicPartition, Offsets] = {}
    try:
        admin = open_admin()
        names = sorted(admin.matching(source.topic_pattern)) if source.topic_pattern else source.topics
        topics = admin.describe(names)
        yield CheckResult("kafka", True, f"{source.bootstrap_servers} answers")
        if source.topic_pattern:
            yield CheckResult("topics", bool(names), f"{len(names)} match {source.topic_pattern!r}")
        for name, topic in topics.items():
            if topic is None:
                yield CheckResult("topic", False, f"{name} does not exist")
                continue
            offsets = admin.offsets([(name, p) for p in topic.partitions], committed=False)
            seen |= offsets
            count = sum(o.end - o.earliest for o in offsets.values())
            yield CheckResult("topic", True, f"{name} has {len(topic.partitions)} partitions and {count} offsets")
        yield from _check_routes(sink, admin, names)
        if source.ending_offsets is not None:
            yield CheckResult("end", True, _end(source, source.ending_offsets, admin, seen, state))
        letters = sink.spec.errors.dead_letter
        if letters is not None and letters.topic is not None:
            yield _check_letter_topic(sink, admin, letters.topic)
        if source.publish_offsets_to is not None:
            refuse_members(admin, source.publish_offsets_to)
            yield CheckResult("group", True, f"no consumer uses {source.publish_offsets_to}")
    except S3SinkError as error:
        yield CheckResult("kafka", False, f"{error.reason}: {error}")


def _check_routes(sink: S3Sink, admin: Admin, topics: Iterable[str]) -> Iterator[CheckResult]:
    """Topics that the driver would not write."""
    routing = Routing(sink.spec)
    try:
        routing.check()
    except S3SinkError:
        return  # the check of the store has told it
    routing.find_routes(admin.matches, topics)
    for problem in dict.fromkeys(routing.topic_problems(topics).values()):
        yield CheckResult("topic", False, f"{problem.reason}: {problem.message}")


def _end(
    source: Source,
    wanted: EndingOffsets,
    admin: Admin,
    seen: Mapping[TopicPartition, Offsets],
    state: SinkState | None,
) -> str:
    """Raises if the end cannot be fixed."""
    if state is not None and state.end is not None and not must_fix_end(state, source):
        return f"{describe_end(wanted)}, fixed at {iso(state.end.at)}; {left_to_end(state)} offsets below it are left"
    at_time: dict[TopicPartition, int | None] = {}
    if isinstance(wanted, ToTimestamp):
        at_time = admin.offsets_at(seen, int(wanted.timestamp.timestamp() * 1000))
    ends = ending_offsets(wanted, seen, at_time, time.time())
    below = sum(max(0, end - seen[at].earliest) for at, end in ends.items())
    return f"{describe_end(wanted)}: Kafka has {below} offsets below it; the next run fixes it"


def _check_letter_topic(sink: S3Sink, admin: Admin, name: str) -> CheckResult:
    """Creates nothing, and begins no session, which would disturb a running driver."""
    topic = LetterTopic(admin, name, sink)
    refuse_source(sink.spec, name, admin)
    if admin.describe([name])[name] is None:
        return CheckResult("dead letters", True, f"the topic {name} does not exist; the first run creates it")
    topic.check_write()
    return CheckResult("dead letters", True, f"the topic {name} can be written to")
