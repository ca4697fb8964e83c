"""Opens the bucket of a destination. A new kind of store gets its line here."""

from __future__ import annotations

from collections.abc import Callable

from s3sink_api.spec import Destination
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.request_limit import RequestLimit
from s3sink_job.stores.s3.client import s3_bucket


def open_bucket(
    destination: Destination,
    secrets: Secrets,
    retry: RetryPolicy,
    *,
    limit: RequestLimit | None = None,
    on_retry: Callable[[], None] = lambda: None,
) -> Bucket:
    return Bucket(s3_bucket(destination, secrets), retry, limit or RequestLimit(), on_retry)
