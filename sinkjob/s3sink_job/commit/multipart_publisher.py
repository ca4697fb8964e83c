"""Publishes a flush by completing its multipart uploads."""

from __future__ import annotations

from multiprocessing.pool import ThreadPool

from s3sink_job.base.errors import TransientError
from s3sink_job.flush.manifest import Manifest, ObjectEntry
from s3sink_job.layout.keys import names_a_flush
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.errors import InvalidPart, NoSuchUpload, PreconditionFailed, key_taken
from s3sink_job.stores.object_tags import FLUSH_TAG
from s3sink_job.stores.protocol import Part
from s3sink_job.stores.request_limit import PARALLEL


class MultipartPublisher:
    def publish(self, bucket: Bucket, manifest: Manifest, *, exclusive: bool) -> list[ObjectEntry]:
        """Returns the objects whose uploads somebody aborted."""
        uploads = [entry for entry in manifest.objects if entry.upload_id]

        def complete(entry: ObjectEntry) -> bool:
            flushes = {manifest.name}
            if entry.key in manifest.replaces:
                # The upload that was considered lost may have been completed after all.
                flushes |= set(manifest.mends or {manifest.previous or ""})
            return _complete(bucket.named(entry.bucket), flushes, entry, exclusive=exclusive)

        # Not a ThreadPoolExecutor: Python waits for those at exit, and a hanging store must not keep a driver alive.
        with ThreadPool(min(PARALLEL, max(1, len(uploads)))) as pool:
            done = pool.map(complete, uploads, chunksize=1)
        return [entry for entry, ok in zip(uploads, done, strict=True) if not ok]


def _complete(bucket: Bucket, flushes: set[str], entry: ObjectEntry, *, exclusive: bool) -> bool:
    """False if the upload is lost. `flushes`: those that may have written the object."""
    try:
        _complete_upload(bucket, entry, exclusive=exclusive)
    except (NoSuchUpload, PreconditionFailed) as answer:
        found = bucket.head(entry.key)
        if found is None and isinstance(answer, PreconditionFailed):
            raise TransientError(f"{bucket.url(entry.key)} existed a moment ago and is gone now") from answer
        if found is None:
            return False
        ours_by_name = not exclusive and names_a_flush(entry.key)  # the store may not return metadata
        if not ours_by_name and found.metadata.get(FLUSH_TAG) not in flushes:
            raise key_taken(bucket.url(entry.key), max(flushes)) from answer
    return True


def _complete_upload(bucket: Bucket, entry: ObjectEntry, *, exclusive: bool) -> None:
    """Raises NoSuchUpload if the parts that were sent are not there."""
    try:
        bucket.complete_upload(entry.key, entry.upload_id, entry.etags, exclusive=exclusive)
    except InvalidPart as answer:
        url = bucket.url(entry.key)
        parts = sorted(bucket.list_parts(entry.key, entry.upload_id), key=lambda part: part.number)
        if not _same_content(parts, entry):
            # After this nobody can complete it, and the object can be written again under its key.
            bucket.abort_upload(entry.key, entry.upload_id)
            sizes = [part.size for part in parts]
            raise NoSuchUpload(f"{url}: the upload had unexpected parts of {sizes} bytes and was aborted") from answer
        try:
            etags = tuple(part.etag for part in parts)
            bucket.complete_upload(entry.key, entry.upload_id, etags, exclusive=exclusive)
        except InvalidPart as again:
            raise TransientError(f"{url}: a part of the upload was changed just now; retrying") from again


def _same_content(parts: list[Part], entry: ObjectEntry) -> bool:
    """Whether the parts are those that were sent, by number and size: their ETags differ.

    If a part was sent twice because the first attempt timed out, the first one may arrive last, with the same content
    but another ETag. All parts but the last have the same size, and together they have the size of the object.
    """
    sizes = [part.size for part in parts]
    whole = [part.number for part in parts] == list(range(1, len(entry.etags) + 1)) and sum(sizes) == entry.bytes
    return whole and len(set(sizes[:-1])) <= 1 and sizes[-1] <= sizes[0]
