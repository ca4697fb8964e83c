"""The inferred schema of each topic: known before a flush, widened by what its tasks saw, committed with it."""

from __future__ import annotations

from collections.abc import Iterable

from s3sink_job.engine.ledger import Ledger
from s3sink_job.engine.write import SliceResult
from s3sink_job.flush.state import State
from s3sink_job.schema.types import bounded, from_text, merge, to_text


class Schemas:
    """Schemas as text, each read once."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._texts: dict[str, str] = {}

    def known(self, state: State, topics: Iterable[str]) -> dict[str, str]:
        return {name: self._text(state.topics[name].schema) for name in topics if state.topics[name].schema}

    def learned(self, state: State, results: Iterable[SliceResult]) -> dict[str, str]:
        """The names of those that the results widened. They are stored before anything names them."""
        seen: dict[str, list[str]] = {}
        for result in results:
            if result.schema:
                seen.setdefault(result.slice.topic, []).append(result.schema)
        names = {}
        for topic, texts in seen.items():
            known = self._text(state.topics[topic].schema)
            if text := _merged(known, texts):
                names[topic] = self._ledger.put_schema(text)
                self._texts[names[topic]] = text
        return names

    def _text(self, name: str) -> str:
        if name and name not in self._texts:
            self._texts[name] = self._ledger.schema(name)
        return self._texts.get(name, "")


def _merged(known: str, texts: list[str]) -> str:
    """All of them in one; nothing if that is what was known."""
    if all(text == known for text in texts):
        return ""
    record = from_text(known)
    for text in texts:
        record = bounded(merge(record, from_text(text)))
    merged = to_text(record)
    return merged if merged != known else ""
