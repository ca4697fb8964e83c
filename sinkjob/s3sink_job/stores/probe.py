"""Asks a store, at start, whether it keeps the promises the protocol is built on.

Some stores ignore conditional headers, some let several concurrent creators win: both would let two
drivers commit at once. The probe tries just that on throw-away objects beside the state.
"""

from __future__ import annotations

import uuid
from multiprocessing.pool import ThreadPool

from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.errors import Conflict, PreconditionFailed

CREATORS = 8
WRONG_ETAG = '"00000000000000000000000000000000"'


def probe(bucket: Bucket, folder: str) -> str | None:
    """None when conditional writes work, otherwise what the store got wrong, in words."""
    base = f"{folder}/probe/{uuid.uuid4().hex}"
    keys = [f"{base}-{name}" for name in ("put", "race", "upload")]
    try:
        return _put_conditions(bucket, keys[0]) or _race(bucket, keys[1]) or _upload_condition(bucket, keys[2])
    finally:
        for key in keys:
            bucket.delete(key)


def _refused(bucket: Bucket, key: str, body: bytes, *, if_match: str = "", if_absent: bool = False) -> bool:
    try:
        bucket.put(key, body, if_match=if_match, if_absent=if_absent, retry=False)
    except (PreconditionFailed, Conflict):
        return True
    return False


def _put_conditions(bucket: Bucket, key: str) -> str | None:
    etag = bucket.put(key, b"1", if_absent=True, retry=False)
    if not _refused(bucket, key, b"2", if_absent=True):
        return "PUT with If-None-Match: * overwrote an existing object"
    if not _refused(bucket, key, b"3", if_match=WRONG_ETAG):
        return "PUT with If-Match and a wrong ETag overwrote the object"
    if _refused(bucket, key, b"4", if_match=etag):
        return "PUT with If-Match and the right ETag was refused"
    return None


def _race(bucket: Bucket, key: str) -> str | None:
    with ThreadPool(CREATORS) as pool:
        lost = pool.map(lambda n: _refused(bucket, key, b"%d" % n, if_absent=True), range(CREATORS), chunksize=1)
    winners = lost.count(False)
    return None if winners == 1 else f"{winners} of {CREATORS} concurrent creators of one object won"


def _upload_condition(bucket: Bucket, key: str) -> str | None:
    upload_id = bucket.create_upload(key, {}, "application/octet-stream")
    etag = bucket.upload_part(key, upload_id, 1, b"1")
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
