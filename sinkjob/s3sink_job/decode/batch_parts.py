"""Batches that are larger than they look: their records are compressed. They are decoded part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

T = TypeVar("T")


class TooMuchData(Exception):
    """Only the first `rows` records of the batch can be decoded at once. There is at least one."""

    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.rows = rows


def in_parts(batch: pa.RecordBatch, work: Callable[[pa.RecordBatch], T]) -> Iterator[T]:
    """The results of the parts, each when it is taken: mostly of the whole batch."""
    while batch.num_rows:
        part = batch
        while True:
            try:
                found = work(part)
                break
            except TooMuchData as error:
                part = part.slice(0, error.rows)
        yield found
        batch = batch.slice(part.num_rows)
