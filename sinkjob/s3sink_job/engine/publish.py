"""Completing the uploads of a committed flush. Idempotent: any driver may do it, any number of times."""

from __future__ import annotations

from multiprocessing.pool import ThreadPool

from s3sink_job.errors import FinalError, TransientError
from s3sink_job.flush.manifest import Manifest, ObjectEntry
from s3sink_job.stores.bucket import Bucket, NoSuchUpload, PreconditionFailed

FLUSH_TAG = "s3sink-flush"
"""Object metadata that names the manifest: what tells an object of ours from anybody else's."""
SINK_TAG = "s3sink-sink"
RECORD_TAG, VALUE_TAG = "s3sink-record", "s3sink-value"
"""Which record an object of a single one holds, and the SHA-256 of its value."""
PARALLEL = 8
"""Requests that a driver, or a task, has under way at a time."""


def publish(bucket: Bucket, manifest: Manifest, *, exclusive: bool) -> list[ObjectEntry]:
    """Makes every object of the flush visible. Returns those whose uploads somebody aborted."""
    uploads = [entry for entry in manifest.objects if entry.upload_id]

    def complete(entry: ObjectEntry) -> bool:
        ours = {manifest.name}
        if entry.key in manifest.replaces:
            # The upload that was taken for lost may have got through after all.
            ours |= set(manifest.mends or {manifest.previous or ""})
        return _complete(bucket.named(entry.bucket), ours, entry, exclusive=exclusive)

    # Not an executor: those are waited for at exit, and a store that hangs must not keep a driver from ending.
    with ThreadPool(min(PARALLEL, max(1, len(uploads)))) as pool:
        done = pool.map(complete, uploads, chunksize=1)
    return [entry for entry, ok in zip(uploads, done, strict=True) if not ok]


def _complete(bucket: Bucket, flushes: set[str], entry: ObjectEntry, *, exclusive: bool) -> bool:
    try:
        bucket.complete_upload(entry.key, entry.upload_id, entry.etags, exclusive=exclusive)
    except (NoSuchUpload, PreconditionFailed) as answer:
        found = bucket.head(entry.key)
        if found is not None and found.metadata.get(FLUSH_TAG) in flushes:
            return True
        if found is not None:
            raise key_taken(bucket, entry.key, max(flushes)) from answer
        if isinstance(answer, PreconditionFailed):
            raise TransientError(f"s3://{bucket.name}/{entry.key}: taken a moment ago, gone now") from answer
        return False
    return True


def key_taken(bucket: Bucket, key: str, flush: str) -> FinalError:
    return FinalError(
        f"s3://{bucket.name}/{key} is taken by an object that flush {flush} did not write: "
        "move it away, and the sink goes on by itself; it was not overwritten",
        reason="KeyTaken",
    )
