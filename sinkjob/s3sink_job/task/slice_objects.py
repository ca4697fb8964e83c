"""The objects that a slice's rows go to: what every kind of them offers to the slice's writer."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from s3sink_job.flush.manifest import ObjectEntry
from s3sink_job.layout.groups import Groups
from s3sink_job.stores.bucket import Bucket


class SliceObjects(Protocol):
    bucket: Bucket
    done: list[ObjectEntry]
    """Objects that are uploaded and not yet visible."""
    refused: dict[tuple[str, ...], str]
    """Groups whose key the store refuses, with the reason. Then nothing of the slice may be committed."""

    def write(
        self, rows: pa.RecordBatch, offsets: pa.Array, groups: Groups | None, schemas: pa.Array | None = None
    ) -> None:
        """`schemas` are the numbers of the schemas that the rows were written with, where they are needed."""

    def count_with(self, groups: Groups | None) -> int:
        """How many objects there will be if rows of these groups are written."""

    def close(self) -> None:
        """Sends the rest of every open object."""

    def abandon(self) -> None:
        """Aborts all uploads."""

    def release(self) -> None:
        """Frees threads and files."""
