"""`s3sink gc`: uploads that nobody will complete. A crash leaves them behind; they cost storage, unseen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from s3sink_job.engine.routing import Routing
from s3sink_job.errors import ProtocolError
from s3sink_job.flush.keys import keys_like
from s3sink_job.flush.manifest import manifest_from_json
from s3sink_job.flush.statefile import state_from_json
from s3sink_job.layout import TOMBSTONES
from s3sink_job.stores.bucket import Bucket, PendingUpload

DEFAULT_STATE_PREFIX = ".s3sink"


def orphans(
    bucket: Bucket, routing: Routing, topics: Iterable[str], older_than: timedelta
) -> Iterator[tuple[Bucket, PendingUpload]]:
    """Uploads of the topics' objects, as they are named now, that are old enough and that no state is to complete."""
    prefixes = {routing.spec.destination.state_prefix, DEFAULT_STATE_PREFIX}
    buckets = [bucket.named(name) for name in ("", *routing.other_buckets)]
    wanted = {upload for each in buckets for upload in named_by_states(each, prefixes)}
    limit = datetime.now(UTC) - older_than
    for topic in topics:
        own = routing.spec_of(topic)
        place = bucket.named(own.destination.bucket)
        layout = routing.encodings([topic]).of(topic).layout
        begin, like = keys_like(own.destination.prefix, layout, topic)
        apart = "/".join(part for part in (own.destination.prefix, TOMBSTONES) if part)
        begin_apart, like_apart = keys_like(apart, layout, topic)
        found = {u.upload_id: u for start in (begin, begin_apart) for u in place.list_uploads(start)}
        for upload in found.values():
            ours = like.fullmatch(upload.key) or like_apart.fullmatch(upload.key)
            if ours and upload.upload_id not in wanted and upload.initiated < limit:
                yield place, upload


def topics_of(bucket: Bucket, folder: str, listed: Iterable[str]) -> list[str]:
    """The topics that this sink may have left uploads of: those its state knows, and those of the manifest."""
    key = f"{folder}/state.json"
    found = bucket.get(key)
    known = state_from_json(found[0], key).topics if found else {}
    return sorted({*known, *listed})


def named_by_states(bucket: Bucket, state_prefixes: set[str]) -> set[str]:
    """Upload ids of every committed flush that is still being published, of all sinks in the bucket."""
    ids: set[str] = set()
    for prefix in sorted(state_prefixes):
        for key, _ in bucket.list(f"{prefix}/"):
            if key.endswith("/state.json"):
                ids |= _publishing(bucket, key)
    return ids


def _publishing(bucket: Bucket, key: str) -> set[str]:
    # A manifest that is missing or cannot be read raises, as a state does: to abort what it may name would lose data.
    found = bucket.get(key)
    state = state_from_json(found[0], key) if found else None
    if state is None or state.publishing is None:
        return set()
    name = f"{key.removesuffix('state.json')}flushes/{state.publishing}.json"
    manifest = bucket.get(name)
    if manifest is None:
        raise ProtocolError(
            f"s3://{bucket.name}/{key} is about to publish {name}, which is missing: restore it; nothing was aborted, "
            "since it may name any upload",
            reason="StateLost",
        )
    return {o.upload_id for o in manifest_from_json(manifest[0], name).objects}
