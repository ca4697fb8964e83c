"""The inferred schema of each topic: known before a flush, widened by what its tasks found, committed with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

import pyarrow as pa

from s3sink_job.columns.evolution import widened as typed_widened
from s3sink_job.columns.types import EMPTY, bounded, from_text, merge, to_text
from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.state import SinkState
from s3sink_job.task.slice_result import SliceResult

Widening: TypeAlias = Callable[[pa.StructType, pa.StructType], pa.StructType]


class Schemas:
    """Each stored schema is read once."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._by_name: dict[str, pa.StructType] = {}

    def known(self, state: SinkState, topics: Iterable[str]) -> dict[str, pa.StructType]:
        found = {topic: self._schema(state.topics[topic].schema) for topic in topics}
        return {topic: schema for topic, schema in found.items() if schema is not None}

    def widened(self, state: SinkState, results: Iterable[SliceResult], typed: Collection[str] = ()) -> dict[str, str]:
        """By topic the names of schemas that the results widened. They are stored before anything refers to them.

        `typed` are the topics whose records bring their types along.
        """
        found: dict[str, list[pa.StructType]] = {}
        for result in results:
            if result.schema is not None:
                found.setdefault(result.slice.topic, []).append(result.schema)
        names = {}
        for topic, schemas in found.items():
            known = self._schema(state.topics[topic].schema)
            widened = _widened(known, schemas, typed_widened if topic in typed else _inferred_widened)
            if widened is not None:
                names[topic] = self._ledger.put_schema(to_text(widened), typed=topic in typed)
                self._by_name[names[topic]] = widened
        return names

    def _schema(self, name: str) -> pa.StructType | None:
        if name and name not in self._by_name:
            self._by_name[name] = from_text(self._ledger.schema(name))
        return self._by_name.get(name)


def _inferred_widened(known: pa.StructType, new: pa.StructType) -> pa.StructType:
    return bounded(merge(known, new))


def _widened(
    known: pa.StructType | None,
    schemas: list[pa.StructType],
    widen: Callable[[pa.StructType, pa.StructType], pa.StructType],
) -> pa.StructType | None:
    """All of them in one; None if that is what was known."""
    if known is not None and all(schema.equals(known) for schema in schemas):
        return None
    widened = EMPTY if known is None else known
    for schema in schemas:
        widened = widen(widened, schema)
    return None if known is not None and widened.equals(known) else widened
