"""Sends the staged dead letters of a committed flush to their topic, once for readers of committed records.

The order matters. Beginning a session fences every other session of the sink. Only then is it asked which flush was
sent last, and whether another driver has taken over: a driver that takes over later begins a session later, and so
either finds this flush sent or ends its transaction.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from s3sink_job.base.errors import ProtocolError, S3SinkError
from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.manifest import STAGED, Manifest, ObjectEntry, number_of
from s3sink_job.flush.state import SinkState
from s3sink_job.kafka.letter_topic import Letter, context_headers
from s3sink_job.report import logs


class Session(Protocol):
    def last_flush(self) -> str: ...

    def send(self, letters: Iterable[Letter], flush: str, number: int) -> None: ...

    def close(self) -> None: ...


class Topic(Protocol):
    def begin(self) -> Session: ...


@dataclass(frozen=True)
class LetterPublisher:
    open_topic: Callable[[str], Topic]

    def check(self, ledger: Ledger, state: SinkState, topic: str) -> None:
        """Raises if transactions are not allowed, or if the state is older than what was sent. Sends nothing.

        A flush whose uploads were all lost, or that has dead letters alone, leaves no other trace outside of the state.
        """
        session = self.open_topic(topic).begin()
        try:
            last = session.last_flush()
        finally:
            session.close()
        newer = number_of(last) > state.flush or (number_of(last) == state.flush and last not in {"", state.last})
        # Without conditional writes two drivers may have committed flushes of the same number.
        if newer and ledger.conditional:
            raise ProtocolError(
                f"state rolled back: {ledger.state_object.url} is at flush {state.flush}, but the dead letters of "
                f"flush {last} are in topic {topic}. Going on would write its records twice. Restore the newest "
                "version of the state object",
                reason="StateRolledBack",
            )

    def publish(self, ledger: Ledger, manifest: Manifest) -> list[ObjectEntry]:
        """Idempotent. Returns the staged objects that have to be written again: all of them, if one is gone."""
        staged = staged_letters(manifest)
        if not staged:
            return []
        if manifest.letter_topic is None:
            raise ProtocolError(f"flush {manifest.name} has staged dead letters, and no topic for them")
        session = self.open_topic(manifest.letter_topic.name).begin()
        try:
            if session.last_flush() == manifest.name:
                return []
            ledger.confirm()
            if any(ledger.bucket.head(entry.key) is None for entry in staged):
                return staged
            letters = _letters(ledger, staged, with_context=manifest.letter_topic.context)
            session.send(letters, manifest.name, manifest.number)
            return []
        finally:
            session.close()

    def remove_staged(self, ledger: Ledger, manifest: Manifest) -> None:
        """Once the flush is published. Best effort: `s3sink gc` removes what is left."""
        for entry in staged_letters(manifest):
            try:
                ledger.bucket.delete(entry.key)
            except S3SinkError as error:
                logs.warning("could not delete staged dead letters; `s3sink gc` does", key=entry.key, error=str(error))
                return


def staged_letters(manifest: Manifest) -> list[ObjectEntry]:
    return [entry for entry in manifest.objects if entry.letters == STAGED]


def _letters(ledger: Ledger, staged: Iterable[ObjectEntry], *, with_context: bool) -> Iterator[Letter]:
    """One object in memory at a time."""
    for entry in staged:
        found = ledger.bucket.get(entry.key)
        if found is None:
            raise ProtocolError(f"{ledger.bucket.url(entry.key)} existed a moment ago and is gone now")
        rows = pq.read_table(io.BytesIO(found[0]))
        at = rows.schema.get_field_index("timestamp")
        rows = rows.set_column(at, "timestamp", rows.column(at).cast(pa.int64()))
        for row in rows.to_pylist():
            yield _letter(row, with_context=with_context)


def _letter(row: dict[str, Any], *, with_context: bool) -> Letter:
    headers = [(header["key"], header["value"]) for header in row["headers"]]
    headers += context_headers(row) if with_context else []
    return Letter(row["key"], row["value"], row["timestamp"], headers)
