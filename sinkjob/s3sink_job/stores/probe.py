"""Tests at start whether the store does what exactly once needs.

Some stores ignore conditional headers, let several concurrent writers succeed, or do not return metadata. Then two
drivers could both commit, or a driver could not recognise its own objects. The probe tries this on temporary objects
beside the state. It also finds out how long a segment of a key may be.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool

from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.errors import Conflict, NoSuchUpload, PreconditionFailed, StoreRefused, StoreUnavailable
from s3sink_job.stores.object_tags import FLUSH_TAG

WRITERS = 8
WRONG_ETAG = '"00000000000000000000000000000000"'
VALUE = "probe"
"""Of the flush tag of the temporary objects."""
LONGEST_NAME = 255
"""Bytes of a file name, the limit of stores that keep objects as files."""


@dataclass(frozen=True)
class ProbeResult:
    fault: str | None = None
    """What exactly once needs and the store does not do."""
    reason: str = ""
    longest_segment: int | None = None
    """Bytes that a key may have between two slashes, if the store has such a limit."""


def probe(bucket: Bucket, folder: str) -> ProbeResult:
    base = f"{folder}/probe/{uuid.uuid4().hex}"
    keys = [f"{base}-{name}" for name in ("put", "race", "taken", "twice", "tagged")]
    put, race, taken, twice, tagged = keys
    try:
        reason = "NoConditionalWrites"
        fault = _put_conditions(bucket, put) or _race(bucket, race) or _upload_condition(bucket, taken)
        if fault is None:
            reason = "NoMetadata"
            fault = _completed_twice(bucket, twice) or _metadata_of_put(bucket, tagged)
        return ProbeResult(fault, reason if fault else "", _longest_segment(bucket, base))
    finally:
        for key in keys:
            bucket.delete(key)


def _refused(bucket: Bucket, key: str, body: bytes, *, if_match: str = "", if_absent: bool = False) -> bool:
    try:
        bucket.once.put(key, body, if_match=if_match, if_absent=if_absent)
    except (PreconditionFailed, Conflict):
        return True
    return False


def _put_conditions(bucket: Bucket, key: str) -> str | None:
    etag = bucket.once.put(key, b"1", if_absent=True)
    if not _refused(bucket, key, b"2", if_absent=True):
        return "PUT with If-None-Match: * overwrote an existing object"
    if not _refused(bucket, key, b"3", if_match=WRONG_ETAG):
        return "PUT with If-Match and a wrong ETag overwrote the object"
    if _refused(bucket, key, b"4", if_match=etag):
        return "PUT with If-Match and the right ETag was refused"
    return None


def _race(bucket: Bucket, key: str) -> str | None:
    if (winners := _winners(bucket, key)) != 1:
        return f"{winners} of {WRITERS} concurrent creators of one object succeeded"
    etag = bucket.put(key, b"to be swapped")
    if (winners := _winners(bucket, key, if_match=etag)) != 1:
        return f"{winners} of {WRITERS} concurrent writers with If-Match and the same ETag succeeded"
    return None


def _winners(bucket: Bucket, key: str, if_match: str = "") -> int:
    def lost(number: int) -> bool:
        return _refused(bucket, key, b"%d" % number, if_match=if_match, if_absent=not if_match)

    with ThreadPool(WRITERS) as pool:
        return pool.map(lost, range(WRITERS), chunksize=1).count(False)


def _upload_condition(bucket: Bucket, key: str) -> str | None:
    upload_id, etag = _begin(bucket, key)
    if bucket.head(key) is not None:
        bucket.abort_upload(key, upload_id)
        return "an upload was visible before it was completed"
    bucket.put(key, b"2")
    try:
        bucket.complete_upload(key, upload_id, (etag,))
    except PreconditionFailed:
        bucket.abort_upload(key, upload_id)
        return None
    return "CompleteMultipartUpload with If-None-Match: * overwrote an existing object"


def _completed_twice(bucket: Bucket, key: str) -> str | None:
    """As after a crash: the object exists, and its metadata shows that it is ours."""
    upload_id, etag = _begin(bucket, key)
    bucket.complete_upload(key, upload_id, (etag,))
    if (tag := _tag(bucket, key)) != VALUE:
        return f"an upload had the metadata {FLUSH_TAG}: {VALUE}, and HEAD of the object returned {tag!r}"
    try:
        bucket.complete_upload(key, upload_id, (etag,))
    except (NoSuchUpload, PreconditionFailed):
        pass
    except (StoreRefused, StoreUnavailable) as answer:
        return f"completing an upload a second time was answered with neither NoSuchUpload, 412 nor success: {answer}"
    return None if _tag(bucket, key) == VALUE else "completing an upload a second time changed the object"


def _metadata_of_put(bucket: Bucket, key: str) -> str | None:
    bucket.put_data(key, b"1", {FLUSH_TAG: VALUE}, "application/octet-stream")
    if (tag := _tag(bucket, key)) != VALUE:
        return f"PUT had the metadata {FLUSH_TAG}: {VALUE}, and HEAD of the object returned {tag!r}"
    return None


def _longest_segment(bucket: Bucket, base: str) -> int | None:
    """Stores that keep objects as files refuse long names. Some do so only at completion, which is after the commit."""
    folder, _, name = base.rpartition("/")
    key = f"{folder}/{name:x<{LONGEST_NAME + 1}}"
    try:
        bucket.put(key, b"1")
    except (StoreRefused, StoreUnavailable):
        bucket.put(f"{base}-put", b"5")  # raises if the name is not the cause
        return LONGEST_NAME
    bucket.delete(key)
    return None


def _begin(bucket: Bucket, key: str) -> tuple[str, str]:
    upload_id = bucket.create_upload(key, {FLUSH_TAG: VALUE}, "application/octet-stream")
    return upload_id, bucket.upload_part(key, upload_id, 1, b"1")


def _tag(bucket: Bucket, key: str) -> str:
    found = bucket.head(key)
    return found.metadata.get(FLUSH_TAG, "") if found else "no object"
