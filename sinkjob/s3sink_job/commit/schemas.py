"""The inferred schema of each topic: known before a flush, widened by what its tasks found, committed with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from s3sink_job.columns.evolution import evolved
from s3sink_job.columns.known_columns import NO_COLUMNS, KnownColumns, known_from_text, known_to_text
from s3sink_job.columns.types import bounded, merge
from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.state import SinkState
from s3sink_job.task.slice_result import SliceResult

Widening: TypeAlias = Callable[[KnownColumns, KnownColumns], KnownColumns]


class Schemas:
    """Each stored schema is read once."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._by_name: dict[str, KnownColumns] = {}

    def known(self, state: SinkState, topics: Iterable[str]) -> dict[str, KnownColumns]:
        found = {topic: self._schema(state.topics[topic].schema) for topic in topics}
        return {topic: schema for topic, schema in found.items() if schema is not None}

    def widened(self, state: SinkState, results: Iterable[SliceResult], typed: Collection[str] = ()) -> dict[str, str]:
        """By topic the names of schemas that the results widened. They are stored before anything refers to them.

        `typed` are the topics whose records bring their types along.
        """
        found: dict[str, list[KnownColumns]] = {}
        for result in results:
            if result.schema is not None:
                found.setdefault(result.slice.topic, []).append(result.schema)
        names = {}
        for topic, schemas in found.items():
            known = self._schema(state.topics[topic].schema)
            widened = _widened(known, schemas, widening(typed=topic in typed))
            if widened is not None:
                names[topic] = self._ledger.put_schema(known_to_text(widened), typed=topic in typed)
                self._by_name[names[topic]] = widened
        return names

    def _schema(self, name: str) -> KnownColumns | None:
        if name and name not in self._by_name:
            self._by_name[name] = known_from_text(self._ledger.schema(name))
        return self._by_name.get(name)


def widening(*, typed: bool) -> Widening:
    """`typed`: whether records bring their types along."""
    return evolved if typed else _inferred_widened


def _inferred_widened(known: KnownColumns, new: KnownColumns) -> KnownColumns:
    return KnownColumns(bounded(merge(known.record, new.record)))


def _widened(known: KnownColumns | None, schemas: list[KnownColumns], widen: Widening) -> KnownColumns | None:
    """All of them in one; None if that is what was known."""
    if known is not None and all(schema == known for schema in schemas):
        return None
    widened = NO_COLUMNS if known is None else known
    for schema in schemas:
        widened = widen(widened, schema)
    return None if widened == known else widened
