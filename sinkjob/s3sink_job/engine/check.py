"""`s3sink check`: everything a sink needs, tried before it runs. Writes only throw-away objects beside the state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from s3sink_job.engine.ledger import Ledger
from s3sink_job.engine.routing import Routing
from s3sink_job.errors import FinalError, S3SinkError
from s3sink_job.flush.contact import due_reset, in_words
from s3sink_job.flush.state import State
from s3sink_job.kafka.admin import Admin
from s3sink_job.kafka.groups import refuse_members
from s3sink_job.spec import S3Sink
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.probe import probe
from s3sink_job.stores.uploads import try_upload


@dataclass(frozen=True)
class Finding:
    what: str
    ok: bool
    text: str


def check(
    sink: S3Sink,
    open_bucket: Callable[[], Bucket],
    ledger_of: Callable[[Bucket], Ledger],
    open_admin: Callable[[], Admin],
) -> Iterator[Finding]:
    """One finding after the other; what cannot be tried after a failure is left out."""
    yield Finding("manifest", True, f"{sink.id} is valid")
    yield from _check_store(sink, open_bucket, ledger_of)
    yield from _check_kafka(sink, open_admin)


def _check_store(
    sink: S3Sink, open_bucket: Callable[[], Bucket], ledger_of: Callable[[Bucket], Ledger]
) -> Iterator[Finding]:
    destination = sink.spec.destination
    try:
        routing = Routing(sink.spec)
        routing.check()
        bucket = open_bucket()
        for name in ("", *routing.other_buckets):
            bucket.named(name).check()
            yield Finding("bucket", True, f"{name or destination.bucket} is there and may be listed")
        probed = probe(bucket, f"{destination.state_prefix}/{sink.id}")
        for place in routing.destinations:
            try_upload(bucket.named(place.bucket), place.prefix)
        yield Finding("permissions", True, "objects and uploads may be written below prefix and statePrefix")
        if probed.fault is None:
            yield Finding("conditional writes", True, "the store keeps exactly once")
        else:
            ok = sink.spec.delivery == "AtLeastOnce"
            yield Finding("conditional writes", ok, f"{probed.fault}: only delivery AtLeastOnce is possible")
        if probed.longest_segment is not None:
            text = f"the store takes {probed.longest_segment} bytes between the slashes of a key: with longer folders "
            yield Finding("keys", True, f"{text}a record is a bad record")
        ledger = ledger_of(bucket)
        state = ledger.load()
        if state is not None and not state.owner.same_sink(ledger.owner):
            raise FinalError(f"the state belongs to {state.owner}", reason="ForeignState")
        if state is not None:
            ledger.refuse_rolled_back(state)
        yield from _check_state(sink, state)
    except S3SinkError as error:
        yield Finding("store", False, f"{error.reason}: {error}")


def _check_state(sink: S3Sink, state: State | None) -> Iterator[Finding]:
    reset = sink.spec.reset
    if state is None:
        start = f"reset.to, {in_words(reset.to)}" if reset else "startingOffsets"
        yield Finding("state", True, f"none yet: the first run starts at {start}")
        return
    yield Finding("state", True, f"at flush {state.flush}")
    if reset is not None:
        anew = f"the next run starts every topic anew at {in_words(reset.to)}; what was written stays"
        yield Finding("reset", True, f"{reset.nonce}: {anew if due_reset(reset, state) else 'carried out already'}")


def _check_kafka(sink: S3Sink, open_admin: Callable[[], Admin]) -> Iterator[Finding]:
    source = sink.spec.source
    try:
        admin = open_admin()
        names = sorted(admin.matching(source.topic_pattern)) if source.topic_pattern else source.topics
        topics = admin.describe(names)
        yield Finding("kafka", True, f"{source.bootstrap_servers} answers")
        if source.topic_pattern:
            yield Finding("topics", bool(names), f"{len(names)} match {source.topic_pattern!r}")
        for name, topic in topics.items():
            if topic is None:
                yield Finding("topic", False, f"{name} does not exist")
                continue
            offsets = admin.offsets([(name, p) for p in topic.partitions], committed=False)
            count = sum(o.end - o.earliest for o in offsets.values())
            yield Finding("topic", True, f"{name} has {len(topic.partitions)} partitions and {count} offsets")
        if source.publish_offsets_to is not None:
            refuse_members(admin, source.publish_offsets_to)
            yield Finding("group", True, f"nobody consumes with {source.publish_offsets_to}")
    except S3SinkError as error:
        yield Finding("kafka", False, f"{error.reason}: {error}")
