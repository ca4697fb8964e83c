"""The start of a driver: it checks the store, then takes the sink over from the driver before it."""

from __future__ import annotations

from collections.abc import Callable

from s3sink_api.labels import ADOPT_FROM
from s3sink_api.spec import Metadata, S3Sink
from s3sink_job.base.errors import FinalError
from s3sink_job.commit.committer import Committer
from s3sink_job.commit.ledger import Ledger
from s3sink_job.commit.letter_publisher import LetterPublisher
from s3sink_job.flush.state import Owner, Resource
from s3sink_job.report import logs
from s3sink_job.report.status import Reporter
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.probe import ProbeResult, probe
from s3sink_job.task.routing import Routing


def state_folder(sink: S3Sink) -> str:
    return f"{sink.spec.destination.state_prefix}/{sink.id}"


def adopt_from(metadata: Metadata) -> str:
    """The cluster whose state the sink may adopt; empty if none."""
    return metadata.annotations.get(ADOPT_FROM, "")


def check_store(sink: S3Sink, routing: Routing, bucket: Bucket, reporter: Reporter) -> ProbeResult:
    """Refuses ExactlyOnce on a store that cannot support it."""
    for name in ("", *routing.other_buckets):
        bucket.named(name).check()
    probed = probe(bucket, state_folder(sink))
    reporter.probed(probed.fault, sink.spec.delivery, probed.reason)
    if probed.fault is not None and sink.spec.delivery == "ExactlyOnce":
        raise FinalError(
            f"the store of bucket {bucket.name} does not support exactly once: {probed.fault}. "
            "Use a store with conditional writes and object metadata, or set spec.delivery to AtLeastOnce",
            reason=probed.reason,
        )
    return probed


def take_over(
    sink: S3Sink,
    bucket: Bucket,
    clock: Callable[[], float],
    letters: LetterPublisher | None = None,
    *,
    cluster: str,
    conditional: bool,
) -> Committer:
    metadata = sink.metadata
    owner = Owner(cluster, metadata.namespace, metadata.name, metadata.uid)
    ledger = Ledger(bucket, state_folder(sink), owner, conditional=conditional)
    state = ledger.take_over(adopt_from(metadata), _resource(metadata))
    logs.info("took over", epoch=state.epoch, flush=state.flush, writer=ledger.writer)
    return Committer(ledger, state, clock, letters=letters)


def _resource(metadata: Metadata) -> Resource | None:
    """None for a run without Kubernetes: it has no generation to compare."""
    if not metadata.creation_timestamp:
        return None
    return Resource(metadata.uid, metadata.creation_timestamp, metadata.generation)
