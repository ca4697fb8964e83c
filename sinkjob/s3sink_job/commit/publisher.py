"""How a committed flush becomes visible to readers. Multipart uploads today; commits to tables fit here as well."""

from __future__ import annotations

from typing import Protocol

from s3sink_job.flush.manifest import Manifest, ObjectEntry
from s3sink_job.stores.bucket import Bucket


class Publisher(Protocol):
    def publish(self, bucket: Bucket, manifest: Manifest, *, exclusive: bool) -> list[ObjectEntry]:
        """Makes every object of the flush visible. Returns the lost ones, which have to be written again.

        Idempotent: any driver may do it, any number of times. With `exclusive` a key that is taken by another object
        is an error; without it the store does not support that condition.
        """
