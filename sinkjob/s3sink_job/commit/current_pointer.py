"""`_current.json`: which generation is the current one, for readers that can use it.

A full refresh replaces it after the swap that makes its run current, and before it removes anything. It never goes
back to an earlier run, however late a request of a stale driver arrives.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from s3sink_job.base.errors import FinalError, ProtocolError, TransientError
from s3sink_job.base.times import iso
from s3sink_job.commit.ledger import Ledger
from s3sink_job.flush.refresh import written_totals
from s3sink_job.flush.state import SinkState
from s3sink_job.stores.errors import PreconditionFailed

NAME = "_current.json"
FORMAT_VERSION = 1
ATTEMPTS = 5


def pointer_key(prefix: str) -> str:
    return f"{prefix}/{NAME}" if prefix else NAME


@dataclass(frozen=True)
class CurrentPointer:
    ledger: Ledger
    sink: str
    prefix: str

    @property
    def key(self) -> str:
        return pointer_key(self.prefix)

    def check(self) -> None:
        """Raises if the key has an object that is not this sink's pointer."""
        self._read()

    def write(self, state: SinkState) -> None:
        """Idempotent. Does nothing if a later run has replaced it already."""
        document = self.document(state)
        body = json.dumps(document, indent=1).encode()
        for _ in range(ATTEMPTS):
            found = self._read()
            if found is not None and _document(found[0])["number"] >= document["number"]:
                return
            try:
                self.ledger.bucket.put(self.key, body, if_match=found[1] if found else "", if_absent=found is None)
                return
            except PreconditionFailed:
                continue  # our own request, answered late, or another driver's: read it again
        raise TransientError(f"{self.ledger.bucket.url(self.key)} keeps changing while it is written")

    def document(self, state: SinkState) -> dict[str, Any]:
        refresh, totals = state.refresh, written_totals(state)
        if refresh is None or refresh.current_at is None:
            raise ProtocolError("no full refresh is current")
        bucket = self.ledger.bucket
        return {
            "formatVersion": FORMAT_VERSION,
            "sink": self.sink,
            "run": refresh.run,
            "number": refresh.number,
            "time": iso(refresh.current_at),
            "generations": dict(sorted(refresh.generations.items())),
            "manifests": {
                "folder": bucket.url(f"{self.ledger.folder}/flushes/"),
                "after": refresh.since,
                "last": state.last,
            },
            "records": totals.records,
            "objects": totals.objects,
            "bytes": totals.bytes,
        }

    def _read(self) -> tuple[bytes, str] | None:
        found = self.ledger.bucket.get(self.key)
        if found is not None and _sink(found[0]) != self.sink:
            raise FinalError(
                f"{self.ledger.bucket.url(self.key)} is not the pointer of the sink {self.sink}. A full refresh would "
                "overwrite it. Use another spec.destination.prefix, or move the object away",
                reason="KeyTaken",
            )
        return found


def _document(body: bytes) -> dict[str, Any]:
    try:
        doc = json.loads(body)
    except ValueError:
        return {}
    return doc if isinstance(doc, dict) else {}


def _sink(body: bytes) -> Any:
    return _document(body).get("sink")
