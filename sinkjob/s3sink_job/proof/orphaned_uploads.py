"""Orphaned uploads: multipart uploads that no driver will complete.

A crash leaves them behind. They do not show as objects, and cost storage until somebody aborts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from s3sink_job.base.errors import ProtocolError
from s3sink_job.flush.manifest import Manifest, manifest_from_json, number_of
from s3sink_job.flush.refresh import unpublished_since
from s3sink_job.flush.state import SinkState
from s3sink_job.flush.statefile import state_from_json
from s3sink_job.layout.keys import keys_like
from s3sink_job.layout.settings import DEFAULT_LAYOUT, TOMBSTONES
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.protocol import PendingUpload
from s3sink_job.task.routing import Routing

DEFAULT_STATE_PREFIX = ".s3sink"
STATE_NAME = "state.json"


class OrphanedUpload(NamedTuple):
    bucket: Bucket
    upload: PendingUpload


def orphaned_uploads(
    bucket: Bucket, routing: Routing, topics: Iterable[str], older_than: timedelta
) -> Iterator[OrphanedUpload]:
    """Uploads to keys of these topics, as they are named now, that are old enough and that no state will complete."""
    prefixes = {routing.spec.destination.state_prefix, DEFAULT_STATE_PREFIX}
    buckets = [bucket.named(name) for name in ("", *routing.other_buckets)]
    needed = {upload for each in buckets for upload in uploads_to_publish(each, prefixes)}
    newest = datetime.now(UTC) - older_than
    for topic in topics:
        own = bucket.named(routing.spec_of(topic).destination.bucket)
        found = [OrphanedUpload(own, upload) for upload in _uploads_of_topic(own, routing, topic)]
        found += [OrphanedUpload(bucket, upload) for upload in _uploads_of_letters(bucket, routing, topic)]
        for orphan in found:
            if orphan.upload.upload_id not in needed and orphan.upload.initiated < newest:
                yield orphan


def orphaned_letters(bucket: Bucket, folder: str) -> Iterator[str]:
    """Keys of staged dead letters that no flush will send: of committed flushes, and of attempts before them.

    A flush that is being written has a higher number than the last one that was committed.
    """
    key = f"{folder}/{STATE_NAME}"
    found = bucket.get(key)
    if found is None:
        return
    state = state_from_json(found[0], key)
    needed = {*state.lost, *(manifest.name for manifest in _unpublished(bucket, key, state))}
    for letters, _ in bucket.list(f"{folder}/letters/"):
        flush = letters.removeprefix(f"{folder}/letters/").partition("/")[0]
        if number_of(flush) <= state.flush and flush not in needed:
            yield letters


def _uploads_of_topic(bucket: Bucket, routing: Routing, topic: str) -> list[PendingUpload]:
    """Those whose keys are of the topic's layout, among them the keys of tombstones that are kept apart."""
    prefix = routing.spec_of(topic).destination.prefix
    layout = routing.encodings([topic]).of(topic).layout
    tombstones = "/".join(part for part in (prefix, TOMBSTONES) if part)
    patterns = [keys_like(prefix, layout, topic), keys_like(tombstones, layout, topic)]
    found = {upload.upload_id: upload for start, _ in patterns for upload in bucket.list_uploads(start)}
    return [upload for upload in found.values() if any(pattern.fullmatch(upload.key) for _, pattern in patterns)]


def _uploads_of_letters(bucket: Bucket, routing: Routing, topic: str) -> list[PendingUpload]:
    """Those of dead letters."""
    letters = routing.spec.errors.dead_letter
    if letters is None or letters.prefix is None:
        return []
    start, pattern = keys_like(letters.prefix, DEFAULT_LAYOUT, topic)
    return [upload for upload in bucket.list_uploads(start) if pattern.fullmatch(upload.key)]


def known_topics(bucket: Bucket, folder: str, listed: Iterable[str]) -> list[str]:
    """The topics this sink may have uploads of: those in its state and those in its manifest."""
    key = f"{folder}/{STATE_NAME}"
    found = bucket.get(key)
    known = state_from_json(found[0], key).topics if found else {}
    return sorted({*known, *listed})


def uploads_to_publish(bucket: Bucket, state_prefixes: set[str]) -> set[str]:
    """Upload ids of every committed flush that is not published yet, of all sinks in the bucket."""
    ids: set[str] = set()
    for prefix in sorted(state_prefixes):
        for key, _ in bucket.list(f"{prefix}/"):
            if key.endswith(f"/{STATE_NAME}") and (found := bucket.get(key)):
                state = state_from_json(found[0], key)
                ids |= {o.upload_id for manifest in _unpublished(bucket, key, state) for o in manifest.objects}
    return ids


def _unpublished(bucket: Bucket, key: str, state: SinkState) -> Iterator[Manifest]:
    """The flush that is being published, and those of an unfinished full refresh. `key` is the state's.

    A manifest that is missing or unreadable raises: aborting an upload that it names would lose data.
    """
    if state.publishing is not None:
        yield _manifest(bucket, key, state.publishing)
    name, until = unpublished_since(state)
    while name is not None and name != until:
        manifest = _manifest(bucket, key, name)
        yield manifest
        name = manifest.previous


def _manifest(bucket: Bucket, state_key: str, flush: str) -> Manifest:
    name = f"{state_key.removesuffix(STATE_NAME)}flushes/{flush}.json"
    found = bucket.get(name)
    if found is None:
        raise ProtocolError(
            f"{name} is missing, and s3://{bucket.name}/{state_key} is about to publish it. Nothing was aborted, "
            "because the manifest may name any upload. Restore it from a version or a backup",
            reason="StateLost",
        )
    return manifest_from_json(found[0], name)
