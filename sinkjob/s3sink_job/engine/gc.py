"""`s3sink gc`: uploads that nobody will complete. A crash leaves them behind; they cost storage, unseen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from s3sink_job.flush.manifest import manifest_from_json
from s3sink_job.flush.state import state_from_json
from s3sink_job.spec import Destination
from s3sink_job.stores.bucket import Bucket, PendingUpload

DEFAULT_STATE_PREFIX = ".s3sink"


def orphans(
    bucket: Bucket, destination: Destination, topics: Iterable[str], older_than: timedelta
) -> Iterator[PendingUpload]:
    """Uploads in the topics' folders that are old enough and that no sink's state is about to complete."""
    wanted = named_by_states(bucket, {destination.state_prefix, DEFAULT_STATE_PREFIX})
    limit = datetime.now(UTC) - older_than
    prefix = f"{destination.prefix}/" if destination.prefix else ""
    for topic in topics:
        for upload in bucket.list_uploads(f"{prefix}{topic}/"):
            if upload.upload_id not in wanted and upload.initiated < limit:
                yield upload


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
    # A state or manifest that cannot be read raises: to abort what it may name would lose data.
    found = bucket.get(key)
    state = state_from_json(found[0], key) if found else None
    if state is None or state.publishing is None:
        return set()
    name = f"{key.removesuffix('state.json')}flushes/{state.publishing}.json"
    manifest = bucket.get(name)
    return {o.upload_id for o in manifest_from_json(manifest[0], name).objects} if manifest else set()
