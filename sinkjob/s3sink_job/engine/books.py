"""A driver's hold on its sink: the ledger, the state as last stored, and the only ways to change it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from s3sink_job.engine.ledger import Ledger
from s3sink_job.engine.publish import publish
from s3sink_job.engine.routing import Encodings
from s3sink_job.engine.schemas import Schemas
from s3sink_job.engine.write import SliceResult
from s3sink_job.errors import FinalError, ProtocolError
from s3sink_job.flush.manifest import Gap, Manifest, ObjectEntry, SliceEntry, SourceLog
from s3sink_job.flush.state import State, commit, published


class Books:
    def __init__(self, ledger: Ledger, state: State, clock: Callable[[], float] = time.time) -> None:
        self.ledger = ledger
        self.schemas = Schemas(ledger)
        self.clock = clock
        self._state: State | None = state

    @property
    def in_doubt(self) -> bool:
        """After a swap that failed nothing more may be done here: the ledger has to be opened anew."""
        return self._state is None

    @property
    def state(self) -> State:
        if self._state is None:
            raise ProtocolError("the outcome of the last swap is not known")
        return self._state

    def swap(self, state: State) -> State:
        self._state = None
        self._state = self.ledger.swap(state)
        return self._state

    def commit(self, state: State, manifest: Manifest) -> State:
        self.ledger.put_manifest(manifest)
        return self.swap(commit(state, manifest))

    def publish(self, manifest: Manifest) -> list[ObjectEntry]:
        """Completes the uploads of the committed flush and notes it at once; returns those that somebody aborted.

        At once, since readers may load and delete objects as soon as they see them: while the state names the flush,
        an object that is gone would be taken for one that was never published, and written again.
        """
        try:
            lost = publish(self.ledger.bucket, manifest, exclusive=self.ledger.conditional)
        except FinalError:
            self.ledger.confirm()  # the key may hold what another driver wrote again after it took over
            raise
        if self.state.publishing is not None:
            keys = {entry.key for entry in lost}
            self.swap(published(self.state, [n for n, entry in enumerate(manifest.objects) if entry.key in keys]))
        return lost

    def manifest(
        self,
        state: State,
        encodings: Encodings,
        *,
        number: int | None = None,
        results: list[SliceResult] | None = None,
        gaps: tuple[Gap, ...] = (),
        logs: Mapping[str, SourceLog] | None = None,
    ) -> Manifest:
        results = results or []
        return Manifest(
            number=self.ledger.next_number(state) if number is None else number,
            writer=self.ledger.writer,
            epoch=state.epoch,
            committed_at=self.clock(),
            encoding=encodings.default.to_doc(),
            routed={topic: encoding.to_doc() for topic, encoding in encodings.routed.items()},
            stamp=encodings.stamp,
            previous=state.last,
            slices=tuple(_entry(r) for r in results),
            objects=tuple(o for r in results for o in r.objects),
            gaps=gaps,
            schemas=self.schemas.learned(state, results),
            logs=logs or {},
        )


def _entry(result: SliceResult) -> SliceEntry:
    part = result.slice
    return SliceEntry(
        *(part.topic, part.generation, part.partition, part.start, result.end, part.reason),
        rows=sum(o.rows for o in result.objects),
        skipped=result.skipped,
        bytes=sum(o.bytes for o in result.objects),
        # A slice that stopped short had read on: that would not be a measure.
        read=result.read_bytes if result.failure is None else 0,
        more=part.more or result.end < part.end,
    )
