"""The state object in the bucket: reading it, and the compare-and-swap that commits.

A swap that was answered with 412, or not at all, may still have succeeded. Every attempt has a revision of its own,
so reading the object back shows whether it was ours. If the outcome stays unknown, CommitUnknown is raised, and the
driver opens the ledger again before it does anything else.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from s3sink_job.base.errors import FencedError, ProtocolError, TransientError
from s3sink_job.flush.state import SinkState
from s3sink_job.flush.statefile import state_from_json, state_to_json
from s3sink_job.stores.bucket import Bucket
from s3sink_job.stores.errors import PreconditionFailed


class CommitUnknown(TransientError):
    """The swap may or may not have taken effect."""

    reason = "CommitUnknown"


class StateObject:
    def __init__(self, bucket: Bucket, key: str, *, conditional: bool) -> None:
        self.bucket = bucket
        self.key = key
        self.conditional = conditional
        self.writer = uuid.uuid4().hex[:12]
        self._revision = 0
        self._etag = ""

    @property
    def url(self) -> str:
        return self.bucket.url(self.key)

    def load(self) -> SinkState | None:
        found = self.bucket.get(self.key)
        if found is None:
            self._etag = ""
            return None
        body, self._etag = found
        return state_from_json(body, self.url)

    def changed(self) -> bool:
        """Whether another driver has stored a state since this one was loaded or stored."""
        found = self.bucket.get(self.key)
        return found is not None and found[1] != self._etag

    def confirm(self) -> None:
        """Raises FencedError if another driver has taken over."""
        found = self.bucket.get(self.key)
        if found is not None and found[1] != self._etag:
            stored = state_from_json(found[0], self.key)
            if stored.writer != self.writer:
                raise _fenced(stored)

    def swap(self, state: SinkState) -> SinkState:
        """The commit point. Returns the state as stored, or raises FencedError or CommitUnknown."""
        self._revision = max(self._revision, state.revision) + 1
        target = replace(state, revision=self._revision, writer=self.writer)
        if self.conditional:
            self._etag = self._swap(target)
        else:
            self._overwrite(target)
        return target

    def _swap(self, target: SinkState) -> str:
        body = state_to_json(target)
        for _ in self.bucket.retry.attempts():
            try:
                return self.bucket.once.put(self.key, body, if_match=self._etag, if_absent=not self._etag)
            except PreconditionFailed:
                if (etag := self._read_back(target)) is not None:
                    return etag
            except TransientError:
                self.bucket.on_retry()
                try:
                    if (etag := self._read_back(target)) is not None:
                        return etag
                except TransientError:
                    continue
        raise CommitUnknown(
            f"{self.url}: the store did not answer whether it stored the state. Reading the state again before going on"
        )

    def _read_back(self, target: SinkState) -> str | None:
        """The ETag if the target is stored, None if the former state still is. Raises FencedError for any other."""
        found = self.bucket.get(self.key)
        if found is None and not self._etag:
            return None
        if found is None:
            raise ProtocolError(f"{self.url} was deleted while this driver ran: restore it", reason="StateLost")
        body, etag = found
        if etag == self._etag:
            return None
        stored = state_from_json(body, self.key)
        if (stored.revision, stored.writer) == (target.revision, target.writer):
            return etag
        raise _fenced(stored)

    def _overwrite(self, target: SinkState) -> None:
        """Without conditional writes: read, then write. Offsets never move back, whoever wrote them."""
        found = self.bucket.get(self.key)
        if found is not None:
            stored = state_from_json(found[0], self.key)
            if stored.writer != self.writer and (stored.epoch >= target.epoch or _moves_back(stored, target)):
                raise _fenced(stored)
        self._etag = self.bucket.put(self.key, state_to_json(target))


def _moves_back(stored: SinkState, target: SinkState) -> bool:
    for topic, known in stored.topics.items():
        ours = target.topics.get(topic)
        if ours is None or ours.generation < known.generation:
            return True
        if ours.generation == known.generation:
            for partition, at in known.partitions.items():
                if partition not in ours.partitions or ours.partitions[partition].offset < at.offset:
                    return True
    return False


def _fenced(stored: SinkState) -> FencedError:
    return FencedError(
        f"another driver of this sink took over (epoch {stored.epoch}, writer {stored.writer}). "
        "This driver stops; it has written nothing since"
    )
