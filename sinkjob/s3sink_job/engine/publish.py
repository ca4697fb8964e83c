"""Completing the uploads of a committed flush. Idempotent: any driver may do it, any number of times."""

from __future__ import annotations

from multiprocessing.pool import ThreadPool

from s3sink_job.errors import FinalError, TransientError
from s3sink_job.flush.keys import names_a_flush
from s3sink_job.flush.manifest import Manifest, ObjectEntry
from s3sink_job.stores.bucket import Bucket, NoSuchUpload, Part, PreconditionFailed
from s3sink_job.stores.errors import InvalidPart
from s3sink_job.stores.share import PARALLEL

FLUSH_TAG = "s3sink-flush"
"""Object metadata that names the manifest: what tells an object of ours from anybody else's."""
SINK_TAG = "s3sink-sink"
RECORD_TAG, VALUE_TAG = "s3sink-record", "s3sink-value"
"""Which record an object of a single one holds, and the SHA-256 of its value."""


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
        _complete_upload(bucket, entry, exclusive=exclusive)
    except (NoSuchUpload, PreconditionFailed) as answer:
        found = bucket.head(entry.key)
        if found is None and isinstance(answer, PreconditionFailed):
            raise TransientError(f"s3://{bucket.name}/{entry.key}: taken a moment ago, gone now") from answer
        if found is None:
            return False
        named = not exclusive and names_a_flush(entry.key)  # its metadata may not come back
        if not named and found.metadata.get(FLUSH_TAG) not in flushes:
            raise key_taken(bucket, entry.key, max(flushes)) from answer
    return True


def _complete_upload(bucket: Bucket, entry: ObjectEntry, *, exclusive: bool) -> None:
    """With the parts that were sent. Raises NoSuchUpload if they are not there, nor can be."""
    where = f"s3://{bucket.name}/{entry.key}"
    try:
        bucket.complete_upload(entry.key, entry.upload_id, entry.etags, exclusive=exclusive)
    except InvalidPart as answer:
        parts = sorted(bucket.list_parts(entry.key, entry.upload_id), key=lambda part: part.number)
        if not _are_those_sent(parts, entry):
            # From here on nobody can complete it, and it can be written again under its key.
            bucket.abort_upload(entry.key, entry.upload_id)
            sizes = [part.size for part in parts]
            raise NoSuchUpload(f"{where}: the upload had parts of {sizes} bytes, and was aborted") from answer
        try:
            etags = tuple(part.etag for part in parts)
            bucket.complete_upload(entry.key, entry.upload_id, etags, exclusive=exclusive)
        except InvalidPart as again:
            raise TransientError(f"{where}: a part of the upload changed just now: trying again") from again


def _are_those_sent(parts: list[Part], entry: ObjectEntry) -> bool:
    """By number and size, since the ETags are others.

    A first try that was given up may arrive after the second, and with it another ETag; both had the same content.
    All parts but the last are of one size, and together they are the object.
    """
    sizes = [part.size for part in parts]
    whole = [part.number for part in parts] == list(range(1, len(entry.etags) + 1)) and sum(sizes) == entry.bytes
    return whole and len(set(sizes[:-1])) <= 1 and sizes[-1] <= sizes[0]


def key_taken(bucket: Bucket, key: str, flush: str) -> FinalError:
    return FinalError(
        f"s3://{bucket.name}/{key} is taken by an object that flush {flush} did not write: "
        "move it away, and the sink goes on by itself; it was not overwritten",
        reason="KeyTaken",
    )
